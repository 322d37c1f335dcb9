"""Look results up in the store, compute the missing ones and save them as they are computed."""

import hashlib
import json
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    """Results of one kind: what they depend on, and how they are written."""

    kind: str  # one of :data:`mars_score.store.results.KINDS`
    # What all of them depend on, models and settings and the number of the method, for
    # :func:`mars_score.store.results.digest`. None: not known; then nothing is looked up or saved.
    common: Any
    # The rest that the value of an item depends on: strings, or what ``digest`` takes.
    parts: Callable[[Item], Sequence[Any]] = lambda item: (item,)
    encode: Callable[[Value], bytes] = to_json  # value -> bytes
    decode: Callable[[bytes], Value] = from_json  # bytes -> value

    @cached_property
    def _of_common(self) -> bytes:
        return digest(self.common)

    def key(self, item: Item) -> bytes:
        """The key of an item's value."""
        parts = self.parts(item)
        if all(type(part) is str for part in parts):  # most are; this takes a fifth of the time of JSON
            encoded = b"".join(part.encode("utf-8", "surrogatepass") + b"\xff" for part in parts)
        else:
            encoded = b"\xfe" + digest(*parts)
        return hashlib.blake2b(self._of_common + encoded, digest_size=KEY_BYTES).digest()


def get_or_compute(
    store: ResultStore,
    results: Results[Item, Value],
    items: Iterable[Item],
    compute: Callable[[list[Item], Done[Item, Value]], None],
    progress: Callable[[int, int], None] | None = None,
) -> dict[Item, Value]:
    """The value of each different item, from the store or computed and then saved.

    ``compute(missing, done)`` calls ``done(item, value)`` once for each missing item, as soon as it is known;
    ``progress(computed, missing)`` is called, first with 0, unless all is stored. Values are saved every
    ``FLUSH_SECONDS`` and when ``compute`` ends, also by an exception or Ctrl-C. All pass through ``encode``
    and ``decode``, so that computed and stored ones are equal.
    """
    keys = {item: results.key(item) for item in items}
    if results.common is None:
        store = ResultStore(None)
    values = store.get(results.kind, list(keys.values()))
    missing = [item for item, key in keys.items() if key not in values]
    if not missing:
        return {item: results.decode(values[key]) for item, key in keys.items()}
    unsaved: dict[bytes, bytes] = {}
    saved_at, first = time.monotonic(), len(values)

    def save() -> None:
        nonlocal saved_at
        store.put(results.kind, unsaved)
        unsaved.clear()
        saved_at = time.monotonic()

    def done(item: Item, value: Value) -> None:
        values[keys[item]] = unsaved[keys[item]] = results.encode(value)
        if time.monotonic() - saved_at > FLUSH_SECONDS:
            save()
        if progress:
            progress(len(values) - first, len(missing))

    try:
        if progress:
            progress(0, len(missing))
        compute(missing, done)
    finally:
        save()
    if len(values) - first != len(missing):
        raise RuntimeError(f"{results.kind}: {len(values) - first} of {len(missing)} values were computed")
    return {item: results.decode(values[key]) for item, key in keys.items()}
