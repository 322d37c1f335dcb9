"""A metric of Hugging Face evaluate that checks and keeps its rows itself, and scores them by MARS.

evaluate itself would take the format of references from the first row, silently mangle the others, and keep its
locks when scoring fails.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import evaluate

from mars_score.data.checking import check_rows
from mars_score.data.frames import entries_of
from mars_score.errors import Place
from mars_score.locks import ForkSafeLock
from mars_score.models.loading import free_models
from mars_score.results import MarsResult
from mars_score.rows import Contexts, Row, Tasks, Texts
from mars_score.scorer import MarsScorer
from mars_score.settings import Settings

_OTHER_NAMES = {  # of the columns in other libraries
    "predictions": ("prediction", "preds", "candidates", "candidate", "hypotheses", "hypothesis"),
    "references": ("reference", "refs", "targets", "target", "labels"),
    "contexts": ("context", "sources", "source", "inputs", "documents", "questions"),
}
# evaluate's own constructor takes these arguments and silently ignores all others.
_EVALUATE_ARGUMENTS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters) - {"self", "kwargs"}


class _Batch(NamedTuple):
    """Rows that were added together."""

    columns: Mapping[str, Any]  # unchecked lists with one entry per row
    first: int  # number of the first row in errors
    rows: list[Row]  # the checked rows
    reading: tuple[bool, str | None]  # the settings ``use_context`` and ``task`` by which they were checked

    def rows_for(self, settings: Settings) -> list[Row]:
        """Return the rows, checked again if these settings read them differently."""
        same = self.reading == (settings.use_context, settings.task)
        return self.rows if same else _read(self.columns, settings, self.first).rows


class RowMetric(evaluate.Metric):  # type: ignore[misc]
    """A metric that scores the rows given to ``compute`` and those added before. Threads take turns.

    Args:
        config_name: the variant, evaluate's second argument. ``"default"`` is ``"paper"``.
        arguments: those of ``evaluate.Metric`` (``cache_dir``, ``experiment_id``, ...), and arguments and settings
            of ``mars_score.MarsScorer``, which calls of ``compute`` can override.

    Raises:
        TypeError: an unknown setting.
        ValueError: an unknown preset or variant, a value out of range, or ``num_process`` above 1.
    """

    def __init__(self, config_name: str | None = None, **arguments: Any) -> None:
        if arguments.get("num_process", 1) != 1:
            raise ValueError(
                "num_process must be 1: rows are not gathered from several processes; use mars score --workers N, "
                "Ray, or mars_score.integrations.distributed, trainer or torchmetrics"
            )
        self._turn = ForkSafeLock()
        self._batches: list[_Batch] = []
        self._options = {name: value for name, value in arguments.items() if name not in _EVALUATE_ARGUMENTS}
        if config_name not in (None, "default"):
            variant = self._options.setdefault("variant", config_name)
            if variant != config_name:
                raise ValueError(f"config_name {config_name!r} and variant {variant!r} differ; give one")
        elif not self._options.get("learned"):
            self._options.setdefault("variant", "paper")  # The name is that of the paper's metric.
        _ = self._settings  # raises for wrong options
        of_evaluate = {name: value for name, value in arguments.items() if name in _EVALUATE_ARGUMENTS}
        super().__init__(config_name=config_name, **of_evaluate)

    def __len__(self) -> int:
        """Return the number of rows that were added."""
        return sum(len(batch.rows) for batch in self._batches)

    def __getstate__(self) -> dict[str, object]:
        left_out = ("_turn", "_settings")  # Settings may hold loaded models.
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._turn = ForkSafeLock()

    @cached_property
    def _settings(self) -> Settings:
        """Return the settings given at load."""
        return self.make_scorer().settings

    def make_scorer(self, **settings: Any) -> MarsScorer:
        """Make a scorer with the settings given at load, overridden by these. No model is loaded."""
        return MarsScorer(**{**self._options, **settings})

    def compute(
        self,
        *,
        predictions: Texts | None = None,
        references: Texts | None = None,
        contexts: Contexts | None = None,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
        detailed: bool = False,
        explain: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        """Score the rows given here together with those added before, and forget the latter.

        Bad input and unknown settings raise TypeError or ValueError before any model loads. Rows added before are
        then kept, but dropped if the scoring itself fails.
        """
        _refuse_other_names(settings)
        scorer = self.make_scorer(**settings)
        columns = {"predictions": predictions, "references": references, "contexts": contexts}
        columns |= {"samples": samples, "tasks": tasks}
        with self._turn:
            batches = list(self._batches)
            if any(column is not None for column in columns.values()):
                batches.append(_read(columns, scorer.settings))
            _check_together(batches, scorer)
            rows = [row for batch in batches for row in batch.rows_for(scorer.settings)]
            self._batches = []
            return self._result(scorer.score_rows(rows, explain=explain), detailed=detailed)

    def _result(self, result: MarsResult, *, detailed: bool = False) -> dict[str, Any]:
        """Convert a result to what ``compute`` returns."""
        raise NotImplementedError

    def add_batch(
        self,
        *,
        predictions: Texts | None = None,
        references: Texts | None = None,
        contexts: Contexts | None = None,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Add rows for a later ``compute()``."""
        columns = {"predictions": predictions, "references": references, "contexts": contexts}
        self._add({**columns, "samples": samples, "tasks": tasks})

    def add(
        self, *, prediction: object = None, reference: object = None, context: object = None, **plural: object
    ) -> None:
        """Add one row. Names may also be plural, as evaluate uses both; ``samples`` and ``tasks`` must be."""
        row = {"predictions": prediction, "references": reference, "contexts": context}
        row |= {"samples": None, "tasks": None}
        if unknown := [name for name in plural if name not in row]:
            _refuse_other_names(unknown)
            raise TypeError(
                f"unknown input {unknown[0]!r}; a row has a prediction, a reference, a context, samples and tasks"
            )
        row |= plural
        columns = {name: None if value is None else [value] for name, value in row.items()}
        self._add(columns | {"predictions": [row["predictions"]]}, first_row=len(self))

    @staticmethod
    def free() -> None:
        """Release the models of all instances in this process. They are loaded again when needed."""
        free_models()

    def _add(self, columns: Mapping[str, object], first_row: int = 0) -> None:
        if columns["contexts"] is None and columns["references"] is not None and self._settings.use_context:
            raise ValueError(
                "contexts are missing: rows that are added are checked at once, by the settings of evaluate.load; "
                "add them with contexts, or pass use_context=False to evaluate.load"
            )
        with self._turn:
            self._batches.append(_read(columns, self._settings, first_row))


def _read(columns: Mapping[str, object], settings: Settings, first: int = 0) -> _Batch:
    """Check the columns of rows. Errors number the rows from ``first``."""
    kept: dict[str, Any] = {
        name: column if (entries := entries_of(column)) is None else entries for name, column in columns.items()
    }
    use_context, task = settings.use_context, settings.task
    rows = check_rows(**kept, use_context=use_context, task=task, place=Place(first))
    return _Batch(kept, first, rows, (use_context, task))


def _check_together(batches: Sequence[_Batch], scorer: MarsScorer) -> None:
    """Raise ValueError if the scorer cannot score the rows, or cannot score them together."""
    batches = [batch for batch in batches if batch.rows]
    if not batches:
        raise ValueError("there is nothing to score: pass predictions, references and contexts, or add rows")
    with_references = {batch.columns["references"] is not None for batch in batches}
    if len(with_references) > 1:
        fault = "some rows have references and some have none, and their scores do not mix"
        raise ValueError(f"{fault}: compute them apart")
    has_samples = any(row.samples for batch in batches for row in batch.rows)
    scorer.check_inputs(has_references=with_references.pop(), has_samples=has_samples)
    if scorer.settings.use_context and any(batch.columns["contexts"] is None for batch in batches):
        raise ValueError("rows were added without contexts: add them again with, or set use_context=False")


def _refuse_other_names(names: Iterable[str]) -> None:
    """Raise TypeError for a name that another library gives a column."""
    for name in names:
        for column, others in _OTHER_NAMES.items():
            if name in others:
                raise TypeError(f"unknown input {name!r}; did you mean {column!r}?")
