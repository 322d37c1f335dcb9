"""Which rows belong together: labels, as numbers 0, 1, ..."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Values = Sequence[float] | NDArray[Any]
Labels = Sequence[str] | Sequence[int] | NDArray[Any]


def codes_of(name: str, labels: Labels | None, count: int) -> Codes:
    """The place of each item's label, (items,), among the different ones in order: that of items does not matter.

    Args:
        name: of the labels in errors.
        labels: (items,) strings or integers; None: each item has a label of its own.
        count: the number of items.

    Raises:
        ValueError: another number of labels, or labels of another type.
    """
    if labels is None:
        return np.arange(count)
    listed = list(labels)
    if len(listed) != count:
        raise ValueError(f"{name} must be one label per item, got {len(listed)} for {count} items")
    # numpy would turn a missing label (None, NaN) among strings into the string "nan".
    if not any(all(isinstance(label, kind) for label in listed) for kind in (str, int | np.integer)):
        raise ValueError(f"{name} must be all strings or all integers")
    return np.unique(np.array(listed, dtype=None if listed else np.int64), return_inverse=True)[1].astype(np.int64)


class ContextLabels:
    """Labels rows by their contexts: rows of one context share a label, a row without a context has its own.

    Only hashes of the contexts are held, so that the rows of a long file can come in parts.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes | int, int] = {}

    def of(self, contexts: Iterable[str]) -> list[int]:
        """The labels of the next rows."""
        return [self._numbers.setdefault(self._key(context), len(self._numbers)) for context in contexts]

    def _key(self, context: str) -> bytes | int:
        if not context.strip():
            return len(self._numbers)
        return blake2b(context.encode("utf-8", "surrogatepass"), digest_size=16).digest()
