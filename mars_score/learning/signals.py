"""What is known of synthetic pairs without ratings (BLEURT, section 4.2)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import MarsWarning
from mars_score.learning.pairs import Pair, in_share
from mars_score.scorer import MarsScorer
from mars_score.scoring.evidence import LIKELIHOOD, MATCH, Reader
from mars_score.settings import Settings
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime

MARS = "MARS"  # the signal that the score itself learns
Signals = Mapping[str, NDArray[np.float64]]  # by name (pairs, size), nan where not read
Reading = Callable[[Sequence[Pair], Settings, Runtime], Signals]


def read_signals(pairs: Sequence[Pair], settings: Settings, runtime: Runtime, seed: int = 0) -> Signals:
    """The signals of BLEURT that small models can give.

    They are, in this order, ``"MARS"``: its own score by variant ``"fast"``; ``"BLEU"``; precision, recall and F
    of ``"ROUGE-L"`` and of matched token vectors (``"tokens"``); and ``"likelihood"``: the mean log probability
    given the context with what the context adds to it, in nats.

    Args:
        pairs: of texts and what was made of them.
        settings: name the encoder and the language model.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        seed: that :func:`mars_score.learning.pairs.make_pairs` had; it says whose pairs the language model reads.

    Raises:
        ImportError: sacreBLEU or rouge-score is missing; says how to get it.
        ModelUnavailableError: a model cannot be loaded.
    """
    readers: Sequence[Reading] = (_mars_scores, _overlaps, _matched_tokens, partial(_likelihoods, seed=seed))
    signals: dict[str, NDArray[np.float64]] = {}
    for done, reader in enumerate(readers, 1):
        signals |= reader(pairs, settings, runtime)
        runtime.report("signals", done, len(readers))
    return signals


def _overlaps(pairs: Sequence[Pair], *_: Any) -> Signals:
    try:
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics.bleu import BLEU
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed; run: pip install 'mars-score[meta]'") from error
    rouge, bleu = RougeScorer(["rougeL"], use_stemmer=True), BLEU(effective_order=True)
    texts = [(pair.source.text, pair.candidate) for pair in pairs]
    return {
        "BLEU": np.array([[bleu.sentence_score(candidate, [text]).score / 100] for text, candidate in texts]),
        "ROUGE-L": np.array(
            [rouge.score(text, candidate)["rougeL"] for text, candidate in texts], dtype=np.float64
        ),
    }


def _mars_scores(pairs: Sequence[Pair], settings: Settings, runtime: Runtime) -> Signals:
    """Without a store: token vectors of all pairs would fill it."""
    models = {"encoder": settings.models.encoder, "dtype": settings.models.dtype, "device": runtime.device}
    scorer = MarsScorer(variant="fast", store=False, encoder_batch_size=runtime.encoder_batch_size, **models)
    columns = zip(*((pair.candidate, pair.source.text, pair.source.context) for pair in pairs), strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)  # a blank context is nobody's mistake here
        return {MARS: np.array(scorer.score(*map(list, columns)).scores)[:, None]}


def _matched_tokens(pairs: Sequence[Pair], settings: Settings, runtime: Runtime) -> Signals:
    """Precision, recall and F of token vectors, each matched with the nearest of the other text (BERTScore)."""
    without_store = Runtime(None, runtime.encoder_batch_size, runtime.device, ResultStore(None))
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.candidate, pair.source.text)))
    read = Reader(settings, without_store).read(MATCH, texts)
    matches = []
    for pair in pairs:
        cosines = read[pair.candidate].tokens @ read[pair.source.text].tokens.T
        precision, recall = (cosines.max(axis=axis).mean() if cosines.size else 0.0 for axis in (1, 0))
        total = precision + recall
        matches.append((precision, recall, 2 * precision * recall / total if total else 0.0))
    return {"tokens": np.array(matches)}


def _likelihoods(pairs: Sequence[Pair], settings: Settings, runtime: Runtime, seed: int) -> Signals:
    """Nan for texts that the language model does not read."""
    keys = [
        (pair.source.context, pair.candidate.strip()) if in_share(pair.source, seed) else None for pair in pairs
    ]
    read = Reader(settings, runtime).read(LIKELIHOOD, list(dict.fromkeys(filter(None, keys))))
    values = [(read[key].given_context, read[key].lift) if key else (np.nan, np.nan) for key in keys]
    return {"likelihood": np.array(values)}
