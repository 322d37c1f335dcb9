"""Chunks on Ray: the same results as in this process, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from mars_score.errors import ModelUnavailableError
from mars_score.masking.idf import Idf
from mars_score.runs.worker import AUGMENT, Chunk, Plan, Worker
from mars_score.settings import resolve_settings
from mars_score.similarity.features import EMBED, LIKELIHOOD, MATCH, decode

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")

from mars_score.runs import ray as on_ray  # noqa: E402
from mars_score.runs.ray import AHEAD, TRIES, RayEngine, _follow, _pool  # noqa: E402

ROOT = Path(__file__).parent.parent
SENTENCES = [
    "The old harbour town wakes early in the summer.",
    "She waited for an hour to get her car fixed.",
    "The children walk to school along the river.",
    "He forgot his ticket at home.",
    "The mayor didn't change her mind.",
    "The road is busy and the shops are full.",
    "They stop on the bridge to look at the boats.",
    "Nobody is surprised.",
]


class In:
    """Becomes what an expression gives, in the process that unpickles it."""

    def __init__(self, expression):
        self.expression = expression

    def __reduce__(self):
        return eval, (self.expression,)


def slowly(stage, seconds):
    return In(f"__import__('time').sleep({seconds}) or {stage!r}")


def nothing(count, seconds=0.0):
    """Chunks without items, which need no models."""
    return [Chunk(slowly(AUGMENT, seconds), number, ()) for number in range(count)]


# Without Ray


def test_a_missing_ray_is_named():
    code = "import sys; sys.modules['ray'] = None; import mars_score.runs.ray"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.strip().endswith(
        "ImportError: Ray Data is not installed; run: pip install 'mars-score[ray]'"
    )


def test_ray_is_imported_for_its_engine_only():
    code = "import sys, mars_score.runs.worker; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("nodes", "plan", "workers", "expected"),
    [
        ([{"CPU": 8}, {"CPU": 3}], {}, None, (11, 1, 0)),
        ([{"CPU": 8}, {"CPU": 3}], {"threads": 2}, None, (5, 2, 0)),
        ([{"CPU": 2}, {}], {"threads": 4}, None, (1, 2, 0)),
        ([{"CPU": 8}], {}, 3, (3, 1, 0)),
        ([{"CPU": 8, "GPU": 2}, {"CPU": 8, "GPU": 1}], {}, None, (3, 1, 1)),
        ([{"CPU": 8, "GPU": 2}], {}, 1, (1, 1, 1)),
        ([{"CPU": 8, "GPU": 2}], {}, 14, (14, 1, 0.1428)),
        ([{"CPU": 8, "GPU": 2}], {"device": "cpu", "threads": 4}, None, (2, 4, 0)),
    ],
)
def test_the_pool_fits_the_cluster(monkeypatch, nodes, plan, workers, expected):
    alive = [{"Alive": True, "Resources": one} for one in nodes]
    monkeypatch.setattr(ray, "nodes", lambda: [*alive, {"Alive": False, "Resources": {"GPU": 9, "CPU": 9}}])
    pool = _pool(Plan(resolve_settings("mini"), Idf(1, {}), **plan), workers)
    assert (pool.workers, pool.cpus, pool.gpus) == expected


def test_a_client_address_is_refused(tmp_path):
    with pytest.raises(ValueError, match="ray://head:10001 is for Ray Client"):
        RayEngine(Plan(resolve_settings("mini"), Idf(1, {})), 1, "ray://head:10001", tmp_path)


def test_a_file_is_followed_as_it_grows(tmp_path):
    with (tmp_path / "chunks").open("wb") as file:
        feed = on_ray._Feed(file)
        rows = _follow(tmp_path / "chunks")
        for number, chunk in enumerate([Chunk(EMBED, 5, ("a \ud83d", "b")), Chunk(AUGMENT, 0, (("c", "d"),))]):
            assert feed.add(chunk) == number
            (row,) = next(rows).to_pylist()
            assert row["place"] == number
            assert on_ray.pickle.loads(row["record"]) == chunk
        feed.end()
        assert list(rows) == []


def test_a_reader_does_not_outlive_its_file(tmp_path):
    (tmp_path / "chunks").touch()
    with (tmp_path / "chunks").open("rb") as file:
        (tmp_path / "chunks").unlink()
        with pytest.raises(FileNotFoundError, match="its map has ended"):
            on_ray._await(tmp_path / "chunks", file, 1)


class Stubborn(Exception):
    """Cannot be unpickled."""

    def __init__(self, one, other):
        super().__init__(f"{one} {other}")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ModelUnavailableError("no model"), ModelUnavailableError, "no model"),
        (Stubborn(1, 2), RuntimeError, "Stubborn: 1 2"),
        (ValueError(lambda: 1), RuntimeError, "ValueError: <function"),
    ],
)
def test_exceptions_are_sent(error, kind, message):
    with pytest.raises(kind, match=message) as caught:
        on_ray._opened(on_ray._packed(error))
    assert type(caught.value) is kind
    assert "In a worker:" in caught.value.__notes__[0]


# With Ray


@pytest.fixture(scope="module")
def cluster():
    """A Ray of the tests, which engines must leave running."""
    with tempfile.TemporaryDirectory(prefix="mars-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        ray.init(
            "local",
            num_cpus=2,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            _temp_dir=folder,
        )
        yield
        assert ray.is_initialized()
        ray.shutdown()


@pytest.fixture(scope="module")
def plan(tmp_path_factory, encoder):
    folder = tmp_path_factory.mktemp("models")
    for part in tiny_models.tiny_gpt2(seed=1, initializer_range=0.1):  # does better than a guess with some texts
        part.save_pretrained(folder / "language_model")
    encoder.save(str(folder / "encoder"))
    settings = resolve_settings(
        "mini",
        language_model=str(folder / "language_model"),
        encoder=str(folder / "encoder"),
        dtype="float64",
    )
    words = {text: text.lower().rstrip(".").split() for text in SENTENCES}
    return Plan(settings, Idf.count(words), threads=1, device="cpu")


@pytest.fixture
def engine(cluster, plan, tmp_path):
    engine = RayEngine(plan, 2, None, tmp_path)
    yield engine
    engine.close()
    assert list(tmp_path.iterdir()) == []
    wait_for(lambda: not processes("MapWorker") and not processes("ReadChunks"))


def processes(name):
    """Of our own Ray: the children of our child, the raylet, as far as they run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_text()
            if title.startswith("ray::") and name in title and parent(parent(folder.name)) == os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def parent(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def wait_for(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture(scope="module")
def chunks():
    pairs = [(context, reference) for context in SENTENCES[:3] for reference in SENTENCES[3:]]
    augment = [Chunk(AUGMENT, place, tuple(pairs[3 * place : 3 * place + 3])) for place in range(5)]
    read = [
        Chunk(EMBED, 0, tuple(SENTENCES)),
        Chunk(EMBED, 1, ("", "a caf\u00e9")),
        Chunk(MATCH, 0, tuple(SENTENCES)),
        Chunk(LIKELIHOOD, 0, tuple(pairs)),
    ]
    return [*augment, *read]


@pytest.fixture(scope="module")
def expected(plan, chunks):
    worker = Worker(plan)
    return {(chunk.stage, chunk.number): worker.work(chunk) for chunk in chunks}


def numbers_of(stage, kept):
    """What was read of an item."""
    read = decode(stage, kept)
    if stage == LIKELIHOOD:
        return [read.given_context, read.alone, read.cut]
    return np.concatenate([read.vector, *(read.tokens if stage == MATCH else ())])


def check(found, expected):
    assert sorted(key for key, _ in found) == sorted(expected)
    for (stage, number), results in found:
        wanted = expected[stage, number]
        if stage == AUGMENT:
            assert results == wanted
            continue
        for one, other in zip(results, wanted, strict=True):
            assert np.allclose(numbers_of(stage, one), numbers_of(stage, other), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_results_are_those_of_a_worker_here(engine, chunks, expected):
    found = [((chunk.stage, chunk.number), results) for chunk, results in engine.map(iter(chunks))]
    check(found, expected)
    assert list(engine.map([])) == []


@pytest.mark.slow
def test_results_stream(engine):
    taken = []

    def many():
        for chunk in nothing(40, 0.1):
            taken.append(chunk.number)
            yield chunk

    done = []
    for chunk, results in engine.map(many()):
        assert results == []
        done.append(chunk.number)
        assert len(taken) - len(done) <= AHEAD * 2
    assert sorted(done) == taken == list(range(40))


@pytest.mark.slow
def test_workers_may_be_killed(engine, chunks, expected):
    slow = [Chunk(slowly(chunk.stage, 0.5), place, chunk.items) for place, chunk in enumerate(chunks)]
    found = []
    for chunk, results in engine.map(slow):
        found.append(((chunks[chunk.number].stage, chunks[chunk.number].number), results))
        if len(found) in (1, 3):
            os.kill(processes("MapWorker")[0], signal.SIGKILL)
        if len(found) == 2:
            for reader in processes("ReadChunks"):
                os.kill(reader, signal.SIGKILL)
    check(found, expected)


@pytest.mark.slow
def test_a_deadly_chunk_is_given_up(engine, tmp_path_factory):
    tries = tmp_path_factory.mktemp("tries") / "tries"
    deadly = Chunk(In(f"open({str(tries)!r}, 'a').write('x') and __import__('os')._exit(1)"), 2, ())
    with pytest.raises(RuntimeError, match="6 workers in turn were lost over one chunk"):
        list(engine.map([*nothing(2), deadly]))
    assert len(tries.read_text()) == TRIES == 6


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_named(cluster, tmp_path):
    engine = RayEngine(Plan(In("1 / 0"), Idf(1, {})), 1, None, tmp_path)
    with pytest.raises(RuntimeError, match=r"Ray failed: (?s:.)*ZeroDivisionError"):
        list(engine.map(nothing(2)))
    wait_for(lambda: not processes("MapWorker"))


@pytest.mark.slow
def test_an_error_arrives_as_it_was(engine):
    wrong = Chunk(AUGMENT, 2, (("a", "b", "c"),))
    start = time.monotonic()
    with pytest.raises(ValueError, match="too many values to unpack") as caught:
        list(engine.map([*nothing(2), wrong, *nothing(4, 60.0)]))
    assert type(caught.value) is ValueError
    assert time.monotonic() - start < 30  # not after the others


@pytest.mark.slow
def test_a_missing_model_is_named(cluster, tmp_path):
    settings = resolve_settings("mini", encoder=str(tmp_path / "none"))
    engine = RayEngine(Plan(settings, Idf(1, {}), threads=1), 1, None, tmp_path)
    with pytest.raises(ModelUnavailableError, match="none"):
        list(engine.map([Chunk(EMBED, 0, ("a",))]))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["generator", "engine", "interrupt"])
def test_closing_early(engine, how):
    results = engine.map(nothing(1) + nothing(9, 60.0))
    next(results)
    assert processes("MapWorker")
    start = time.monotonic()
    if how == "interrupt":
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            next(results)
    else:
        (results if how == "generator" else engine).close()
    wait_for(lambda: not processes("MapWorker"))
    assert time.monotonic() - start < 15
    with pytest.raises(StopIteration):
        next(results)


OWN = """
import sys
from pathlib import Path
from mars_score.masking.idf import Idf
from mars_score.runs.ray import RayEngine, ray
from mars_score.runs.worker import Chunk, Plan
from mars_score.settings import resolve_settings

engine = RayEngine(Plan(resolve_settings("mini"), Idf(1, {})), 1, None, Path(sys.argv[1]))
print(sorted(chunk.number for chunk, _ in engine.map(Chunk("augment", number, ()) for number in range(9))))
engine.close()
print(ray.is_initialized())
"""


@pytest.mark.slow
def test_a_ray_of_its_own_leaves_nothing(tmp_path):
    with tempfile.TemporaryDirectory(prefix="mars-", dir="/tmp") as folder:
        environment = {**os.environ, "TMPDIR": folder}
        environment.pop("RAY_ADDRESS", None)
        done = subprocess.run(
            [sys.executable, "-c", OWN, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, env=environment
        )
        assert done.stdout == "[0, 1, 2, 3, 4, 5, 6, 7, 8]\nFalse\n", done.stderr
        assert os.listdir(folder) == []
    assert list(tmp_path.iterdir()) == []
