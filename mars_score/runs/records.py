"""What a run has done, in one SQLite file of its folder, so that it can go on after a stop."""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mars_score.models.fingerprints import may_be

FILE = "run.sqlite3"
_AT_ONCE = 900  # variables per statement: older SQLite allows 999


class Records:
    """Results of chunks and facts about a run; each change is a transaction.

    Args:
        folder: the run's.

    Raises:
        OSError: the file cannot be used; the disk is full.
        ValueError: it is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        with _telling(self.file):
            self._db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
            self._db.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS results (stage TEXT, key BLOB, value BLOB NOT NULL, "
                "PRIMARY KEY (stage, key))"
            )
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS done (stage TEXT, number INTEGER, PRIMARY KEY (stage, number))"
            )

    def fact(self, name: str) -> Any:
        """The fact of a name, or None."""
        with _telling(self.file):
            found = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else json.loads(found[0])

    def note(self, name: str, fact: Any) -> None:
        """Record plain data under a name."""
        with _telling(self.file):
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(fact)))

    def begin(self, manifest: Mapping[str, Any]) -> None:
        """Remove everything, and record what the run depends on."""
        with _telling(self.file), self._db:
            self._db.execute("BEGIN")
            for table in ("facts", "results", "done"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("INSERT INTO facts VALUES ('manifest', ?)", (json.dumps(manifest),))

    def add(self, stage: str, number: int, results: Mapping[bytes, bytes]) -> None:
        """Record the results of a chunk, and that it is done."""
        self.add_all(stage, [(number, results)])

    def add_all(self, stage: str, chunks: Iterable[tuple[int, Mapping[bytes, bytes]]]) -> None:
        """Record the results of several chunks, all or none, and that these are done."""
        with _telling(self.file), self._db:
            self._db.execute("BEGIN")
            for number, results in chunks:
                rows = [(stage, key, value) for key, value in results.items()]
                self._db.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)
                self._db.execute("INSERT OR REPLACE INTO done VALUES (?, ?)", (stage, number))

    def done(self, stage: str) -> set[int]:
        """Numbers of the chunks that are done."""
        with _telling(self.file):
            return {one for (one,) in self._db.execute("SELECT number FROM done WHERE stage = ?", (stage,))}

    @property
    def worked(self) -> bool:
        """Whether any chunk is done."""
        with _telling(self.file):
            return self._db.execute("SELECT 1 FROM done LIMIT 1").fetchone() is not None

    def get(self, stage: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The results of those ``keys`` that have one."""
        found: dict[bytes, bytes] = {}
        with _telling(self.file):
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                found |= self._db.execute(
                    f"SELECT key, value FROM results WHERE stage = ? AND key IN ({','.join('?' * len(some))})",
                    (stage, *some),
                ).fetchall()
        return found

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()


class Distinct:
    """The set of keys seen so far, on the disk: there may be more of them than memory holds."""

    def __init__(self) -> None:
        # Without a name: a private file in SQLite's temporary folder, removed when it is closed.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA cache_size = -16384")  # KiB
        self._db.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def new(self, keys: Sequence[bytes]) -> list[bytes]:
        """Those of ``keys`` that are new, in their order, each once.

        Raises:
            OSError: the disk is full.
        """
        some = list(dict.fromkeys(keys))
        seen: set[bytes] = set()
        with _telling("a temporary file"), self._db:
            self._db.execute("BEGIN")
            for start in range(0, len(some), _AT_ONCE):
                part = some[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                seen.update(
                    one for (one,) in self._db.execute(f"SELECT key FROM seen WHERE key IN ({marks})", part)
                )
            fresh = [key for key in some if key not in seen]
            self._db.executemany("INSERT INTO seen VALUES (?)", [(key,) for key in fresh])
        return fresh

    def close(self) -> None:
        """Remove the file."""
        self._db.close()


def check_manifest(records: Records, manifest: Mapping[str, Any]) -> None:
    """Record what the run depends on, or check that it is still the same.

    Raises:
        ValueError: an input or a setting differs from that of the run that was stopped.
    """
    before = records.fact("manifest")
    if before is None or not records.worked:
        records.begin(manifest)
        return
    changed = [name for name in {**before, **manifest} if not may_be(before.get(name), manifest.get(name))]
    if records.fact("complete") and changed == ["input"]:  # which the output has replaced
        return
    if changed:
        what = ", ".join(f"{one} (was {before.get(one)!r:.60}, now {manifest.get(one)!r:.60})" for one in changed)
        raise ValueError(
            f"{records.file.parent} holds a run that was stopped, with another {what}; give the same again, or "
            "start again with --restart"
        )


@contextmanager
def _telling(file: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into those of files."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, "no space left on the disk", str(file)) from error
        if isinstance(error, sqlite3.OperationalError):
            raise OSError(errno.EIO, str(error), str(file)) from error
        raise ValueError(f"{file} is damaged ({error}); start again with --restart") from error
