"""Which rows belong together: labels, as numbers 0, 1, ..."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Values = Sequence[float] | NDArray[Any]
Labels = Sequence[str] | Sequence[int] | NDArray[Any]


def check_known(name: str, value: str, allowed: Iterable[str]) -> None:
    """Raise ValueError unless the value is allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def codes_of(name: str, labels: Labels | None, count: int) -> tuple[list[str | int], Codes]:
    """The different labels in order, and the place of each item's label among them.

    They are sorted, so that the same seed draws the same groups in whatever order the items come.

    Args:
        name: of the labels in errors.
        labels: (items,) strings or integers; None: each item has a label of its own.
        count: the number of items.

    Raises:
        ValueError: another number of labels, or labels of another type.
    """
    if labels is None:
        return list(range(count)), np.arange(count)
    listed = list(labels)
    if len(listed) != count:
        raise ValueError(f"{name} must be one label per item, got {len(listed)} for {count} items")
    # numpy would turn a missing label (None, NaN) among strings into the string "nan".
    if not any(all(isinstance(label, kind) for label in listed) for kind in (str, int | np.integer)):
        raise ValueError(f"{name} must be all strings or all integers")
    names, codes = np.unique(np.array(listed, dtype=None if listed else np.int64), return_inverse=True)
    return names.tolist(), codes.astype(np.int64)


class ContextLabels:
    """Labels rows by their contexts: rows of one context share a label, a row without a context has its own.

    Only hashes of the contexts are held, so that the rows of a long file can come in parts.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._count = 0

    def of(self, contexts: Iterable[str]) -> list[int]:
        """The labels of the next rows."""
        return [self._label(context) for context in contexts]

    def _label(self, context: str) -> int:
        number = self._count
        if context.strip():
            key = blake2b(context.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            number = self._numbers.setdefault(key, number)
        self._count = max(self._count, number + 1)
        return number
