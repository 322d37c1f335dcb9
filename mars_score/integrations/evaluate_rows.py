"""A metric of Hugging Face evaluate whose rows are checked before evaluate sees them.

evaluate guesses the format of references from the first row and silently mangles the others, and keeps its locks
when scoring fails.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import evaluate

from mars_score.data.validation import check_candidates, check_rows
from mars_score.scorer import MarsScorer

# Names of the columns in other libraries.
_OTHER_NAMES = {
    "predictions": ("prediction", "preds", "candidates", "candidate", "hypotheses", "hypothesis"),
    "references": ("reference", "refs", "targets", "target", "labels"),
    "contexts": ("context", "sources", "source", "inputs", "documents", "questions"),
}


class _Added(NamedTuple):
    """What evaluate does not keep of a row that waits for ``compute()``."""

    samples: tuple[str, ...]  # not a column of evaluate's, as combine() would ask all callers for it
    has_references: bool
    has_context: bool


class MetricOfRows(evaluate.Metric):  # type: ignore[misc]
    """Predictions, references, contexts and samples, given to ``compute`` or added before; threads take turns."""

    use_context: bool = True  # whether rows that are added must have contexts
    # evaluate.Metric's files of the rows that wait for compute().
    filelock: Any
    cache_file_name: Any
    filelocks: Any
    file_paths: Any

    def __init__(self, **arguments: Any) -> None:
        self._turn = threading.RLock()
        self._added: list[_Added] = []
        super().__init__(**arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = threading.RLock()

    def compute_rows(self, columns: Sequence[Any], scorer: MarsScorer, **options: Any) -> dict[str, Any] | None:
        """Compute the metric of the rows given here (``columns`` all None: none) and of those added before.

        Bad rows raise and leave the rows added before as they are; if computing fails, they are dropped.
        """
        use_context = scorer.settings.use_context
        with self._turn:
            if columns[3] is not None or any(row.samples for row in self._added):
                scorer.settings.given((), samples=())  # refuses samples that would not count
            if all(column is None for column in columns):
                columns = [[], [], [], None]
            rows, new = self._checked(columns, use_context)
            added = [*self._added, *new]
            if self.writer is None and not new and self.num_process == 1:
                raise ValueError(
                    "there is nothing to score: pass predictions, references and contexts, or add rows"
                )
            check_mix({row.has_references for row in added})
            if use_context and not all(row.has_context for row in added):
                raise ValueError("rows were added without contexts: add them again with, or set use_context=False")
            samples = [row.samples for row in added] if any(row.samples for row in added) else None
            try:
                if new or self.writer is None:  # process 0 waits for all shares, also for empty ones
                    super().add_batch(**rows)
                result: dict[str, Any] | None = super().compute(scorer=scorer, samples=samples, **options)
            except BaseException:
                self._drop_rows()
                raise
            self._added = []
            self.filelocks = self.file_paths = None  # no longer needed, and they cannot be pickled
            return result

    def add_batch(
        self, *, predictions: Any = None, references: Any = None, contexts: Any = None, samples: Any = None
    ) -> None:
        """Add rows, which a later ``compute()`` scores."""
        self._add((predictions, references, contexts, samples))

    def add(self, *, prediction: Any = None, reference: Any = None, context: Any = None, **plural: Any) -> None:
        """Add one row; the columns may also be named in the plural, as evaluate uses both, and ``samples`` is."""
        row = {"predictions": prediction, "references": reference, "contexts": context, "samples": None}
        for name in plural:
            if name not in row:
                refuse_other_names(name)
                raise TypeError(
                    f"unknown input {name!r}; a row has a prediction, a reference, a context and samples"
                )
        row |= plural
        columns = [None if row[name] is None and name != "predictions" else [row[name]] for name in row]
        self._add(columns, first_row=len(self))

    def _add(self, columns: Sequence[Any], first_row: int = 0) -> None:
        with self._turn:
            rows, added = self._checked(columns, self.use_context, first_row)
            super().add_batch(**rows)
            self._added += added

    def _checked(
        self, columns: Sequence[Any], use_context: bool, first_row: int = 0
    ) -> tuple[dict[str, list[Any]], list[_Added]]:
        """The rows as evaluate stores them, strings and for references lists of strings, and what it does not."""

        def place(name: str) -> Callable[[int], str]:
            return lambda row: f"{name}[{first_row + row}]"

        predictions, references, contexts, samples = columns
        candidates = check_candidates(predictions, where=place("predictions"))
        kept = use_context or contexts is not None  # for compute(use_context=True)
        rows, texts, others = check_rows(
            references, contexts, samples, use_context=kept, where=place, predictions=candidates
        )
        if samples is not None and self.num_process > 1:
            raise ValueError("samples are not gathered from several processes; leave num_process or samples out")
        has = references is not None, contexts is not None
        return {"predictions": candidates, "references": [*map(list, rows)], "contexts": texts}, [
            _Added(of_row, *has) for of_row in others
        ]

    def _drop_rows(self) -> None:
        """Remove the files of the rows and release their locks, which evaluate keeps when scoring fails."""
        held = [
            *zip(self.filelocks or (), self.file_paths or (), strict=True),
            (self.filelock, self.cache_file_name),
        ]
        self.writer = self.buf_writer = self.data = None
        self.filelocks = self.file_paths = self.filelock = self.cache_file_name = None
        self._added = []
        for lock, path in reversed(held):
            if lock is not None and lock.is_locked:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
                lock.release()


def check_mix(has_references: set[bool]) -> None:
    """Raise ValueError unless all rows have references, or none has."""
    if len(has_references) > 1:
        raise ValueError(
            "some rows have references and some have none, and their scores do not mix: compute them apart"
        )


def refuse_other_names(name: str) -> None:
    """Raise TypeError if ``name`` is a column's name in another library."""
    for column, others in _OTHER_NAMES.items():
        if name in others:
            raise TypeError(f"unknown input {name!r}; did you mean {column!r}?")
