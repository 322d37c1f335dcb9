"""The confidence interval of a run's mean score."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from mars_score.runs.input import Part
from mars_score.runs.survey import item_key
from mars_score.stats.means import mean_interval

INTERVAL = "interval"  # the name of the fact in the run's records


class ScoresByContext:
    """The scores of a run, gathered some rows at a time."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._scores, self._groups = array("d"), array("q")

    def add(self, part: Part, scores: Sequence[float]) -> None:
        """The next rows."""
        for place, (score, context) in enumerate(zip(scores, part.contexts, strict=True)):
            key = item_key(context) if context.strip() else part.file.numbers[place].to_bytes(8)
            self._scores.append(score)
            self._groups.append(self._numbers.setdefault(key, len(self._numbers)))

    def interval(self) -> list[float] | None:
        """The 95 % interval of the mean, by resampling contexts (rows without a context: each by itself).

        None with fewer than two contexts.
        """
        found = mean_interval(self._scores, self._groups)
        return None if found.reason else [found.low, found.high]
