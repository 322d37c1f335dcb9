"""Look results up in the store, compute the missing ones and save them as they are computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mars_score.models.fingerprints import fingerprint, is_here
from mars_score.store.results import digest

FLUSH_SECONDS = 2.0  # computed results are saved this often, so that a killed process loses no more

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


class Storage(Protocol):
    """Where results are looked up and saved, such as :class:`mars_score.store.results.ResultStore`.

    Attributes:
        folder: the store's folder, which also holds converted models; None: nothing is saved.
    """

    folder: Path | None

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The stored values of those ``keys`` that have one."""

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Save ``entries``, key to value."""


def get_or_compute(
    store: Storage,
    kind: str,
    items: Iterable[Item],
    key: Callable[[Item], bytes],
    compute: Callable[[list[Item], Callable[[Item, Value], None]], None],
    encode: Callable[[Value], bytes],
    decode: Callable[[bytes], Value],
    progress: Callable[[int, int], None] | None = None,
) -> dict[Item, Value]:
    """The value of each different item, from the store or computed and then saved.

    Computed values are saved every ``FLUSH_SECONDS`` and when ``compute`` ends, also by an exception or Ctrl-C.
    All values pass through ``encode`` and ``decode``, so that computed and stored ones are equal.

    Example::

        common = model_key(spec, load_model, dtype, METHOD)

        def compute(missing, done):
            for text in missing:  # in any order, one at a time or in batches
                done(text, sample(text))

        samples = get_or_compute(
            store, "samples", texts, lambda text: digest(common, text), compute,
            lambda value: json.dumps(value).encode(), json.loads,
        )

    Args:
        store: where results are looked up and saved.
        kind: one of :data:`mars_score.store.results.KINDS`.
        items: hashable; equal ones are looked up once.
        key: an item's key, made by :func:`mars_score.store.results.digest` from all that its value depends on.
        compute: called as ``compute(missing, done)`` with the different items that are not stored, in their order;
            it calls ``done(item, value)`` once for each, as soon as the value is known.
        encode: value -> bytes.
        decode: bytes -> value.
        progress: called as ``progress(computed, missing)`` before ``compute`` and after each value; not at all
            if everything is stored.

    Raises:
        RuntimeError: ``compute`` returned without a value for each item.
    """
    keys = {item: key(item) for item in items}
    found = store.get(kind, list(keys.values()))
    missing = [item for item, one in keys.items() if one not in found]
    if missing:
        _compute(store, kind, missing, keys, found, compute, encode, progress)
    return {item: decode(found[one]) for item, one in keys.items()}


def _compute(
    store: Storage,
    kind: str,
    missing: list[Item],
    keys: Mapping[Item, bytes],
    found: dict[bytes, bytes],
    compute: Callable[[list[Item], Callable[[Item, Value], None]], None],
    encode: Callable[[Value], bytes],
    progress: Callable[[int, int], None] | None,
) -> None:
    """Add the values of ``missing`` to ``found`` and to the store."""
    unsaved: dict[bytes, bytes] = {}
    saved_at = time.monotonic()
    count = 0

    def save() -> None:
        nonlocal saved_at
        store.put(kind, unsaved)
        unsaved.clear()
        saved_at = time.monotonic()

    def done(item: Item, value: Value) -> None:
        nonlocal count
        count += 1
        found[keys[item]] = unsaved[keys[item]] = encode(value)
        if time.monotonic() - saved_at > FLUSH_SECONDS:
            save()
        if progress:
            progress(count, len(missing))

    if progress:
        progress(0, len(missing))
    try:
        compute(missing, done)
    finally:
        save()
    if count != len(missing):
        raise RuntimeError(f"{kind}: {count} of {len(missing)} values were computed")


def model_key(spec: Any, load: Callable[[], object], *method: Any) -> str:
    """The part of a result's key that names its model: weights and all that the model is run with.

    Args:
        spec: a Hub id, a folder, a wheel's name, or ready-made objects.
        load: loads the model; called if it was never fetched from the Hub, as its revision is known only then.
        method: number type, settings, and a number to raise when the same inputs come to give other results;
            see :func:`mars_score.store.results.digest`.

    Raises:
        ModelUnavailableError: the model cannot be loaded.
    """
    if not is_here(spec):
        load()
    return digest(fingerprint(spec), *method).hex()
