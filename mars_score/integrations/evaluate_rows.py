"""A metric of Hugging Face evaluate that checks its rows before evaluate sees them, and scores them by MARS.

evaluate guesses the format of references from the first row and silently mangles the others, and keeps its locks
when scoring fails.
"""

import contextlib
import inspect
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import evaluate

from mars_score.data.validation import (
    Context,
    Where,
    check_candidates,
    check_contexts,
    check_rows,
    check_tasks,
)
from mars_score.models.loading import free_models
from mars_score.scorer import MarsScorer
from mars_score.settings import Settings

# Names of the columns in other libraries.
_OTHER_NAMES = {
    "predictions": ("prediction", "preds", "candidates", "candidate", "hypotheses", "hypothesis"),
    "references": ("reference", "refs", "targets", "target", "labels"),
    "contexts": ("context", "sources", "source", "inputs", "documents", "questions"),
}
# Arguments of evaluate's own constructor, which silently ignores all others.
_EVALUATE_ARGUMENTS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


class _Added(NamedTuple):
    """What evaluate does not keep of a row that waits for ``compute()``."""

    samples: tuple[str, ...]  # no column of evaluate's, as combine() would ask all callers for it
    task: str  # as it was said; "" for not
    context_task: str  # as the type of the context says
    has_references: bool
    has_context: bool


class RowMetric(evaluate.Metric):  # type: ignore[misc]
    """Rows of predictions, references and contexts, given to ``compute`` or added before; threads take turns.

    Args:
        config_name: evaluate's second argument: the variant; ``"default"`` is ``"paper"``.
        arguments: those of ``evaluate.Metric`` (``cache_dir``, ``experiment_id``, ...), and settings and arguments
            of ``mars_score.MarsScorer``, for all calls that do not override them.

    Raises:
        TypeError: an unknown setting.
        ValueError: an unknown preset or variant, or a value out of range.
    """

    # evaluate.Metric's files of the rows that wait for compute().
    filelock: Any
    cache_file_name: Any
    filelocks: Any
    file_paths: Any

    def __init__(self, config_name: str | None = None, **arguments: Any) -> None:
        self._turn = threading.RLock()
        self._added: list[_Added] = []
        self._options = {name: value for name, value in arguments.items() if name not in _EVALUATE_ARGUMENTS}
        if config_name not in (None, "default"):
            variant = self._options.setdefault("variant", config_name)
            if variant != config_name:
                raise ValueError(f"config_name {config_name!r} and variant {variant!r} differ; give one")
        _ = self._settings  # Wrong options are refused at once.
        own = {name: value for name, value in arguments.items() if name in _EVALUATE_ARGUMENTS}
        super().__init__(config_name=config_name, **own)

    def __getstate__(self) -> dict[str, Any]:
        if self.writer is not None:
            raise TypeError(
                "a metric with rows that wait for compute() cannot be pickled: call compute() first, or "
                "load a new metric"
            )
        left_out = ("_turn", "_settings")  # Settings of a preset may hold models.
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = threading.RLock()

    @cached_property
    def _settings(self) -> Settings:
        """The settings of calls that override none."""
        return self.make_scorer().settings

    def make_scorer(self, **settings: Any) -> MarsScorer:
        """Make a scorer of the settings given at load and, before them, of these; no model is loaded yet."""
        return MarsScorer(**{**self._options, **settings})

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        contexts: Any = None,
        samples: Any = None,
        tasks: Any = None,
        detailed: bool = False,
        explain: bool = False,
        **settings: Any,
    ) -> dict[str, Any] | None:
        """Score the rows given here together with those that were added before.

        Bad input and unknown settings raise before any model loads and leave the rows added before as they are;
        if the scoring itself fails, they are dropped.

        With ``num_process`` at load, process 0 scores the rows of all processes together, its own first; the
        others get None and may have no rows. No process may add the next rows before process 0 is done. Samples
        and tasks of single rows are not gathered and therefore refused.
        """
        _refuse_other_names(settings)
        scorer = self.make_scorer(**settings)
        columns = {"predictions": predictions, "references": references, "contexts": contexts}
        columns |= {"samples": samples, "tasks": tasks}
        if all(column is None for column in columns.values()):
            columns |= {"predictions": [], "references": [], "contexts": []}
        with self._turn:
            rows, new = self._check(columns, scorer.settings)
            added = [*self._added, *new]
            if self.writer is None and not new and self.num_process == 1:
                raise ValueError(
                    "there is nothing to score: pass predictions, references and contexts, or add rows"
                )
            _check_together(added, scorer)
            options = {"detailed": detailed, "explain": explain}
            if self.num_process == 1:
                options |= _scoring_options(added, scorer.settings)
            try:
                if new or self.writer is None:  # process 0 waits for all shares, also for empty ones
                    super().add_batch(**rows)
                result: dict[str, Any] | None = super().compute(scorer=scorer, **options)
            except BaseException:
                self._drop_rows()
                raise
            self._added = []
            self.filelocks = self.file_paths = None  # no longer needed, and they cannot be pickled
            return result

    def add_batch(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        contexts: Any = None,
        samples: Any = None,
        tasks: Any = None,
    ) -> None:
        """Add rows, which a later ``compute()`` scores."""
        columns = {"predictions": predictions, "references": references, "contexts": contexts}
        self._add({**columns, "samples": samples, "tasks": tasks})

    def add(self, *, prediction: Any = None, reference: Any = None, context: Any = None, **plural: Any) -> None:
        """Add one row; names may be in the plural, too, as evaluate uses both; ``samples`` and ``tasks`` are."""
        row = {"predictions": prediction, "references": reference, "contexts": context}
        row |= {"samples": None, "tasks": None}
        if unknown := [name for name in plural if name not in row]:
            _refuse_other_names(unknown)
            raise TypeError(
                f"unknown input {unknown[0]!r}; a row has a prediction, a reference, a context, samples and tasks"
            )
        columns = {name: None if value is None else [value] for name, value in (row | plural).items()}
        self._add(columns | {"predictions": [(row | plural)["predictions"]]}, first_row=len(self))

    @staticmethod
    def free() -> None:
        """Release the models of all instances in this process; they are loaded again when needed."""
        free_models()

    def _add(self, columns: Mapping[str, Any], first_row: int = 0) -> None:
        with self._turn:
            rows, added = self._check(columns, self._settings, first_row)
            super().add_batch(**rows)
            self._added += added

    def _check(
        self, columns: Mapping[str, Any], settings: Settings, first_row: int = 0
    ) -> tuple[dict[str, list[Any]], list[_Added]]:
        """Return the rows as evaluate stores them (strings, and lists of references), and what it does not."""

        def where(column: str) -> Where:
            return lambda row: f"{column}[{first_row + row}]"

        given = {name: column for name, column in columns.items() if name != "predictions"}
        has_references, has_context = (columns[name] is not None for name in ("references", "contexts"))
        candidates = check_candidates(columns["predictions"], where=where("predictions"))
        use_context = settings.use_context or has_context  # For compute(use_context=True).
        rows = check_rows(**given, use_context=use_context, where=where, predictions=candidates)
        contexts = check_contexts(columns["contexts"], len(rows), use_context=use_context)  # With all their lines.
        if self.num_process > 1:
            _refuse_unshared(contexts, columns, settings.task, where("contexts"))
        texts: dict[str, list[Any]] = {
            "predictions": candidates,
            "references": [list(row.references) for row in rows],
            "contexts": [context.text for context in contexts],
        }
        tasks = check_tasks(columns["tasks"], len(rows))
        added = [
            _Added(row.samples, task, context.task, has_references, has_context)
            for row, task, context in zip(rows, tasks, contexts, strict=True)
        ]
        return texts, added

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


def check_mix(has_references: Iterable[bool]) -> bool:
    """Tell whether rows have references; ValueError unless all have some, or none has."""
    kinds = set(has_references)
    if len(kinds) > 1:
        raise ValueError(
            "some rows have references and some have none, and their scores do not mix: compute them apart"
        )
    return kinds != {False}


def _check_together(added: Sequence[_Added], scorer: MarsScorer) -> None:
    """Raise ValueError for rows that the scorer cannot score, or not together."""
    has_references = check_mix(row.has_references for row in added)
    scorer.check_inputs(() if has_references else None, True if any(row.samples for row in added) else None)
    if scorer.settings.use_context and not all(row.has_context for row in added):
        raise ValueError("rows were added without contexts: add them again with, or set use_context=False")


def _scoring_options(added: Sequence[_Added], settings: Settings) -> dict[str, Any]:
    """Return the samples and tasks of rows for :meth:`MarsScorer.score`, which is given their texts as strings."""
    by_type = settings.use_context and settings.task is None
    return {
        "samples": [row.samples for row in added] if any(row.samples for row in added) else None,
        "tasks": [row.task or (row.context_task if by_type else "") for row in added],
    }


def _refuse_unshared(
    contexts: Sequence[Context], columns: Mapping[str, Any], task: str | None, where: Where
) -> None:
    """Raise ValueError for what evaluate does not gather from several processes: samples and tasks of rows."""
    for name in ("samples", "tasks"):
        if columns[name] is not None:
            remedy = "; task=... says the task of all rows" if name == "tasks" else ""
            raise ValueError(
                f"{name} are not gathered from several processes: leave num_process or {name} out{remedy}"
            )
    for index, context in enumerate(contexts):
        if context.task and not task:
            raise ValueError(
                f"{where(index)} is of task {context.task!r} by its type, which is not gathered from several "
                f"processes: load the metric with task={context.task!r} if all are, or leave num_process out"
            )


def _refuse_other_names(names: Iterable[str]) -> None:
    """Raise TypeError for the name of a column in another library."""
    for name in names:
        for column, others in _OTHER_NAMES.items():
            if name in others:
                raise TypeError(f"unknown input {name!r}; did you mean {column!r}?")
