"""The whole of a meta-evaluation: sets, metrics and attacks -> one frozen result."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mars_score.data.attacks import ATTACKS
from mars_score.data.rated import RatedSet, check_names
from mars_score.data.values import plain
from mars_score.meta.agreement import Agreement, agreements
from mars_score.meta.metrics import METRICS, make_metric
from mars_score.meta.metrics.base import Models, Scoring
from mars_score.meta.scoring import ScoredSet, score_set
from mars_score.models.fingerprints import unchanging
from mars_score.scorer import MarsScorer
from mars_score.settings import SETTINGS
from mars_score.stats.correlation import MainLevel
from mars_score.store.runtime import Progress


@dataclass(frozen=True)
class SetResult:
    """A set with its scores and what they come to.

    Attributes:
        scored: items, attacks and scores.
        level: of the main figures: "within_groups" where ratings compare within a group only.
        agreements: by metric.
    """

    scored: ScoredSet
    level: MainLevel
    agreements: Mapping[str, Agreement]

    def pearson(self, metric: str) -> float:
        """Pearson's r at the main level; NaN where it is undefined."""
        return self.agreements[metric].coefficients[self.level]["pearson"].value

    def to_dict(self) -> dict[str, Any]:
        """All figures; what is undefined is NaN."""
        data = self.scored.data
        return {
            "level": self.level,
            "items": len(data.items),
            "groups": len(set(data.groups)),
            "systems": len(set(data.systems)),
            "task": data.task,
            "notices": list(data.notices),
            "attacks": {
                name: {"items": len(attacked.indices), "skipped": attacked.skipped}
                for name, attacked in self.scored.attacks.items()
            },
            "metrics": {
                name: {
                    "title": metric.metric.title,
                    "note": metric.metric.note,
                    "signature": metric.signature,
                    "failure": metric.failure,
                    **asdict(self.agreements[name]),
                }
                for name, metric in self.scored.metrics.items()
            },
        }

    def score_rows(self) -> Iterator[dict[str, Any]]:
        """Each item as JSON holds it, with its scores by metric, and by attack and metric if it was attacked."""
        scored = self.scored
        places = {
            name: {index: place for place, index in enumerate(attacked.indices)}
            for name, attacked in scored.attacks.items()
        }
        for index, item in enumerate(scored.data.items):
            row: dict[str, Any] = {name: getattr(item, name) for name in ("id", "group", "system", "rating")}
            row["scores"] = {name: metric.scores[index] for name, metric in scored.metrics.items()}
            for attack, of_items in places.items():
                if (place := of_items.get(index)) is not None:
                    row[attack] = {name: metric.attacked[attack][place] for name, metric in scored.metrics.items()}
            yield plain(row)


@dataclass(frozen=True)
class MetaOptions:
    """How a meta-evaluation is done.

    Attributes:
        within_groups: names of sets whose ratings compare within a group only.
        attacks: names of :data:`ATTACKS`.
        resamples: of intervals and tests, at least 1.
        seed: of attacks, intervals and tests.

    Raises:
        ValueError: an unknown attack, or a number that is out of range.
    """

    within_groups: Collection[str] = ()
    attacks: Sequence[str] = field(default=tuple(ATTACKS))
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError(f"resamples must be at least 1, got {self.resamples}")
        check_names("attack", self.attacks, ATTACKS)


@dataclass(frozen=True)
class MetaEvaluation:
    """What a meta-evaluation found.

    Attributes:
        sets: by name.
        options: what was asked for.
    """

    sets: Mapping[str, SetResult]
    options: MetaOptions

    @property
    def titles(self) -> dict[str, str]:
        """Of the metrics with scores on some set, by name, in the order of tables."""
        return {
            name: metric.metric.title
            for name, metric in next(iter(self.sets.values())).scored.metrics.items()
            if any(result.scored.metrics[name].failure is None for result in self.sets.values())
        }

    def failures(self) -> list[str]:
        """Which metrics gave no scores, and why: a sentence each."""
        metrics = [metric for result in self.sets.values() for metric in result.scored.metrics.values()]
        failures = (f"{metric.metric.title}: {metric.failure}" for metric in metrics if metric.failure)
        return list(dict.fromkeys(failures))

    def notices(self) -> list[str]:
        """What was left out of the sets or is missing in them: a sentence each."""
        return [f"{name}: {notice}" for name, result in self.sets.items() for notice in result.scored.data.notices]

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON holds them, what is undefined as None; not the scores of single items."""
        return {
            "seed": self.options.seed,
            "resamples": self.options.resamples,
            "sets": {name: plain(result.to_dict()) for name, result in self.sets.items()},
        }


@unchanging()
def meta_evaluate(
    sets: Sequence[RatedSet],
    metrics: Sequence[str | Scoring] = METRICS,
    options: MetaOptions = MetaOptions(),
    *,
    progress: Progress | None = None,
    **scorer: Any,
) -> MetaEvaluation:
    """Measure how well metrics agree with people. With a store a run that was stopped continues where it was.

    Args:
        sets: rated candidates; see :func:`mars_score.data.rated.read_rated_sets`.
        metrics: names of :data:`METRICS`, variants such as ``mars[sigma=0]``, or objects with a ``score`` method
            (see :class:`mars_score.meta.metrics.base.Scoring`).
        options: attacks, intervals and tests.
        progress: called as ``progress(stage, done, total)``.
        scorer: ``preset``, ``batch_size``, ``encoder_batch_size``, ``device``, ``store`` and settings, as for
            :class:`mars_score.MarsScorer`.

    Raises:
        ValueError, TypeError: an unknown name, no sets, a setting or number that is unknown or out of range.
    """
    if not sets:
        raise ValueError("no data sets to evaluate on; give at least one")
    check_names("data set", options.within_groups, [data.name for data in sets])
    shared = MarsScorer(progress=progress, **scorer)
    settings = {name: value for name, value in scorer.items() if name in ("preset", *SETTINGS)}
    models = Models(shared.settings, shared.runtime, settings)
    by_name = {}
    for name in metrics:
        metric = make_metric(name, models)
        by_name[name if isinstance(name, str) else metric.title] = metric
    results = {}
    for done, data in enumerate(sets):
        if progress:
            progress("data sets", done, len(sets))
        level: MainLevel = "within_groups" if data.name in options.within_groups else "items"
        scored = score_set(data, by_name, options.attacks, options.seed)
        measured = agreements(scored, level, resamples=options.resamples, seed=options.seed)
        results[data.name] = SetResult(scored, level, measured)
    return MetaEvaluation(results, options)
