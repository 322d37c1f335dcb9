"""A metric of Hugging Face evaluate whose rows are checked before evaluate sees them.

evaluate guesses the format of references from the first row and silently mangles the others, and keeps its locks
when scoring fails.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import evaluate

from mars_score.data.validation import (
    check_candidates,
    check_contexts,
    check_lengths,
    check_reference_free,
    check_references,
    check_samples,
)

# Names of the columns in other libraries.
_OTHER_NAMES = {
    "predictions": ("prediction", "preds", "candidates", "candidate", "hypotheses", "hypothesis"),
    "references": ("reference", "refs", "targets", "target", "labels"),
    "contexts": ("context", "sources", "source", "inputs", "documents", "questions"),
}


class MetricOfRows(evaluate.Metric):  # type: ignore[misc]
    """Predictions, references, contexts and samples, given to ``compute`` or added before; threads take turns."""

    use_context: bool = True  # whether rows must have contexts
    # evaluate.Metric's files of the rows that wait for compute().
    filelock: Any
    cache_file_name: Any
    filelocks: Any
    file_paths: Any

    def __init__(self, **arguments: Any) -> None:
        self._turn = threading.RLock()
        self._contexts_omitted = False  # in some of the rows that wait for compute()
        self._references_omitted: set[bool] = set()  # whether in each of the rows that wait for compute()
        # Of these rows. Not a column of evaluate's, as combine() would ask all callers for it.
        self.added_samples: list[tuple[str, ...]] = []
        super().__init__(**arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = threading.RLock()

    def compute_rows(
        self, columns: tuple[Any, Any, Any, Any], use_context: bool, **arguments: Any
    ) -> dict[str, Any] | None:
        """Compute the metric of the rows given here (``columns`` all None: none) and of those added before.

        Bad rows raise and leave the rows added before as they are; if computing fails, they are dropped.
        """
        with self._turn:
            rows: dict[str, Any] = {}
            if any(column is not None for column in columns):
                rows = _checked(*columns[:3], use_context=use_context)
                if columns[1] is None:
                    rows["references"] = None  # for add_batch, to which evaluate passes them on
            if self.writer is None and not any(rows.values()):
                if self.num_process == 1:
                    raise ValueError(
                        "there is nothing to score: pass predictions, references and contexts, or add rows"
                    )
                rows = {name: [] for name in self.features}  # process 0 waits for all shares, also for empty ones
            check_mix(self._references_omitted | ({columns[1] is None} if rows.get("predictions") else set()))
            if use_context and self._contexts_omitted:
                raise ValueError("rows were added without contexts: add them again with, or set use_context=False")
            samples = [*self.added_samples, *self._checked_samples(columns[3], len(rows.get("predictions", ())))]
            if any(samples):
                arguments["samples"] = samples
            try:
                result: dict[str, Any] | None = super().compute(**rows, **arguments)
            except BaseException:
                self._drop_rows()
                raise
            self._forget()
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
            rows = _checked(*columns[:3], use_context=self.use_context, first_row=first_row)
            samples = self._checked_samples(columns[3], len(rows["predictions"]), first_row)
            super().add_batch(**rows)
            self.added_samples += samples
            self._contexts_omitted |= columns[2] is None
            self._references_omitted.add(columns[1] is None)

    def _checked_samples(self, samples: Any, rows: int, first_row: int = 0) -> list[tuple[str, ...]]:
        checked = check_samples(samples, rows, where=lambda row: f"samples[{first_row + row}]")
        check_lengths(predictions=range(rows), samples=checked)
        if samples is not None and self.num_process > 1:
            raise ValueError("samples are not gathered from several processes; leave num_process or samples out")
        return checked

    def _drop_rows(self) -> None:
        """Remove the files of the rows and release their locks, which evaluate keeps when scoring fails."""
        held = [
            *zip(self.filelocks or (), self.file_paths or (), strict=True),
            (self.filelock, self.cache_file_name),
        ]
        self.writer = self.buf_writer = self.data = None
        self.filelocks = self.file_paths = self.filelock = self.cache_file_name = None
        self._forget()
        for lock, path in reversed(held):
            if lock is not None and lock.is_locked:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
                lock.release()

    def _forget(self) -> None:
        self._contexts_omitted = False
        self._references_omitted = set()
        self.added_samples = []


def check_mix(omitted: set[bool]) -> None:
    """Raise ValueError unless all rows have references, or none has."""
    if len(omitted) > 1:
        raise ValueError(
            "some rows have references and some have none, and their scores do not mix: compute them apart"
        )


def refuse_other_names(name: str) -> None:
    """Raise TypeError if ``name`` is a column's name in another library."""
    for column, others in _OTHER_NAMES.items():
        if name in others:
            raise TypeError(f"unknown input {name!r}; did you mean {column!r}?")


def _checked(
    predictions: Any, references: Any, contexts: Any, *, use_context: bool, first_row: int = 0
) -> dict[str, Any]:
    """The rows as evaluate stores them: strings, and lists of strings for the references."""

    def place(name: str) -> Callable[[int], str]:
        return lambda row: f"{name}[{first_row + row}]"

    where = place("contexts")
    columns: dict[str, Any] = {"predictions": check_candidates(predictions, where=place("predictions"))}
    if references is None:
        columns["contexts"] = check_reference_free(contexts, where=where)
        columns["references"] = [[] for _ in columns["contexts"]]
    else:
        columns["references"] = [*map(list, check_references(references, where=place("references")))]
        kept = use_context or contexts is not None  # for compute(use_context=True)
        count = len(columns["predictions"])
        columns["contexts"] = check_contexts(contexts, count, use_context=kept, where=where)
    check_lengths(**columns)
    return columns
