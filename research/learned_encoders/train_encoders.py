"""Training of the heads ``"encoder"`` and ``"ls"``: on ratings, on synthetic pairs, and on damaged texts.

A network is trained by sentence-transformers: batches, schedule, mixed precision, checkpoints and resuming.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments
from torch import Tensor
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from mars_score.heads import HeadFolder, write_head
from mars_score.models.loading import locate, no_bars
from mars_score.models.running import ordinary_mode
from mars_score.progress import Progress
from mars_score.rows import Row
from mars_score.scorer import MarsScorer
from mars_score.stats.resampling import Floats
from mars_score.training import TrainingSet
from research.learned_encoders.pairs import Source, compute_signals, contrasts, make_pairs, with_sentences
from research.learned_encoders.text_heads import ALPHA, BETA, TEXT_HEADS, Segments, TextHead, read_text_head

Examples = list[dict[str, Any]]  # by column: those that a loss takes, and "group", which is held out together
PAIRS = 1_500  # synthetic
MARGIN = 1.0  # of the hinge loss: LS_Score's
_HELD_OUT = 0.1
_CENTRED = 128  # examples that say by how much a layer's output is shifted
_NOTHING = "there is nothing to learn from; name a file of ratings or of texts"


@dataclass(frozen=True)
class TrainingOptions:
    """How a network is trained.

    As transformers' trainer does, training sets the seeds of Python, NumPy and torch.

    Attributes:
        start: folder of a head of the same kind whose weights it starts from; None: the preset's encoder.
        epochs: at most.
        seed: of all that is drawn.
        arguments: any of sentence-transformers' ``CrossEncoderTrainingArguments``, which have the last word.
    """

    start: str | os.PathLike[str] | None = None
    epochs: int = 3
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


DEFAULTS = TrainingOptions()


@dataclass(frozen=True)
class _Objective:
    """What a network learns, the kind of its head, and the usual learning rate and examples of a step."""

    name: str
    kind: str
    learning_rate: float
    batch_size: int


# A faster training on few ratings forgets what the encoder knew.
_RATINGS = _Objective("ratings", "encoder", 3e-5, 32)
_PRETRAIN = _Objective("pretrain", "encoder", 1e-4, 32)
# An example is a text with all its damaged versions.
_CONTRASTIVE = _Objective("contrastive", "ls", 1e-4, 4)


# The three objectives


def train_on_ratings(
    scorer: MarsScorer,
    folder: str | os.PathLike[str],
    sets: Sequence[TrainingSet],
    options: TrainingOptions = DEFAULTS,
) -> HeadFolder:
    """Train a head "encoder" to predict ratings, and save it; a training that was stopped goes on.

    Args:
        scorer: holds models and settings.
        folder: of the head; made where it is missing.
        sets: ratings.
        options: how.

    Raises:
        ValueError: nothing to learn from; a start that does not fit.
        ModelUnavailableError, UnsupportedModelError: a model is missing or unfit.
    """
    if not sets:
        raise ValueError(_NOTHING)
    head = _make_head(_RATINGS, scorer, _read_start(_RATINGS, scorer, options))
    rows = [row for data in sets for row in data.prepared_rows(scorer)]
    groups = [f"{data.name} {group}" for data in sets for group in data.groups]
    ratings = np.concatenate([data.ratings for data in sets])[:, None]
    examples = _labelled(head, rows, ratings, groups)
    _centre(head, examples)
    _fit(head, SignalLoss(head), examples, folder, _RATINGS, options)
    return _save(head, folder, _RATINGS, options, sets)


def train_on_pairs(
    scorer: MarsScorer,
    folder: str | os.PathLike[str],
    sources: Sequence[Source],
    options: TrainingOptions = DEFAULTS,
    count: int = PAIRS,
) -> HeadFolder:
    """Train a head "encoder" to predict the signals of synthetic pairs (BLEURT's pre-training), and save it.

    Args, errors and resuming as for :func:`train_on_ratings`; ``count`` pairs are made of the sources.
    """
    if not sources:
        raise ValueError(_NOTHING)
    start = _read_start(_PRETRAIN, scorer, options)  # Before anything that takes long.
    pairs = make_pairs(with_sentences(sources), count, scorer.calls, options.seed)
    signals = list(compute_signals(pairs, scorer, options.seed).values())
    sizes = [signal.shape[1] for signal in signals]
    head = _make_head(_PRETRAIN, scorer, start, outputs=sum(sizes))
    groups = [f"{row.references[0]}\0{row.context}" for row in pairs]
    examples = _labelled(head, pairs, _standardised(np.concatenate(signals, axis=1)), groups)
    _centre(head, examples)
    loss = SignalLoss(head, [1 / size for size in sizes for _ in range(size)])
    _fit(head, loss, examples, folder, _PRETRAIN, options)
    return _save(head, folder, _PRETRAIN, options)


def train_on_contrasts(
    scorer: MarsScorer,
    folder: str | os.PathLike[str],
    sources: Sequence[Source],
    options: TrainingOptions = DEFAULTS,
) -> HeadFolder:
    """Train a head "ls" to prefer texts to their damaged versions (LS_Score), and save it.

    Args, errors and resuming as for :func:`train_on_ratings`.
    """
    if not sources:
        raise ValueError(_NOTHING)
    head = _make_head(_CONTRASTIVE, scorer, _read_start(_CONTRASTIVE, scorer, options))
    features = head.features([source.row for source in sources])
    examples = [
        {
            "candidates": [source.text, *contrasts(source, sources, options.seed)],
            "context": row.context,
            "group": source.context or source.text,
        }
        for source, row in zip(sources, features, strict=True)
    ]
    _fit(head, ContrastLoss(head), examples, folder, _CONTRASTIVE, options)
    return _save(head, folder, _CONTRASTIVE, options)


# Losses


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
        """Return the mean loss of a batch."""
        segments = []
        for references, candidate, context in zip(*inputs, strict=True):
            index = int(torch.randint(len(references), ())) if self.model.training else 0
            segments.append((references[index], candidate, context))
        scores = _run(self.model, segments)
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
        """Return the mean over the texts of a batch."""
        versions, contexts = inputs
        segments = [
            ("", text, context) for texts, context in zip(versions, contexts, strict=True) for text in texts
        ]
        semantic, linguistic = _run(self.model, segments).unbind(1)
        by_text = torch.split(BETA * semantic + ALPHA * linguistic, [len(texts) for texts in versions])
        return torch.stack([torch.relu(MARGIN - (scores[0] - scores[1:])).sum() for scores in by_text]).mean()


def _run(model: TextHead, inputs: Sequence[Segments]) -> Tensor:
    features = {name: value.to(model.device) for name, value in model.preprocess(inputs).items()}
    scores: Tensor = model(features)["scores"]
    return scores


# Steps


def _read_start(objective: _Objective, scorer: MarsScorer, options: TrainingOptions) -> HeadFolder | None:
    """Read the head that training starts from, if any; ValueError where it does not fit."""
    return read_text_head(options.start, scorer.settings, (objective.kind,)) if options.start else None


def _make_head(objective: _Objective, scorer: MarsScorer, start: HeadFolder | None, outputs: int = 1) -> TextHead:
    """Make the head that training begins with."""
    head = TEXT_HEADS[objective.kind].from_encoder(scorer.calls, outputs)
    if start is not None:
        head.load_weights(start)
    return head


def _labelled(head: TextHead, rows: Sequence[Row], labels: Floats, groups: Sequence[str]) -> Examples:
    """Make the examples of :class:`SignalLoss`."""
    features = head.features(rows)
    return [
        {
            "references": list(row.references) or [""],
            "candidate": row.candidate,
            "context": row.context,
            "label": label,
            "group": group,
        }
        for row, label, group in zip(features, labels.tolist(), groups, strict=True)
    ]


def _standardised(values: Floats) -> Floats:
    """Shift and scale columns to mean 0 and deviation 1, so that all losses are on one scale; nan stays."""
    known = np.ma.masked_invalid(values)
    spread = known.std(axis=0).filled(1.0)
    return np.asarray((values - known.mean(axis=0).filled(0.0)) / np.where(spread == 0, 1.0, spread))


def _centre(head: TextHead, examples: Examples) -> None:
    """Let the mean of each output be 0, as that of the labels is; else the transformer would make up for it."""
    sample = examples[:: math.ceil(len(examples) / _CENTRED)]
    outputs = head.outputs([(row["references"][0], row["candidate"], row["context"]) for row in sample])
    bias = head[1].linear.bias
    bias.data -= torch.from_numpy(outputs.mean(0)).to(bias)


def _fit(
    head: TextHead,
    loss: torch.nn.Module,
    examples: Examples,
    folder: str | os.PathLike[str],
    objective: _Objective,
    options: TrainingOptions,
) -> None:
    """Train a head, from the last checkpoint of the same training where there is one.

    A checkpoint is written after each epoch, to ``checkpoints`` in the folder, which is removed at the end. A
    tenth of the groups is held out: training ends after an epoch that does not lower the loss there, with the
    weights that have the lowest. Steps are reported as ``progress("train", step, steps)``.
    """
    training, held_out = _split(examples)
    arguments = {
        "num_train_epochs": options.epochs,
        "learning_rate": objective.learning_rate,
        "per_device_train_batch_size": objective.batch_size,
        "per_device_eval_batch_size": objective.batch_size,
        "seed": options.seed,
        "warmup_steps": 0.1,
        "eval_strategy": "epoch" if held_out else "no",
        "save_strategy": "epoch",
        "load_best_model_at_end": bool(held_out),
        "metric_for_best_model": "loss",
        "save_total_limit": 2,
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": head.device.type == "cpu",
        **options.arguments,
    }
    checkpoints = Path(folder) / "checkpoints"
    of_this_training = checkpoints / _training_key(head, examples, arguments)
    with ordinary_mode(grad=True), no_bars():
        used = CrossEncoderTrainingArguments(str(of_this_training), **arguments)
        trainer = _Trainer(
            model=head,
            args=used,
            train_dataset=Dataset.from_list(training),
            eval_dataset=Dataset.from_list(held_out) if held_out else None,
            loss=loss,
            callbacks=[
                _Report(head.calls.runtime.report),
                *([EarlyStoppingCallback(1)] if used.load_best_model_at_end else []),
            ],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=_last_checkpoint(of_this_training))
    shutil.rmtree(checkpoints, ignore_errors=True)


def _split(examples: Examples) -> tuple[Examples, Examples]:
    """Split by group into examples to train on and held-out ones; if all are held out, they are trained on."""
    training: Examples = []
    held_out: Examples = []
    for example in examples:
        columns = {name: value for name, value in example.items() if name != "group"}
        digest = hashlib.sha256(example["group"].encode("utf-8", "surrogatepass")).digest()
        (held_out if digest[0] < _HELD_OUT * 256 else training).append(columns)
    return (training, held_out) if training else (held_out, [])


def _training_key(head: TextHead, examples: Examples, arguments: Mapping[str, Any]) -> str:
    """Hash all that a training depends on, so that checkpoints of another are not continued."""
    key = hashlib.blake2b(json.dumps([examples, arguments], default=str).encode(), digest_size=8)
    for weight in head.trained_weights().values():
        key.update(weight.tobytes())
    return key.hexdigest()


def _last_checkpoint(folder: Path) -> str | None:
    """Return the last checkpoint that was written to its end, where the trainer's state comes last."""
    finished = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    last = max(finished, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    return None if last is None else str(last)


def _save(
    head: TextHead,
    folder: str | os.PathLike[str],
    objective: _Objective,
    options: TrainingOptions,
    sets: Sequence[TrainingSet] = (),
) -> HeadFolder:
    learned_before = head.saved.learned_from if head.saved else []
    learning_rate = options.arguments.get("learning_rate", objective.learning_rate)
    return write_head(
        folder,
        head.trained_weights(),
        kind=objective.kind,
        models={"encoder": str(locate(head.calls.models.encoder))},
        settings={},  # its scores depend on the encoder alone
        parameters={"objective": objective.name, "learning_rate": learning_rate, "seed": options.seed},
        learned_from=[*learned_before, *(data.summary() for data in sets)],
    )


class _Trainer(CrossEncoderTrainer):  # type: ignore[misc]
    """A trainer without a card of the model, which would describe checkpoints that are soon removed."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Add none."""


class _Report(TrainerCallback):  # type: ignore[misc]
    def __init__(self, report: Progress) -> None:
        self._report = report

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Report the step as one of the stage "train"."""
        self._report("train", state.global_step, state.max_steps)
