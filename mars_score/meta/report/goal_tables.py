"""Does MARS do what it is for? Its parts against each other, and MARS against each peer, in one table each."""

from __future__ import annotations

from mars_score.meta.agreement import MARS
from mars_score.meta.evaluation import MetaEvaluation, SetResult
from mars_score.meta.report.agreement_tables import SIGNIFICANT, is_significant
from mars_score.meta.tables import Table, mean, number, signed

_TOO_FEW = 0.3  # share of augmentations that differ from their reference, below which a set says nothing
# What a part brings: one metric minus the other.
_PARTS = (
    ("augmentation", "mars", "reference_cosine"),
    ("context", "mars", "mars_no_context"),
    ("self-planning", "mars_planned", "mars"),
    ("context, with self-planning", "mars_planned", "mars_planned_no_context"),
)


def goal_tables(found: MetaEvaluation) -> list[Table]:
    """What each part of MARS brings on each set, and how often MARS is above each metric."""
    available = [name for name, _ in found.available()]
    if MARS not in available:
        return []
    parts = [(part, *pair) for part, *pair in _PARTS if set(pair) <= set(available)]
    rows = []
    for name, one in found.sets.items():
        changed = one.agreements[MARS].changed
        counts = "" if changed >= _TOO_FEW else " (does not count)"
        cells = [_difference(one, with_it, without) + counts for _, with_it, without in parts]
        rows.append((name, number(one.pearson(MARS)), number(changed, 2), *cells))
    note = (
        "Difference of Pearson's r with and without the part (augmentation: against the reference alone). "
        f"* p < {SIGNIFICANT} in the bootstrap over groups, where MARS as it is by default is one of the two. "
        "Augmentations that differ: share of different augmentations whose text is not the reference's; below "
        f"{_TOO_FEW:.0%} a set does not count."
    )
    columns = ("data set", "MARS", "augmentations that differ", *(part for part, *_ in parts))
    return [Table("What each part brings", note, columns, tuple(rows)), _wins(found)]


def _difference(one: SetResult, with_it: str, without: str) -> str:
    others = [name for name in (with_it, without) if name != MARS]
    star = "*" if len(others) == 1 and is_significant(one, others[0]) else ""
    return signed(one.pearson(with_it) - one.pearson(without)) + star


def _wins(found: MetaEvaluation) -> Table:
    rows = []
    for name, title in found.available():
        if name == MARS:
            continue
        pairs = [(one.pearson(MARS), one.pearson(name), is_significant(one, name)) for one in found.sets.values()]
        known = [(mars, other, sure) for mars, other, sure in pairs if mars == mars and other == other]
        rows.append(
            (
                title,
                f"{sum(mars > other for mars, other, _ in known)} of {len(known)}",
                str(sum(mars > other and sure for mars, other, sure in known)),
                str(sum(mars < other and sure for mars, other, sure in known)),
                signed(mean(mars - other for mars, other, _ in known)),
            )
        )
    return Table(
        "MARS against each metric, over sets",
        f"On how many sets MARS correlates better; significantly: p < {SIGNIFICANT} in the bootstrap over groups.",
        ("metric", "MARS above", "significantly above", "significantly below", "mean difference"),
        tuple(rows),
    )
