"""0/1 knapsack: the words to mask within a budget (section 2.1), exact and with one answer for ties."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def knapsack(priorities: Sequence[int], costs: Sequence[int], budgets: Sequence[int]) -> list[tuple[int, ...]]:
    """The items of largest total priority whose total cost stays within a budget, for several budgets at once.

    Among equally good sets the one with the fewest items is chosen, then the leftmost (the one whose sorted
    indices come first in lexicographic order). An item of priority 0 is never chosen. Costs are positive.
    """
    # Priority first, number of items second, in one number: fewer items lose less than 1 x (count + 1).
    scores = [priority * (len(priorities) + 1) - 1 for priority in priorities]
    # best[c]: largest total score of the items from the current one on, within cost c. Python's integers (slower,
    # of any size) where 64 bits might overflow, as with a weight of a million for 2,500 words.
    exact_in_int64 = sum(score for score in scores if score > 0) <= np.iinfo(np.int64).max
    best: NDArray[Any] = np.zeros(max(budgets, default=0) + 1, dtype=np.int64 if exact_in_int64 else object)
    # Of each item, bit c: whether it is taken when c is left *after paying for it* and it and later items remain.
    taken: list[NDArray[np.uint8]] = []
    for score, cost in zip(reversed(scores), reversed(costs), strict=True):
        with_item = best[:-cost] + score
        taken.append(np.packbits(with_item >= best[cost:]))
        np.maximum(best[cost:], with_item, out=best[cost:])
    return [_walk(taken[::-1], costs, budget) for budget in budgets]


def _walk(taken: list[NDArray[np.uint8]], costs: Sequence[int], budget: int) -> tuple[int, ...]:
    """The chosen items for one budget, read off the table from the left."""
    chosen = []
    for item, row in enumerate(taken):
        left = budget - costs[item]
        if left >= 0 and row[left >> 3] >> (7 - (left & 7)) & 1:
            chosen.append(item)
            budget = left
    return tuple(chosen)
