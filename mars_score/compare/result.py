"""What a comparison of two systems returns: frozen, and everything that prints, plots or writes only reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mars_score.stats.draws import Interval
from mars_score.stats.paired import PairedTest

# Scores that differ by less than this are equal.
_SAME = 1e-9


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
class RowPair:
    """What both systems wrote for a row.

    Attributes:
        row: counted from 0.
        context: what it was written from; empty without contexts.
        references: by people.
        candidates: of the first and of the second system.
        scores: of the first and of the second system.
    """

    row: int
    context: str
    references: tuple[str, ...]
    candidates: tuple[str, str]
    scores: tuple[float, float]

    @property
    def difference(self) -> float:
        """The first score minus the second."""
        return self.scores[0] - self.scores[1]


@dataclass(frozen=True)
class SystemComparison:
    """Two systems compared.

    Attributes:
        names: of the systems.
        rows: in input order.
        test: intervals and p-values.
        confidence: coverage of the intervals.
        resamples: number of resamples.
        tie_margin: scores that differ by no more are a tie.
        signature: all that the scores depend on besides the texts; report it beside them.
        notices: what was done to some inputs (blank, shortened), one sentence each with counts.
    """

    names: tuple[str, str]
    rows: tuple[RowPair, ...]
    test: PairedTest
    confidence: float
    resamples: int
    tie_margin: float
    signature: str
    notices: tuple[str, ...] = ()

    @cached_property
    def systems(self) -> tuple[SystemScore, SystemScore]:
        """The first and the second system."""
        first, second = (
            SystemScore(name, tuple(row.scores[which] for row in self.rows))
            for which, name in enumerate(self.names)
        )
        return first, second

    @property
    def difference(self) -> float:
        """The first system's score minus the second's."""
        return self.systems[0].score - self.systems[1].score

    @property
    def win_tie_loss(self) -> tuple[int, int, int]:
        """In how many rows the first system scores higher, the same, lower."""
        margin = max(self.tie_margin, _SAME)
        wins = sum(row.difference > margin for row in self.rows)
        losses = sum(row.difference < -margin for row in self.rows)
        return wins, len(self.rows) - wins - losses, losses

    def most_different(self, count: int) -> list[RowPair]:
        """The ``count`` rows that differ most, the largest difference first; rows of equal scores are left out."""
        differing = [row for row in self.rows if abs(row.difference) > _SAME]
        return sorted(differing, key=lambda row: -abs(row.difference))[:count]

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        intervals = (self.test.first, self.test.second)
        return {
            "systems": [
                {"name": one.name, "mars": one.score, "interval": _plain(interval), "scores": list(one.scores)}
                for one, interval in zip(self.systems, intervals, strict=True)
            ],
            "difference": self.difference,
            "interval": _plain(self.test.difference),
            "bootstrap_p": _defined(self.test.bootstrap_p),
            "randomisation_p": _defined(self.test.randomisation_p),
            **dict(zip(("wins", "ties", "losses"), self.win_tie_loss, strict=True)),
            "confidence": self.confidence,
            "resamples": self.resamples,
            "groups": self.test.groups,
            "tie_margin": self.tie_margin,
            "signature": self.signature,
            "notices": list(self.notices),
            "most_different": [
                {
                    "row": one.row,
                    "difference": one.difference,
                    "context": one.context,
                    "references": list(one.references),
                    "candidates": list(one.candidates),
                    "scores": list(one.scores),
                }
                for one in self.most_different(rows)
            ],
        }


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _plain(interval: Interval) -> list[float | None]:
    return [_defined(interval.low), _defined(interval.high)]
