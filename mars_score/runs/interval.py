"""The confidence interval of a run's mean score."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from mars_score.runs.input import Part
from mars_score.stats.labels import ContextLabels
from mars_score.stats.means import mean_interval

INTERVAL = "interval"  # the name of the fact in the run's records


class ScoresByContext:
    """The scores of a run, gathered some rows at a time."""

    def __init__(self) -> None:
        self._labels = ContextLabels()
        self._scores, self._groups = array("d"), array("q")

    def add(self, part: Part, scores: Sequence[float]) -> None:
        """The next rows."""
        self._scores.extend(scores)
        self._groups.extend(self._labels.of(part.contexts))

    def interval(self) -> list[float] | None:
        """The 95 % interval of the mean, by resampling contexts (rows without a context: each by itself).

        None with fewer than ten contexts.
        """
        return mean_interval(self._scores, self._groups).ends
