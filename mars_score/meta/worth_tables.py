"""Tables of the worth of augmentations in human references."""

from __future__ import annotations

from mars_score.meta.evaluation import MetaEvaluation
from mars_score.meta.tables import interval
from mars_score.meta.worth import PartialAgreement, Worth
from mars_score.report.contents import MISSING, Table, number


def worth_tables(found: MetaEvaluation) -> list[Table]:
    """Agreement by number of human references, and augmentations on this curve; none where it was not measured."""
    worths = {name: one.worth for name, one in found.sets.items() if one.worth and not one.worth.reason}
    return [_curve_table(worths), _worth_table(worths)] if worths else []


def _curve_table(worths: dict[str, Worth]) -> Table:
    numbers = sorted({count for one in worths.values() for count in one.references})
    choices = next(iter(worths.values())).choices
    rows = tuple(
        (name, str(one.references[1].n), *(_value(one.references.get(count)) for count in numbers))
        for name, one in worths.items()
    )
    note = (
        "Pearson's r at the main level with some of the human references and no augmentations, the mean over "
        f"{choices} random choices within each row, with 95 % bootstrap intervals over groups. Items with two "
        "references or more; under each number those with as many."
    )
    columns = ("data set", "items", *(f"{count} reference{'s' * (count > 1)}" for count in numbers))
    return Table("Agreement by number of human references", note, columns, rows)


def _worth_table(worths: dict[str, Worth]) -> Table:
    kinds = next(iter(worths.values())).beside_one
    rows = tuple(
        (name, *(text for kind in kinds for text in (_value(one.beside_one[kind]), _worth(one, kind))))
        for name, one in worths.items()
    )
    note = (
        "Pearson's r with one human reference and augmentations beside it; worth: with how many human references "
        "alone it is the same, by linear interpolation, with 95 % bootstrap intervals over groups; between "
        "1 (<: below the agreement with one) and the largest number tried (>: above). n/a: more references do not "
        "agree better."
    )
    columns = ("data set", *(column for kind in kinds for column in (f"1 and {kind}", "worth")))
    return Table("Worth of augmentations in human references", note, columns, rows)


def _value(one: PartialAgreement | None) -> str:
    return interval(one.value, one.interval) if one else MISSING


def _worth(of_set: Worth, kind: str) -> str:
    one, curve = of_set.beside_one[kind], [point.value for point in of_set.references.values()]
    sign = "<" if one.value < curve[0] else ">" if one.value > max(curve) else ""
    shown = number(one.worth, 1)
    if shown == MISSING:
        return shown
    ends = one.worth_interval
    return f"{sign}{shown} [{number(ends.low, 1)}, {number(ends.high, 1)}]"
