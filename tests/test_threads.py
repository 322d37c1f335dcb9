"""What MARS sets so that threads that wait do not slow down other processes."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext

import pytest
import threadpoolctl

from mars_score import MarsScorer
from mars_score.models.running import set_passive_omp_wait
from mars_score.variants import plus_variant
from mars_score.workers import _begin


def blas_threads():
    """Of each BLAS that numpy and scipy have loaded."""
    return [info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]


@pytest.mark.parametrize("fault", [None, RuntimeError("for the test")])
def test_rows_are_compared_in_one_thread(fault, monkeypatch, encoder):
    counts = []

    def token_recall(candidate, reference):
        counts.extend(blas_threads())
        if fault:
            raise fault
        return 1.0

    monkeypatch.setattr(plus_variant, "token_recall", token_recall)
    scorer = MarsScorer("mini", store=False, encoder=encoder, variant="fast")
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        with pytest.raises(RuntimeError, match="for the test") if fault else nullcontext():
            scorer.score(["A dog ran."], ["A cat slept."], ["It was late."])
        assert set(counts) == {1}
        assert set(blas_threads()) == {2}


def test_threads_of_workers_wait_asleep_unless_asked_not_to(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (str, 0, 1)) as pool:
        assert pool.submit(os.getenv, "OMP_WAIT_POLICY").result() == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in os.environ  # of this process nothing was changed
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    set_passive_omp_wait()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
