"""What the tests of a comparison allow to say, in one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence


def verdict(pairs: Sequence[tuple[str, str, float, float]], confidence: float) -> str:
    """For each system what it scores higher than, and what it cannot be told apart from.

    Args:
        pairs: of each two systems the one with the higher score, the other, the difference (at least 0), and p
            (adjusted for the number of pairs; or NaN).
        confidence: systems are told apart where p is at most 1 - confidence.
    """
    clauses = []
    for name in dict.fromkeys(first for first, *_ in pairs):
        higher, alike = [], []
        for first, second, difference, p in pairs:
            if first == name and p <= 1 - confidence + 1e-12:
                higher.append(f"{second} ({difference:+.3f}, {_p(p)})")
            elif first == name:
                alike.append(f"{second} ({_p(p)})")
        parts = [f"scores higher than {_and(higher)}"] if higher else []
        parts += [f"cannot be told apart from {_and(alike)}"] if alike else []
        clauses.append(f"{name} {', but '.join(parts)}")
    return "; ".join(clauses)


def _p(p: float) -> str:
    return "no test" if math.isnan(p) else f"p = {p:.2g}"


def _and(parts: Sequence[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last
