"""A store whose results are saved all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mars_score.store.results import ResultStore


class StagedStore:
    """Saves results only at :meth:`commit`: those of a whole piece of work, or none.

    A piece of work that was interrupted then starts from the same results again, and comes to the same.
    """

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self.folder = store.folder
        self._staged: dict[str, dict[bytes, bytes]] = {}

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The staged or stored values of those ``keys`` that have one."""
        staged = self._staged.get(kind, {})
        found = {key: staged[key] for key in keys if key in staged}
        return found | self._store.get(kind, [key for key in keys if key not in found])

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Stage ``entries``, key to value."""
        self._staged.setdefault(kind, {}).update(entries)

    def commit(self) -> None:
        """Save what is staged, each kind in one transaction."""
        for kind, entries in self._staged.items():
            self._store.put(kind, entries)
        self.discard()

    def discard(self) -> None:
        """Forget what is staged."""
        self._staged.clear()
