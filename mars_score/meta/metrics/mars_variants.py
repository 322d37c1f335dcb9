"""MARS and its variants: any settings."""

import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from mars_score.data.validation import Row
from mars_score.errors import MarsWarning
from mars_score.meta.metrics.base import Metric, Models
from mars_score.scorer import MarsScorer
from mars_score.scoring.result import MarsResult


class Mars(Metric):
    """MARS with some settings of its own: ``setting=value`` joined by commas; values are JSON, or else strings.

    Raises:
        ValueError, TypeError: a setting that is unknown or out of range.
    """

    def __init__(self, models: Models, title: str, changes: str) -> None:
        super().__init__(models)
        self.title = title
        self._arguments = {**models.arguments, **_parse(changes)}
        self._references = self._arguments.pop("references", True)
        self._settings = MarsScorer(**self._arguments).settings

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See :class:`Metric`."""
        return self.result(rows, corpus).scores

    def result(self, rows: Sequence[Row], corpus: Sequence[str], task: str | None = None) -> MarsResult:
        """Scores with all their details; candidates may be blank. The task counts where samples are drawn."""
        candidates, references, contexts, samples = zip(*(Row(*row) for row in rows), strict=True)
        settings = self._settings
        of_set: dict[str, Any] = {}
        if corpus and settings.masking.max_mask_ratio:
            of_set["idf_corpus"] = corpus
        if task and settings.use_context and settings.sampling.sample_count:
            of_set["task"] = task
        others = samples if any(samples) and settings.similarity.sample_weight else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarsWarning)  # the result repeats them
            scorer = MarsScorer(**{**of_set, **self._arguments})
            return scorer.score(candidates, references if self._references else None, contexts, samples=others)


def _parse(changes: str) -> dict[str, Any]:
    """``"sigma=0,planner=none"`` -> ``{"sigma": 0, "planner": "none"}``."""
    parsed = {}
    for change in re.split(r",(?=\s*\w+=)", changes) if changes.strip() else ():
        name, sign, value = change.strip().partition("=")
        if not sign:
            raise ValueError(f"a variant of MARS is written mars[setting=value,...], got {change!r}")
        try:
            parsed[name] = json.loads(value)
        except json.JSONDecodeError:
            parsed[name] = value
    return parsed
