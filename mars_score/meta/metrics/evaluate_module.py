"""Any module of Hugging Face evaluate as a metric: ``evaluate:NAME_OR_PATH``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric, Models

_CONTEXTS = ("contexts", "sources", "inputs", "questions")  # what modules call the context


class EvaluateModule(Metric):
    """A module that evaluate loads by its name on the Hub or its path.

    It gets ``predictions``, ``references`` and, where it asks for them, the contexts. Where it gives a list with
    a number for each row, these are the scores (``scores``, else ``f1``, else the only list); otherwise it is
    called row by row, and its figure named ``score`` or like the module, else its only figure, counts. A module
    that takes one reference per row is asked about each, and the best counts. Scores are not stored, as nothing
    is known of what they depend on.
    """

    def __init__(self, models: Models, name: str) -> None:
        super().__init__(models)
        self.name, self.title = name, name.rstrip("/").rpartition("/")[2].removesuffix(".py")

    @cached_property
    def _module(self) -> Any:
        import evaluate

        return evaluate.load(self.name)

    @cached_property
    def _columns(self) -> Mapping[str, Any]:
        """The module's columns; of several formats that with the most references."""
        formats = self._module.features
        formats = formats if isinstance(formats, list) else [formats]
        return max(formats, key=lambda columns: not hasattr(columns.get("references"), "dtype"))

    def key(self) -> Sequence[Any]:
        """Not known."""
        return [None]

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class.

        Raises:
            ValueError: the module needs other columns, or gives several figures none of which is the score.
        """
        if unknown := set(self._columns) - {"predictions", "references", *_CONTEXTS}:
            raise ValueError(f"{self.name} needs {', '.join(sorted(unknown))}; a rated set has no such column")
        if not hasattr(self._columns.get("references"), "dtype"):
            return self._compute(
                [(candidate, list(references), context) for candidate, references, context, *_ in rows]
            )
        pairs = [(row[0], reference, row[2]) for row in rows for reference in row[1]]
        scores = iter(self._compute(pairs))
        return [max(next(scores) for _ in row[1]) for row in rows]

    def _compute(self, rows: Sequence[tuple[str, Any, str]]) -> list[float]:
        lists = {
            name: list(values)
            for name, values in self._call(rows).items()
            if isinstance(values, Sequence | np.ndarray)
            and len(values) == len(rows)
            and all(isinstance(value, Real) for value in values)
        }
        name = _chosen(lists, "scores", "f1")
        return [float(value) for value in lists[name]] if name else [self._figure(row) for row in rows]

    def _call(self, rows: Sequence[tuple[str, Any, str]]) -> Mapping[str, Any]:
        candidates, references, contexts = (list(column) for column in zip(*rows, strict=True))
        columns = {"predictions": candidates, "references": references, **dict.fromkeys(_CONTEXTS, contexts)}
        result = self._module.compute(**{name: columns[name] for name in self._columns})
        return result if isinstance(result, Mapping) else {"score": result}

    def _figure(self, row: tuple[str, Any, str]) -> float:
        result = self._call([row])
        figures = {name: value for name, value in result.items() if isinstance(value, Real)}
        name = _chosen(figures, "score", self._module.name, self.title)
        if not name:
            raise ValueError(f"{self.name} gives {', '.join(result)}; none of them is one figure named score")
        return float(figures[name])


def _chosen(values: Mapping[str, Any], *names: str) -> str | None:
    """The first of the names that is there; else the only one that is."""
    return next((name for name in (*names, *(values if len(values) == 1 else ())) if name in values), None)
