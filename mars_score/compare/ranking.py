"""Any number of systems in the order of their scores, with a test of each two: frozen, and only read by others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from mars_score.compare.result import Compared, SystemScore, defined, plain, win_tie_loss
from mars_score.compare.verdict import verdict
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
class SystemRanking(Compared):
    """Systems compared, each two of them.

    Candidates and scores of the rows are in the order of the ranking. Systems are told apart where p, adjusted, is
    at most 1 - confidence.

    Attributes:
        systems: the highest score first.
        intervals: of the systems' scores, in their order.
        pairs: each two systems, in the order of the ranking.
        test: what gave the p-values.
        groups: how many groups of rows were drawn from (without groups: the rows).
    """

    systems: tuple[SystemScore, ...]
    intervals: tuple[Interval, ...]
    pairs: tuple[SystemPair, ...]
    test: Test
    groups: int

    @property
    def verdict(self) -> str:
        """Which systems score higher than which, and which cannot be told apart, in one sentence."""
        pairs = [(pair.first, pair.second, pair.difference, pair.adjusted_p) for pair in self.pairs]
        return verdict(pairs, self.confidence)

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        return {
            **self._to_dict(self.systems, self.intervals, rows),
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
            "groups": self.groups,
        }


def pairs_of(
    systems: Sequence[SystemScore], tests: dict[tuple[int, int], PairedTest], test: Test
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
            win_tie_loss(one.scores, other.scores),
        )
        for ((i, one), (j, other)), p, adjusted in found
    )
