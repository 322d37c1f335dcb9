"""Any number of systems in the order of their scores, with a test of each two: frozen, and only read by others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from mars_score.compare.result import ComparedRow, SystemScore, defined, most_different, plain, win_tie_loss
from mars_score.compare.verdict import verdict
from mars_score.signature import Signature
from mars_score.stats import Test
from mars_score.stats.draws import Interval
from mars_score.stats.paired import PairedTest, holm


@dataclass(frozen=True)
class SystemPair:
    """Two systems of a ranking.

    Attributes:
        first: name of the system with the higher score.
        second: name of the other one.
        difference: of their scores, at least 0.
        interval: of the difference.
        p: two-sided; or NaN.
        adjusted_p: adjusted for the number of pairs (Holm); or NaN.
        win_tie_loss: in how many rows the first scores higher, the same, lower.
    """

    first: str
    second: str
    difference: float
    interval: Interval
    p: float
    adjusted_p: float
    win_tie_loss: tuple[int, int, int]


@dataclass(frozen=True)
class SystemRanking:
    """Systems compared, each two of them.

    Attributes:
        systems: the highest score first.
        intervals: of the systems' scores, in their order.
        pairs: each two systems, in the order of the ranking.
        rows: in input order; candidates and scores in the order of the ranking.
        test: what gave the p-values.
        confidence: coverage of the intervals; systems are told apart where p, adjusted, is at most 1 - confidence.
        resamples: number of resamples.
        groups: how many groups of rows were drawn from (without groups: the rows).
        tie_margin: scores that differ by no more are a tie.
        signature: all that the scores depend on besides the texts; report it beside them.
        notices: what was done to some inputs (blank, shortened), one sentence each with counts.
    """

    systems: tuple[SystemScore, ...]
    intervals: tuple[Interval, ...]
    pairs: tuple[SystemPair, ...]
    rows: tuple[ComparedRow, ...]
    test: Test
    confidence: float
    resamples: int
    groups: int
    tie_margin: float
    signature: Signature
    notices: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Which systems score higher than which, and which cannot be told apart, in one sentence."""
        return verdict(
            [(pair.first, pair.second, pair.difference, pair.adjusted_p) for pair in self.pairs], self.confidence
        )

    def most_different(self, count: int) -> list[ComparedRow]:
        """The ``count`` rows whose scores are spread most."""
        return most_different(self.rows, count)

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        return {
            "systems": [
                {"name": one.name, "mars": one.score, "interval": plain(interval), "scores": list(one.scores)}
                for one, interval in zip(self.systems, self.intervals, strict=True)
            ],
            "pairs": [
                {
                    "systems": [pair.first, pair.second],
                    "difference": pair.difference,
                    "interval": plain(pair.interval),
                    "p": defined(pair.p),
                    "adjusted_p": defined(pair.adjusted_p),
                    **dict(zip(("wins", "ties", "losses"), pair.win_tie_loss, strict=True)),
                }
                for pair in self.pairs
            ],
            "verdict": self.verdict,
            "test": self.test,
            "correction": "holm",
            "confidence": self.confidence,
            "resamples": self.resamples,
            "groups": self.groups,
            "tie_margin": self.tie_margin,
            "signature": str(self.signature),
            "notices": list(self.notices),
            "most_different": [row.to_dict() for row in self.most_different(rows)],
        }


def pairs_of(
    systems: Sequence[SystemScore], tests: dict[tuple[int, int], PairedTest], test: Test, tie_margin: float
) -> tuple[SystemPair, ...]:
    """Each two of the ranked systems, with the p-values of ``test`` adjusted for their number."""
    p_values = [tests[pair].p(test) for pair in combinations(range(len(systems)), 2)]
    found = zip(combinations(enumerate(systems), 2), p_values, holm(p_values), strict=True)
    return tuple(
        SystemPair(
            one.name,
            other.name,
            one.score - other.score,
            tests[i, j].difference,
            p,
            adjusted,
            win_tie_loss(one.scores, other.scores, tie_margin),
        )
        for ((i, one), (j, other)), p, adjusted in found
    )
