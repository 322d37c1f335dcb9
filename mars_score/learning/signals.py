"""What is known of synthetic pairs without ratings (BLEURT, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.augment.augmented import AugmentedReference
from mars_score.errors import UnsupportedModelError
from mars_score.learning.pairs import BACK_TRANSLATED, Pair, in_share
from mars_score.learning.translation import Model, RoundTrip
from mars_score.meta.metrics.base import Models
from mars_score.meta.metrics.bert import BertScore
from mars_score.meta.metrics.bleu import sentence_bleu
from mars_score.meta.metrics.extras import need
from mars_score.models.engine.entailment import classify
from mars_score.scoring.evidence import LIKELIHOOD, Reader, ScorableRow, needs
from mars_score.scoring.form import form_of
from mars_score.scoring.terms import Similarities, score_row
from mars_score.settings import Settings
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime

# By name (pairs, size), nan where not read; of a classification, the probabilities of its classes.
Signals = Mapping[str, NDArray[np.float64]]
MARS = "MARS"
LIKELIHOODS, FLAG, ENTAILMENT = "back-translation", "back-translation flag", "entailment"
SIGNALS = ("BLEU", "ROUGE-L", "BERTScore", MARS, "likelihood", LIKELIHOODS, FLAG, ENTAILMENT)
CLASSIFICATIONS = (ENTAILMENT, FLAG)
_PART = 256  # pairs whose token vectors are in memory together


def read_signals(
    pairs: Sequence[Pair],
    settings: Settings,
    runtime: Runtime,
    round_trip: RoundTrip | None = None,
    entailment: Model | None = None,
    without: Collection[str] = (),
    share: float = 1.0,
    seed: int = 0,
) -> dict[str, NDArray[np.float64]]:
    """All signals for which there is a model.

    Args:
        pairs: of texts and what was made of them.
        settings: name the encoder and the language model.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        round_trip: translation models, which made the pairs' back-translations.
        entailment: a sequence classifier with three classes and its tokenizer.
        without: names of :data:`SIGNALS` that are not wanted.
        share: of the texts, in [0, 1], whose pairs the language model reads.
        seed: of these texts, as for :func:`mars_score.learning.pairs.make_pairs`.

    Raises:
        ImportError: sacreBLEU, rouge-score or bert-score is missing; says how to get it.
        ModelUnavailableError, UnsupportedModelError: a model cannot be loaded, or is of another kind.
    """
    readers: dict[str, Callable[[Sequence[Pair]], Any]] = {
        "BLEU": lambda part: [[sentence_bleu(one.candidate, [one.source.text]) / 100] for one in part],
        "ROUGE-L": _rouge,
        "BERTScore": partial(_bertscore, metric=_bertscore_metric(settings, runtime)),
        MARS: partial(_mars_scores, reader=_reader(settings, runtime)),
        "likelihood": partial(_likelihoods, reader=Reader(settings, runtime), share=share, seed=seed),
    }
    if round_trip:
        readers[LIKELIHOODS] = partial(_back_translation, by=round_trip)
        readers[FLAG] = lambda part: [
            [one.method != BACK_TRANSLATED, one.method == BACK_TRANSLATED] for one in part
        ]
    if entailment:
        readers[ENTAILMENT] = partial(_entailment, by=entailment)
    readers = {name: read for name, read in readers.items() if name not in without}
    found: dict[str, list[Any]] = {name: [] for name in readers}
    for start in range(0, len(pairs), _PART):
        part = pairs[start : start + _PART]
        runtime.report("signals", start, len(pairs))
        for name, read in readers.items():
            found[name] += list(read(part))
    runtime.report("signals", len(pairs), len(pairs))
    return {name: np.array(rows, dtype=np.float64) for name, rows in found.items()}


def _rouge(pairs: Sequence[Pair]) -> list[tuple[float, float, float]]:
    """Precision, recall and F of ROUGE-L."""
    scorer = need("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=True)
    found = [scorer.score(one.source.text, one.candidate)["rougeL"] for one in pairs]
    return [(one.precision, one.recall, one.fmeasure) for one in found]


def _bertscore_metric(settings: Settings, runtime: Runtime) -> BertScore:
    return BertScore(Models(settings, runtime))


def _bertscore(pairs: Sequence[Pair], metric: BertScore) -> list[tuple[float, float, float]]:
    return metric.precision_recall_f1([(one.candidate, one.source.text) for one in pairs])


def _reader(settings: Settings, runtime: Runtime) -> Reader:
    """Without a store: token vectors of all pairs would fill it."""
    return Reader(settings, Runtime(None, runtime.encoder_batch_size, runtime.device, ResultStore(None)))


def _mars_scores(pairs: Sequence[Pair], reader: Reader) -> list[list[float]]:
    """MARS's own score, without augmentations."""
    form = form_of("fast")
    rows = [
        ScorableRow(one.candidate.strip(), (AugmentedReference(one.source.text, ()),), one.source.context)
        for one in pairs
    ]
    items: dict[str, dict[Any, None]] = {}
    for row in rows:
        for kind, needed in needs(form, row).items():
            items.setdefault(kind, {}).update(dict.fromkeys(needed))
    evidence = {kind: reader.read(kind, list(of_kind)) for kind, of_kind in items.items()}
    similarities = Similarities(evidence, form)
    return [[score_row(row, similarities).score] for row in rows]


def _likelihoods(pairs: Sequence[Pair], reader: Reader, share: float, seed: int) -> list[tuple[float, float]]:
    """Mean log probability given the context, and what the context adds to it; nan for texts beyond the share."""
    keys = {one: (one.source.context, one.candidate.strip()) for one in pairs if in_share(one.source, share, seed)}
    read = reader.read(LIKELIHOOD, list(keys.values()))
    found = {one: (read[key].given_context, read[key].lift) for one, key in keys.items()}
    return [found.get(one, (np.nan, np.nan)) for one in pairs]


def _back_translation(pairs: Sequence[Pair], by: RoundTrip) -> list[tuple[float, float]]:
    texts, candidates = [one.source.text for one in pairs], [one.candidate for one in pairs]
    return list(zip(by.likelihoods(texts, candidates), by.likelihoods(candidates, texts), strict=True))


def _entailment(pairs: Sequence[Pair], by: Model) -> list[list[float]]:
    """The probabilities of the three classes, in the classifier's order, of "the text entails the candidate"."""
    classes = by[0].config.num_labels
    if classes != 3:
        raise UnsupportedModelError(
            f"the entailment model has {classes} classes, but three are needed (entailment, neutral, "
            "contradiction)"
        )
    texts = [(one.source.text, one.candidate) for one in pairs]
    found: dict[tuple[str, str], list[float]] = {}
    classify(by, list(dict.fromkeys(texts)), found.__setitem__)
    return [found[one] for one in texts]
