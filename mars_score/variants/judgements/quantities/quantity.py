"""The data class of a quantity: its value and its notation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mars_score.variants.judgements.quantities.units import NO_UNIT, Unit


@dataclass(frozen=True)
class Quantity:
    """A quantity of a text.

    Attributes:
        start: index of its first character, with its unit.
        end: index after its last character.
        text: the quantity as it is written.
        low: its value in the base unit of its dimension: SI units, °C, a share of 1, or minutes of the day.
        high: the upper end of a range, else equal to ``low``.
        unit: its unit and dimension.
        written: the number without the unit.
        scale: factor of a word such as "million" after the number.
        bound: "" for an exact value, "~" for about, or "<", "<=", ">" or ">=".
        near: whether the value is close to its bound, as in "just over".
        before: number of characters before ``start`` that state the bound, such as those of "at least ". 0 for a
            bound by other words, as in "the limit for bags is" and "not weigh more than".
        behind: the same after ``end``, as of " or more".
        error: half of the last written digit, in the base unit, or 0 for words such as "half".
        rounding: the same without counting the zeros at the end of the number.
        parts: year, month and day of a date, each 0 if unknown, or the numbers of a score or ratio.
        counted: the word after a plain number, in lower case and without the s of a plural.
        also: other readings of the same text, as of 3/5/24.
    """

    start: int
    end: int
    text: str
    low: float
    high: float
    unit: Unit = NO_UNIT
    written: float = 0.0
    scale: float = 1.0
    bound: str = ""
    near: bool = False
    before: int = 0
    behind: int = 0
    error: float = 0.0
    rounding: float = 0.0
    parts: tuple[int, ...] = ()
    counted: str = ""
    also: tuple[Quantity, ...] = ()

    @property
    def dimension(self) -> str:
        """Return the dimension, such as "number", "share", "money:EUR", "duration", "date", "clock", "length"."""
        return self.unit.dimension

    @property
    def readings(self) -> tuple[Quantity, ...]:
        """Return all readings, this one first."""
        return (self, *self.also)

    @property
    def is_single(self) -> bool:
        """Tell whether it is one value, not a range."""
        return self.low == self.high

    def in_unit(self, unit: Unit, scale: float = 1.0) -> Quantity:
        """Give the same number another unit: "3" in "3 to 5 days" is in days."""
        number = self.written * scale
        return replace(
            self,
            low=unit.base(number),
            high=unit.base(number),
            unit=unit,
            written=number,
            scale=self.scale * scale,
            error=self.error * scale * unit.factor / self.unit.factor,
            rounding=self.rounding * scale * unit.factor / self.unit.factor,
            counted="",
            also=(),
        )
