"""The store of results: what it returns, what it survives, who may use it at once."""

import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest
from users import unprivileged

from mars_score.errors import MarsWarning
from mars_score.store import results
from mars_score.store.location import LIMIT
from mars_score.store.results import CHEAP, KINDS, ResultStore, digest

ROOT = Path(__file__).parent.parent
NOTHING = dict.fromkeys(KINDS, (0, 0))


def entries(count, size=1000, start=0):
    """``count`` keys with values of ``size`` bytes that can be told from one another."""
    return {digest(one): (f"{one} ".encode() * size)[:size] for one in range(start, start + count)}


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "a folder" / "store")


@pytest.fixture
def full(store):
    """A store with 300 infills of 1000 bytes."""
    store.put("infills", entries(300))
    return store


@pytest.fixture
def clock(monkeypatch):
    """``clock[0]`` is the time."""
    now = [1_000_000.0]
    monkeypatch.setattr(results.time, "time", lambda: now[0])
    return now


@contextmanager
def database(store):
    with closing(sqlite3.connect(store.file, isolation_level=None)) as db:
        yield db


def sound(store):
    """Check a store's file from outside."""
    with database(store) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return True


def warned(caught, *parts):
    """There was one warning, a MarsWarning, with these words in it."""
    assert [one.category for one in caught] == [MarsWarning], [str(one.message) for one in caught]
    assert all(part in str(caught[0].message) for part in parts), caught[0].message
    return True


@pytest.fixture
def caught():
    """The warnings of a test."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


# Digests


def test_digests_stay_as_they_are():
    known = digest("a", 1, 1.5, True, None, [(), {"b": 2, "a": "\u05e9\U0001f600\ud83d"}])
    assert known.hex() == "11c174394f5b6aaedbcd5d536565f025"


def test_digests_tell_parts_apart():
    parts = [
        (), ("",), ("", ""), ([],), ([[]],), ({},), ([{}],), (None,), (True,), (False,), (0,), (1,), (1.0,),
        (0.0,), (-0.0,), (10**30,), ("1",), ("None",), ("null",), ("a", "b"), ("ab",), (["a", "b"],), (["a"], "b"),
        ('a","b',), ({"a": "b"},), ({"a": {"b": 1}},), ({"a": 1, "b": 1},), (float("nan"),), (float("inf"),),
        (1e300,), ("\ud83d\ude00",), ("\U0001f600",), ("\\ud83d",), ("\ud83d",), ("\0",), ("e\u0301",),
        ("\u00e9",),
    ]  # fmt: skip
    assert len({digest(*one) for one in parts}) == len(parts)
    assert {len(digest(*one)) for one in parts} == {16}


def test_equal_parts_have_equal_digests():
    assert digest({"a": 1, "b": (1, 2)}) == digest(MappingProxyType({"b": [1, 2], "a": 1}))
    assert digest([MappingProxyType({})]) == digest(({},))


@pytest.mark.parametrize("part", [b"a", {"a"}, object(), Path("a"), 1j, {1: "a"}, {None: 1}, [{"a": {2: 3}}]])
def test_other_parts_have_no_digest(part):
    with pytest.raises(TypeError):
        digest("a", part)


# What is put can be got


def test_nothing_is_touched_before_it_must(store, tmp_path):
    assert store.get("infills", [digest(1)]) == {}
    assert store.info() == NOTHING
    store.put("infills", {})
    store.clear()
    assert list(tmp_path.iterdir()) == []


def test_put_and_get(store):
    kinds = {kind: {digest(kind, 1): kind.encode(), digest(2): kind.encode() * 5000} for kind in KINDS}
    for kind, values in kinds.items():
        store.put(kind, values)
    for again in (store, ResultStore(store.file.parent)):
        for kind, values in kinds.items():
            assert again.get(kind, [*values, digest("other")]) == values
            assert again.get(kind, []) == {}
    assert sound(store)
    assert store.info()["infills"] == (2, 7 * 5001)
    assert [one.name for one in store.file.parent.iterdir()] == ["results.sqlite3"]


def test_many_at_once(store):
    values = entries(3000, size=100)
    store.put("embeddings", values)
    keys = list(values)
    assert store.get("embeddings", keys + keys[:10]) == values


def test_any_bytes_are_saved(store):
    values = {digest(1): b"", digest(2): bytes(range(256)), b"\xff" * 16: "\u05e9".encode()}
    store.put("analyses", values)
    assert store.get("analyses", list(values)) == values


def test_the_last_put_wins(store):
    store.put("infills", {digest(1): b"first"})
    store.put("infills", {digest(1): b"second one"})
    assert store.get("infills", [digest(1)]) == {digest(1): b"second one"}
    assert store.info()["infills"] == (1, 10)
    assert sound(store)


def test_without_a_folder_nothing_is_saved():
    store = ResultStore(None)
    store.put("infills", {digest(1): b"a"})
    assert store.get("infills", [digest(1)]) == {}
    assert store.info() == NOTHING
    store.clear()


def test_unknown_kinds(store):
    with pytest.raises(ValueError, match="analyses, infills, samples, embeddings, scores, rows, got 'texts'"):
        store.put("texts", {digest(1): b"a"})
    with pytest.raises(ValueError, match="kind"):
        store.get("texts", [])


def test_clear(full):
    before = full.file.stat().st_size
    full.clear()
    assert full.info() == NOTHING
    assert full.file.stat().st_size < 2**16 < before
    full.put("infills", entries(2))
    assert full.get("infills", list(entries(300))) == entries(2)
    assert sound(full)


# The limit


@pytest.mark.parametrize(("text", "limit"), [("", LIMIT), ("0.5", 2**29), ("1e-9", 2), ("3", 3 * 2**30)])
def test_the_limit_from_the_environment(monkeypatch, text, limit):
    monkeypatch.setenv("MARS_STORE_LIMIT", text)
    assert ResultStore(None).limit == limit
    assert ResultStore(None, 5).limit == 5


@pytest.mark.parametrize("text", ["2 GB", "0", "-1", "nan", "inf", "1e400"])
def test_bad_limits(monkeypatch, text):
    monkeypatch.setenv("MARS_STORE_LIMIT", text)
    with pytest.raises(ValueError, match="MARS_STORE_LIMIT must be a positive number"):
        ResultStore(None)


def test_the_least_recently_used_are_evicted_first(tmp_path, clock):
    store = ResultStore(tmp_path, limit=500_000)
    for start in range(0, 300, 10):
        store.put("infills", entries(10, start=start))
        clock[0] += 1
    clock[0] += 4000
    store.get("infills", list(entries(10)))  # used again
    store.put("infills", entries(100, start=300))
    left = store.get("infills", list(entries(400)))
    assert len(left) > 250
    assert left.keys() == (entries(10) | entries(len(left) - 10, start=410 - len(left))).keys()
    assert store.file.stat().st_size <= 500_000
    assert sound(store)


@pytest.mark.parametrize(("cheap", "other"), [*((one, "infills") for one in CHEAP), ("embeddings", "rows")])
def test_cheap_results_are_evicted_before_expensive_ones(tmp_path, clock, cheap, other):
    store = ResultStore(tmp_path, limit=500_000)
    store.put(other, entries(100))
    clock[0] += 1000
    for start in range(0, 600, 20):
        store.put(cheap, entries(20, size=3000, start=start))
        clock[0] += 1
    assert store.get(other, list(entries(100))) == entries(100)
    assert store.info()[cheap][0] > 40  # the rest of the space is theirs
    assert store.file.stat().st_size <= 500_000
    clock[0] += CHEAP[cheap] - CHEAP.get(other, 0) + 10_000  # the other is not used meanwhile
    store.put(cheap, entries(400))
    assert store.info()[other][0] < 100
    assert store.info()[cheap][0] > 200
    assert sound(store)


def test_a_file_over_a_smaller_limit_shrinks(tmp_path):
    ResultStore(tmp_path, limit=10**7).put("embeddings", entries(2000))
    store = ResultStore(tmp_path, limit=500_000)
    assert store.file.stat().st_size > 2_000_000
    store.put("embeddings", entries(1, start=5000))
    assert 300_000 < store.file.stat().st_size <= 500_000
    assert store.get("embeddings", [digest(5000)])
    store.put("embeddings", entries(1, size=500_001))  # more than the limit at once
    assert store.info() == NOTHING
    assert sound(store)


def test_reading_writes_only_once_an_hour(full, clock):
    full.put("infills", entries(300))
    for wait, written in ((3600, False), (1, True), (0, False), (-10_000, True)):  # the last: a clock was wrong
        clock[0] += wait
        before = full.file.read_bytes()
        assert full.get("infills", list(entries(300))) == entries(300)
        assert (full.file.read_bytes() != before) == written, wait
    assert sound(full)


# Damage


def truncated(file):
    os.truncate(file, file.stat().st_size // 2 + 100)


def text_instead(file):
    file.write_text("no database at all\n" * 1000)


def without_tables(file):
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("DROP TABLE entries")


def changed(assignment):
    """Damage of single entries, which only the checksum shows."""

    def damage(file):
        with closing(sqlite3.connect(file, isolation_level=None)) as db:
            db.execute(f"UPDATE entries SET {assignment} WHERE id % 7 = 3")

    return pytest.param(damage, id=assignment)


DAMAGES = [
    truncated,
    text_instead,
    without_tables,
    changed("value = CAST(X'00' || substr(value, 2) AS BLOB)"),
    changed("value = CAST(substr(value, 1, 999) AS BLOB)"),
    changed("value = 5"),
    changed("value = CAST(X'FFFF' AS TEXT)"),
    changed("checksum = CAST(X'FFFF' AS TEXT)"),
    changed("key = CAST(X'00' || substr(key, 2) AS BLOB)"),
    changed("kind = 'analyses'"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_left_alone_until_it_is_cleared(full, caught, damage):
    wanted = entries(300)
    damage(full.file)
    for kind in KINDS:  # what is damaged is reported when it is read
        assert full.get(kind, list(wanted)).items() <= (wanted.items() if kind == "infills" else set())
    full.put("infills", entries(9, size=10, start=1000))
    full.get("infills", list(wanted))
    folder = full.file.parent
    assert len(caught) <= 1  # an entry that cannot be found is no damage that could be seen
    if caught:
        command = f"mars cache clear --store {folder}"
        assert warned(caught, "going on without the store", "is damaged", command)
        assert full.get("infills", list(entries(9, start=1000))) == {}
    again = ResultStore(folder)
    again.clear()
    assert again.info() == NOTHING
    again.put("infills", wanted)
    assert again.get("infills", list(wanted)) == wanted
    assert sound(again)
    assert len(caught) <= 1


@pytest.mark.parametrize("first", ["get", "put", "info"])
@pytest.mark.parametrize("damage", [text_instead, without_tables])
def test_a_damaged_file_is_read_and_written_no_more(full, caught, damage, first):
    damage(full.file)
    before = full.file.read_bytes()
    uses = {
        "get": lambda: full.get("infills", list(entries(300))),
        "put": lambda: full.put("infills", entries(3)),
        "info": full.info,
    }
    for name in (first, *uses):
        assert uses[name]() in ({}, None, NOTHING)
    assert warned(caught, "is damaged", "mars cache clear")
    assert full.file.read_bytes() == before
    full.clear()  # the same object can be used again
    full.put("infills", entries(3))
    assert full.get("infills", list(entries(3))) == entries(3)
    assert len(caught) == 1


def test_noise_anywhere_never_changes_a_value(full, caught):
    choose, good, wanted = random.Random(1), full.file.read_bytes(), entries(300)
    lost = 0
    for _ in range(60):
        noisy = bytearray(good)
        start = choose.choice([choose.randrange(len(good)), choose.randrange(200)])
        length = choose.choice([1, 1, 20, 5000])
        noisy[start : start + length] = choose.randbytes(len(noisy[start : start + length]))
        full.file.write_bytes(noisy)
        store = ResultStore(full.file.parent)
        found = store.get("infills", list(wanted))
        assert found.items() <= wanted.items()
        lost += len(found) < 300
        store.put("infills", wanted)
        assert store.get("infills", list(wanted)).items() <= wanted.items()
        store.info()
        store.clear()
        assert store.info() == NOTHING
    assert lost > 10
    assert {one.category for one in caught} == {MarsWarning}


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_replaced_silently(full, caught, version):
    with database(full) as db:
        db.execute("CREATE TABLE totals (a)")
        db.execute("ALTER TABLE entries DROP COLUMN checksum")
        db.execute(f"PRAGMA user_version = {version}")
    assert full.get("infills", [digest(1)]) == {}
    assert full.info() == NOTHING
    full.put("infills", entries(3))
    assert full.get("infills", list(entries(300))) == entries(3)
    assert caught == []
    assert sound(full)


def test_a_file_that_is_deleted_between_calls(full, caught):
    for remove in (full.file.unlink, lambda: shutil.rmtree(full.file.parent)):
        remove()
        assert full.get("infills", [digest(1)]) == {}
        full.put("infills", entries(3))
        assert full.get("infills", [digest(1)])
    assert caught == []


@pytest.mark.parametrize("text", ["", "?"])
def test_an_empty_file(full, caught, text):
    full.file.write_text(text)
    assert full.get("infills", [digest(1)]) == {}
    assert full.info() == NOTHING
    full.put("infills", entries(3))
    assert full.get("infills", [digest(1)])
    assert caught == []
    assert sound(full)


def test_a_journal_of_a_killed_writer_is_rolled_back(full, caught):
    code = f"""if True:
        import os, sqlite3
        db = sqlite3.connect({str(full.file)!r}, isolation_level=None)
        db.execute("PRAGMA cache_size = 5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE entries SET value = zeroblob(5000)")
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert full.file.with_name("results.sqlite3-journal").exists()
    assert full.get("infills", list(entries(300))) == entries(300)
    assert caught == []
    assert sound(full)


# A store that cannot be used


def test_a_folder_in_place_of_the_file(store, caught):
    store.file.mkdir(parents=True)
    assert store.get("infills", [digest(1)]) == {}
    store.put("infills", entries(3))
    assert store.info() == NOTHING
    assert warned(caught, "going on without the store", str(store.file))
    with pytest.raises(OSError, match="unable to open"):
        store.clear()


def test_a_file_in_place_of_the_folder(tmp_path, caught):
    (tmp_path / "store").write_text("")
    store = ResultStore(tmp_path / "store")
    assert store.get("infills", [digest(1)]) == {}
    store.put("infills", entries(3))
    store.put("infills", entries(3))
    assert warned(caught, "going on without the store")
    assert (tmp_path / "store").read_text() == ""


@pytest.fixture
def open_folder():
    """A folder that all users reach, as they do not reach pytest's."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_read_only_folder(open_folder, caught, clock):
    store = ResultStore(open_folder)
    store.put("infills", entries(3))
    open_folder.chmod(0o555)
    store.file.chmod(0o444)
    clock[0] += 10_000
    with unprivileged():
        for _ in range(2):  # reading goes on
            assert store.get("infills", list(entries(3))) == entries(3)
            assert store.info()["infills"] == (3, 3000)
        assert caught == []
        for _ in range(2):
            store.put("infills", entries(5))
        assert warned(caught, "going on without the store")
        assert store.get("infills", list(entries(5))) == entries(3)
        with pytest.raises(OSError, match="readonly"):
            store.clear()
        ResultStore(open_folder / "new").put("infills", entries(3))
    assert len(caught) == 2
    open_folder.chmod(0o755)


def test_a_damaged_file_in_a_read_only_folder(open_folder, caught):
    store = ResultStore(open_folder)
    store.put("infills", entries(300))
    text_instead(store.file)
    open_folder.chmod(0o555)
    with unprivileged():
        for _ in range(2):
            assert store.get("infills", list(entries(300))) == {}
            store.put("infills", entries(5))
        with pytest.raises(OSError, match=r"results\.sqlite3"):
            store.clear()
    assert warned(caught, "cannot be used")
    open_folder.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="needs limits of the process")
def test_a_full_disk(full, caught):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (full.file.stat().st_size + 5000, hard))
    try:
        full.put("analyses", entries(300))
        full.put("analyses", entries(300))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert warned(caught, "going on without the store")
    assert full.get("infills", list(entries(300))) == entries(300)
    assert full.info()["analyses"] == (0, 0)
    assert sound(full)


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_store_that_stays_locked(full, caught, monkeypatch, clock, lock):
    monkeypatch.setattr(results, "TIMEOUT", 0.05)
    clock[0] += 10_000
    with database(full) as db:
        db.execute(f"BEGIN {lock}")
        found = full.get("infills", list(entries(300)))
        assert found == (entries(300) if lock == "IMMEDIATE" else {})
        full.put("infills", entries(3))
        full.put("infills", entries(3))
        assert warned(caught, "going on without the store", "locked")
        with pytest.raises(OSError, match="locked"):
            full.clear()
    assert ResultStore(full.file.parent).info()["infills"] == (300, 300_000)


def test_a_lock_is_waited_for(full, caught):
    with database(full) as db:
        db.execute("BEGIN EXCLUSIVE")
        thread = threading.Thread(target=full.put, args=("analyses", entries(3)))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        db.execute("COMMIT")
    thread.join()
    assert full.get("analyses", list(entries(3))) == entries(3)
    assert caught == []


# Many users at once

WORK = """if True:
    import random, sys, warnings
    from pathlib import Path
    warnings.simplefilter("error")
    from mars_score.store.results import KINDS, ResultStore, digest
    folder, seed, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    choose = random.Random(seed)
    value = lambda kind, number: (f"{kind} {number} ".encode() * 200)[: 500 + number]
    sys.stdin.readline()
    for _ in range(25):
        store = ResultStore(folder, limit)
        kind = choose.choice(KINDS)
        numbers = choose.sample(range(400), 30)
        found = store.get(kind, [digest(one) for one in numbers])
        assert found == {digest(one): value(kind, one) for one in numbers if digest(one) in found}
        store.put(kind, {digest(one): value(kind, one) for one in numbers if digest(one) not in found})
    print("done")
"""


def at_once(code, arguments):
    """Run ``code`` in a process for each of ``arguments``, all beginning together; their output."""
    command = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    running = [subprocess.Popen([*command, *map(str, one)], cwd=ROOT, **pipes) for one in arguments]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0] for process in running]


@pytest.mark.parametrize("limit", [10**9, 100_000])
def test_processes(store, limit):
    found = at_once(WORK, [(store.file.parent, seed, limit) for seed in range(5)])
    assert found == ["done\n"] * 5
    assert sound(store)
    assert store.file.stat().st_size <= limit
    assert sum(number for number, _ in store.info().values()) > (100 if limit > 10**8 else 20)


def test_threads(store, caught):
    def work(number):
        values = entries(20, start=10 * number)
        for _ in range(10):
            store.put("infills", values)
            if store.get("infills", list(values)) != values:
                wrong.append(number)

    wrong = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == caught == []
    assert store.get("infills", list(entries(50))) == entries(50)
    assert sound(store)


def _use_in_child(store, start):
    store.put("infills", entries(20, start=start))
    assert store.get("infills", list(entries(20))) == entries(20)


@pytest.mark.parametrize(
    "method", [one for one in ("fork", "spawn") if one in multiprocessing.get_all_start_methods()]
)
def test_children(store, method):
    store.put("infills", entries(20))
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside pytest-xdist's threads
        children = [context.Process(target=_use_in_child, args=(store, 20 * number)) for number in (1, 2)]
        for child in children:
            child.start()
    _use_in_child(store, 60)
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0]
    assert store.get("infills", list(entries(100))) == entries(80)
    assert sound(store)
