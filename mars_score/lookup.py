"""Look results up in the store, compute the missing ones and save them as they are computed."""

import hashlib
import json
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mars_score.cache import KEY_BYTES, ResultStore, digest

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
    """Results of one kind: what they depend on, how they are computed, and how they are written.

    Attributes:
        kind: one of :data:`mars_score.cache.KINDS`.
        common: gives what all of them depend on, for :func:`mars_score.cache.digest`: models, settings,
            and a number to raise when the same inputs come to give other results. None: not known; then nothing
            is looked up or saved.
        compute: called as ``compute(missing, done)``; it calls ``done(item, value)`` once for each missing item,
            as soon as the value is known.
        parts: the rest that the value of an item depends on: strings, or what ``digest`` takes.
        encode: value -> bytes.
        decode: bytes -> value.
    """

    kind: str
    common: Callable[[], Any]
    compute: Callable[[list[Item], Done[Item, Value]], object]
    parts: Callable[[Item], Sequence[Any]] = lambda item: (item,)
    encode: Callable[[Value], bytes] = to_json
    decode: Callable[[bytes], Value] = from_json

    def read(
        self, store: ResultStore, items: Iterable[Item], progress: Callable[[int, int], None] | None = None
    ) -> dict[Item, Value]:
        """The value of each different item, from the store or computed and then saved.

        ``progress(computed, missing)`` is called, first with 0, unless all is stored. Values are saved every
        ``FLUSH_SECONDS`` and when ``compute`` ends, also by an exception or Ctrl-C. All pass through ``encode``
        and ``decode``, so that computed and stored ones are equal.
        """
        different = dict.fromkeys(items)
        if not different:
            return {}
        common = self.common()
        if common is None:
            store = ResultStore(None)
        beginning = digest(common)
        keys = {item: _key(beginning, self.parts(item)) for item in different}
        values = store.get(self.kind, list(keys.values()))
        missing = [item for item, key in keys.items() if key not in values]
        if not missing:
            return {item: self.decode(values[key]) for item, key in keys.items()}
        unsaved: dict[bytes, bytes] = {}
        saved_at, first = time.monotonic(), len(values)

        def save() -> None:
            nonlocal saved_at
            store.put(self.kind, unsaved)
            unsaved.clear()
            saved_at = time.monotonic()

        def done(item: Item, value: Value) -> None:
            values[keys[item]] = unsaved[keys[item]] = self.encode(value)
            if time.monotonic() - saved_at > FLUSH_SECONDS:
                save()
            if progress:
                progress(len(values) - first, len(missing))

        try:
            if progress:
                progress(0, len(missing))
            self.compute(missing, done)
        finally:
            save()
        if len(values) - first != len(missing):
            raise RuntimeError(f"{self.kind}: {len(values) - first} of {len(missing)} values were computed")
        return {item: self.decode(values[key]) for item, key in keys.items()}


def _key(beginning: bytes, parts: Sequence[Any]) -> bytes:
    if all(type(part) is str for part in parts):  # most are; this takes a fifth of the time of JSON
        encoded = b"".join(part.encode("utf-8", "surrogatepass") + b"\xff" for part in parts)
    else:
        encoded = b"\xfe" + digest(*parts)
    return hashlib.blake2b(beginning + encoded, digest_size=KEY_BYTES).digest()
