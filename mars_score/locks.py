"""A lock that a forked process can use."""

import os
import threading
from weakref import WeakSet


class ForkSafeLock:
    """A re-entrant lock that is free after a fork, as the thread that held it does not exist in the child."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held: list[threading.RLock] = []  # changed only by the thread that holds the lock
        _all_locks.add(self)

    def __enter__(self) -> None:
        lock = self._lock
        lock.acquire()
        self._held.append(lock)

    def __exit__(self, *_: object) -> None:
        self._held.pop().release()

    def renew(self) -> None:
        """Replace the lock by a free one. A thread that holds the old one can still release it."""
        self._lock = threading.RLock()


_all_locks: WeakSet[ForkSafeLock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_all_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
