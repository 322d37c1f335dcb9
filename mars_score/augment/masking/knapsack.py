"""0/1 knapsack: the words to mask within a budget (section 2.1), exact and with one answer for ties."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INT64_MAX = np.iinfo(np.int64).max


def knapsack(priorities: Sequence[int], costs: Sequence[int], budgets: Sequence[int]) -> list[tuple[int, ...]]:
    """The items of largest total priority whose total cost stays within a budget, for several budgets at once.

    Among equally good sets the one with the fewest items is chosen, then the leftmost (the one whose sorted
    indices come first in lexicographic order). An item of priority 0 or less is never chosen.
    """
    total_cost = sum(costs)
    capacities = [min(budget, total_cost) for budget in budgets]
    taken = _take_table(priorities, costs, max(capacities, default=0))
    return [_walk(taken, costs, capacity) for capacity in capacities]


def _take_table(priorities: Sequence[int], costs: Sequence[int], largest: int) -> list[NDArray[np.uint8] | None]:
    """Row i, bit c: whether item i is taken when c is left *after paying for it* and items i, ... remain."""
    count = len(priorities)
    # Priority first, number of items second, in one number: fewer items lose less than 1 x (count + 1).
    scores = [priority * (count + 1) - 1 for priority in priorities]
    exact_in_int64 = sum(score for score in scores if score > 0) <= _INT64_MAX
    # best[c]: largest total score of the items from the current one on, within cost c. Python's integers
    # (slower, of any size) where 64 bits might overflow: priorities of 1e9 need 90,000 words for that.
    best: NDArray[Any] = np.zeros(largest + 1, dtype=np.int64 if exact_in_int64 else object)
    taken: list[NDArray[np.uint8] | None] = [None] * count
    for item in reversed(range(count)):
        score, cost = scores[item], costs[item]
        if score < 0 or cost > largest:
            continue
        with_item = best[:-cost] + score
        taken[item] = np.packbits(with_item >= best[cost:])
        np.maximum(best[cost:], with_item, out=best[cost:])
    return taken


def _walk(taken: list[NDArray[np.uint8] | None], costs: Sequence[int], capacity: int) -> tuple[int, ...]:
    """The chosen items for one capacity, read off the table from the left."""
    chosen = []
    for item, row in enumerate(taken):
        left = capacity - costs[item]
        if row is not None and left >= 0 and row[left >> 3] >> (7 - (left & 7)) & 1:
            chosen.append(item)
            capacity = left
    return tuple(chosen)
