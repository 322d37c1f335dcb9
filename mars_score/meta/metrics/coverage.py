"""How many of the candidate's words the context has."""

from __future__ import annotations

from collections.abc import Sequence

from mars_score.data.validation import Row
from mars_score.data.words import plain_words
from mars_score.meta.metrics.base import Metric


class Coverage(Metric):
    """Extractive fragment coverage (Grusky, Naaman and Artzi 2018, https://aclanthology.org/N18-1065, section 4).

    COVERAGE(A, S) = sum of |f| over the fragments f in F(A, S), divided by |S|, where F(A, S) are the longest
    runs of words of the summary S, found greedily from the left, that the article A has too. One shared word is
    a fragment already, so F covers a word of S exactly if A has it: the coverage is the share of words of S that
    are words of A, and is computed as that. Here S is the candidate, A the context; words are those of
    :func:`mars_score.data.words.plain_words`. Without words in the candidate, 0.
    (``mars_score.data.overlap.copied_share`` counts runs of five words or more only: words that were
    copied, where this counts words that could have been.)
    """

    title = "fragment coverage"
    family = "trivial"
    note = "share of the candidate's words that the context has (extractive fragment coverage); 0 without context"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [0, 1]."""
        scores = []
        for candidate, _, context in rows:
            words, of_context = plain_words(candidate), set(plain_words(context))
            scores.append(sum(word in of_context for word in words) / len(words) if words else 0.0)
        return scores
