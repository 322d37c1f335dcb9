"""A quantity of a text: its value, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mars_score.variants.judgements.quantities.units import NO_UNIT, Unit


@dataclass(frozen=True)
class Quantity:
    """A quantity of a text.

    Attributes:
        start: where it begins in the text, with its unit.
        end: where it ends.
        text: how it is written.
        low: its value in the base unit of its dimension: SI units, °C, a share of one, minutes of the day.
        high: the same, but for a range.
        unit: its unit and dimension.
        written: the number that is written, without the unit.
        scale: the word behind the number, such as a million, as a factor.
        bound: "" for a plain value, "~" for about one; else "<", "<=", ">" or ">=".
        near: whether the value is close to its bound, as in "just over".
        error: half of the last digit that is written, in the base unit; 0 for a value in words such as "half".
        rounding: the same where zeros at the end of a number do not count as digits.
        parts: of a date year, month and day, each 0 if unknown; of a score or ratio its numbers.
        counted: the word behind a plain number, in lower case and without the s of a plural.
        also: other readings of the same words, as of 3/5/24.
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
    error: float = 0.0
    rounding: float = 0.0
    parts: tuple[int, ...] = ()
    counted: str = ""
    also: tuple[Quantity, ...] = ()

    @property
    def dimension(self) -> str:
        """What is measured: "number", "share", "money:EUR", "duration", "date", "clock", "length" and others."""
        return self.unit.dimension

    @property
    def readings(self) -> tuple[Quantity, ...]:
        """All readings, this one first."""
        return (self, *self.also)

    @property
    def is_single(self) -> bool:
        """Whether it is one value, not a range."""
        return self.low == self.high

    def in_unit(self, unit: Unit, scale: float = 1.0) -> Quantity:
        """Return this quantity as one of another unit: "3" of "3 to 5 days" in days."""
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
