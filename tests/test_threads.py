"""What MARS sets so that threads that wait do not slow down other processes."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest
import threadpoolctl
import tiny_models

from mars_score import MarsScorer
from mars_score.runs.workers import Work, _start
from mars_score.scoring import terms


def blas_threads():
    """Of each BLAS that numpy and scipy have loaded."""
    return [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]


@pytest.mark.parametrize("fault", [None, RuntimeError("for the test")])
def test_rows_are_compared_in_one_thread(fault, monkeypatch, encoder):
    asked = []

    def token_recall(candidate, reference):
        asked.extend(blas_threads())
        if fault:
            raise fault
        return 1.0

    monkeypatch.setattr(terms, "token_recall", token_recall)
    scorer = MarsScorer(
        "mini",
        store=False,
        encoder=encoder,
        language_model=tiny_models.tiny_gpt2(),
        sample_count=0,
        variant="plus",
    )
    texts = ["A dog ran."], ["A cat slept."], ["It was late."]
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        if fault:
            with pytest.raises(RuntimeError, match="for the test"):
                scorer.score(*texts)
        else:
            scorer.score(*texts)
        assert asked
        assert set(asked) == {1}
        assert set(before) == {2}
        assert blas_threads() == before


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_workers_wait_asleep_unless_asked_not_to(given, expected, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY")
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    work = Work("score", {"preset": "mini", "variant": "fast"})
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start, (work, 0, 1)) as pool:
        assert pool.submit(os.getenv, "OMP_WAIT_POLICY").result() == expected
    assert os.environ.get("OMP_WAIT_POLICY") == given  # of this process nothing was changed
