"""Look results up in the store, compute the missing ones and save them as they are computed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mars_score.store.results import KEY_BYTES, ResultStore, digest

FLUSH_SECONDS = 2.0  # computed results are saved this often, so that a killed process loses no more

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")
Done = Callable[[Item, Value], None]


def to_json(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_json(encoded: bytes) -> Any:
    """The value that :func:`to_json` was called with; its tuples are lists."""
    return json.loads(encoded.decode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class Results(Generic[Item, Value]):
    """Results of one kind: what they depend on, and how they are written.

    Attributes:
        kind: one of :data:`mars_score.store.results.KINDS`.
        common: what all of them depend on, models and settings and the number of the method, for
            :func:`mars_score.store.results.digest`. None: not known; then nothing is looked up or saved.
        parts: the rest that the value of an item depends on: strings, or what ``digest`` takes.
        encode: value -> bytes.
        decode: bytes -> value.
    """

    kind: str
    common: Any
    parts: Callable[[Item], Sequence[Any]] = lambda item: (item,)
    encode: Callable[[Value], bytes] = to_json
    decode: Callable[[bytes], Value] = from_json
    _of_common: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        begun = hashlib.blake2b(digest(self.common), digest_size=KEY_BYTES)
        object.__setattr__(self, "_of_common", begun)

    def key(self, item: Item) -> bytes:
        """The key of an item's value."""
        found, parts = self._of_common.copy(), self.parts(item)
        if all(type(part) is str for part in parts):  # most are; this takes a fifth of the time of JSON
            found.update(b"".join(part.encode("utf-8", "surrogatepass") + b"\xff" for part in parts))
        else:
            found.update(b"\xfe" + digest(*parts))
        key: bytes = found.digest()
        return key


def get_or_compute(
    store: ResultStore,
    results: Results[Item, Value],
    items: Iterable[Item],
    compute: Callable[[list[Item], Done[Item, Value]], None],
    progress: Callable[[int, int], None] | None = None,
) -> dict[Item, Value]:
    """The value of each different item, from the store or computed and then saved.

    Computed values are saved every ``FLUSH_SECONDS`` and when ``compute`` ends, also by an exception or Ctrl-C.
    All values pass through ``encode`` and ``decode``, so that computed and stored ones are equal.

    Args:
        store: where results are looked up and saved.
        results: what the values depend on.
        items: hashable; equal ones are looked up once.
        compute: called as ``compute(missing, done)`` with the different items that are not stored, in their order;
            it calls ``done(item, value)`` once for each, as soon as the value is known.
        progress: called as ``progress(computed, missing)`` before ``compute`` and after each value; not at all
            if everything is stored.

    Raises:
        RuntimeError: ``compute`` returned without a value for each item.
    """
    keys = {item: results.key(item) for item in items}
    known = results.common is not None
    values = store.get(results.kind, list(keys.values())) if known else {}
    missing = [item for item, key in keys.items() if key not in values]
    if missing:
        saving = _Saving(store if known else ResultStore(None), results, len(missing), progress)
        with saving:
            compute(missing, saving.done)
        if len(saving.values) != len(missing):
            raise RuntimeError(f"{results.kind}: {len(saving.values)} of {len(missing)} values were computed")
        values |= saving.values
    return {item: results.decode(values[key]) for item, key in keys.items()}


class _Saving(Generic[Item, Value]):
    """Collects computed values and saves them now and then, and at the end of its block."""

    def __init__(
        self,
        store: ResultStore,
        results: Results[Item, Value],
        count: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._store, self._results, self._count, self._progress = store, results, count, progress
        self.values: dict[bytes, bytes] = {}
        self._unsaved: dict[bytes, bytes] = {}
        self._saved_at = time.monotonic()

    def __enter__(self) -> None:
        if self._progress:
            self._progress(0, self._count)

    def __exit__(self, *_: object) -> None:
        self._save()

    def done(self, item: Item, value: Value) -> None:
        """A value is known."""
        key = self._results.key(item)
        self.values[key] = self._unsaved[key] = self._results.encode(value)
        if time.monotonic() - self._saved_at > FLUSH_SECONDS:
            self._save()
        if self._progress:
            self._progress(len(self.values), self._count)

    def _save(self) -> None:
        self._store.put(self._results.kind, self._unsaved)
        self._unsaved = {}
        self._saved_at = time.monotonic()
