"""Context-carrying words: reference words that the context has too, in the same order (section 2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq


def context_carrying(reference_words: Sequence[str], context_words: Sequence[str]) -> frozenset[int]:
    """Indices of the reference words on a longest common subsequence with the context.

    Which of several longest ones is rapidfuzz's choice; its version belongs to a score's signature.
    """
    # Numbered words compare exactly; strings would be compared by their hashes.
    numbers: dict[str, int] = {}
    context = [numbers.setdefault(word, len(numbers)) for word in context_words]
    reference = [numbers.setdefault(word, len(numbers)) for word in reference_words]
    return frozenset(
        index
        for block in LCSseq.opcodes(context, reference)
        if block.tag == "equal"
        for index in range(block.dest_start, block.dest_end)
    )
