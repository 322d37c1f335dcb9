"""Chunks on Ray: the same results as in this process, whatever happens to the workers."""

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

from mars_score.augment.masking.idf import Idf
from mars_score.augment.sampling.gates import fault_of
from mars_score.augment.sampling.samples import Request
from mars_score.errors import ModelUnavailableError
from mars_score.runs.encoding import decode_evidence, split
from mars_score.runs.worker import AUGMENT, FEATURES, SAMPLE, SCORE, Chunk, Plan, Worker
from mars_score.scoring.evidence import EMBED, LIKELIHOOD, MATCH
from mars_score.scoring.rows import decode
from mars_score.settings import resolve_settings

ray = pytest.importorskip("ray")

from mars_score.runs.ray import IN_FLIGHT, TRIES, RayExecutor, _outcome, _pool, _portable  # noqa: E402

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
    """Becomes the value of an expression in the process that unpickles it."""

    def __init__(self, expression):
        self.expression = expression

    def __reduce__(self):
        return eval, (self.expression,)


def slowly(stage, seconds):
    return In(f"__import__('time').sleep({seconds}) or {stage!r}")


def empty_chunks(count, seconds=0.0):
    """Chunks without items, which need no models."""
    return [Chunk(slowly(AUGMENT, seconds), number, ()) for number in range(count)]


# Without Ray


def test_a_missing_ray_is_named():
    code = "import sys; sys.modules['ray'] = None; import mars_score.runs.ray"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.strip().endswith("ImportError: Ray is not installed; run: pip install 'mars-score[ray]'")


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
    pool = _pool(Plan(resolve_settings("mini", variant="plus"), Idf(1, {}), **plan), workers)
    assert (pool.workers, pool.cpus, pool.gpus) == expected


def test_a_client_address_is_refused():
    with pytest.raises(ValueError, match="ray://head:10001 is for Ray Client"):
        RayExecutor(Plan(resolve_settings("mini", variant="plus"), Idf(1, {})), 1, "ray://head:10001")


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
def test_exceptions_arrive(monkeypatch, error, kind, message):
    monkeypatch.setattr(ray, "get", lambda found: found)
    with pytest.raises(kind, match=message) as caught:
        _outcome(_portable(error))
    assert type(caught.value) is kind
    assert "In a worker:" in caught.value.__notes__[0]


# With Ray


@pytest.fixture(scope="module")
def cluster():
    """A Ray of the tests, which executors must leave running."""
    with tempfile.TemporaryDirectory(prefix="mars-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        ray.init(
            "local",
            num_cpus=2,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            _system_config={"worker_niceness": 0},  # else actors wait for all else on the machine
            _temp_dir=folder,
        )
        yield
        assert ray.is_initialized()
        ray.shutdown()


@pytest.fixture(scope="module")
def plan(tmp_path_factory, named_models):
    folder = tmp_path_factory.mktemp("models")
    for part in tiny_models.tiny_gpt2(seed=1, initializer_range=0.1):  # does better than a guess with some texts
        part.save_pretrained(folder)
    models = {**named_models, "language_model": str(folder)}
    settings = resolve_settings("mini", variant="plus", max_mask_ratio=0.6, **models)
    words = {text: text.lower().rstrip(".").split() for text in SENTENCES}
    return Plan(settings, Idf.count(words), threads=1, device="cpu")


@pytest.fixture
def executor(cluster, plan):
    executor = RayExecutor(plan, 2, None)
    yield executor
    executor.close()
    wait_for(lambda: not actors())


def actors():
    """Process numbers of the actors of our own Ray: the children of our child, the raylet."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_text()
            if title.startswith("ray::_Actor") and parent(parent(folder.name)) == os.getpid():
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
    features = [(kind, text) for kind in (EMBED, MATCH) for text in SENTENCES]
    features += [(LIKELIHOOD, pair) for pair in pairs]
    return [
        *augment,
        Chunk(FEATURES, 0, tuple(features)),
        Chunk(FEATURES, 1, ((EMBED, ""), (MATCH, "a café"))),
        Chunk(SAMPLE, 0, tuple(Request(context, 16, "story") for context in SENTENCES[:3])),
    ]


@pytest.fixture(scope="module")
def expected(plan, chunks):
    """The results of a worker here, and a chunk of rows."""
    worker = Worker(plan)
    with pytest.MonkeyPatch.context() as patch:  # the other workers are in processes of their own
        patch.setattr("mars_score.augment.sampling.samples.fault_of", fault_of)
        results = {(chunk.stage, chunk.number): worker.work(chunk) for chunk in chunks}
    references = [one for number in range(5) for one in results[AUGMENT, number]]
    samples = chunks[-1].items[0], results[SAMPLE, 0][0]
    rows = tuple((text, SENTENCES[0], (one,), *samples) for text, one in zip(SENTENCES, references, strict=False))
    known = dict(list(zip(chunks[5].items, results[FEATURES, 0], strict=True))[:9])
    score = Chunk(SCORE, 0, rows, known)
    results[SCORE, 0] = worker.work(score)
    return results, [*chunks, score]


def numbers_of(chunk, results):
    """What the results come to."""
    if chunk.stage == SCORE:
        rows = [decode(row).score for row in split(results[0])]
        return [[*(row.score for row in rows), *(term.value for row in rows for term in row.terms)]]
    found = []
    for (kind, _), encoded in zip(chunk.items, results, strict=True):
        read = decode_evidence(kind, encoded)
        if kind == LIKELIHOOD:
            found.append([read.given_context, read.alone, read.cut])
        else:
            found.append(np.concatenate([read.vector, *(read.tokens if kind == MATCH else ())]))
    return found


def check(found, expected):
    results, chunks = expected
    assert sorted((chunk.stage, chunk.number) for chunk, _ in found) == sorted(results)
    assert len(found) == len(chunks)
    for chunk, one in found:
        wanted = results[chunk.stage, chunk.number]
        if chunk.stage in (AUGMENT, SAMPLE):
            assert one == wanted
            continue
        for numbers, others in zip(numbers_of(chunk, one), numbers_of(chunk, wanted), strict=True):
            assert np.allclose(numbers, others, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_results_are_those_of_a_worker_here(executor, expected):
    check(list(executor.map(iter(expected[1]))), expected)
    assert list(executor.map([])) == []


@pytest.mark.slow
def test_results_stream(executor):
    taken = []

    def many():
        for chunk in empty_chunks(40, 0.1):
            taken.append(chunk.number)
            yield chunk

    done = []
    for chunk, results in executor.map(many()):
        assert results == []
        done.append(chunk.number)
        assert len(taken) - len(done) <= IN_FLIGHT * 2
    assert sorted(done) == taken == list(range(40))


@pytest.mark.slow
def test_workers_may_be_killed(executor, expected):
    chunks = expected[1]
    slow = [Chunk(slowly(one.stage, 0.5), place, one.items, one.known) for place, one in enumerate(chunks)]
    found = []
    for chunk, results in executor.map(slow):
        found.append((chunks[chunk.number], results))
        if len(found) in (1, 3):
            os.kill(actors()[0], signal.SIGKILL)
    check(found, expected)


@pytest.mark.slow
def test_a_deadly_chunk_is_given_up(executor, tmp_path):
    tries = tmp_path / "tries"
    deadly = Chunk(In(f"open({str(tries)!r}, 'a').write('x') and __import__('os')._exit(1)"), 2, ())
    with pytest.raises(RuntimeError, match="6 workers in turn were lost over one chunk"):
        list(executor.map([*empty_chunks(2), deadly]))
    assert len(tries.read_text()) == TRIES == 6


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_named(cluster):
    executor = RayExecutor(Plan(In("1 / 0"), Idf(1, {})), 1, None)
    with pytest.raises(RuntimeError, match=r"Ray failed: (?s:.)*ZeroDivisionError"):
        list(executor.map(empty_chunks(2)))
    wait_for(lambda: not actors())


@pytest.mark.slow
def test_an_error_arrives_as_it_was(executor):
    wrong = Chunk(AUGMENT, 2, (("a", "b", "c"),))
    start = time.monotonic()
    with pytest.raises(ValueError, match="too many values to unpack") as caught:
        list(executor.map([*empty_chunks(2), wrong, *empty_chunks(4, 60.0)]))
    assert type(caught.value) is ValueError
    assert time.monotonic() - start < 45  # not after the others


@pytest.mark.slow
@pytest.mark.parametrize("how", ["generator", "executor", "interrupt"])
def test_closing_early(executor, how):
    results = executor.map(empty_chunks(1) + empty_chunks(9, 60.0))
    next(results)
    assert actors()
    start = time.monotonic()
    if how == "interrupt":
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            next(results)
    else:
        (results if how == "generator" else executor).close()
    wait_for(lambda: not actors())
    assert time.monotonic() - start < 20
    with pytest.raises(StopIteration):
        next(results)


OWN = """
from mars_score.augment.masking.idf import Idf
from mars_score.runs.ray import RayExecutor, ray
from mars_score.runs.worker import Chunk, Plan
from mars_score.settings import resolve_settings

executor = RayExecutor(Plan(resolve_settings("mini", variant="plus"), Idf(1, {})), 1, None)
print(sorted(chunk.number for chunk, _ in executor.map(Chunk("augment", number, ()) for number in range(9))))
executor.close()
print(ray.is_initialized())
"""


@pytest.mark.slow
def test_a_ray_of_its_own_leaves_nothing():
    with tempfile.TemporaryDirectory(prefix="mars-", dir="/tmp") as folder:
        environment = {**os.environ, "TMPDIR": folder}
        environment.pop("RAY_ADDRESS", None)
        done = subprocess.run(
            [sys.executable, "-c", OWN], capture_output=True, text=True, cwd=ROOT, env=environment
        )
        assert done.stdout == "[0, 1, 2, 3, 4, 5, 6, 7, 8]\nFalse\n", done.stderr
        assert os.listdir(folder) == []
