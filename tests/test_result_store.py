"""The store of results: what it returns, what it survives, who may use it at once."""

import multiprocessing
import os
import random
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import pytest

from mars_score import cache
from mars_score.cache import KINDS, LIMIT, ResultStore, cached, digest, json_codec
from mars_score.errors import MarsWarning
from tests.users import unprivileged

NOTHING = dict.fromkeys(KINDS, (0, 0))


def entries(count, size=1000, start=0):
    """``count`` keys with values of ``size`` bytes that can be told from one another."""
    return {digest(number): (f"{number} ".encode() * size)[:size] for number in range(start, start + count)}


WHOLE = entries(300)  # of the store ``full``


def read(store):
    """The infills that a store has of 400."""
    return store.get("infills", list(entries(400)))


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "a folder" / "store")


@pytest.fixture
def full(store):
    """A store with infills."""
    store.put("infills", WHOLE)
    return store


def database(store):
    return closing(sqlite3.connect(store.file, isolation_level=None))


def sound(store):
    """Whether a store's file is sound as SQLite sees it."""
    with database(store) as db:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture
def caught():
    """The warnings of a test."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def given_up(store, caught, *words):
    """Whether writing fails once, with a warning that has these words, and is not tried again."""
    for _ in range(2):
        store.put("entailments", entries(100))
        assert store.info()["entailments"] == (0, 0)
    [warning] = caught
    words = ("continuing without the store", *words)
    return warning.category is MarsWarning and all(word in str(warning.message) for word in words)


# What is put can be got


def test_digests_tell_parts_apart():
    parts = [
        (), ("",), ("", ""), ([],), ([[]],), ({},), ([{}],), (None,), (True,), (False,), (0,), (1,), (1.0,),
        (0.0,), (-0.0,), (10**30,), ("1",), ("None",), ("null",), ("a", "b"), ("ab",), (["a", "b"],), (["a"], "b"),
        ('a","b',), ({"a": "b"},), ({"a": {"b": 1}},), ({"a": 1, "b": 1},), (float("nan"),), (float("inf"),),
        ("\ud83d\ude00",), ("\U0001f600",), ("\\ud83d",), ("\ud83d",), ("\0",), ("e\u0301",), ("\u00e9",),
    ]  # fmt: skip
    assert len({digest(*part) for part in parts}) == len(parts)
    assert digest({"a": 1, "b": (1, 2)}) == digest(MappingProxyType({"b": [1, 2], "a": 1}))
    for part in (b"a", {"a"}, object(), Path("a"), MappingProxyType({1: "a"}), [{"a": 1j}]):
        with pytest.raises(TypeError):
            digest("a", part)


def test_put_get_and_clear(store):
    assert store.get("infills", [digest(1)]) == {}
    assert store.info() == NOTHING
    store.put("infills", {})
    store.clear()
    assert not store.folder.parent.exists()  # nothing is touched before it must be
    kinds = {kind: {digest(kind): kind.encode(), digest(2): bytes(range(256)) * 20} for kind in KINDS}
    kinds["encodings"] |= entries(3000, size=100)
    for kind, values in kinds.items():
        store.put(kind, dict.fromkeys(values, b"first"))
        store.put(kind, values)
    for again in (store, ResultStore(store.folder)):
        for kind, values in kinds.items():
            assert again.get(kind, [*values, digest("other"), digest(2)]) == values
    assert store.info()["infills"] == (2, 7 + 5120)
    assert [path.name for path in store.folder.iterdir()] == ["results.sqlite3"]
    store.clear()
    assert store.info() == NOTHING
    assert store.file.stat().st_size < 2**16
    assert sound(store)


# The limit


@pytest.mark.parametrize(
    ("text", "limit"),
    [("", LIMIT), ("0.5", 2**29), ("1e-9", 2), ("2 GB", None), ("0", None), ("nan", None), ("1e400", None)],
)
def test_the_limit_from_the_environment(monkeypatch, text, limit):
    monkeypatch.setenv("MARS_STORE_LIMIT", text)
    if limit is None:
        with pytest.raises(ValueError, match="MARS_STORE_LIMIT must be a positive number"):
            ResultStore(None)
    else:
        assert ResultStore(None).limit == limit


def test_the_oldest_are_removed_first(tmp_path):
    store = ResultStore(tmp_path, limit=500_000)
    for start in range(0, 300, 10):
        store.put("infills", entries(10, start=start))
    store.put("infills", entries(10))  # written again
    store.put("infills", entries(100, start=300))
    left = read(store)
    assert len(left) > 250
    assert left.keys() == (entries(10) | entries(len(left) - 10, start=410 - len(left))).keys()
    assert store.file.stat().st_size <= 500_000
    assert sound(store)


# Damage

DAMAGES = [
    "truncated",
    "text",
    "DROP TABLE entries",
    # Of single entries, which only the checksum shows:
    "UPDATE entries SET value = CAST(X'00' || substr(value, 2) AS BLOB) WHERE id % 7 = 3",
    "UPDATE entries SET value = CAST(X'FFFF' AS TEXT) WHERE id % 7 = 3",
    "UPDATE entries SET key = CAST(X'00' || substr(key, 2) AS BLOB) WHERE id % 7 = 3",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_left_alone_until_it_is_cleared(full, caught, damage):
    if damage == "truncated":
        os.truncate(full.file, full.file.stat().st_size // 2 + 100)
    elif damage == "text":
        full.file.write_text("no database at all\n" * 1000)
        full.put("entailments", entries(1))  # noticed by writing, and not again by reading
    else:
        with database(full) as db:
            db.execute(damage)
    assert read(full).items() <= WHOLE.items()
    if "key" in damage:  # an entry that cannot be found is no damage that could be seen
        assert caught == []
    else:
        assert given_up(full, caught, "is damaged", f"mars cache clear --store {full.folder}")
        assert read(full) == {}
    again = ResultStore(full.folder)
    again.clear()
    assert again.info() == NOTHING
    again.put("infills", WHOLE)
    assert read(again) == WHOLE
    assert sound(again)
    assert len(caught) <= 1


def test_noise_anywhere_never_changes_a_value(full, caught):
    choose, good = random.Random(1), full.file.read_bytes()
    lost = 0
    for _ in range(25):
        noisy = bytearray(good)
        start = choose.choice([choose.randrange(len(good)), choose.randrange(200)])
        length = choose.choice([1, 1, 20, 5000])
        noisy[start : start + length] = choose.randbytes(len(noisy[start : start + length]))
        full.file.write_bytes(noisy)
        store = ResultStore(full.folder)
        values = read(store)
        assert values.items() <= WHOLE.items()
        lost += len(values) < 300
        store.put("infills", WHOLE)
        assert read(store).items() <= WHOLE.items()
        store.info()
        store.clear()
        assert store.info() == NOTHING
    assert lost > 5
    assert {warning.category for warning in caught} == {MarsWarning}


@pytest.mark.parametrize("how", ["another version", "gone", "empty"])
def test_a_file_of_another_version_or_that_is_gone_is_replaced_silently(full, caught, how):
    if how == "gone":
        shutil.rmtree(full.folder)
    elif how == "empty":
        os.truncate(full.file, 0)
    else:
        with database(full) as db:
            db.execute("ALTER TABLE entries DROP COLUMN checksum")
            db.execute("PRAGMA user_version = 2")
    assert read(full) == {}
    full.put("infills", entries(3))
    assert read(full) == entries(3)
    assert caught == []
    assert sound(full)


# A store that cannot be used


@pytest.mark.parametrize("in_place", ["file", "folder"])
def test_something_else_in_place_of_the_store(store, caught, in_place):
    if in_place == "file":
        store.file.mkdir(parents=True)
    else:
        store.folder.parent.mkdir()
        store.folder.write_text("")
    assert read(store) == {}
    assert given_up(store, caught, str(store.folder))


def test_a_read_only_folder(caught):
    with tempfile.TemporaryDirectory() as name:  # all users reach it, as they do not reach pytest's
        folder, store = Path(name), ResultStore(Path(name))
        store.put("infills", entries(3))
        folder.chmod(0o555)
        store.file.chmod(0o444)
        with unprivileged():
            for _ in range(2):  # reading goes on
                assert read(store) == entries(3)
                assert store.info()["infills"] == (3, 3000)
            assert caught == []
            assert given_up(store, caught)
            assert read(store) == entries(3)
            with pytest.raises(OSError, match="readonly"):
                store.clear()
            ResultStore(folder / "new").put("infills", entries(3))
        assert len(caught) == 2
        folder.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="needs limits of the process")
def test_a_full_disk(full, caught):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (full.file.stat().st_size + 5000, hard))
    try:
        assert given_up(full, caught)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read(full) == WHOLE
    assert sound(full)


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_store_that_stays_locked(full, caught, monkeypatch, lock):
    monkeypatch.setattr(cache, "TIMEOUT", 0.05)
    with database(full) as db:
        db.execute(f"BEGIN {lock}")
        assert read(full) == (WHOLE if lock == "IMMEDIATE" else {})
        assert given_up(full, caught, "locked")
        with pytest.raises(OSError, match="locked"):
            full.clear()
    assert ResultStore(full.folder).info()["infills"] == (300, 300_000)


# Many users at once


def use(folder, seed, limit, barrier):
    """Read and write in a process of its own, beginning when the others do."""
    warnings.simplefilter("error")
    choose = random.Random(seed)
    barrier.wait()
    for _ in range(15):
        store, kind = ResultStore(folder, limit), choose.choice(KINDS)
        values = {
            digest(number): (f"{kind} {number} ".encode() * 200)[: 500 + number]
            for number in choose.sample(range(400), 30)
        }
        stored = store.get(kind, list(values))
        assert stored.items() <= values.items()
        store.put(kind, {key: value for key, value in values.items() if key not in stored})


@pytest.mark.parametrize("limit", [10**9, 100_000])
def test_processes(store, limit):
    context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
    barrier = context.Barrier(4)
    users = [context.Process(target=use, args=(store.folder, seed, limit, barrier)) for seed in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    assert [user.exitcode for user in users] == [0] * 4
    assert sound(store)
    assert store.file.stat().st_size <= limit
    assert sum(number for number, _ in store.info().values()) > (100 if limit > 10**8 else 20)


# Look-up, computation and saving


def numbers(store, items, compute, common=("numbers", 1)):
    """Values of items by a computation whose results are kept as pairs."""
    return cached(store, "infills", common, items, compute, json_codec(lambda *pair: pair))


def test_only_what_is_missing_is_computed(store):
    asked = []

    def compute(missing):
        asked.append(missing)
        for item in reversed(missing):  # any order will do
            yield item, (item, len(item))

    assert numbers(store, ["c", "a", "c"], compute) == {"c": ("c", 1), "a": ("a", 1)}
    assert numbers(store, ["bb", "a", "c"], compute) == {"bb": ("bb", 2), "a": ("a", 1), "c": ("c", 1)}
    assert numbers(store, ["bb", "a"], compute) == {"bb": ("bb", 2), "a": ("a", 1)}
    assert numbers(store, [], compute) == {}
    assert asked == [["c", "a"], ["bb"]]
    assert numbers(store, ["c"], compute, None) == {"c": ("c", 1)}  # what it depends on is not known
    assert asked[2:] == [["c"]]
    assert store.info()["infills"][0] == 3


def test_without_a_store_nothing_is_serialised():
    value = object()
    codec = cache.Codec(encode=None, decode=None)
    values = cached(ResultStore(None), "infills", ["a"], ["b"], lambda missing: [("b", value)], codec)
    assert values == {"b": value}


@pytest.mark.parametrize(("seconds", "saved"), [(2.0, 3), (0.9, 4), (10.0, 0)])
def test_values_are_saved_every_few_seconds_and_when_a_computation_is_stopped(store, monkeypatch, seconds, saved):
    now = [0.0]
    monkeypatch.setattr(cache.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cache, "FLUSH_SECONDS", seconds)
    counts = []

    def compute(missing):
        for item in missing:
            now[0] += 1.0
            yield item, (item,)
        counts.append(store.info()["infills"][0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        numbers(store, "abcd", compute)
    assert counts == [saved]
    assert store.info()["infills"][0] == 4


def test_keys_tell_items_apart(store):
    texts = [("a", "b"), ("ab",), ("a", "b", ""), (), ("",), ("1",), ("a\xff", "b"), ("\ud83d",)]
    items = [*texts, (1,), (("a", "b"),)]

    def zeros(missing):
        return [(item, (0,)) for item in missing]

    for common in (1, 2):
        numbers(store, items, zeros, [common])
    assert store.info()["infills"][0] == 2 * len(items)
    numbers(store, ["a", ("a",)], zeros, [1])
    assert store.info()["infills"][0] == 2 * len(items) + 1  # a text is the same as a tuple of it
