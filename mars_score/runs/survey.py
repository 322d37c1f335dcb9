"""The first pass over a run's input: all rows are checked, and words are counted for IDF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mars_score.augment.augmenter import corpus_idf
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.masking.idf import Idf
from mars_score.runs.input import Input
from mars_score.runs.records import Distinct
from mars_score.store.results import digest
from mars_score.store.runtime import Progress

PART = 512  # rows that are read together


@dataclass(frozen=True)
class Survey:
    """Counts over the input.

    Attributes:
        rows: their number.
        pairs: different pairs of context and reference that are to be augmented.
        reference_counts: the different numbers of references of a row.
        idf: counted over the different references; empty where no words are to be masked.
    """

    rows: int
    pairs: int
    reference_counts: tuple[int, ...]
    idf: Idf

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        idf = {"documents": self.idf.documents, "frequencies": dict(self.idf.frequencies)}
        counts = list(self.reference_counts)
        return {"rows": self.rows, "pairs": self.pairs, "reference_counts": counts, "idf": idf}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Survey:
        """What :meth:`to_dict` gave."""
        return cls(data["rows"], data["pairs"], tuple(data["reference_counts"]), Idf(**data["idf"]))


def survey(rows: Input, analyser: WordAnalyser, report: Progress) -> Survey:
    """Read all rows.

    Args:
        rows: the input.
        analyser: splits references into words.
        report: called with the number of rows read.

    Raises:
        ValueError, TypeError, OSError: see :meth:`Input.parts`.
    """
    pairs, words = Distinct(), _WordCounter(analyser)
    idf = Idf(0, {}) if rows.masking.max_mask_ratio == 0 else corpus_idf(rows.masking, analyser)
    read, distinct, counts = 0, 0, set[int]()
    report("read", 0, 0)
    try:
        for part in rows.parts(PART):
            read += len(part.file.rows)
            counts.update(map(len, part.pairs))
            distinct += len(pairs.new([item_key(pair) for row in part.wanted_pairs for pair in row]))
            if idf is None:
                words.add([reference for row in part.pairs for _, reference in row])
            report("read", read, 0)
        report("read", read, read)
        return Survey(read, distinct, tuple(sorted(counts)), words.idf if idf is None else idf)
    finally:
        pairs.close()
        words.close()


def item_key(item: str | tuple[Any, ...]) -> bytes:
    """A key that differs for different texts, and for different tuples of texts."""
    return digest(item) if isinstance(item, str) else digest(*item)


class _WordCounter:
    """Counts in how many different references a word occurs."""

    def __init__(self, analyser: WordAnalyser) -> None:
        self._analyser = analyser
        self._seen = Distinct()
        self._documents = 0
        self._frequencies: Counter[str] = Counter()

    def add(self, references: Sequence[str]) -> None:
        by_key = {item_key(text): text for text in references}
        new = [by_key[key] for key in self._seen.new(list(by_key))]
        for analysis in self._analyser.analyse(new):
            self._frequencies.update(set(analysis.lower_words))
        self._documents += len(new)

    @property
    def idf(self) -> Idf:
        return Idf(self._documents, dict(self._frequencies))

    def close(self) -> None:
        self._seen.close()
