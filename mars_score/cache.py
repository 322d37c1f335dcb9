"""The cache: what models computed is kept between processes in one SQLite file, never in the way.

:func:`cached` wraps a model call; nothing else is stored. Entries have a checksum, and the file a limit.
"""

import hashlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from mars_score.atomic import make_private
from mars_score.errors import warn

Store = str | os.PathLike[str] | bool | None
KINDS = ("encodings", "log_probabilities", "entailments", "infills")  # one for each model call
LIMIT = 10 * 2**30  # bytes
FILE = "results.sqlite3"
TIMEOUT = 60.0  # seconds to wait for other processes
_FRESH = 3600  # seconds; reading an entry updates its time only if that is older
_VERSION = 3
KEY_BYTES = 16
_SCHEMA = (
    "DROP TABLE IF EXISTS entries",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, used INTEGER NOT NULL, "
    "checksum BLOB NOT NULL, value BLOB NOT NULL, UNIQUE (kind, key))",
    f"PRAGMA user_version = {_VERSION}",
)
_SELECT = (
    "SELECT id, key, CAST(checksum AS BLOB), CAST(value AS BLOB), used FROM entries WHERE kind = ? AND key IN"
)
_KEYS = 500  # of one statement
FLUSH_SECONDS = 2.0  # computed results are saved this often, so that a killed process loses no more

_as_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=lambda mapping: dict(**mapping)
).encode
_T = TypeVar("_T")
Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")
Done = Callable[[Item, Value], None]


def store_folder(store: Store = None) -> Path | None:
    """Return the folder of a store: None: ``MARS_STORE`` or the user's cache folder; a path: that; False: none.

    Raises:
        TypeError, ValueError: it is none of these, or a blank path, which would be the working directory.
    """
    if store is False:
        return None
    if store is None:
        import platformdirs

        store = os.environ.get("MARS_STORE") or platformdirs.user_cache_dir("mars_score")
    if not isinstance(store, (str, os.PathLike)):
        raise TypeError(
            f"store must be a folder, None (the default folder) or False (save nothing), got {store!r}"
        )
    if not str(store).strip():
        raise ValueError(f"store must be a folder, or False (--no-store) to save nothing, got {store!r}")
    return Path(store).expanduser()


def size_limit() -> int:
    """Return the bytes that a store's file may have: ``MARS_STORE_LIMIT`` (GiB), else ``LIMIT``."""
    text = os.environ.get("MARS_STORE_LIMIT")
    if not text:
        return LIMIT
    with suppress(ValueError):
        if 0 < (limit := float(text) * 2**30) < math.inf:
            return math.ceil(limit)
    raise ValueError(f"MARS_STORE_LIMIT must be a positive number (GiB), got {text!r}")


def digest(*parts: Any) -> bytes:
    """Hash ``parts`` (str, int, float, bool, None, lists and mappings of them, else TypeError) to 16 bytes.

    A tuple counts as the list of its items, the order of a mapping's keys (strings) does not count; 1, 1.0 and
    True differ.
    """
    return hashlib.blake2b(_as_json(parts).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class ResultStore:
    """Results in a folder, by kind and 16-byte key; equal keys must stand for equal values.

    Threads, forked children and other processes may use one store at once: each call opens the file anew
    (0.1 ms). A store that is damaged or cannot be used warns once (:class:`MarsWarning`) and counts as empty from
    then on; if it only cannot be written, it is still read. :meth:`clear` repairs a damaged one.

    Args:
        folder: of the store, made by the first :meth:`put`; None: nothing is saved.
        limit: bytes of the file; beyond them the least recently used results are evicted. None:
            :func:`size_limit`.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder = folder
        self.file = None if folder is None else folder / FILE
        self.limit = size_limit() if limit is None else limit
        self._readable = self._writable = True

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored values of those ``keys`` that have one."""
        return (self._use(lambda db: _select(db, kind, keys)) if keys else None) or {}

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Save ``entries``, key to value, and evict others if the file becomes too large."""
        now = int(time.time())
        rows = [(kind, key, now, _checksum(kind, key, value), value) for key, value in entries.items()]

        def write(db: sqlite3.Connection) -> None:
            with _transaction(db):
                if _version(db) != _VERSION:
                    _create(db)
                db.executemany(
                    "INSERT OR REPLACE INTO entries (kind, key, used, checksum, value) VALUES (?, ?, ?, ?, ?)",
                    rows,
                )
                _evict(db, self.limit)

        if rows:
            self._use(write, write=True)

    def info(self) -> dict[str, tuple[int, int]]:
        """Return the number of entries and the bytes of values of every kind."""
        query = "SELECT kind, count(*), sum(length(value)) FROM entries GROUP BY kind"
        rows = self._use(lambda db: db.execute(query).fetchall()) or []
        counts = {kind: (number, size) for kind, number, size in rows}
        return {kind: counts.get(kind, (0, 0)) for kind in KINDS}

    def clear(self) -> None:
        """Remove all results; a damaged file is deleted. OSError: it cannot be written."""
        if self.file is None or not self.file.exists():
            return
        try:
            with _opened(self.file) as db, _transaction(db):
                _create(db)
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise OSError(f"{self.file}: {error}") from error
            self.file.with_name(f"{FILE}-journal").unlink(missing_ok=True)  # would be played into the next file
            self.file.unlink()
        self._readable = self._writable = True

    def _use(self, work: Callable[[sqlite3.Connection], _T], *, write: bool = False) -> _T | None:
        """Return what ``work`` does; None without a store, and if it fails, which warns and is not tried again."""
        if self.file is None or not (self._writable if write else self._readable):
            return None
        folder = self.file.parent
        try:
            if write:
                make_private(folder)
                os.close(os.open(self.file, os.O_RDONLY | os.O_CREAT, 0o600))  # SQLite would let others read it
            elif not self.file.exists():
                return None
            with _opened(self.file) as db:
                return work(db) if write or _version(db) == _VERSION else None
        except (sqlite3.Error, OSError) as error:
            self._writable = False
            damaged = _is_damage(error)
            self._readable = write and not damaged
            cause = f"{self.file} cannot be used: {error}"
            if damaged:
                cause = f"{self.file} is damaged ({error}); delete it with: mars cache clear --store {folder}"
            warn(f"going on without the store, as {cause}")
            return None


def _checksum(kind: str, key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=8, key=key, person=kind.encode()[:16]).digest()


def _is_damage(error: Exception) -> bool:
    """Tell whether the file is to blame; a lock, a full disk or a read-only folder is no damage."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.DatabaseError) and (
        not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR
    )


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=TIMEOUT, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA cache_size = -65536")  # KiB; a larger transaction locks readers out earlier
            yield db
        except UnicodeDecodeError as error:  # SQLite quotes bytes of the file in its message
            raise sqlite3.DatabaseError("malformed text") from error


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Begin to write, waiting for other writers."""
    if _version(db) == 0:
        db.execute("PRAGMA auto_vacuum = FULL")  # takes effect in an empty file only
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _create(db: sqlite3.Connection) -> None:
    """Put an empty table in the place of what there was, also of another version."""
    for statement in _SCHEMA:
        db.execute(statement)


def _select(db: sqlite3.Connection, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the values of ``keys``, and mark those that were last used an hour ago or earlier as used now."""
    values: dict[bytes, bytes] = {}
    old: list[int] = []
    now = int(time.time())
    db.execute("BEGIN")
    for start in range(0, len(keys), _KEYS):
        part = keys[start : start + _KEYS]
        wanted = f"{_SELECT} ({', '.join('?' * len(part))})"
        for number, key, checksum, value, used in db.execute(wanted, (kind, *part)):
            if value is None or checksum != _checksum(kind, key, value):
                raise sqlite3.DatabaseError("a result has a wrong checksum")
            values[key] = value
            if abs(used - now) > _FRESH:
                old.append(number)
    db.execute("COMMIT")
    if old:
        db.execute("PRAGMA busy_timeout = 1000")  # ms
        with suppress(sqlite3.OperationalError), _transaction(db):  # as in a read-only folder
            db.executemany("UPDATE entries SET used = ? WHERE id = ?", [(now, number) for number in old])
    return values


def _evict(db: sqlite3.Connection, limit: int) -> None:
    """Delete the least recently used entries of a file over the limit until nine tenths of it are left."""
    if _size(db) <= limit:
        return
    ids = db.execute("SELECT id FROM entries ORDER BY used, id").fetchall()
    step = math.ceil(len(ids) / 50)
    while ids and _size(db) > limit * 9 // 10:
        db.executemany("DELETE FROM entries WHERE id = ?", ids[:step])
        del ids[:step]


def _size(db: sqlite3.Connection) -> int:
    """Return the bytes of the file without unused pages."""
    pages, unused, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - unused) * size)


@dataclass(frozen=True)
class Codec(Generic[Value]):
    """How the values of a model call are written."""

    encode: Callable[[Value], bytes]
    decode: Callable[[bytes], Value]


def json_codec(make: Callable[..., Value]) -> Codec[Value]:
    """Make a codec that writes a tuple as a JSON list; ``make`` gets its entries."""
    return Codec(
        lambda value: _as_json(value).encode("utf-8", "surrogatepass"),
        lambda stored: make(*json.loads(stored.decode("utf-8", "surrogatepass"))),
    )


def cached(
    store: ResultStore,
    kind: str,
    common: Sequence[Any] | None,
    items: Iterable[Item],
    compute: Callable[[list[Item], Done[Item, Value]], object],
    codec: Codec[Value],
) -> dict[Item, Value]:
    """Return the value of each different item: stored, or computed and then saved.

    Args:
        store: without a folder nothing is looked up, saved or serialised.
        kind: one of :data:`KINDS`.
        common: what all values depend on, for :func:`digest`: model, settings, and a number to raise when the same
            items come to give other values. None: not known, so that nothing is looked up or saved.
        items: what the values are of: strings, or tuples that ``digest`` takes.
        compute: called as ``compute(missing, done)``; it calls ``done(item, value)`` once for each missing item,
            as soon as the value is known. Values are saved every ``FLUSH_SECONDS`` and when ``compute`` ends, also
            by an exception or Ctrl-C.
        codec: writes and reads the values; ``decode(encode(value))`` equals ``value``.
    """
    missing = list(dict.fromkeys(items))
    values: dict[Item, Value] = {}
    if store.folder is None or common is None or not missing:
        if missing:
            compute(missing, values.__setitem__)
        return values
    keys = item_keys(common, missing)
    stored = store.get(kind, list(keys.values()))
    values = {item: codec.decode(stored[key]) for item, key in keys.items() if key in stored}
    unsaved: dict[bytes, bytes] = {}
    saved_at = time.monotonic()

    def done(item: Item, value: Value) -> None:
        nonlocal saved_at
        values[item] = value
        unsaved[keys[item]] = codec.encode(value)
        if time.monotonic() - saved_at > FLUSH_SECONDS:
            store.put(kind, unsaved)
            unsaved.clear()
            saved_at = time.monotonic()

    try:
        if missing := [item for item in missing if item not in values]:
            compute(missing, done)
    finally:
        store.put(kind, unsaved)
    return values


def item_keys(common: Sequence[Any], items: Iterable[Item]) -> dict[Item, bytes]:
    """Return the key of the value of each item; arguments as for :func:`cached`."""
    prefix = digest(*common)
    return {item: _item_key(prefix, item) for item in items}


def _item_key(prefix: bytes, item: Any) -> bytes:
    if isinstance(item, str):
        item = (item,)
    if all(type(part) is str for part in item):  # most are, and this takes a fifth of the time of JSON
        encoded = b"".join(part.encode("utf-8", "surrogatepass") + b"\xff" for part in item)
    else:
        encoded = b"\xfe" + digest(*item)
    return hashlib.blake2b(prefix + encoded, digest_size=KEY_BYTES).digest()
