"""What a comparison of systems returns: frozen, and only read by what prints, draws or writes it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mars_score.data.values import plain
from mars_score.models.signature import Signature
from mars_score.stats.draws import SAME, Interval


@dataclass(frozen=True)
class SystemScore:
    """A system: its name, scores (rows,) and the interval of their mean."""

    name: str
    scores: tuple[float, ...]
    interval: Interval

    @property
    def score(self) -> float:
        """The mean over rows."""
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class SystemPair:
    """Two systems of a ranking.

    Attributes:
        first: name of the system with the higher score.
        second: name of the other one.
        difference: of their scores, at least 0.
        interval: of the difference.
        p: two-sided, adjusted for the number of pairs (Holm); or NaN.
        wins, ties, losses: rows in which the first scores higher, the same, and lower.
    """

    first: str
    second: str
    difference: float
    interval: Interval
    p: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class ComparedRow:
    """A row, counted from 0, with candidate and score of each system in the order of the ranking."""

    row: int
    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The highest score minus the lowest."""
        return max(self.scores) - min(self.scores)


@dataclass(frozen=True)
class SystemRanking:
    """Two or more systems in the order of their scores; they are told apart where p is at most 1 - confidence.

    Attributes:
        systems: the highest score first.
        pairs: each two systems, in the order of the ranking.
        rows: in input order.
        groups: how many groups of rows were drawn from: different contexts, or the caller's groups.
        confidence: coverage of the intervals.
        resamples: of the tests.
        signature: all that the scores depend on besides the texts; report it beside them.
        notices: what was done to some inputs (blank, shortened), and why there are no intervals and tests, one
            sentence each.
    """

    systems: tuple[SystemScore, ...]
    pairs: tuple[SystemPair, ...]
    rows: tuple[ComparedRow, ...]
    groups: int
    confidence: float
    resamples: int
    signature: Signature
    notices: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Which systems score higher than which, and which cannot be told apart, in one sentence."""
        clauses = []
        for system in self.systems[:-1]:
            higher, alike = [], []
            for pair in (pair for pair in self.pairs if pair.first == system.name):
                p = "no test" if math.isnan(pair.p) else f"p = {pair.p:.2g}"
                if pair.p <= 1 - self.confidence + SAME:
                    higher.append(f"{pair.second} ({pair.difference:+.3f}, {p})")
                else:
                    alike.append(f"{pair.second} ({p})")
            parts = [f"scores higher than {_listed(higher)}"] if higher else []
            parts += [f"cannot be told apart from {_listed(alike)}"] if alike else []
            clauses.append(f"{system.name} {', but '.join(parts)}")
        return "; ".join(clauses)

    def most_different(self, count: int) -> list[ComparedRow]:
        """The ``count`` rows whose scores are spread most, the largest spread first; none of equal scores."""
        differing = [row for row in self.rows if row.spread > SAME]
        return sorted(differing, key=lambda row: -row.spread)[:count]

    def to_dict(self, rows: int = 3) -> dict[str, Any]:
        """Plain data for JSON (undefined numbers are None), with the texts of the ``rows`` that differ most."""
        return {
            "systems": [
                {
                    "name": system.name,
                    "mars": system.score,
                    "interval": system.interval.ends,
                    "scores": list(system.scores),
                }
                for system in self.systems
            ],
            "pairs": [{**asdict(pair), "interval": pair.interval.ends, "p": plain(pair.p)} for pair in self.pairs],
            "verdict": self.verdict,
            "groups": self.groups,
            "confidence": self.confidence,
            "resamples": self.resamples,
            "signature": str(self.signature),
            "notices": list(self.notices),
            "most_different": [{**asdict(row), "spread": row.spread} for row in self.most_different(rows)],
        }


def _listed(parts: Sequence[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last
