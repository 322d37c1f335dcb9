"""Jobs under way together: their state and their cache."""

from __future__ import annotations

from mars_score.infilling.cache import KeyValueCache
from mars_score.infilling.job_state import Row


class Pool:
    """Rows abreast; row i has the cache's row i.

    Args:
        cache: with no rows in use.
    """

    def __init__(self, cache: KeyValueCache) -> None:
        self.cache = cache
        self.rows: list[Row] = []

    @property
    def room(self) -> int:
        """How many rows can be added."""
        return self.cache.rows - len(self.rows)

    def add(self, row: Row, source: KeyValueCache, index: int) -> None:
        """Add a row whose written tokens are row ``index`` of another cache."""
        self.cache.add(source, index)
        self.rows.append(row)

    def remove(self, index: int) -> Row:
        """Take a row out; the last one takes its place."""
        self.cache.remove(index)
        row, last = self.rows[index], self.rows.pop()
        if last is not row:
            self.rows[index] = last
        return row
