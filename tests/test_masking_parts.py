"""What masks are made of: IDF, the words that carry the context, and the knapsack with its rule for ties."""

import itertools
import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mars_score.augment.masking.context import context_carrying
from mars_score.augment.masking.idf import Idf
from mars_score.augment.masking.knapsack import knapsack

# IDF

TEXTS = {
    "The cat sat.": ("the", "cat", "sat", "."),
    "The dog and the dog.": ("the", "dog", "and", "the", "dog", "."),
    "No!": ("no", "!"),
}


def test_idf_by_hand():
    idf = Idf.count(TEXTS)
    assert idf.documents == 3
    assert idf["the"] == pytest.approx(0.916290731874155)  # log(1 + 3/2)
    assert idf["cat"] == pytest.approx(1.3862943611198906)  # log(1 + 3)
    assert idf["dog"] == idf["cat"]  # twice in one text counts once
    assert idf["unseen"] == idf["cat"]


def test_idf_of_no_texts_and_texts_without_words():
    assert Idf.count({})["word"] == pytest.approx(math.log(2))
    assert Idf.count({"a": ("a",), " ": ()})["a"] == pytest.approx(math.log(3))


# Context-carrying words: a longest common subsequence, of the textbook's length

WORDS = st.lists(st.sampled_from(["the", "a", "cat", "sat", ".", "n't", "x", "-1", "😀"]), max_size=14)


def textbook_length(first, second):
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, left in enumerate(first):
        for j, right in enumerate(second):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1 if left == right else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    return lengths[-1][-1]


def is_subsequence(words, of):
    rest = iter(of)
    return all(word in rest for word in words)


@given(WORDS, WORDS)
@example(["the", "cat", "sat"], ["a", "cat"])
@example(["a", "b", "c", "d"], ["d", "a", "c", "b", "d"])
def test_context_carrying_words_are_a_longest_common_subsequence(reference, context):
    indices = context_carrying(reference, context)
    assert len(indices) == textbook_length(reference, context)
    assert is_subsequence([reference[index] for index in sorted(indices)], context)


def test_words_of_equal_hash_are_told_apart():
    class Colliding(str):
        __slots__ = ()

        def __hash__(self):
            return 1

    assert context_carrying([Colliding("cat"), Colliding("dog")], [Colliding("dog")]) == {1}


# The knapsack, against brute force


def brute_force(priorities, costs, budget):
    """Largest sum, then fewest items, then lexicographically smallest indices: every subset is looked at."""
    subsets = itertools.chain.from_iterable(
        itertools.combinations(range(len(costs)), size) for size in range(len(costs) + 1)
    )
    feasible = [subset for subset in subsets if sum(costs[item] for item in subset) <= budget]
    return min(feasible, key=lambda subset: (-sum(priorities[item] for item in subset), len(subset), subset))


def random_case(rng, draw_priority, draw_cost):
    count = rng.randrange(9)
    priorities = [draw_priority(rng) for _ in range(count)]
    costs = [draw_cost(rng) for _ in range(count)]
    budgets = [rng.randrange(sum(costs) + 3) for _ in range(3)]
    return priorities, costs, budgets


PRIORITIES = {
    "distinct": lambda rng: rng.randrange(1, 6_000_000),
    "many ties": lambda rng: rng.randrange(1, 4),
    "all equal": lambda rng: 1_442_695,
    "with zeros": lambda rng: rng.choice([0, 0, 1, 2]),
    "beyond 64 bits": lambda rng: rng.choice([10**20, 2 * 10**20, 10**20 + 1]),
    "around the 64-bit limit": lambda rng: rng.choice([2**63 // 9, 2**62, 1]),
}
COSTS = {
    "paper": lambda rng: rng.choice([1, 10]),
    "general": lambda rng: rng.randrange(1, 8),
    "equal": lambda rng: 1,
}


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("priorities", PRIORITIES)
def test_knapsack_equals_brute_force(priorities, costs):
    rng = random.Random(f"{priorities} {costs}")
    for _ in range(250):
        case = random_case(rng, PRIORITIES[priorities], COSTS[costs])
        assert knapsack(*case) == [brute_force(case[0], case[1], budget) for budget in case[2]], case


def test_a_budget_far_above_all_costs_takes_everything_without_a_table_of_its_size():
    assert knapsack([1, 3, 2], [1, 10, 1], [10**15]) == [(0, 1, 2)]


def test_nothing_to_choose_from():
    assert knapsack([], [], [0, 5]) == [(), ()]
    assert knapsack([1], [1], []) == []


def test_a_long_case_equals_the_greedy_answer_where_greed_is_exact():
    rng = random.Random(7)
    priorities = rng.sample(range(1, 10**7), 700)  # distinct, so that the answer is unique
    best = sorted(range(700), key=lambda item: -priorities[item])
    budgets = [140, 280, 420]
    assert knapsack(priorities, [1] * 700, budgets) == [tuple(sorted(best[:budget])) for budget in budgets]
