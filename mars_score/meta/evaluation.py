"""The whole of a meta-evaluation: sets, metrics and attacks -> one frozen result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mars_score.data.values import plain
from mars_score.meta.agreement import Agreement, agreements
from mars_score.meta.attacks import ATTACKS, Attacked, attack
from mars_score.meta.metrics import METRICS, make_metric
from mars_score.meta.metrics.base import Models, Scoring
from mars_score.meta.rated import RatedSet, check_names
from mars_score.meta.set_scores import MetricScores, score_set
from mars_score.models.fingerprints import unchanging
from mars_score.progress import Progress
from mars_score.stats.correlation import MainLevel
from mars_score.stats.resampling import check_resampling


@dataclass(frozen=True)
class SetResult:
    """A set with its scores and what they come to."""

    data: RatedSet
    level: MainLevel  # of the main figures: "within_groups" where ratings compare within a group only
    attacks: Mapping[str, Attacked]  # by name
    metrics: Mapping[str, MetricScores]  # by name
    agreements: Mapping[str, Agreement]  # by metric

    def pearson(self, metric: str) -> float:
        """Pearson's r at the main level; NaN where it is undefined."""
        return self.agreements[metric].coefficients[self.level]["pearson"].value

    def to_dict(self) -> dict[str, Any]:
        """All figures; what is undefined is NaN."""
        return {
            "level": self.level,
            "items": len(self.data.rows),
            "groups": len(set(self.data.groups)),
            "systems": len(set(self.data.systems)),
            "task": self.data.task,
            "notices": list(self.data.notices),
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
        """Each item with its scores by metric, and by attack and metric if it was attacked; for JSON lines."""
        data = self.data
        rows: list[dict[str, Any]] = [
            {"id": label, "group": group, "system": system, "rating": rating}
            for label, group, system, rating in zip(data.ids, data.groups, data.systems, data.ratings, strict=True)
        ]
        for index, row in enumerate(rows):
            row["scores"] = {name: metric.scores[index] for name, metric in self.metrics.items()}
        for name, attacked in self.attacks.items():
            for place, index in enumerate(attacked.indices):
                rows[index][name] = {
                    metric: scored.attacked[name][place] for metric, scored in self.metrics.items()
                }
        return rows


@dataclass(frozen=True)
class MetaEvaluation:
    """What a meta-evaluation found."""

    sets: Mapping[str, SetResult]  # by name
    resamples: int  # of intervals and tests
    seed: int  # of attacks, intervals and tests

    @property
    def titles(self) -> dict[str, str]:
        """Of the metrics with scores on some set, by name, in the order of tables."""
        return {
            name: metric.metric.title
            for name, metric in next(iter(self.sets.values())).metrics.items()
            if any(result.metrics[name].failure is None for result in self.sets.values())
        }

    def failures(self) -> list[str]:
        """Which metrics gave no scores, and why: a sentence each."""
        metrics = [metric for result in self.sets.values() for metric in result.metrics.values()]
        failures = (f"{metric.metric.title}: {metric.failure}" for metric in metrics if metric.failure)
        return list(dict.fromkeys(failures))

    def notices(self) -> list[str]:
        """What was left out of the sets or is missing in them: a sentence each."""
        return [f"{name}: {notice}" for name, result in self.sets.items() for notice in result.data.notices]

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON holds them, what is undefined as None; not the scores of single items."""
        sets = {name: plain(result.to_dict()) for name, result in self.sets.items()}
        return {"seed": self.seed, "resamples": self.resamples, "sets": sets}


@unchanging()
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
    """Measure how well metrics agree with people. With a store a run that was stopped continues where it was.

    Args:
        sets: rated candidates; see :func:`mars_score.meta.rated.read_rated_sets`.
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
        ValueError, TypeError: an unknown name, no sets, a setting or number that is unknown or out of range.
    """
    if not sets:
        raise ValueError("no data sets to evaluate on; give at least one")
    check_names("data set", within_groups, [data.name for data in sets])
    check_names("attack", attacks, ATTACKS)
    check_resampling(resamples)
    models = Models(progress=progress, **scorer)
    by_name = {}
    for name in metrics:
        metric = make_metric(name, models)
        by_name[name if isinstance(name, str) else metric.title] = metric
    results = {}
    for done, data in enumerate(sets):
        if progress:
            progress("data sets", done, len(sets))
        level: MainLevel = "within_groups" if data.name in within_groups else "items"
        attacked = {name: attack(name, data.rows, seed) for name in attacks}
        scored = {name: score_set(metric, data, attacked) for name, metric in by_name.items()}
        agreement = agreements(data, attacked, scored, level, resamples=resamples, seed=seed)
        results[data.name] = SetResult(data, level, attacked, scored, agreement)
    return MetaEvaluation(results, resamples, seed)
