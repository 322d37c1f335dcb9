"""Context-carrying words: a longest common subsequence, of the textbook's length."""

from hypothesis import example, given
from hypothesis import strategies as st

from mars_score.masking.context import context_carrying

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
def test_it_is_a_longest_common_subsequence(reference, context):
    indices = context_carrying(reference, context)
    assert len(indices) == textbook_length(reference, context)
    assert is_subsequence([reference[index] for index in sorted(indices)], context)


def test_words_of_equal_hash_are_told_apart():
    class Colliding(str):
        __slots__ = ()

        def __hash__(self):
            return 1

    assert context_carrying([Colliding("cat"), Colliding("dog")], [Colliding("dog")]) == {1}
