"""Results kept between processes in one SQLite file: checked when read, limited in size, never in the way."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from mars_score.errors import MarsWarning
from mars_score.store.location import make_private, open_to_others

KINDS = ("analyses", "infills", "embeddings", "scores")
FILE = "results.sqlite3"
LIMIT = 2 * 2**30  # bytes of values
TIMEOUT = 60.0  # seconds to wait for other processes
_FRESH = 3600  # seconds; reading an entry renews its time only when that is older
_VERSION = 1
_CHUNK = 900  # variables a statement: older SQLite allows 999

# Two tables; the totals follow the entries by triggers, so that no change can forget them.
_SCHEMA = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL, kind TEXT NOT NULL, used INTEGER NOT NULL, "
    "checksum BLOB NOT NULL, value BLOB NOT NULL, UNIQUE (key, kind))",
    "CREATE INDEX by_used ON entries (used)",
    "CREATE TABLE totals (kind TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID",
    *(f"INSERT INTO totals VALUES ('{kind}', 0, 0)" for kind in KINDS),
    "CREATE TRIGGER added AFTER INSERT ON entries BEGIN UPDATE totals SET entries = entries + 1, "
    "bytes = bytes + length(new.value) WHERE kind = new.kind; END",
    "CREATE TRIGGER changed AFTER UPDATE OF value ON entries BEGIN UPDATE totals SET "
    "bytes = bytes + length(new.value) - length(old.value) WHERE kind = new.kind; END",
    "CREATE TRIGGER removed AFTER DELETE ON entries BEGIN UPDATE totals SET entries = entries - 1, "
    "bytes = bytes - length(old.value) WHERE kind = old.kind; END",
    f"PRAGMA user_version = {_VERSION}",
)
_PUT = (
    "INSERT INTO entries (key, kind, used, checksum, value) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key, kind) "
    "DO UPDATE SET used = excluded.used, checksum = excluded.checksum, value = excluded.value"
)
# The file was put aside or deleted while we waited for it; others who waited took our journal for its own.
_MOVED = (sqlite3.SQLITE_READONLY_DBMOVED, sqlite3.SQLITE_IOERR_DELETE_NOENT)

_T = TypeVar("_T")


def digest(*parts: Any) -> bytes:
    """16 bytes that tell ``parts`` from all others: str, int, float, bool, None, lists and mappings of them.

    A tuple counts as the list of its items, the order of a mapping's keys does not count, 1, 1.0 and True differ.

    Raises:
        TypeError: a part, or the key of a mapping (a str), is of another type.
    """
    text = json.dumps(_plain(parts), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _plain(part: Any) -> Any:
    """Mappings as dicts; JSON itself would take a key 1 for "1"."""
    if isinstance(part, Mapping):
        if not all(isinstance(key, str) for key in part):
            raise TypeError(f"keys of mappings must be strings, got {list(part)!r}")
        return {key: _plain(value) for key, value in part.items()}
    return [_plain(one) for one in part] if isinstance(part, (list, tuple)) else part


def size_limit() -> int:
    """Bytes of values a store may hold: ``MARS_STORE_LIMIT`` in GiB, else ``LIMIT``.

    Raises:
        ValueError: ``MARS_STORE_LIMIT`` is not a positive number.
    """
    text = os.environ.get("MARS_STORE_LIMIT")
    if not text:
        return LIMIT
    try:
        limit = float(text) * 2**30
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise ValueError(f"MARS_STORE_LIMIT must be a positive number (GiB), got {text!r}")
    return math.ceil(limit)


class Kept:
    """The results kept in a folder, by kind and 16-byte key; equal keys must stand for equal values.

    Threads, forked children and other processes may use one store at once: each call opens the file anew
    (0.1 ms). What goes wrong costs a ``MarsWarning``, once a kind of trouble, and never a result: what is damaged
    counts as missing, and a store that cannot be written or read is let alone from then on.
    """

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        """Touch nothing yet.

        Args:
            folder: the store's folder, made by the first :meth:`put`; None: keep nothing.
            limit: bytes of values; above them the least recently used go. None: :func:`size_limit`.
        """
        self.file = None if folder is None else folder / FILE
        self.limit = size_limit() if limit is None else limit
        self._off: set[str] = set()  # "read", "write"
        self._warned: set[str] = set()

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those ``keys`` that are kept."""
        _check(kind)

        def read(db: sqlite3.Connection) -> tuple[dict[bytes, bytes], int]:
            found, worn, damaged = _select(db, kind, keys)
            if worn or damaged:
                with suppress(sqlite3.OperationalError), _writing(db, timeout=1.0):  # as in a read-only folder
                    db.executemany("UPDATE entries SET used = ? WHERE id = ?", [(_now(), one) for one in worn])
                    db.executemany("DELETE FROM entries WHERE id = ?", [(one,) for one in damaged])
            return found, len(damaged)

        found, damaged = (self._use(read, "read") if keys else None) or ({}, 0)
        if damaged:
            self._warn("entries", f"results in {self.file} were damaged; they are computed again")
        return found

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Keep ``entries``, key to value, and let the least recently used go beyond the limit."""
        _check(kind)
        now = _now()
        rows = [(key, kind, now, _checksum(kind, key, value), value) for key, value in entries.items()]

        def write(db: sqlite3.Connection) -> None:
            _prepare(db)
            with _writing(db):
                if _version(db) != _VERSION:
                    _begin_anew(db)
                db.execute("INSERT OR IGNORE INTO totals VALUES (?, 0, 0)", (kind,))  # a kind newer than the file
                db.executemany(_PUT, rows)
                _evict(db, self.limit)

        if rows:
            self._use(write, "write")

    def info(self) -> dict[str, tuple[int, int]]:
        """Entries and bytes of values of every kind."""

        def read(db: sqlite3.Connection) -> dict[str, tuple[int, int]]:
            if _version(db) != _VERSION:
                return {}
            return {kind: (entries, size) for kind, entries, size in db.execute("SELECT * FROM totals")}

        found = self._use(read, "read") or {}
        return {kind: found.get(kind, (0, 0)) for kind in KINDS}

    def clear(self) -> None:
        """Remove all results, and a damaged file that was put aside.

        Raises:
            OSError: the file cannot be written.
        """
        if self.file is None:
            return

        def empty(db: sqlite3.Connection) -> None:
            _prepare(db)
            with _writing(db):
                _begin_anew(db)

        try:
            _attempt(self.file, empty, lambda: None)
            _aside(self.file).unlink(missing_ok=True)
        except sqlite3.Error as error:
            raise OSError(f"{self.file}: {error}") from error

    def _use(self, work: Callable[[sqlite3.Connection], _T], how: str) -> _T | None:
        """What ``work`` returns; None without a store or where it fails, which warns and is not tried again."""
        if self.file is None or how in self._off:
            return None
        aside = f"{self.file} was damaged and is now {_aside(self.file).name}; its results are computed again"
        try:
            if how == "write":
                make_private(self.file.parent)
            why = open_to_others(self.file.parent)
            if why:
                self._warn("others", f"other users can change what is kept in {self.file.parent}: {why}")
            return _attempt(self.file, work, lambda: self._warn("file", aside), create=how == "write")
        except (sqlite3.Error, OSError) as error:
            self._off |= {how, "write"}
            self._warn("store", f"going on without the store, as {self.file} cannot be used: {error}")
            return None

    def _warn(self, trouble: str, message: str) -> None:
        if trouble not in self._warned:
            self._warned.add(trouble)
            warnings.warn(message, MarsWarning, stacklevel=4)


class StagedKept(Kept):
    """A store that gets what is new only at :meth:`commit`: all results of a piece of work, or none.

    A piece that was stopped in the middle then starts from what it started from before, and comes to the same.
    """

    def __init__(self, kept: Kept) -> None:
        super().__init__(None)
        self._behind = kept
        self._staged: dict[str, dict[bytes, bytes]] = {}

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those ``keys`` that are staged or kept."""
        staged = self._staged.get(kind, {})
        found = {key: staged[key] for key in keys if key in staged}
        return found | self._behind.get(kind, [key for key in keys if key not in found])

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Stage ``entries``, key to value."""
        self._staged.setdefault(kind, {}).update(entries)

    def commit(self) -> None:
        """Keep all that is staged, each kind at once."""
        for kind in KINDS:
            self._behind.put(kind, self._staged.pop(kind, {}))

    def discard(self) -> None:
        """Forget what is staged."""
        self._staged.clear()


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")


def _checksum(kind: str, key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=8, key=key, person=kind.encode()).digest()


def _now() -> int:
    return int(time.time())


# The file: opened, put aside when damaged


def _attempt(
    file: Path, work: Callable[[sqlite3.Connection], _T], damaged: Callable[[], None], *, create: bool = False
) -> _T | None:
    """What ``work`` returns given the database; a damaged file is put aside and ``damaged`` called.

    None where there is no file, unless ``create``.

    Raises:
        sqlite3.Error, OSError: the file cannot be used.
    """
    for left in reversed(range(10)):
        if not create and not file.exists():
            return None
        if create:  # by SQLite, it would get the mode of any file; the journal gets that of the file
            os.close(os.open(file, os.O_RDONLY | os.O_CREAT, 0o600))
        identity = _identity(file)
        try:
            with closing(sqlite3.connect(file, timeout=TIMEOUT, isolation_level=None)) as db:
                return work(db)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # no code: a text is no text
            moved = code in _MOVED
            # A missing table (SQLITE_ERROR) is damage, too; a lock, a full disk or a read-only file is not.
            hurt = not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR
            if not left or not (moved or hurt):
                raise
        if hurt and _put_aside(file, identity):
            damaged()
    raise AssertionError("unreachable")


def _aside(file: Path) -> Path:
    return file.with_name(f"{file.name}.damaged")


def _identity(file: Path) -> tuple[int, int] | None:
    """What tells a file from one that took its place; None: there is none."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _put_aside(file: Path, identity: tuple[int, int] | None) -> bool:
    """Rename a damaged file; False where another process did so before, for then ``file`` is another one."""
    with _lock(file.parent):
        if identity is None or _identity(file) != identity:
            return False
        with closing(sqlite3.connect(file, timeout=TIMEOUT, isolation_level=None)) as db:
            # Let those finish who are at work in its sound parts: SQLite never starts a write in a renamed file.
            try:
                db.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                pass  # too damaged for a lock, so nobody has one
            file.with_name(f"{file.name}-journal").unlink(missing_ok=True)  # would be played into the next file
            # Who still waits for the old file may disturb writers of the next: at worst, that goes as well.
            file.replace(_aside(file))
        return True


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold a folder alone where the file system can; elsewhere a narrow race remains, over a damaged file."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# The database


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _prepare(db: sqlite3.Connection) -> None:
    """Settings that a writer makes before its transaction."""
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA secure_delete = OFF")
    db.execute("PRAGMA cache_size = -65536")  # KiB; a batch that spills earlier locks readers out
    if _version(db) != _VERSION:
        db.execute("PRAGMA page_size = 8192")  # of embeddings, 4096 would waste a quarter
        db.execute("PRAGMA auto_vacuum = FULL")


@contextmanager
def _writing(db: sqlite3.Connection, timeout: float | None = None) -> Iterator[None]:
    """One transaction that waits for its turn at the start."""
    if timeout is not None:
        db.execute(f"PRAGMA busy_timeout = {int(1000 * timeout)}")
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _begin_anew(db: sqlite3.Connection) -> None:
    """Replace all tables, whatever version made them."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    for (name,) in db.execute(tables).fetchall():
        db.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
    for statement in _SCHEMA:
        db.execute(statement)


def _select(
    db: sqlite3.Connection, kind: str, keys: Sequence[bytes]
) -> tuple[dict[bytes, bytes], list[int], list[int]]:
    """The values of ``keys``, and the ids of entries with an old time and of damaged ones."""
    found: dict[bytes, bytes] = {}
    worn: list[int] = []
    damaged: list[int] = []
    if _version(db) != _VERSION:
        return found, worn, damaged
    now = _now()
    for start in range(0, len(keys), _CHUNK):
        chunk = keys[start : start + _CHUNK]
        rows = db.execute(
            "SELECT id, key, CAST(checksum AS BLOB), CAST(value AS BLOB), abs(used - ?) <= ? FROM entries "
            f"WHERE kind = ? AND key IN ({','.join('?' * len(chunk))})",
            (now, _FRESH, kind, *chunk),
        )
        for number, key, checksum, value, fresh in rows.fetchall():
            if value is None or checksum != _checksum(kind, key, value):
                damaged.append(number)
                continue
            found[key] = value
            if not fresh:
                worn.append(number)
    return found, worn, damaged


def _evict(db: sqlite3.Connection, limit: int) -> None:
    """Beyond ``limit`` bytes, delete the least recently used down to nine tenths of it."""
    (total,) = db.execute("SELECT sum(bytes) FROM totals").fetchone()
    if total <= limit:
        return
    excess = total - limit * 9 // 10
    gone = []
    for number, size in db.execute("SELECT id, length(value) FROM entries ORDER BY used, id"):
        gone.append((number,))
        excess -= size
        if excess <= 0:
            break
    db.executemany("DELETE FROM entries WHERE id = ?", gone)
    if excess > 0:  # all went and still too much: damage had falsified the totals
        db.execute("UPDATE totals SET entries = 0, bytes = 0")
