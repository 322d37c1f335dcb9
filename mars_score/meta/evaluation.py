"""The whole of a meta-evaluation: sets, metrics and attacks make one frozen result."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mars_score.data.values import plain
from mars_score.errors import ModelUnavailableError
from mars_score.meta.agreement import Agreement, MetricScores, agreements, rater_agreement
from mars_score.meta.attacks import ATTACKS, Attacked, attack
from mars_score.meta.metrics import METRICS, make_metric
from mars_score.meta.metrics.base import MarsVariant, Metric, Models, Scoring
from mars_score.meta.sets import RatedSet, check_names
from mars_score.progress import Progress
from mars_score.rows import Row
from mars_score.stats.correlation import MainLevel
from mars_score.stats.resampling import check_resampling


@dataclass(frozen=True)
class SetResult:
    """The scores of a set and how well they agree with its ratings.

    Attributes:
        data: the set.
        level: of the main figures: "within_groups" where ratings compare within a group only.
        attacks: by name.
        metrics: by name.
        agreements: by metric.
        raters: Krippendorff's alpha by aspect, where the set has single ratings.
    """

    data: RatedSet
    level: MainLevel
    attacks: Mapping[str, Attacked]
    metrics: Mapping[str, MetricScores]
    agreements: Mapping[str, Agreement]
    raters: Mapping[str, float] = field(default_factory=dict)

    def pearson(self, metric: str) -> float:
        """Return Pearson's r at the main level; NaN where it is undefined."""
        return self.agreements[metric].coefficients[self.level]["pearson"].value

    def to_dict(self) -> dict[str, Any]:
        """Return all figures; what is undefined is NaN."""
        return {
            "level": self.level,
            "items": len(self.data.rows),
            "groups": len(set(self.data.groups)),
            "systems": len(set(self.data.systems)),
            "tasks": sorted({row.task for row in self.data.rows}),
            "notices": list(self.data.notices),
            "raters": dict(self.raters),
            "attacks": {
                name: {"items": len(attacked.indices), "skipped": attacked.skipped}
                for name, attacked in self.attacks.items()
            },
            "metrics": {
                name: {
                    "title": metric.metric.title,
                    "note": metric.metric.note,
                    "signature": metric.signature,
                    "failure": metric.failure,
                    **asdict(self.agreements[name]),
                }
                for name, metric in self.metrics.items()
            },
        }

    def score_rows(self) -> list[dict[str, Any]]:
        """Return each item with its scores by metric, and by attack and metric if it was attacked."""
        data = self.data
        rows: list[dict[str, Any]] = [
            {"id": label, "group": group, "system": system, "rating": rating}
            for label, group, system, rating in zip(data.ids, data.groups, data.systems, data.ratings, strict=True)
        ]
        for index, row in enumerate(rows):
            row["scores"] = {name: metric.scores[index] for name, metric in self.metrics.items()}
        for name, attacked in self.attacks.items():
            for number, index in enumerate(attacked.indices):
                rows[index][name] = {
                    metric: scored.attacked[name][number] for metric, scored in self.metrics.items()
                }
        return rows


@dataclass(frozen=True)
class MetaEvaluation:
    """The result of a meta-evaluation.

    Attributes:
        sets: by name.
        resamples: of intervals and tests.
        seed: of attacks, intervals and tests.
    """

    sets: Mapping[str, SetResult]
    resamples: int
    seed: int

    @property
    def titles(self) -> dict[str, str]:
        """Return the titles of metrics with scores on some set, by name, in the order of tables."""
        return {
            name: metric.metric.title
            for name, metric in next(iter(self.sets.values())).metrics.items()
            if any(result.metrics[name].failure is None for result in self.sets.values())
        }

    def failures(self) -> list[str]:
        """Return a sentence for each metric without scores, which says why."""
        metrics = [metric for result in self.sets.values() for metric in result.metrics.values()]
        failures = (f"{metric.metric.title}: {metric.failure}" for metric in metrics if metric.failure)
        return list(dict.fromkeys(failures))

    def notices(self) -> list[str]:
        """Return a sentence for each thing that was left out of a set or is missing in it."""
        return [f"{name}: {notice}" for name, result in self.sets.items() for notice in result.data.notices]

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON holds them, undefined ones as None; not the scores of single items."""
        sets = {name: plain(result.to_dict()) for name, result in self.sets.items()}
        return {"seed": self.seed, "resamples": self.resamples, "sets": sets}


def meta_evaluate(
    sets: Sequence[RatedSet],
    metrics: Sequence[str | Scoring] = METRICS,
    *,
    within_groups: Collection[str] = (),
    attacks: Sequence[str] = tuple(ATTACKS),
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
    **scorer: Any,
) -> MetaEvaluation:
    """Measure how well metrics agree with people.

    With a store, what models computed for a run that was stopped is not computed again.

    Args:
        sets: rated candidates; see :func:`mars_score.meta.sets.read_rated_sets`.
        metrics: names of :data:`METRICS`, variants such as ``mars[sigma=0]``, or objects with a ``score`` method
            (see :class:`mars_score.meta.metrics.base.Scoring`).
        within_groups: names of sets whose ratings compare within a group only.
        attacks: names of :data:`ATTACKS`.
        resamples: of intervals and tests, at least 1.
        seed: of attacks, intervals and tests.
        progress: called as ``progress(stage, done, total)``.
        scorer: ``preset``, ``batch_size``, ``encoder_batch_size``, ``device``, ``store`` and settings, as for
            :class:`mars_score.MarsScorer`.

    Raises:
        ValueError, TypeError: an unknown name, no sets, two different metrics of one name, a setting or number
            that is unknown or out of range.
    """
    if not sets:
        raise ValueError("no data sets to evaluate on; give at least one")
    check_names("data set", within_groups, [data.name for data in sets])
    check_names("attack", attacks, ATTACKS)
    check_resampling(resamples)
    models = Models(progress=progress, **scorer)
    by_name = _make_metrics(metrics, models)
    results = {}
    for done, data in enumerate(sets):
        models.runtime.report("data sets", done, len(sets))
        level: MainLevel = "within_groups" if data.name in within_groups else "items"
        attacked = {name: attack(name, data.rows, seed) for name in attacks}
        scored = {name: score_set(metric, data, attacked) for name, metric in by_name.items()}
        agreement = agreements(data, attacked, scored, level, resamples=resamples, seed=seed)
        results[data.name] = _with_raters(SetResult(data, level, attacked, scored, agreement))
    models.runtime.report("data sets", len(sets), len(sets))
    return MetaEvaluation(results, resamples, seed)


def _make_metrics(metrics: Sequence[str | Scoring], models: Models) -> dict[str, Metric]:
    """Make the metrics, by name; one that is given twice counts once.

    Raises:
        ValueError: two different metrics have one name.
    """
    made: dict[str, Metric] = {}
    given: dict[str, str | Scoring] = {}
    for one in metrics:
        metric = make_metric(one, models)
        name = one if isinstance(one, str) else metric.title
        if given.setdefault(name, one) != one:
            raise ValueError(f"two different metrics are named {name!r}; give each a title of its own")
        made.setdefault(name, metric)
    return made


def _with_raters(result: SetResult) -> SetResult:
    """Return the result with the agreement between raters, or with a notice of the missing package."""
    try:
        return replace(result, raters=rater_agreement(result.data.single_ratings))
    except ImportError as error:
        notices = (*result.data.notices, f"no agreement between raters: {error}")
        return replace(result, data=replace(result.data, notices=notices))


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
        if isinstance(metric, MarsVariant):
            result = metric.result(rows, data.corpus)
            scores[:], signature = result.scores, str(result.signature)
        else:
            scores[:] = score_rows(metric, rows, data.corpus)
    except (ModelUnavailableError, ImportError) as error:
        failure = " ".join(str(error).split())
    except Exception as error:  # someone else's metric: hours of other metrics' work must not be lost with it
        failure = f"failed with {type(error).__name__}: {' '.join(str(error).split())}"
    own, *attacked_scores = np.split(scores, np.cumsum([len(part) for part in parts[:-1]]))
    return MetricScores(metric, own, dict(zip(attacks, attacked_scores, strict=True)), signature, failure)


def score_rows(metric: Metric, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
    """Score each different row once; blank candidates get the metric's minimum.

    Raises:
        ModelUnavailableError, ImportError: a model, data or a package is missing.
        ValueError: the metric gave another number of scores than there are rows.
    """
    written = list(dict.fromkeys(row for row in rows if row.candidate.strip()))
    metric.models.runtime.report(metric.title, 0, len(written))
    found = metric.score(written, corpus) if written else []
    if len(found) != len(written):
        raise ValueError(f"{metric.title} gave {len(found)} scores for {len(written)} rows")
    metric.models.runtime.report(metric.title, len(written), len(written))
    scores = dict(zip(written, found, strict=True))
    blank = metric.minimum if len(written) < len(set(rows)) else math.nan  # it may need a model
    return [scores.get(row, blank) for row in rows]
