"""The confidence interval of a run's mean score."""

from __future__ import annotations

from array import array

from mars_score.runs.run import Run
from mars_score.runs.survey import item_key
from mars_score.stats.means import mean_interval

INTERVAL = "interval"  # the name of the fact in the run's records


def mean_interval_of(run: Run) -> list[float] | None:
    """The 95 % interval of the mean, by resampling contexts (rows without a context: each by itself).

    None with fewer than two contexts.
    """
    numbers: dict[bytes, int] = {}
    scores, groups = array("d"), array("q")
    for part, scored in run.scored():
        for place, (score, context) in enumerate(zip(scored.scores, part.contexts, strict=True)):
            key = item_key(context) if context.strip() else part.file.numbers[place].to_bytes(8)
            scores.append(score)
            groups.append(numbers.setdefault(key, len(numbers)))
    found = mean_interval(scores, groups)
    return None if found.reason else [found.low, found.high]
