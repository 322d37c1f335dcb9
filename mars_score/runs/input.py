"""The rows of a run's input, checked, some at a time; the first pass checks all and counts words for IDF."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mars_score.augment.augmenter import prepare_rows
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.masking.idf import Idf
from mars_score.data.files import Columns, RowFile, read_parts
from mars_score.data.validation import Row
from mars_score.data.writers import Writable
from mars_score.settings import MaskingSettings
from mars_score.store.results import digest
from mars_score.store.runtime import Progress

SCORE_COLUMN = "mars"
_AT_ONCE = 512  # rows of the first pass that are read together


@dataclass(frozen=True)
class Part:
    """Some rows in sequence."""

    file: RowFile  # the rows as read, those with several candidates once for each
    # What each score depends on: candidate, prepared references and context; blank candidates where the input has
    # none.
    rows: Sequence[Row]


class Input:
    """A file of rows and how to read it."""

    def __init__(self, path: str, columns: Columns, masking: MaskingSettings) -> None:
        self.path, self.columns, self._masking = path, columns, masking
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ValueError(
                f"{path} can be read only once, and is read several times; save it to a file, or pass it as "
                "standard input (-)"
            )
        self._state = self._read_state()

    def parts(self, size: int) -> Iterator[Part]:
        """All rows from the first, ``size`` of the file's at a time; a file that has changed is a ValueError."""
        try:
            yield from self._parts(size)
        except (ValueError, TypeError, OSError):
            self._check_state()  # the change is to blame
            raise
        self._check_state()

    def _parts(self, size: int) -> Iterator[Part]:
        for file in read_parts(self.path, size):
            self._check_state()
            if self.columns.prediction is not None:
                file = file.one_value_each(self.columns.prediction)
            contexts = self.columns.contexts(file) or [""] * len(file.rows)
            references, candidates = self.columns.references(file), self.columns.candidates(file)
            rows = map(Row, candidates, references, contexts, self.columns.samples(file))
            yield Part(file, prepare_rows(rows, self._masking))

    def _check_state(self) -> None:
        if self._read_state() != self._state:
            raise ValueError(f"{self.path} changed during the run; run the command again")

    def _read_state(self) -> tuple[int, int] | None:
        state = os.stat(self.path) if os.path.exists(self.path) else None
        return state and (state.st_size, state.st_mtime_ns)


@dataclass
class Survey:
    """What the first pass found."""

    rows: int = 0  # number of candidates
    reference_counts: set[int] = field(default_factory=set)  # the different numbers of references of a row
    # Counted over the different references of the file; None where no words are masked, or by a corpus.
    idf: Idf | None = None


def survey(
    rows: Input, *, out: str | None, added: Sequence[str], analyser: WordAnalyser | None, report: Progress
) -> Survey:
    """Read and check all rows, also that ``out`` can hold them, before any model is loaded."""
    found, writable = Survey(), Writable(out) if out is not None else None
    seen: set[bytes] = set()  # different references
    frequencies: Counter[str] = Counter()  # in how many of them a word occurs
    for part in rows.parts(_AT_ONCE):
        if writable is not None:
            for name in added:
                if any(name in row for row in part.file.rows):
                    raise ValueError(
                        f"{rows.path}: the output has a column {name!r} of its own; rename that of the input"
                    )
            writable.check(part.file)
        found.rows += len(part.rows)
        found.reference_counts.update(len(row.references) for row in part.rows)
        if analyser is not None:
            texts = [reference for row in part.rows for reference in row.references]
            new = {key: text for text in texts if (key := digest(text)) not in seen}
            seen.update(new)
            for analysis in analyser.analyse(list(new.values())):
                frequencies.update(set(analysis.lower_words))
        report("read", found.rows, 0)
    report("read", found.rows, found.rows)
    if analyser is not None:
        found.idf = Idf(len(seen), frequencies)
    return found
