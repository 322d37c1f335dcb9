"""Every metric over a rated set and over its attacks; scores are stored, so that a run can be resumed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mars_score.data.attacks import Attacked, attack
from mars_score.data.rated import RatedSet
from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.mars import Mars
from mars_score.store.lookup import Done, Results

_AT_ONCE = 256  # rows that are scored before they are stored


@dataclass(frozen=True)
class MetricScores:
    """A metric's scores of a set.

    Attributes:
        metric: names itself and says how it reads texts.
        scores: (items,); NaN where the metric gave none.
        attacked: by attack, (attacked rows,).
        signature: of MARS's variants.
        failure: why there are no scores (all are NaN); None otherwise.
    """

    metric: Metric
    scores: NDArray[np.float64]
    attacked: Mapping[str, NDArray[np.float64]]
    signature: str = ""
    failure: str | None = None


@dataclass(frozen=True)
class ScoredSet:
    """A rated set with the scores of all metrics.

    Attributes:
        data: the set.
        attacks: by name, the rows that could be attacked.
        metrics: by name.
    """

    data: RatedSet
    attacks: Mapping[str, Attacked]
    metrics: Mapping[str, MetricScores]


def score_set(
    data: RatedSet, metrics: Mapping[str, Metric], attacks: Sequence[str] = (), seed: int = 0
) -> ScoredSet:
    """Score the candidates of a set and their attacks with every metric.

    A metric that is not available (a package, data or a model is missing) or that fails has NaN scores and the
    reason; the others are scored all the same.

    Args:
        data: the set.
        metrics: by name.
        attacks: names of :data:`mars_score.data.attacks.ATTACKS`.
        seed: of the attacks.
    """
    attacked = {name: attack(name, data.rows, seed) for name in attacks}
    return ScoredSet(data, attacked, {name: _score(metric, data, attacked) for name, metric in metrics.items()})


def scores_of(metric: Metric, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
    """One score per row, stored or computed; blank candidates get the metric's minimum.

    Raises:
        ModelUnavailableError, ImportError: a model, data or a package is missing.
        ValueError: the metric gave another number of scores than there are rows.
    """
    key = metric.key()
    common = None if None in key else [*key, list(corpus) if metric.uses_corpus else None]
    runtime = metric.models.runtime

    def compute(missing: list[Row], done: Done[Row, float]) -> None:
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            scores = metric.score(part, corpus)
            if len(scores) != len(part):
                raise ValueError(f"{metric.title} gave {len(scores)} scores for {len(part)} rows")
            for row, score in zip(part, scores, strict=True):
                done(row, score)

    results: Results[Row, float] = Results("scores", lambda: common, compute, parts=lambda row: row)
    written = [row for row in rows if row[0].strip()]
    scores = results.read(runtime.store, written, partial(runtime.report, metric.title))
    blank = metric.minimum if len(scores) < len(set(rows)) else math.nan  # may need a model
    return [scores.get(row, blank) for row in rows]


def _score(metric: Metric, data: RatedSet, attacked: Mapping[str, Attacked]) -> MetricScores:
    rows = [*data.rows, *(row for attack in attacked.values() for row in attack.rows)]
    signature, failure = "", None
    scores = np.full(len(rows), np.nan)
    try:
        if isinstance(metric, Mars):
            result = metric.result(rows, data.corpus, data.task)
            scores[:], signature = result.scores, str(result.signature)
        else:
            scores[:] = scores_of(metric, rows, data.corpus)
    except (ModelUnavailableError, ImportError) as error:
        failure = " ".join(str(error).split())
    except Exception as error:  # someone else's metric: hours of other metrics' work must not be lost with it
        failure = f"failed with {type(error).__name__}: {' '.join(str(error).split())}"
    of_items, *of_attacks = np.split(
        scores, np.cumsum([len(data.items), *(len(attack.rows) for attack in attacked.values())])
    )
    by_attack = dict(zip(attacked, of_attacks, strict=False))
    return MetricScores(metric, of_items, by_attack, signature, failure)
