"""What a comparison of systems returns: frozen, and everything that prints, plots or writes only reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mars_score.compare.verdict import verdict
from mars_score.models.signature import Signature
from mars_score.stats import Test
from mars_score.stats.draws import Interval
from mars_score.stats.paired import PairedTest

# Scores that differ by less than this are equal.
SAME = 1e-9


@dataclass(frozen=True)
class SystemScore:
    """A system's name and its scores, one per row."""

    name: str
    scores: tuple[float, ...]

    @property
    def score(self) -> float:
        """The mean over rows."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class ComparedRow:
    """What the systems wrote for a row.

    Attributes:
        row: counted from 0.
        context: what it was written from; empty without contexts.
        references: by people.
        candidates: one of each system.
        scores: one of each system.
    """

    row: int
    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The first score minus the second."""
        return self.scores[0] - self.scores[1]

    @property
    def spread(self) -> float:
        """The highest score minus the lowest."""
        return max(self.scores) - min(self.scores)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "row": self.row,
            "difference": self.difference if len(self.scores) == 2 else self.spread,
            "context": self.context,
            "references": list(self.references),
            "candidates": list(self.candidates),
            "scores": list(self.scores),
        }


def win_tie_loss(first: Sequence[float], second: Sequence[float]) -> tuple[int, int, int]:
    """In how many rows the first score is higher, the same, lower."""
    wins = sum(one - other > SAME for one, other in zip(first, second, strict=True))
    losses = sum(other - one > SAME for one, other in zip(first, second, strict=True))
    return wins, len(first) - wins - losses, losses


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What comparisons of two and of more systems share.

    Attributes:
        rows: in input order.
        confidence: coverage of the intervals.
        resamples: number of resamples.
        signature: all that the scores depend on besides the texts; report it beside them.
        notices: what was done to some inputs (blank, shortened), one sentence each with counts.
    """

    rows: tuple[ComparedRow, ...]
    confidence: float
    resamples: int
    signature: Signature
    notices: tuple[str, ...] = ()

    def most_different(self, count: int) -> list[ComparedRow]:
        """The ``count`` rows whose scores are spread most, the largest spread first; none of equal scores."""
        differing = [row for row in self.rows if row.spread > SAME]
        return sorted(differing, key=lambda row: -row.spread)[:count]

    def _to_dict(self, systems: Sequence[SystemScore], intervals: Sequence[Interval], rows: int) -> dict[str, Any]:
        """Plain data for JSON, with the texts of the ``rows`` that differ most."""
        return {
            "systems": [
                {"name": one.name, "mars": one.score, "interval": plain(interval), "scores": list(one.scores)}
                for one, interval in zip(systems, intervals, strict=True)
            ],
            "confidence": self.confidence,
            "resamples": self.resamples,
            "signature": str(self.signature),
            "notices": list(self.notices),
            "most_different": [row.to_dict() for row in self.most_different(rows)],
        }


@dataclass(frozen=True)
class SystemComparison(Compared):
    """Two systems compared.

    Attributes:
        names: of the systems.
        test: intervals and p-values.
    """

    names: tuple[str, str]
    test: PairedTest

    @cached_property
    def systems(self) -> tuple[SystemScore, SystemScore]:
        """The first and the second system."""
        first, second = map(SystemScore, self.names, zip(*(row.scores for row in self.rows), strict=True))
        return first, second

    @property
    def difference(self) -> float:
        """The first system's score minus the second's."""
        return self.systems[0].score - self.systems[1].score

    @property
    def win_tie_loss(self) -> tuple[int, int, int]:
        """In how many rows the first system scores higher, the same, lower."""
        first, second = self.systems
        return win_tie_loss(first.scores, second.scores)

    def verdict(self, test: Test = "randomisation") -> str:
        """Which system scores higher, or that they cannot be told apart, in one sentence."""
        first, second = self.names if self.difference >= 0 else self.names[::-1]
        return verdict([(first, second, abs(self.difference), self.test.p(test))], self.confidence)

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        return {
            **self._to_dict(self.systems, (self.test.first, self.test.second), rows),
            "difference": self.difference,
            "interval": plain(self.test.difference),
            "bootstrap_p": defined(self.test.bootstrap_p),
            "randomisation_p": defined(self.test.randomisation_p),
            **dict(zip(("wins", "ties", "losses"), self.win_tie_loss, strict=True)),
            "verdict": self.verdict(),
            "groups": self.test.groups,
        }


def defined(value: float) -> float | None:
    """None for NaN, which JSON cannot hold."""
    return None if math.isnan(value) else value


def plain(interval: Interval) -> list[float | None]:
    """Its ends, for JSON."""
    return [defined(interval.low), defined(interval.high)]
