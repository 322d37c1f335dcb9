"""What threads share is used by one at a time, and a forked process is not stopped by the locks of its parent."""

import multiprocessing
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mars_score import language
from mars_score.cache import LruCache
from mars_score.integrations import evaluate_rows
from mars_score.locks import ForkSafeLock
from mars_score.models import loading, running
from mars_score.models.encoder import SentenceEncoder
from mars_score.rows import Row
from mars_score.sentences import sentences
from mars_score.workers import in_processes
from tests.processes import count_rows

LOCKS = {
    "model": lambda: running.exclusive(MODEL),
    "models in use": lambda: running._locks_lock,
    "BLAS": running.one_blas_thread,
    "loading": lambda: loading.loading_lock,
    "tagger": lambda: language._spacy_lock,
    "memory": lambda: MEMORY._lock,
    "metric": lambda: METRIC._turn,
}
MODEL, MEMORY = object.__new__(type("Model", (), {})), LruCache(1)
METRIC = evaluate_rows.RowMetric.__new__(evaluate_rows.RowMetric)
METRIC.__setstate__({})


def enter(make):
    with make():
        pass


forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="forks")


def exit_code_of_fork(work, *arguments):
    """The status of a forked process that does some work, for which it has a minute."""
    child = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    child.start()
    child.join(60)
    code = child.exitcode
    child.kill()
    return code


@forks
@pytest.mark.parametrize("make", LOCKS.values(), ids=LOCKS)
def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(make):
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with make():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert entered.wait(60)
        code = exit_code_of_fork(enter, make)
        leave.set()
        held.result()
    assert code == 0


@forks
def test_a_process_that_is_forked_within_a_lock_can_leave_it():
    lock = ForkSafeLock()

    def work():
        lock.__exit__()
        enter(lambda: lock)

    with lock:
        assert exit_code_of_fork(work) == 0


def test_a_lock_is_of_one_thread_and_re_entrant():
    lock, inside = ForkSafeLock(), []
    with ThreadPoolExecutor(1) as pool:
        with lock, lock:
            waiting = pool.submit(lambda: (enter(lambda: lock), inside.append("other")))
            inside.append("first")
        waiting.result()
    assert inside == ["first", "other"]


def in_threads(work, count=8):
    """Calls ``work`` with the number of each of some threads, which begin together and take turns often."""
    barrier, interval = threading.Barrier(count), sys.getswitchinterval()

    def run(number):
        barrier.wait()
        return work(number)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(run, range(count)))
    finally:
        sys.setswitchinterval(interval)


def test_the_memory_of_a_scorer_counts_its_bytes_in_threads():
    memory = LruCache(1000)

    def work(number):
        for step in range(1000):
            memory.put((number * step) % 7, step, 100 + step % 3)
            memory.get(step % 7)

    in_threads(work)
    assert memory._bytes == sum(size for _, size in memory._entries.values())


def test_a_tokenizer_is_used_by_the_thread_that_has_its_model(encoder):
    """Calls with other options turn its padding off, with which a batch of another thread makes no tensor."""
    model, used = SentenceEncoder(encoder), []
    tokenizer = model._tokenizer

    class Watched:
        is_fast = True

        def __call__(self, *arguments, **options):
            used.append(bool(running._locks[encoder]._held))
            return tokenizer(*arguments, **options)

    texts = ["A dog ran.", "A cat slept on the sofa while it rained and rained."]
    expected = model.offsets(texts)
    model._tokenizer = Watched()
    assert model.offsets(texts) == expected
    assert used == [True]


def test_sentences_are_split_by_threads_at_once():
    """The splitter learns nothing from what it reads, so that no thread changes what another gets."""
    texts = [f"It cost 3.5 of {number}. He left at 5 p.m. and came at {number} again." for number in range(50)]
    expected = list(map(sentences, texts))
    assert {len(of_text) for of_text in expected} == {2}
    assert in_threads(lambda _: list(map(sentences, texts))) == [expected] * 8


@pytest.mark.skipif("spawn" not in multiprocessing.get_all_start_methods(), reason="spawns")
def test_workers_end_no_other_process():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))

    def chunks():
        other.start()  # after the workers were made
        yield [Row("a", ("a",), "a")]

    try:
        assert list(in_processes(count_rows, chunks(), 1)) == [b"1"]
        assert other.is_alive()
        assert multiprocessing.active_children() == [other]
    finally:
        other.kill()
        other.join()
