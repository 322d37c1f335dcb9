"""Texts that are written together: their states, their cache and their padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from mars_score.models.engine.cache import KeyValueCache

State = TypeVar("State")
T = TypeVar("T")


def padded(rows: Sequence[Sequence[T]], filler: T) -> list[list[T]]:
    """The rows, each filled up to the length of the longest."""
    longest = max(map(len, rows))
    return [[*row, *[filler] * (longest - len(row))] for row in rows]


class Batch(Generic[State]):
    """States of jobs; that of job i belongs to row i of the cache.

    Args:
        cache: with no rows in use.
    """

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.states: list[State] = []

    @property
    def room(self) -> int:
        """How many jobs can be added."""
        return self.cache.rows - len(self.states)

    def add(self, state: State, source: KeyValueCache, index: int, length: int | None = None) -> None:
        """Add a job whose written tokens are row ``index`` of another cache, or its first ``length`` tokens."""
        self.cache.add(source, index, length)
        self.states.append(state)

    def remove(self, index: int) -> State:
        """Take a job out; the last one takes its place."""
        self.cache.remove(index)
        state, last = self.states[index], self.states.pop()
        if last is not state:
            self.states[index] = last
        return state
