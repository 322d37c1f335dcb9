"""Training of the heads ``"encoder"`` and ``"ls"``, on ratings or on texts alone.

How a network is trained is :mod:`mars_score.learning.trainer`; here is what it learns from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.augment.augmenter import Augmenter
from mars_score.learning.losses import ContrastLoss, SignalLoss
from mars_score.learning.pairs import Pair, Source, contrasts, make_pairs, with_sentences
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.signals import MARS, Signals, read_signals
from mars_score.learning.trainer import Rows, run_trainer
from mars_score.models.fingerprints import fingerprint
from mars_score.scoring.head_encoder import EncoderHead, LsHead
from mars_score.scoring.head_folder import HeadFolder, read_head, write_head
from mars_score.scoring.heads import check_models
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

Objective = Literal["ratings", "pretrain", "contrastive"]
FORM = {"variant": "fast"}  # of the score that such a head replaces: the cheapest, as it has no part in the head's
PAIRS = 1_500  # synthetic; 5,000 gave the same mean agreement and harmed more kinds of text (research/learning.md)
RATE_OF_TEXTS, RATE_OF_RATINGS = 1e-4, 3e-5  # a faster training on few ratings forgets what the encoder knew
_TEXTS_TOGETHER = 4  # a step reads them with all their versions
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
        patience: epochs without a lower held-out loss after which training ends.
        seed: of all that is drawn.
        arguments: any of sentence-transformers' ``CrossEncoderTrainingArguments``, which have the last word.
    """

    objective: Objective = "ratings"
    start: str | os.PathLike[str] | None = None
    pairs: int = PAIRS
    epochs: int = 3
    patience: int = 1
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
    if not (sets if how.objective == "ratings" else sources):
        raise ValueError("there is nothing to learn from; name a file of ratings or of texts")
    signals: Signals = {}
    pairs: list[Pair] = []
    if how.objective == "pretrain":
        pairs = make_pairs(with_sentences(sources), how.pairs, how.seed, Augmenter(settings, runtime))
        signals = read_signals(pairs, settings, runtime, how.seed)
    sizes = [signals[name].shape[1] for name in (MARS, *sorted({*signals} - {MARS}))] if signals else [1]
    head = (LsHead if how.objective == "contrastive" else EncoderHead)(settings, runtime, sum(sizes))
    learned_from: list[Mapping[str, Any]] = [data.summary() for data in sets]
    if how.start is not None:
        saved = read_head(how.start)
        if saved.kind != head.kind:
            raise ValueError(
                f"{saved.path} is a head of kind {saved.kind!r}; start from one of kind {head.kind!r}"
            )
        check_models(saved, settings)
        head.network.take(saved.arrays, saved.path)
        learned_from = [*saved.learned_from, *learned_from]
    loss: torch.nn.Module
    if how.objective == "contrastive":
        rows, loss = _contrast_rows(head, sources, how.seed), ContrastLoss(head.network)
    else:
        rows = _rated_rows(head, sets) if how.objective == "ratings" else _signal_rows(head, pairs, signals)
        loss = SignalLoss(head.network, [1 / size for size in sizes for _ in range(size)])
        _centre(head, rows)
    rated = how.objective == "ratings"
    together = 8 * _TEXTS_TOGETHER if rated else _TEXTS_TOGETHER
    arguments = {
        "num_train_epochs": how.epochs,
        "learning_rate": RATE_OF_RATINGS if rated else RATE_OF_TEXTS,
        "per_device_train_batch_size": together,
        "per_device_eval_batch_size": together,
        "seed": how.seed,
        **how.arguments,
    }
    run_trainer(head.network, loss, rows, Path(folder), arguments, how.patience, runtime.report)
    arrays = head.network.trained()
    if signals:  # the score is the first output, and the others are no longer needed
        arrays |= {name: array[: sizes[0]] for name, array in arrays.items() if name.startswith("1.")}
    return write_head(
        folder,
        head.kind,
        models={"encoder": str(fingerprint(settings.models.encoder))},
        settings=FORM,
        parameters={"objective": how.objective, "learning_rate": arguments["learning_rate"], "seed": how.seed},
        learned_from=learned_from,
        arrays=arrays,
    )


def _rated_rows(head: EncoderHead, sets: Sequence[TrainingSet]) -> Rows:
    """One candidate each."""
    texts = [(candidate.strip(), context.strip()) for data in sets for candidate, _, context in data.rows]
    rated = [
        (references, float(rating), f"{data.name} {group}")
        for data in sets
        for (_, references, _), rating, group in zip(data.rows, data.ratings, data.groups, strict=True)
    ]
    return [
        {
            "references": list(references) or [""],
            "candidates": [candidate],
            "contexts": [context],
            "methods": ["rated"],
            "damages": [0.0],
            "label": [[rating]],
            "group": group,
        }
        for (candidate, _), context, (references, rating, group) in zip(
            texts, head.nearest(texts), rated, strict=True
        )
    ]


def _signal_rows(head: EncoderHead, pairs: Sequence[Pair], signals: Signals) -> Rows:
    """A text each, with all its versions; targets are standardised, so that all losses are on one scale."""
    contexts = head.nearest([(pair.candidate.strip(), pair.source.context) for pair in pairs])
    names = (MARS, *sorted({*signals} - {MARS}))
    targets = np.concatenate([_standardised(signals[name]) for name in names], axis=1).tolist()
    rows: dict[Source, dict[str, Any]] = {}
    for pair, context, target in zip(pairs, contexts, targets, strict=True):
        group = f"{pair.source.text}\0{pair.source.context}"
        columns = ("candidates", "contexts", "methods", "damages", "label")
        lists: dict[str, list[Any]] = {column: [] for column in columns}
        row = rows.setdefault(pair.source, {"references": [pair.source.text], **lists, "group": group})
        values = (pair.candidate, context, pair.method, pair.damage, target)
        for name, value in zip(lists, values, strict=True):
            row[name].append(value)
    return list(rows.values())


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers with mean 0 and standard deviation 1, of those that were read."""
    if np.isnan(values).all():
        return values
    spread = np.nanstd(values, axis=0)
    standardised: NDArray[np.float64] = (values - np.nanmean(values, axis=0)) / np.where(spread == 0, 1.0, spread)
    return standardised


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
    """Let the mean of each output over some of the rows be 0, as that of standardised targets is.

    Else the transformer would be changed most to make up for the shift.
    """
    shown = [(row["references"][0], row["candidates"][-1], row["contexts"][-1]) for row in rows]
    outputs = head.outputs(shown[:: -(-len(shown) // _CENTRED)])
    bias = head.network[1].linear.bias
    bias.data -= torch.from_numpy(outputs.mean(0)).to(bias)
