"""Training of the heads ``"encoder"`` and ``"ls"``, on ratings or on texts alone.

A network is trained by sentence-transformers: batches, schedule, mixed precision, checkpoints and resuming.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments
from torch import Tensor
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from mars_score.data.validation import Row
from mars_score.infilling.augmenter import Augmenter
from mars_score.learning.heads import HeadFolder, check_models, read_head, write_head
from mars_score.learning.pairs import Source, contrasts, make_pairs, read_signals, with_sentences
from mars_score.learning.ratings import Floats, TrainingSet
from mars_score.learning.text_heads import ALPHA, BETA, TEXT_HEADS, Segments, TextHead
from mars_score.models.fingerprints import fingerprint
from mars_score.models.loading import no_bars
from mars_score.models.running import ordinary_mode
from mars_score.progress import Progress
from mars_score.scorer import MarsScorer

Rows = list[dict[str, Any]]
Objective = Literal["ratings", "pretrain", "contrastive"]
PAIRS = 1_500  # synthetic; 5,000 gave the same mean agreement and harmed more kinds of text (research/learning.md)
RATE_OF_TEXTS, RATE_OF_RATINGS = 1e-4, 3e-5  # a faster training on few ratings forgets what the encoder knew
MARGIN = 1.0  # of the hinge loss: LS_Score's
_BATCH, _TEXTS_TOGETHER = 32, 4  # rows of a step; texts of a step that reads each with its damaged versions
_HELD_OUT = 0.1
_CENTRED = 128  # rows that say by how much a layer's output is shifted


def train_encoder(
    scorer: MarsScorer,
    folder: str | os.PathLike[str],
    objective: Objective = "ratings",
    *,
    sets: Sequence[TrainingSet] = (),
    sources: Sequence[Source] = (),
    start: str | os.PathLike[str] | None = None,
    pairs: int = PAIRS,
    epochs: int = 3,
    seed: int = 0,
    **arguments: Any,
) -> HeadFolder:
    """Train an encoder and save it; continued where an earlier run with the same input was stopped.

    As transformers' trainer does, this sets the seeds of Python, NumPy and torch.

    Args:
        scorer: holds models and settings.
        folder: of the head; made where it is missing.
        objective: "ratings": to predict those of people; "pretrain": to predict signals of synthetic pairs;
            "contrastive": to prefer texts to their damaged versions, which is for head "ls", that looks at no
            reference. The other two are for head "encoder".
        sets: rated sets, for "ratings".
        sources: texts to make pairs of or to damage, for the other objectives.
        start: folder of a head of the same kind whose weights it starts from; None: the preset's encoder.
        pairs: synthetic pairs, for "pretrain".
        epochs: at most.
        seed: of all that is drawn.
        arguments: any of sentence-transformers' ``CrossEncoderTrainingArguments``, which have the last word.

    Raises:
        ValueError: nothing to learn from; a start that does not fit.
        ModelUnavailableError, UnsupportedModelError, ImportError: a model or a package is missing or unfit.
    """
    settings, runtime = scorer.settings, scorer.runtime
    if not (sets if objective == "ratings" else sources):
        raise ValueError("there is nothing to learn from; name a file of ratings or of texts")
    sizes = [1]  # of the signals
    if objective == "ratings":
        texts = [row for data in sets for row in data.rows]
        targets = np.concatenate([data.ratings for data in sets])[:, None]
        groups = [f"{data.name} {group}" for data in sets for group in data.groups]
    elif objective == "pretrain":
        texts = make_pairs(with_sentences(sources), pairs, Augmenter(settings, runtime), seed)
        signals = list(read_signals(texts, settings, runtime, seed).values())
        sizes, targets = [signal.shape[1] for signal in signals], _standardised(np.concatenate(signals, axis=1))
        groups = [f"{row.references[0]}\0{row.context}" for row in texts]
    kind = "ls" if objective == "contrastive" else "encoder"
    head = TEXT_HEADS[kind].of(settings, runtime, sum(sizes))
    learned_from: list[Mapping[str, Any]] = [data.summary() for data in sets]
    if start is not None:
        saved = read_head(start)
        if saved.kind != kind:
            raise ValueError(f"{saved.path} is a head of kind {saved.kind!r}; start from one of kind {kind!r}")
        check_models(saved, settings)
        head.take(saved.arrays, saved.path)
        learned_from = [*saved.learned_from, *learned_from]
    loss: torch.nn.Module
    if objective == "contrastive":
        rows, loss, batch = _contrast_rows(head, sources, seed), ContrastLoss(head), _TEXTS_TOGETHER
    else:
        rows, batch = _signal_rows(head, texts, targets, groups), _BATCH
        loss = SignalLoss(head, [1 / size for size in sizes for _ in range(size)])
        _centre(head, rows)
    arguments = {
        "num_train_epochs": epochs,
        "learning_rate": RATE_OF_RATINGS if objective == "ratings" else RATE_OF_TEXTS,
        "per_device_train_batch_size": batch,
        "per_device_eval_batch_size": batch,
        "seed": seed,
        **arguments,
    }
    _run_trainer(head, loss, rows, Path(folder), arguments, runtime.report)
    arrays = head.trained()
    if objective == "pretrain":  # the score is the first output, and the others are no longer needed
        arrays |= {name: array[:1] for name, array in arrays.items() if name.startswith("1.")}
    return write_head(
        folder,
        arrays,
        kind=kind,
        models={"encoder": str(fingerprint(settings.models.encoder))},
        # Of the score that it replaces: the cheapest, which has no part in the head's.
        settings={"variant": "fast"},
        parameters={"objective": objective, "learning_rate": arguments["learning_rate"], "seed": seed},
        learned_from=learned_from,
    )


class SignalLoss(torch.nn.Module):
    """Weighted mean squared errors of all targets, in the form that sentence-transformers' trainer wants.

    The columns of the data are ``references`` (in training each row shows one, drawn anew each time),
    ``candidate``, ``context`` and ``label``: the targets, as many as outputs of the model and weights, nan where
    unknown.
    """

    def __init__(self, model: TextHead, weights: Sequence[float] = (1.0,)) -> None:
        super().__init__()
        self.model, self._weights = model, weights

    def forward(self, inputs: Sequence[Any], labels: Sequence[Tensor], **_: Any) -> Tensor:
        """The mean loss of a batch."""
        rows = []
        for references, candidate, context in zip(*inputs, strict=True):
            place = int(torch.randint(len(references), ())) if self.model.training else 0
            rows.append((references[place], candidate, context))
        scores = _scores(self.model, rows)
        targets = torch.stack(list(labels)).to(scores)
        known = ~targets.isnan()
        errors = torch.where(known, scores - targets.nan_to_num(), 0.0).square().sum(0) / known.sum(0).clamp(min=1)
        return errors @ torch.tensor(self._weights).to(scores)


class ContrastLoss(torch.nn.Module):
    """Hinge loss: each text is to be better than its damaged versions by :data:`MARGIN` (LS_Score).

    The columns of the data are ``candidates``, the first of which is the text, and ``context``.
    """

    def __init__(self, model: TextHead) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Any], labels: None = None, **_: Any) -> Tensor:
        """The mean over the texts of a batch."""
        versions, contexts = inputs
        rows = [("", text, context) for texts, context in zip(versions, contexts, strict=True) for text in texts]
        semantic, linguistic = _scores(self.model, rows).unbind(1)
        by_text = torch.split(BETA * semantic + ALPHA * linguistic, [len(texts) for texts in versions])
        return torch.stack([torch.relu(MARGIN - (scores[0] - scores[1:])).sum() for scores in by_text]).mean()


def _scores(model: TextHead, rows: Sequence[Segments]) -> Tensor:
    features = {name: value.to(model.device) for name, value in model.preprocess(rows).items()}
    scores: Tensor = model(features)["scores"]
    return scores


def _standardised(values: Floats) -> Floats:
    """Columns of mean 0 and deviation 1, so that all losses are on one scale; nan stays."""
    known = np.ma.masked_invalid(values)
    spread = known.std(axis=0).filled(1.0)
    return np.asarray((values - known.mean(axis=0).filled(0.0)) / np.where(spread == 0, 1.0, spread))


def _signal_rows(head: TextHead, texts: Sequence[Row], targets: Floats, groups: Sequence[str]) -> Rows:
    """What :class:`SignalLoss` reads."""
    references = [list(row.references) or [""] for row in texts]
    columns = references, [row.candidate for row in texts], head.nearest(texts), targets.tolist(), groups
    names = "references", "candidate", "context", "label", "group"
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _contrast_rows(head: TextHead, sources: Sequence[Source], seed: int) -> Rows:
    """What :class:`ContrastLoss` reads."""
    contexts = head.nearest([Row(source.text, (), source.context) for source in sources])
    return [
        {
            "candidates": [source.text, *contrasts(source, sources, seed)],
            "context": context,
            "group": source.context or source.text,
        }
        for source, context in zip(sources, contexts, strict=True)
    ]


def _centre(head: TextHead, rows: Rows) -> None:
    """Let the mean of each output be 0, as that of the targets is; else the transformer would make up for it."""
    sample = rows[:: math.ceil(len(rows) / _CENTRED)]
    outputs = head.outputs([(row["references"][0], row["candidate"], row["context"]) for row in sample])
    bias = head[1].linear.bias
    bias.data -= torch.from_numpy(outputs.mean(0)).to(bias)


def _run_trainer(
    head: TextHead, loss: torch.nn.Module, rows: Rows, folder: Path, arguments: Mapping[str, Any], report: Progress
) -> None:
    """Train a head, from the last checkpoint of the same training where there is one.

    A checkpoint is written after each epoch, to ``checkpoints`` in the folder, which is removed at the end. A
    tenth of the groups is held out: training ends after an epoch that does not lower the loss there, with the
    weights that have the lowest. The rows have the columns that the loss reads, and ``group``, which says what is
    held out together; the arguments are those of ``CrossEncoderTrainingArguments``; steps are reported as
    ``report("train", step, steps)``.
    """
    parts: tuple[Rows, Rows] = [], []
    for row in rows:
        columns = {name: value for name, value in row.items() if name != "group"}
        digest = hashlib.sha256(row["group"].encode("utf-8", "surrogatepass")).digest()
        parts[digest[0] < _HELD_OUT * 256].append(columns)
    training, test = parts if parts[0] else parts[::-1]
    usual = {
        "warmup_steps": 0.1,
        "eval_strategy": "epoch" if test else "no",
        "save_strategy": "epoch",
        "load_best_model_at_end": bool(test),
        "metric_for_best_model": "loss",
        "save_total_limit": 2,
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": head.device.type == "cpu",
    }
    # Named after all that the training depends on: checkpoints of another are not continued.
    key = hashlib.blake2b(json.dumps([rows, dict(arguments)], default=str).encode(), digest_size=8)
    for array in head.trained().values():
        key.update(array.tobytes())
    checkpoints = folder / "checkpoints" / key.hexdigest()
    # Those that were written to their end, where the trainer's state comes last.
    finished = [path.parent for path in checkpoints.glob("checkpoint-*/trainer_state.json")]
    last = max(finished, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    with ordinary_mode(grad=True), no_bars():
        used = CrossEncoderTrainingArguments(str(checkpoints), **{**usual, **arguments})
        trainer = _Trainer(
            model=head,
            args=used,
            train_dataset=Dataset.from_list(training),
            eval_dataset=Dataset.from_list(test) if test else None,
            loss=loss,
            callbacks=[_Report(report), *([EarlyStoppingCallback(1)] if used.load_best_model_at_end else [])],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last and str(last))
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


class _Trainer(CrossEncoderTrainer):  # type: ignore[misc]
    """Without a card of the model, which would describe checkpoints that are soon removed."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Add none."""


class _Report(TrainerCallback):  # type: ignore[misc]
    def __init__(self, report: Progress) -> None:
        self._report = report

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Report the step as one of the stage "train"."""
        self._report("train", state.global_step, state.max_steps)
