"""What is known of synthetic pairs without ratings (BLEURT, section 4.2)."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import MarsWarning
from mars_score.learning.pairs import Pair, in_share
from mars_score.scorer import MarsScorer
from mars_score.scoring.evidence import ENTAILMENT, LIKELIHOOD, Reader
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

MARS = "MARS"  # the signal that the score itself learns
Signals = Mapping[str, NDArray[np.float64]]  # by name (pairs, size), nan where not read


def read_signals(pairs: Sequence[Pair], settings: Settings, runtime: Runtime, seed: int = 0) -> Signals:
    """The signals of pairs that small models can give, in this order.

    They are ``"MARS"``: its own score by variant ``"fast"``; ``"BLEU"``; ``"likelihood"``: the mean log
    probability given the context with what the context adds to it, in nats; and, with an entailment model,
    ``"entailment"``: the probabilities that the text entails and that it contradicts what was made of it.
    ROUGE-L and matched token vectors, which BLEURT learns besides, changed nothing (research/learning.md).

    Args:
        pairs: of texts and what was made of them.
        settings: name the encoder and the language model.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
        seed: that :func:`mars_score.learning.pairs.make_pairs` had; it says whose pairs the language model reads.

    Raises:
        ImportError: sacreBLEU is missing; says how to get it.
        ModelUnavailableError: a model cannot be loaded.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ModuleNotFoundError as error:
        raise ImportError("sacrebleu is not installed; run: pip install 'mars-score[meta]'") from error
    bleu = BLEU(effective_order=True)
    overlaps = [bleu.sentence_score(pair.candidate, [pair.source.text]).score / 100 for pair in pairs]
    reader = Reader(settings, runtime)
    signals = {
        MARS: _mars_scores(pairs, settings, runtime),
        "BLEU": np.array(overlaps)[:, None],
        "likelihood": _likelihoods(pairs, reader, seed),
    }
    if settings.models.entailment_model is not None:
        compared = [(pair.source.text, pair.candidate) for pair in pairs]
        read = reader.read(ENTAILMENT, compared)
        signals["entailment"] = np.array([read[each] for each in compared])
    return signals


def _mars_scores(pairs: Sequence[Pair], settings: Settings, runtime: Runtime) -> NDArray[np.float64]:
    """Without a store: token vectors of all pairs would fill it."""
    arguments = {
        **vars(settings.models),
        "device": runtime.device,
        "encoder_batch_size": runtime.encoder_batch_size,
    }
    scorer = MarsScorer(variant="fast", store=False, **arguments)
    columns = zip(*((pair.candidate, pair.source.text, pair.source.context) for pair in pairs), strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)  # a blank context is nobody's mistake here
        return np.array(scorer.score(*map(list, columns)).scores)[:, None]


def _likelihoods(pairs: Sequence[Pair], reader: Reader, seed: int) -> NDArray[np.float64]:
    """Nan for texts that the language model does not read."""
    keys = [
        (pair.source.context, pair.candidate.strip()) if in_share(pair.source, seed) else None for pair in pairs
    ]
    read = reader.read(LIKELIHOOD, list(dict.fromkeys(filter(None, keys))))
    return np.array([(read[key].given_context, read[key].lift) if key else (np.nan, np.nan) for key in keys])
