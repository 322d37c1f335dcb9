"""From a meta-evaluation to the contents of its report."""

from __future__ import annotations

import math

import numpy as np

from mars_score import __version__
from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.meta.sweep_tables import sweep_tables
from mars_score.meta.tables import (
    Published,
    attack_tables,
    coefficient_table,
    intervals_table,
    main_table,
    mars_tables,
    system_table,
)
from mars_score.meta.worth_tables import worth_tables
from mars_score.report.contents import Bars, Disagreement, Report, Scatter, Section, Table, number

_WORTH_READING = 3  # disagreements of a set, at either end


def build_report(found: MetaEvaluation, published: Published | None = None) -> Report:
    """All tables and charts of a meta-evaluation.

    Args:
        found: the evaluation.
        published: figures of others, shown beside ours: data set -> metric -> system -> Pearson's r.
    """
    published = published or {}
    systems = [table for name in found.sets if (table := system_table(found, name, published))]
    sections = (
        Section("Agreement with people", "", (main_table(found), intervals_table(found), *_bars(found))),
        Section("What MARS brings", "", tuple(mars_tables(found))),
        Section("Worth of augmentations", "", tuple(worth_tables(found))),
        Section("Attacks", "", tuple(attack_tables(found))),
        Section("Settings", "", tuple(sweep_tables(found))),
        Section("Per system", "", tuple(systems)),
        Section(
            "Other coefficients and levels",
            "",
            (
                coefficient_table(found, "items", "spearman"),
                coefficient_table(found, "items", "kendall"),
                coefficient_table(found, "within_groups", "pearson"),
                coefficient_table(found, "systems", "pearson"),
            ),
        ),
        Section(
            "Scores and ratings",
            "One chart per metric: a point is an item, the line the least-squares fit.",
            tuple(chart for name, one in found.sets.items() for chart in _scatters(found, name, one)),
        ),
        Section(
            "Disagreements worth reading",
            "Where MARS lies furthest above or below what the rating led one to expect (residual of a linear fit, "
            "in standard deviations of the score).",
            tuple(part for name, one in found.sets.items() for part in _disagreements(name, one)),
        ),
        Section("Signatures", "", tuple(_signatures(found))),
    )
    return Report(
        "MARS: agreement with people",
        _summary(found),
        _notices(found),
        tuple(one for one in sections if one.parts),
    )


def _summary(found: MetaEvaluation) -> tuple[str, ...]:
    items = sum(len(one.scored.data.items) for one in found.sets.values())
    groups = sum(len(set(one.scored.data.groups)) for one in found.sets.values())
    return (
        f"{items} rated candidates, {groups} groups, {len(found.sets)} sets, {len(found.available())} metrics.",
        f"Version {__version__}; seed {found.seed}, {found.resamples} resamples.",
    )


def _signatures(found: MetaEvaluation) -> list[Table]:
    """What MARS's scores depend on besides the texts."""
    rows = tuple(
        (name, one.scored.data.task or "by form", one.scored.metrics[MARS].signature)
        for name, one in found.sets.items()
        if MARS in one.scored.metrics and one.scored.metrics[MARS].signature
    )
    note = "IDF is counted over the references of the whole file, so that a sample is scored as the whole."
    return [Table("Signatures", note, ("data set", "task", "MARS"), rows)] if rows else []


def _notices(found: MetaEvaluation) -> tuple[str, ...]:
    notes = {
        f"{one.title}: {one.note}"
        for result in found.sets.values()
        for one in result.scored.metrics.values()
        if one.note and not one.failure
    }
    return (
        *(f"skipped: {failure}" for failure in found.failures()),
        *(f"{name}: {notice}" for name, one in found.sets.items() for notice in one.scored.data.notices),
        *sorted(notes),
    )


def _bars(found: MetaEvaluation) -> list[Bars]:
    """One chart per set, the best metric first."""
    charts = []
    for name, one in found.sets.items():
        order = sorted(found.available(), key=lambda metric: -np.nan_to_num(one.pearson(metric[0]), nan=-2))
        ends = [one.agreements[metric].interval for metric, _ in order]
        charts.append(
            Bars(
                f"{name}: Pearson's r with 95 % intervals",
                tuple(title for _, title in order),
                tuple(one.pearson(metric) for metric, _ in order),
                tuple(end.low for end in ends),
                tuple(end.high for end in ends),
                frozenset(index for index, (metric, _) in enumerate(order) if metric == MARS),
            )
        )
    return charts


def _scatters(found: MetaEvaluation, name: str, one: SetResult) -> list[Scatter]:
    return [
        Scatter(
            name,
            title,
            tuple(map(float, one.scored.metrics[metric].scores)),
            tuple(one.scored.data.ratings),
            f"r = {number(one.agreements[metric].coefficients['items']['pearson'].value, 2)}",
        )
        for metric, title in found.available()
    ]


def _disagreements(name: str, one: SetResult) -> list[Disagreement]:
    """The items of largest and smallest residual of MARS."""
    scores = one.scored.metrics.get(MARS)
    ratings = np.array(one.scored.data.ratings)
    if not scores or not scores.details or math.isnan(one.agreements[MARS].coefficients["items"]["pearson"].value):
        return []
    slope, intercept = np.polyfit(ratings, scores.scores, 1)
    residuals = (scores.scores - slope * ratings - intercept) / scores.scores.std()
    order = [int(index) for index in np.argsort(-residuals, kind="stable")]
    chosen = dict.fromkeys([*order[:_WORTH_READING], *order[-_WORTH_READING:]])
    return [_disagreement(name, one, index, float(residuals[index])) for index in chosen]


def _disagreement(name: str, one: SetResult, index: int, residual: float) -> Disagreement:
    item, scores = one.scored.data.items[index], one.scored.metrics[MARS]
    candidate, references, context = item.row
    augmentations = tuple(one for reference in scores.details[index].references for one in reference.compared[1:])
    rating, score = f"{item.rating:g}", number(float(scores.scores[index]))
    return Disagreement(
        name, item.id, item.system, rating, score, residual, context, references, augmentations, candidate
    )
