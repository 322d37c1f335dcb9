"""Run a meta-evaluation, from sets, metrics and attacks to one frozen result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from mars_score.data.writing import plain
from mars_score.errors import ModelUnavailableError
from mars_score.meta.agreement import (
    ATTACKS,
    Agreement,
    Attacked,
    MetricScores,
    agreements,
    attack,
    rater_agreement,
)
from mars_score.meta.metrics import METRICS, MarsVariant, Metric, Models, Scoring, make_metric
from mars_score.meta.sets import RatedSet, check_names
from mars_score.progress import Progress
from mars_score.rows import Row
from mars_score.stats.correlation import MainLevel
from mars_score.stats.resampling import check_resampling


@dataclass(frozen=True)
class SetResult:
    """The scores of a set, and how well they agree with its ratings.

    Attributes:
        data: the set.
        level: level of the main figures: "within_groups" if ratings are comparable within a group only.
        attacks: attacked rows by attack.
        metrics: scores by metric.
        agreements: agreement by metric.
        raters: Krippendorff's alpha by aspect, if the set has single ratings.
    """

    data: RatedSet
    level: MainLevel
    attacks: Mapping[str, Attacked]
    metrics: Mapping[str, MetricScores]
    agreements: Mapping[str, Agreement]
    raters: Mapping[str, float] = field(default_factory=dict)

    def pearson(self, metric: str) -> float:
        """Return Pearson's r at the main level, or NaN."""
        return self.agreements[metric].coefficients[self.level]["pearson"].value

    def to_dict(self) -> dict[str, object]:
        """Return all figures, with NaN for undefined ones."""
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
                    "title": metric.title,
                    "note": metric.note,
                    "signature": metric.signature,
                    "failure": metric.failure,
                    **asdict(self.agreements[name]),
                }
                for name, metric in self.metrics.items()
            },
        }

    def items(self) -> list[dict[str, object]]:
        """Return each item with its scores by metric, also under attacks."""
        data, metrics = self.data, self.metrics.items()
        labels = zip(data.ids, data.groups, data.systems, data.ratings, strict=True)
        items: list[dict[str, object]] = [
            dict(zip(("id", "group", "system", "rating"), label, strict=True))
            | {"scores": {name: metric.scores[index] for name, metric in metrics}}
            for index, label in enumerate(labels)
        ]
        for attack_name, attacked in self.attacks.items():
            for position, index in enumerate(attacked.indices):
                scores = {name: metric.attacked[attack_name][position] for name, metric in metrics}
                items[index][attack_name] = scores
        return items


@dataclass(frozen=True)
class MetaEvaluation:
    """The result of a meta-evaluation.

    Attributes:
        sets: results by name of the set.
        resamples: resamples of intervals and tests.
        seed: seed of attacks, intervals and tests.
    """

    sets: Mapping[str, SetResult]
    resamples: int
    seed: int

    @property
    def titles(self) -> dict[str, str]:
        """Return the titles of the metrics that have scores on any set, by name, in the order of tables."""
        return {
            name: metric.title
            for name, metric in next(iter(self.sets.values())).metrics.items()
            if any(result.metrics[name].failure is None for result in self.sets.values())
        }

    def failures(self) -> list[str]:
        """List the metrics without scores, with the reasons."""
        metrics = [metric for result in self.sets.values() for metric in result.metrics.values()]
        failures = (f"{metric.title}: {metric.failure}" for metric in metrics if metric.failure)
        return list(dict.fromkeys(failures))

    def notices(self) -> list[str]:
        """List what was left out of each set or is missing in it."""
        return [f"{name}: {notice}" for name, result in self.sets.items() for notice in result.data.notices]

    def to_dict(self) -> dict[str, object]:
        """Return all figures for JSON, with None for undefined ones, without the scores of single items."""
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
    """Measure how well metrics agree with human ratings.

    A stopped run continues from the model outputs in the store.

    Args:
        sets: rated candidates, from :func:`mars_score.meta.sets.read_rated_sets`.
        metrics: names of :data:`METRICS`, variants such as ``mars[sigma=0]``, or objects with a ``score`` method
            (see :class:`mars_score.meta.metrics.Scoring`).
        within_groups: names of sets whose ratings are comparable within a group only.
        attacks: names of :data:`ATTACKS`.
        resamples: resamples of intervals and tests, at least 1.
        seed: seed of attacks, intervals and tests.
        progress: called as ``progress(stage, done, total)``.
        scorer: arguments of :class:`mars_score.MarsScorer`: ``preset``, ``batch_size``, ``encoder_batch_size``,
            ``device``, ``store`` and settings.

    Raises:
        ValueError, TypeError: there are no sets, two different metrics share a name, or a name, setting or number
            is unknown or out of range.
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
        scores = {name: score_set(metric, data, attacked) for name, metric in by_name.items()}
        agreement = agreements(data, attacked, scores, level, resamples=resamples, seed=seed)
        results[data.name] = _with_raters(SetResult(data, level, attacked, scores, agreement))
    models.runtime.report("data sets", len(sets), len(sets))
    return MetaEvaluation(results, resamples, seed)


def _make_metrics(metrics: Sequence[str | Scoring], models: Models) -> dict[str, Metric]:
    """Make the metrics by name. Raise ValueError if two different ones share a name."""
    made: dict[str, Metric] = {}
    sources: dict[str, str | Scoring] = {}
    for source in metrics:
        metric = make_metric(source, models)
        name = source if isinstance(source, str) else metric.title
        if sources.setdefault(name, source) != source:
            raise ValueError(f"two different metrics are named {name!r}; give each a title of its own")
        made.setdefault(name, metric)
    return made


def _with_raters(result: SetResult) -> SetResult:
    """Add the agreement between raters, or a notice that the package for it is missing."""
    try:
        return replace(result, raters=rater_agreement(result.data.single_ratings))
    except ImportError as error:
        notices = (*result.data.notices, f"no agreement between raters: {error}")
        return replace(result, data=replace(result.data, notices=notices))


def score_set(metric: Metric, data: RatedSet, attacks: Mapping[str, Attacked]) -> MetricScores:
    """Score the candidates of a set and their attacks.

    If the metric fails or lacks a package, data or a model, the scores are NaN and ``failure`` says why.
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
    except Exception as error:  # The other metrics must still be evaluated.
        failure = f"failed with {type(error).__name__}: {' '.join(str(error).split())}"
    of_items, *attacked = np.split(scores, np.cumsum([len(part) for part in parts[:-1]]))
    by_attack = dict(zip(attacks, attacked, strict=True))
    return MetricScores(metric.title, metric.note, of_items, by_attack, signature, failure)


def score_rows(metric: Metric, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
    """Score each different row once. Blank candidates get the metric's minimum.

    Raises:
        ModelUnavailableError, ImportError: a model, data or a package is missing.
        ValueError: the metric did not give one score per row.
    """
    written = list(dict.fromkeys(row for row in rows if row.candidate.strip()))
    metric.models.runtime.report(metric.title, 0, len(written))
    scores = metric.score(written, corpus) if written else []
    if len(scores) != len(written):
        raise ValueError(f"{metric.title} gave {len(scores)} scores for {len(written)} rows")
    metric.models.runtime.report(metric.title, len(written), len(written))
    by_row = dict(zip(written, scores, strict=True))
    by_row.update({row: metric.minimum for row in rows if row not in by_row})  # The minimum may need a model.
    return [by_row[row] for row in rows]
