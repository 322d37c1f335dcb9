"""Inverse document frequency: how rare a word is among the references (section 2.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Idf:
    """IDF(w) = log(1 + M / max(df(w), 1)), at least log 2, so that priorities alpha / IDF are finite."""

    documents: int  # M, the number of distinct texts
    frequencies: Mapping[str, int]  # df, the number of texts in which a lower-cased word occurs

    @classmethod
    def count(cls, documents: Collection[Iterable[str]]) -> Idf:
        """Count over distinct texts, each of which is its lower-cased words."""
        return cls(len(documents), Counter(word for words in documents for word in set(words)))

    def __getitem__(self, word: str) -> float:
        """IDF of a lower-cased word; a word that was not counted is as rare as one that was counted once."""
        # With no texts at all (M = 0) every IDF is log 2, rather than 0.
        return math.log(1 + max(self.documents, 1) / max(self.frequencies.get(word, 0), 1))
