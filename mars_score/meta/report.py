"""From a meta-evaluation to the tables and charts of its report."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation
from mars_score.meta.tables import (
    attack_tables,
    coefficient_table,
    intervals_table,
    main_table,
    mars_tables,
    system_table,
)
from mars_score.report import write_report
from mars_score.report.contents import Bars, Scatters, Table, number
from mars_score.settings.version import __version__


def write_meta_report(found: MetaEvaluation, folder: str | os.PathLike[str]) -> Path:
    """Write all tables and charts of a meta-evaluation; see :func:`mars_score.report.write_report`."""
    parts: list[Table | Bars | Scatters] = [
        main_table(found),
        intervals_table(found),
        *_bars(found),
        *mars_tables(found),
        *attack_tables(found),
        *(table for name in found.sets if (table := system_table(found, name))),
        coefficient_table(found, "items", "spearman"),
        coefficient_table(found, "items", "kendall"),
        coefficient_table(found, "within_groups", "pearson"),
        coefficient_table(found, "systems", "pearson"),
        *_scatters(found),
        *_signatures(found),
    ]
    return write_report(folder, "MARS: agreement with people", [*_summary(found), *_notes(found)], parts)


def _summary(found: MetaEvaluation) -> tuple[str, ...]:
    items = sum(len(one.scored.data.items) for one in found.sets.values())
    groups = sum(len(set(one.scored.data.groups)) for one in found.sets.values())
    return (
        f"{items} rated candidates, {groups} groups, {len(found.sets)} sets, {len(found.available())} metrics.",
        f"Version {__version__}; seed {found.options.seed}, {found.options.resamples} resamples.",
    )


def _notes(found: MetaEvaluation) -> list[str]:
    """What limits the figures: failures, what was left out, and how metrics read their texts."""
    notes = {
        f"{metric.title}: {metric.note}"
        for result in found.sets.values()
        for metric in result.scored.metrics.values()
        if metric.note and not metric.failure
    }
    return [*(f"skipped: {failure}" for failure in found.failures()), *found.notices(), *sorted(notes)]


def _signatures(found: MetaEvaluation) -> list[Table]:
    """What MARS's scores depend on besides the texts."""
    rows = tuple(
        (name, one.scored.data.task or "by form", one.scored.metrics[MARS].signature)
        for name, one in found.sets.items()
        if MARS in one.scored.metrics and one.scored.metrics[MARS].signature
    )
    note = "IDF is counted over the references of the whole file, so that a sample is scored as the whole."
    return [Table("Signatures", note, ("data set", "task", "MARS"), rows)] if rows else []


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


def _scatters(found: MetaEvaluation) -> list[Scatters]:
    """A block of plots per set."""
    blocks = []
    for name, one in found.sets.items():
        values = {
            metric: one.agreements[metric].coefficients["items"]["pearson"].value for metric in one.agreements
        }
        blocks.append(
            Scatters(
                f"{name}: scores (across) and ratings (up) of the items, with the least-squares line",
                tuple(f"{title}, r = {number(values[metric], 2)}" for metric, title in found.available()),
                tuple(tuple(map(float, one.scored.metrics[metric].scores)) for metric, _ in found.available()),
                tuple(one.scored.data.ratings),
            )
        )
    return blocks
