"""Training of the heads ``"encoder"`` and ``"ls"``, on ratings or on texts alone.

How a network is trained is :mod:`mars_score.learning.trainer`; here is what it learns from, and the two losses.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from mars_score.augment.augmenter import Augmenter
from mars_score.learning.pairs import Pair, Source, contrasts, make_pairs, with_sentences
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.signals import MARS, Signals, read_signals
from mars_score.learning.trainer import Rows, run_trainer
from mars_score.models.fingerprints import fingerprint
from mars_score.scoring.head_encoder import EncoderHead, LsEncoder, LsHead, TextEncoder
from mars_score.scoring.head_folder import HeadFolder, read_head, write_head
from mars_score.scoring.heads import check_models
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

Objective = Literal["ratings", "pretrain", "contrastive"]
FORM = {"variant": "fast"}  # of the score that such a head replaces: the cheapest, as it has no part in the head's
PAIRS = 1_500  # synthetic; 5,000 gave the same mean agreement and harmed more kinds of text (research/learning.md)
RATE_OF_TEXTS, RATE_OF_RATINGS = 1e-4, 3e-5  # a faster training on few ratings forgets what the encoder knew
MARGIN = 1.0  # of the hinge loss: LS_Score's
_BATCH, _TEXTS_TOGETHER = 32, 4  # rows of a step; texts of a step that reads each with its damaged versions
_CENTRED = 128  # rows that say by how much a layer's output is shifted


@dataclass(frozen=True)
class EncoderTraining:
    """How an encoder is trained.

    Attributes:
        objective: "ratings": to predict those of people; "pretrain": to predict signals of synthetic pairs;
            "contrastive": to prefer texts to their damaged versions, which is for head "ls", that looks at no
            reference. The other two are for head "encoder".
        start: folder of a head of the same kind whose weights it starts from; None: the preset's encoder.
        pairs: synthetic pairs, for "pretrain".
        epochs: at most.
        seed: of all that is drawn.
        arguments: any of sentence-transformers' ``CrossEncoderTrainingArguments``, which have the last word.
    """

    objective: Objective = "ratings"
    start: str | os.PathLike[str] | None = None
    pairs: int = PAIRS
    epochs: int = 3
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


def train_encoder(
    how: EncoderTraining,
    folder: str | os.PathLike[str],
    settings: Settings,
    runtime: Runtime,
    sets: Sequence[TrainingSet] = (),
    sources: Sequence[Source] = (),
) -> HeadFolder:
    """Train an encoder and save it; continued where an earlier run with the same input was stopped.

    As transformers' trainer does, this sets the seeds of Python, NumPy and torch.

    Args:
        how: see there.
        folder: of the head; made where it is missing.
        settings: name the models.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        sets: rated sets, for the objective "ratings".
        sources: texts to make pairs of or to damage, for the other objectives.

    Raises:
        ValueError: nothing to learn from; a start that does not fit.
        ModelUnavailableError, UnsupportedModelError, ImportError: a model or a package is missing or unfit.
    """
    rated, contrastive = how.objective == "ratings", how.objective == "contrastive"
    if not (sets if rated else sources):
        raise ValueError("there is nothing to learn from; name a file of ratings or of texts")
    pairs: list[Pair] = []
    signals: Signals = {MARS: np.empty((0, 1))}
    if how.objective == "pretrain":
        pairs = make_pairs(with_sentences(sources), how.pairs, how.seed, Augmenter(settings, runtime))
        signals = read_signals(pairs, settings, runtime, how.seed)
    sizes = [signal.shape[1] for signal in signals.values()]
    head = (LsHead if contrastive else EncoderHead)(settings, runtime, sum(sizes))
    learned_from: list[Mapping[str, Any]] = [data.summary() for data in sets]
    if how.start is not None:
        learned_from = [*_start(head, how.start, settings).learned_from, *learned_from]
    loss: torch.nn.Module
    if contrastive:
        rows, loss = _contrast_rows(head, sources, how.seed), ContrastLoss(head.network)
    else:
        rows = _rated_rows(head, sets) if rated else _signal_rows(head, pairs, signals)
        loss = SignalLoss(head.network, [1 / size for size in sizes for _ in range(size)])
        _centre(head, rows)
    batch = _TEXTS_TOGETHER if contrastive else _BATCH
    arguments = {
        "num_train_epochs": how.epochs,
        "learning_rate": RATE_OF_RATINGS if rated else RATE_OF_TEXTS,
        "per_device_train_batch_size": batch,
        "per_device_eval_batch_size": batch,
        "seed": how.seed,
        **how.arguments,
    }
    run_trainer(head.network, loss, rows, Path(folder), arguments, runtime.report)
    arrays = head.network.trained()
    if how.objective == "pretrain":  # the score is the first output, and the others are no longer needed
        arrays |= {name: array[:1] for name, array in arrays.items() if name.startswith("1.")}
    return write_head(
        folder,
        arrays,
        kind=head.kind,
        models={"encoder": str(fingerprint(settings.models.encoder))},
        settings=FORM,
        parameters={"objective": how.objective, "learning_rate": arguments["learning_rate"], "seed": how.seed},
        learned_from=learned_from,
    )


class SignalLoss(torch.nn.Module):
    """Weighted mean squared errors of all targets, in the form that sentence-transformers' trainer wants.

    The columns of the data are ``references`` (in training each row shows one, drawn anew each time),
    ``candidate``, ``context`` and ``label``: the targets, nan where unknown.

    Args:
        model: whose outputs are as many as the targets; the first is the score.
        weights: of the targets.
    """

    def __init__(self, model: TextEncoder, weights: Sequence[float] = (1.0,)) -> None:
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

    def __init__(self, model: LsEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Any], labels: None = None, **_: Any) -> Tensor:
        """The mean over the texts of a batch."""
        versions, contexts = inputs
        rows = [("", text, context) for texts, context in zip(versions, contexts, strict=True) for text in texts]
        by_text = torch.split(self.model.quality(_scores(self.model, rows)), [len(texts) for texts in versions])
        return torch.stack([torch.relu(MARGIN - (scores[0] - scores[1:])).sum() for scores in by_text]).mean()


def _scores(model: TextEncoder, rows: Sequence[tuple[str, str, str]]) -> Tensor:
    features = {name: value.to(model.device) for name, value in model.preprocess(rows).items()}
    scores: Tensor = model(features)["scores"]
    return scores


def _start(head: EncoderHead, folder: str | os.PathLike[str], settings: Settings) -> HeadFolder:
    """Let a head go on from the weights of a saved one."""
    saved = read_head(folder)
    if saved.kind != head.kind:
        raise ValueError(f"{saved.path} is a head of kind {saved.kind!r}; start from one of kind {head.kind!r}")
    check_models(saved, settings)
    head.network.take(saved.arrays, saved.path)
    return saved


def _rated_rows(head: EncoderHead, sets: Sequence[TrainingSet]) -> Rows:
    rows: Rows = [
        {
            "references": list(row.references) or [""],
            "candidate": row.candidate.strip(),
            "context": row.context.strip(),
            "label": [float(rating)],
            "group": f"{data.name} {group}",
        }
        for data in sets
        for row, rating, group in zip(data.rows, data.ratings, data.groups, strict=True)
    ]
    contexts = head.nearest([(row["candidate"], row["context"]) for row in rows])
    return [{**row, "context": context} for row, context in zip(rows, contexts, strict=True)]


def _signal_rows(head: EncoderHead, pairs: Sequence[Pair], signals: Signals) -> Rows:
    """Targets are standardised, so that all losses are on one scale."""
    contexts = head.nearest([(pair.candidate.strip(), pair.source.context) for pair in pairs])
    values = np.concatenate(list(signals.values()), axis=1)
    known = np.ma.masked_invalid(values)
    spread = known.std(axis=0).filled(1.0)
    targets = (values - known.mean(axis=0).filled(0.0)) / np.where(spread == 0, 1.0, spread)
    return [
        {
            "references": [pair.source.text],
            "candidate": pair.candidate,
            "context": context,
            "label": label,
            "group": f"{pair.source.text}\0{pair.source.context}",
        }
        for pair, context, label in zip(pairs, contexts, targets.tolist(), strict=True)
    ]


def _contrast_rows(head: EncoderHead, sources: Sequence[Source], seed: int) -> Rows:
    """A text each, followed by its damaged versions."""
    contexts = head.nearest([(source.text, source.context) for source in sources])
    return [
        {
            "candidates": [source.text, *contrasts(source, sources, seed)],
            "context": context,
            "group": source.context or source.text,
        }
        for source, context in zip(sources, contexts, strict=True)
    ]


def _centre(head: EncoderHead, rows: Rows) -> None:
    """Let the mean of each output be 0, as that of the targets is; else the transformer would make up for it."""
    some = rows[:: -(-len(rows) // _CENTRED)]
    outputs = head.outputs([(row["references"][0], row["candidate"], row["context"]) for row in some])
    bias = head.network[1].linear.bias
    bias.data -= torch.from_numpy(outputs.mean(0)).to(bias)
