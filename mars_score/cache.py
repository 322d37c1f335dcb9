"""Keep outputs of models in one SQLite file, and in memory by last use.

:func:`cached` wraps a model call. Nothing else is stored. Entries have a checksum, and the file a size limit.
"""

import hashlib
import json
import math
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from mars_score.atomic import make_private
from mars_score.errors import warn
from mars_score.locks import ForkSafeLock

Store = str | os.PathLike[str] | bool | None
KINDS = ("encodings", "log_probabilities", "entailments", "infills")  # kinds of model calls
LIMIT = 10 * 2**30  # bytes
FILE = "results.sqlite3"
TIMEOUT = 60.0  # seconds to wait for other processes
_VERSION = 4  # A table of another version is replaced.
KEY_BYTES = 16
_TABLE = (
    "DROP TABLE IF EXISTS entries",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, checksum BLOB NOT NULL, "
    "value BLOB NOT NULL, UNIQUE (kind, key))",
    f"PRAGMA user_version = {_VERSION}",
)
_INSERT = "INSERT OR REPLACE INTO entries (kind, key, checksum, value) VALUES (?, ?, ?, ?)"
# A damaged file may contain text instead of bytes.
_SELECT = "SELECT CAST(checksum AS BLOB), CAST(value AS BLOB) FROM entries WHERE kind = ? AND key = ?"
# Ids increase with time, as a value that is written again gets a new one.
_DELETE_OLDEST_TENTH = """DELETE FROM entries WHERE id IN
    (SELECT id FROM entries ORDER BY id LIMIT (SELECT count(*) / 10 + 1 FROM entries))"""
_USED_BYTES = """SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
FLUSH_SECONDS = 2.0  # between savings; a killed process loses no more than that

_as_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=lambda mapping: dict(**mapping)
).encode
T = TypeVar("T")
Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


def store_folder(store: Store = None) -> Path | None:
    """Return the folder of a store, or None for no store.

    Args:
        store: a path, None for ``MARS_STORE`` or else the user's cache folder, or False for no store.

    Raises:
        TypeError: it is none of these.
        ValueError: the path is blank.
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
    """Return the maximum size of a store's file in bytes: ``MARS_STORE_LIMIT`` (GiB), else ``LIMIT``."""
    text = os.environ.get("MARS_STORE_LIMIT")
    if not text:
        return LIMIT
    with suppress(ValueError):
        if 0 < (limit := float(text) * 2**30) < math.inf:
            return math.ceil(limit)
    raise ValueError(f"MARS_STORE_LIMIT must be a positive number (GiB), got {text!r}")


def digest(*parts: object) -> bytes:
    """Hash ``parts`` (str, int, float, bool, None, lists and mappings of them, else TypeError) to 16 bytes.

    Tuples hash like lists, and mappings regardless of their order. 1, 1.0 and True differ.
    """
    return hashlib.blake2b(_as_json(parts).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class ResultStore:
    """Stores results in a folder, by kind and 16-byte key. Equal keys must stand for equal values.

    Threads, forked children and other processes may use a store at once, as each call opens the file anew
    (0.1 ms). A store that is damaged or cannot be used warns once (:class:`MarsWarning`) and is empty from then
    on. A store that cannot be written is still read. :meth:`clear` repairs a damaged store.

    Args:
        folder: folder of the store, which the first :meth:`put` makes, or None to save nothing.
        limit: maximum bytes of the file, or None for :func:`size_limit`. The oldest results are removed first.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self.folder = folder
        self.file = None if folder is None else folder / FILE
        self.limit = size_limit() if limit is None else limit
        self._readable = self._writable = True

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored values by key, leaving out missing keys."""
        return self._use(lambda db: _read(db, kind, keys)) or {}

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Save values by key, and remove the oldest results if the file becomes too large."""
        rows = [(kind, key, _checksum(kind, key, value), value) for key, value in entries.items()]
        if rows:
            self._use(lambda db: _write(db, rows, self.limit), write=True)

    def info(self) -> dict[str, tuple[int, int]]:
        """Return by kind the number of entries and the bytes of their values."""
        query = "SELECT kind, count(*), sum(length(value)) FROM entries GROUP BY kind"
        rows = self._use(lambda db: db.execute(query).fetchall()) or []
        return dict.fromkeys(KINDS, (0, 0)) | {kind: (count, size) for kind, count, size in rows if kind in KINDS}

    def clear(self) -> None:
        """Remove all results, or delete a damaged file. Raise OSError if it cannot be written."""
        if self.file is None or not self.file.exists():
            return
        try:
            with _opened(self.file) as db:
                _write(db, (), self.limit, anew=True)
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise OSError(f"{self.file}: {error}") from error
            self.file.with_name(f"{FILE}-journal").unlink(missing_ok=True)  # SQLite would replay it in a new file.
            self.file.unlink()
        self._readable = self._writable = True

    def _use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T | None:
        """Return the result of ``work``, or None without a store or after a failure. Warn once of a failure."""
        if self.file is None or not (self._writable if write else self._readable):
            return None
        folder = self.file.parent
        try:
            if write:
                make_private(folder)
                os.close(os.open(self.file, os.O_RDONLY | os.O_CREAT, 0o600))  # SQLite lets others read its files.
            elif not self.file.exists():
                return None
            with _opened(self.file) as db:
                return work(db) if write or _version(db) == _VERSION else None
        except (sqlite3.Error, OSError) as error:
            self._writable = False
            damaged = _is_damage(error)
            self._readable = write and not damaged
            remedy = f"is damaged ({error}); delete it with: mars cache clear --store {folder}"
            fault = remedy if damaged else f"cannot be used: {error}"
            warn(f"continuing without the store, as {self.file} {fault}")
            return None


def _is_damage(error: Exception) -> bool:
    """Tell whether the file is damaged, and not just locked, read-only or on a full disk."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.DatabaseError) and (
        not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR
    )


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=TIMEOUT, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA cache_size = -65536")  # KiB. A transaction that outgrows it locks readers out.
            yield db
        except UnicodeDecodeError as error:  # The message quotes bytes of a damaged file.
            raise sqlite3.DatabaseError("malformed text") from error


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _read(db: sqlite3.Connection, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
    values: dict[bytes, bytes] = {}
    db.execute("BEGIN")  # one lock for all keys
    for key in keys:
        for checksum, value in db.execute(_SELECT, (kind, key)):
            if value is None or checksum != _checksum(kind, key, value):
                raise sqlite3.DatabaseError("a result has a wrong checksum")
            values[key] = value
    return values


def _write(
    db: sqlite3.Connection, rows: Sequence[tuple[str, bytes, bytes, bytes]], limit: int, *, anew: bool = False
) -> None:
    """Add rows (``anew``: to an empty table), and remove the oldest entries while the file is over the limit."""
    if _version(db) == 0:
        db.execute("PRAGMA auto_vacuum = FULL")  # lets the file shrink, but must be set in an empty file
    with db:
        db.execute("BEGIN IMMEDIATE")  # waits for other writers
        for statement in _TABLE if anew or _version(db) != _VERSION else ():
            db.execute(statement)
        db.executemany(_INSERT, rows)
        while db.execute(_USED_BYTES).fetchone()[0] > limit and db.execute(_DELETE_OLDEST_TENTH).rowcount:
            pass


def _checksum(kind: str, key: bytes, value: bytes) -> bytes:
    """Hash a value with its kind and key, so that a damaged file does not change scores."""
    return hashlib.blake2b(value, digest_size=8, key=key, person=kind.encode()[:16]).digest()


@dataclass(frozen=True)
class Codec(Generic[Value]):
    """Encodes and decodes the values of a model call."""

    encode: Callable[[Value], bytes]
    decode: Callable[[bytes], Value]


def json_codec(make: Callable[..., Value]) -> Codec[Value]:
    """Make a codec that encodes a tuple as a JSON list, and decodes it by calling ``make`` with its entries."""
    return Codec(
        lambda value: _as_json(value).encode("utf-8", "surrogatepass"),
        lambda stored: make(*json.loads(stored.decode("utf-8", "surrogatepass"))),
    )


def cached(
    store: ResultStore,
    kind: str,
    common: Sequence[object] | None,
    items: Iterable[Item],
    compute: Callable[[list[Item]], Iterable[tuple[Item, Value]]],
    codec: Codec[Value],
) -> dict[Item, Value]:
    """Return the value of each different item from the store, or compute and save it.

    Args:
        store: where values are looked up and saved.
        kind: one of :data:`KINDS`.
        common: parts of the key that all items share, for :func:`digest`: model, settings, and a version. None if
            the model is not known. Then nothing is looked up or saved.
        items: strings, or tuples that ``digest`` takes.
        compute: yields each of the missing items with its value. Values are saved every ``FLUSH_SECONDS`` and when
            ``compute`` ends, also by an exception or Ctrl-C.
        codec: encodes and decodes the values. ``decode(encode(value))`` equals ``value``.
    """
    items = list(dict.fromkeys(items))
    keys = {} if store.folder is None or common is None else _item_keys(common, items)
    stored = store.get(kind, list(keys.values())) if keys else {}
    values = {item: codec.decode(stored[key]) for item, key in keys.items() if key in stored}
    missing = [item for item in items if item not in values]
    unsaved: dict[bytes, bytes] = {}
    saved_at = time.monotonic()
    try:
        for item, value in compute(missing) if missing else ():
            values[item] = value
            if keys:
                unsaved[keys[item]] = codec.encode(value)
            if time.monotonic() - saved_at > FLUSH_SECONDS:
                store.put(kind, unsaved)
                unsaved.clear()
                saved_at = time.monotonic()
    finally:
        store.put(kind, unsaved)
    return values


def _item_keys(common: Sequence[object], items: Iterable[Item]) -> dict[Item, bytes]:
    prefix, keys = digest(*common), {}
    for item in items:
        parts: Sequence[object] = item if isinstance(item, tuple) else (item,)
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) == len(parts):  # takes a fifth of the time of JSON
            encoded = b"".join(text.encode("utf-8", "surrogatepass") + b"\xff" for text in texts)
        else:
            encoded = b"\xfe" + digest(*parts)
        keys[item] = hashlib.blake2b(prefix + encoded, digest_size=KEY_BYTES).digest()
    return keys


class LruCache(Generic[Item, Value]):
    """A thread-safe cache of the most recently used values, up to ``most_bytes`` in all but at least one value."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._entries: OrderedDict[Item, tuple[Value, int]] = OrderedDict()  # by time of use
        self._lock = ForkSafeLock()

    def get(self, key: Item) -> Value | None:
        """Return the value of a key, or None if it is not cached."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def put(self, key: Item, value: Value, size: int) -> None:
        """Add a value of ``size`` bytes."""
        with self._lock:
            self._bytes += size - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = value, size
            while self._bytes > self._most_bytes and len(self._entries) > 1:
                _, (_, oldest) = self._entries.popitem(last=False)
                self._bytes -= oldest
