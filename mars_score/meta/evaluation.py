"""The whole of a meta-evaluation: sets, metrics, attacks and sweeps -> one frozen result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mars_score.data.attacks import ATTACKS
from mars_score.data.rated import RatedSet, check_names
from mars_score.meta.agreement import Agreement, agreements
from mars_score.meta.metrics import METRICS
from mars_score.meta.metrics.base import Metric, Models, Scoring
from mars_score.meta.scoring import ScoredSet, make_metrics, score_set
from mars_score.meta.sweeps import VARIANTS
from mars_score.meta.worth import Worth, worth, worth_metrics
from mars_score.models.fingerprints import unchanging
from mars_score.settings import resolve_settings
from mars_score.stats.resampling import MainLevel
from mars_score.store.location import Store, store_folder
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Progress, Runtime


@dataclass(frozen=True)
class SetResult:
    """A set with its scores and what they come to.

    Attributes:
        scored: items, attacks and scores.
        level: of the main figures: "within_groups" where ratings compare within a group only.
        agreements: by metric.
        worth: of augmentations in human references; None where it was not asked for.
    """

    scored: ScoredSet
    level: MainLevel
    agreements: Mapping[str, Agreement]
    worth: Worth | None = None

    def pearson(self, metric: str) -> float:
        """Pearson's r at the main level; NaN where it is undefined."""
        return self.agreements[metric].coefficients[self.level]["pearson"].value


@dataclass(frozen=True)
class MetaEvaluation:
    """What a meta-evaluation found.

    Attributes:
        sets: by name.
        titles: of the metrics, by name, in the order of tables.
        sweep: by set the metrics of a sweep over settings that need the language model, on a smaller sample;
            empty without one.
        resamples: of intervals and tests.
        seed: of attacks, intervals and tests.
    """

    sets: Mapping[str, SetResult]
    titles: Mapping[str, str]
    sweep: Mapping[str, SetResult]
    resamples: int
    seed: int

    def available(self) -> list[tuple[str, str]]:
        """Names and titles of the metrics with scores on some set."""
        return [
            (name, self.titles[name])
            for name in next(iter(self.sets.values())).agreements
            if any(one.scored.metrics[name].failure is None for one in self.sets.values())
        ]

    def failures(self) -> list[str]:
        """Which metrics gave no scores and which sets no worth of augmentations, and why: a sentence each."""
        of_metrics = [
            f"{one.title}: {one.failure}"
            for result in self.sets.values()
            for one in result.scored.metrics.values()
            if one.failure
        ]
        of_worth = [
            f"worth of augmentations on {name}: {one.worth.reason}"
            for name, one in self.sets.items()
            if one.worth and one.worth.reason
        ]
        return [*dict.fromkeys(of_metrics), *of_worth]


@unchanging()
def meta_evaluate(
    sets: Sequence[RatedSet],
    metrics: Sequence[str | Scoring] = tuple(METRICS),
    *,
    preset: str | None = None,
    within_groups: Collection[str] = (),
    attacks: Sequence[str] = tuple(ATTACKS),
    sweep_groups: int = 0,
    worth_choices: int = 0,
    resamples: int = 1000,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    store: Store = None,
    progress: Progress | None = None,
    **settings: Any,
) -> MetaEvaluation:
    """Measure how well metrics agree with people. With a store a run that was stopped continues where it was.

    Args:
        sets: rated candidates; see :func:`mars_score.data.rated.read_rated_sets`.
        metrics: names of :data:`METRICS`, variants such as ``mars[sigma=0]``, or objects with a ``score`` method
            (see :class:`mars_score.meta.Scoring`).
        preset: which models; see :class:`mars_score.MarsScorer`.
        within_groups: names of sets whose ratings compare within a group only.
        attacks: names of :data:`ATTACKS`.
        sweep_groups: run a sweep over settings that need the language model, on this many groups per set; 0: none.
        worth_choices: measure what augmentations are worth in human references, over this many choices of
            references within each row; 0: do not. Rows are scored again with each.
        resamples: of intervals and tests.
        seed: of attacks, choices of references, intervals and tests.
        batch_size: see :class:`mars_score.MarsScorer`.
        device: likewise.
        store: likewise.
        progress: called as ``progress(stage, done, total)``.
        settings: of MARS, by name.

    Raises:
        ValueError, TypeError: an unknown name, no sets, a setting or number that is unknown or out of range.
    """
    if not sets:
        raise ValueError("no data sets to evaluate on; give at least one")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
    for name, number in (("sweep_groups", sweep_groups), ("worth_choices", worth_choices)):
        if number < 0:
            raise ValueError(f"{name} must be at least 0, got {number}")
    check_names("data set", within_groups, [one.name for one in sets])
    check_names("attack", attacks, ATTACKS)
    arguments = {**({"preset": preset} if preset else {}), **settings}
    runtime = Runtime(batch_size, batch_size, device, ResultStore(store_folder(store)), progress)
    models = Models(resolve_settings(**arguments), runtime, arguments)
    of_run = make_metrics(metrics, models)
    of_sweep = make_metrics(VARIANTS, models) if sweep_groups else {}
    of_worth = worth_metrics(models) if worth_choices else {}

    def result(data: RatedSet, which: Mapping[str, Metric], under: Sequence[str]) -> SetResult:
        level: MainLevel = "within_groups" if data.name in within_groups else "items"
        scored = score_set(data, which, under, seed)
        return SetResult(scored, level, agreements(scored, level, resamples=resamples, seed=seed))

    results = {}
    for done, data in enumerate(sets):
        if progress:
            progress("data sets", done, len(sets))
        one = result(data, of_run, attacks)
        if of_worth:
            measured = worth(data, of_worth, one.level, choices=worth_choices, resamples=resamples, seed=seed)
            one = replace(one, worth=measured)
        results[data.name] = one
    sweep = {data.name: result(data.sample(sweep_groups), of_sweep, ()) for data in sets} if sweep_groups else {}
    titles = {name: metric.title for name, metric in {**of_run, **of_sweep}.items()}
    return MetaEvaluation(results, titles, sweep, resamples, seed)
