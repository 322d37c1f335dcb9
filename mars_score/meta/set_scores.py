"""A metric over a rated set and over its attacks; scores are stored, so that a run can be resumed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.lookup import Done, Results
from mars_score.meta.attacks import Attacked
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.mars_variants import Mars
from mars_score.meta.rated import RatedSet
from mars_score.stats.labels import Floats

_AT_ONCE = 256  # rows that are scored before they are stored


@dataclass(frozen=True)
class MetricScores:
    """A metric's scores of a set."""

    metric: Metric  # names itself and says how it reads texts
    scores: Floats  # (items,); NaN where the metric gave none
    attacked: Mapping[str, Floats]  # by attack, (attacked rows,)
    signature: str = ""  # of MARS's variants
    failure: str | None = None  # why there are no scores (all are NaN); None otherwise


def score_set(metric: Metric, data: RatedSet, attacks: Mapping[str, Attacked]) -> MetricScores:
    """Score the candidates of a set and their attacks.

    A metric that is not available (a package, data or a model is missing) or that fails has NaN scores and the
    reason, so that the others are scored all the same.
    """
    parts = [data.rows, *(attacked.rows for attacked in attacks.values())]
    rows = [row for part in parts for row in part]
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
    of_items, *of_attacks = np.split(scores, np.cumsum([len(part) for part in parts[:-1]]))
    return MetricScores(metric, of_items, dict(zip(attacks, of_attacks, strict=True)), signature, failure)


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
    written = [row for row in rows if row.candidate.strip()]
    scores = results.read(runtime.store, written, partial(runtime.report, metric.title))
    blank = metric.minimum if len(written) < len(rows) else math.nan  # may need a model
    return [scores.get(row, blank) for row in rows]
