"""Jobs that are infilled together: their states and their cache."""

from __future__ import annotations

from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.job_state import JobState


class Batch:
    """States of jobs; that of job i belongs to row i of the cache.

    Args:
        cache: with no rows in use.
    """

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.states: list[JobState] = []

    @property
    def room(self) -> int:
        """How many jobs can be added."""
        return self.cache.rows - len(self.states)

    def add(self, state: JobState, source: KeyValueCache, index: int) -> None:
        """Add a job whose written tokens are row ``index`` of another cache."""
        self.cache.add(source, index)
        self.states.append(state)

    def remove(self, index: int) -> JobState:
        """Take a job out; the last one takes its place."""
        self.cache.remove(index)
        state, last = self.states[index], self.states.pop()
        if last is not state:
            self.states[index] = last
        return state
