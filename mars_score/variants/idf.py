"""Count the document frequencies of words over rows that come in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from mars_score.cache import digest
from mars_score.metrics.paper import Idf
from mars_score.rows import Example, Row


class IdfCounter:
    """Counts IDF over the references of rows.

    Args:
        references_of: returns the references of a checked row as they are masked.
        words_of: splits each different text into words.
    """

    def __init__(
        self,
        references_of: Callable[[Row | Example], Iterable[str]],
        words_of: Callable[[Iterable[str]], Mapping[str, Iterable[str]]],
    ) -> None:
        self._references_of, self._words_of = references_of, words_of
        self._known: set[bytes] = set()  # digests of the texts so far
        self._frequencies: Counter[str] = Counter()

    def add(self, rows: Iterable[Row | Example]) -> None:
        """Add the next rows, which have been checked."""
        texts = (reference for row in rows for reference in self._references_of(row))
        new = {key: text for text in texts if (key := digest(text)) not in self._known}
        self._known.update(new)
        for words in self._words_of(new.values()).values():
            self._frequencies.update(set(words))

    @property
    def idf(self) -> Idf:
        """Return the IDF over the different texts so far."""
        return Idf(len(self._known), self._frequencies)
