"""The checks of input: what is taken, what is refused, and what the refusal says."""

import collections

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mars_score.data.validation import check_candidates, check_contexts, check_lengths, check_references

TEXTS = ["one", "two", ""]
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "numpy strings": np.array,
    "pandas series": pd.Series,
    "pandas series, other index": lambda texts: pd.Series(texts, index=range(5, 5 + len(texts))),
    "pyarrow array": pa.array,
    "pyarrow chunks": lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
    "dataset column": lambda texts: datasets.Dataset.from_dict({"text": texts})["text"],
    "deque": collections.deque,
    "user list": collections.UserList,
    "generator": lambda texts: (text for text in texts),
    "values of a dict": lambda texts: dict(enumerate(texts)).values(),
}


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_all_kinds(make):
    for checked in (check_candidates(make(TEXTS)), check_contexts(make(TEXTS), 3, use_context=True)):
        assert checked == TEXTS
        assert [type(text) for text in checked] == [str] * 3
    assert check_references(make(["one", "two"])) == [("one",), ("two",)]


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_several_references_of_all_kinds(make):
    def rows():
        return [make(["one", "two"]), "three", make(["four"])]

    assert check_references(rows()) == [("one", "two"), ("three",), ("four",)]
    assert check_contexts(rows(), 3, use_context=True) == ["one\ntwo", "three", "four"]


def test_rows_that_are_lists_in_arrow_and_numpy():
    rows = [["one", "two"], ["three"]]
    expected = [("one", "two"), ("three",)]
    assert check_references(pa.array(rows)) == expected
    assert check_references(datasets.Dataset.from_dict({"r": rows})["r"]) == expected
    assert check_references(pd.Series(rows)) == expected
    assert check_references(np.array([["one", "two"], ["three", "four"]])) == [("one", "two"), ("three", "four")]


REMEDIES = [
    *[(value, "for a single row pass a list of one") for value in ("text", np.str_("text"))],
    *[(value, "a set has no order: pass a list") for value in ({"a", "b"}, frozenset("a"), {"a": 1}.keys())],
    *[
        (value, r'pass one of its columns, such as data\["predictions"\]')
        for value in (
            {"a": ["b"]},
            pd.DataFrame({"a": ["x"]}),
            pa.table({"a": ["x"]}),
            datasets.Dataset.from_dict({"a": ["x"]}),
        )
    ],
    *[(value, "pass a list") for value in (b"bytes", 5, object(), np.array("text"))],
]


@pytest.mark.parametrize(("value", "remedy"), REMEDIES, ids=lambda value: type(value).__name__)
def test_what_is_not_a_list_is_refused(value, remedy):
    for name, check in (
        ("predictions", check_candidates),
        ("references", check_references),
        ("contexts", lambda given: check_contexts(given, 1, use_context=False)),
    ):
        expected = remedy.replace("predictions", name)
        with pytest.raises(TypeError, match=f"{name} must be a list with one entry per row, got .*; {expected}"):
            check(value)


@pytest.mark.parametrize("check", [check_candidates, check_references])
def test_none_for_a_column(check):
    with pytest.raises(TypeError, match=r"(predictions|references) are missing: pass a list"):
        check(None)


@pytest.mark.parametrize("value", [None, 5, 0.5, float("nan"), b"bytes", {"a": "b"}, pd.NA, True])
def test_rows_that_are_not_text(value):
    with pytest.raises(
        TypeError, match=rf"predictions\[1\] must be a string, got {type(value).__name__} .*leave the"
    ):
        check_candidates(["text", value])
    for row in (value, ["text", value]):
        with pytest.raises(TypeError, match=rf"references\[1\] must be a string, got {type(value).__name__}"):
            check_references(["text", row])
        with pytest.raises(TypeError, match=rf"contexts\[1\] must be a string, got {type(value).__name__}"):
            check_contexts(["text", row], 2, use_context=True)


def test_a_candidate_cannot_be_a_list():
    with pytest.raises(TypeError, match=r"predictions\[0\] must be a string, got list"):
        check_candidates([["text"]])


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000\u00a0", "\u200b", "\ufeff \u2060"])
def test_blank_references(blank):
    for row in (blank, ["text", blank]):
        with pytest.raises(ValueError, match=r"references\[1\] holds a blank reference; fill it or leave it out"):
            check_references(["text", row])


def test_zero_width_candidates_are_blank():
    assert check_candidates(["\u200b\u200d", "a\u200b", " \ufeff"]) == ["", "a\u200b", ""]


def test_a_row_without_references():
    for row in ([], (), np.array([])):
        with pytest.raises(ValueError, match=r"references\[1\] is an empty list; give at least one"):
            check_references(["text", row])


def test_contexts_may_be_omitted_only_without_use():
    with pytest.raises(ValueError, match=r"contexts are missing.*use_context=False"):
        check_contexts(None, 2, use_context=True)
    assert check_contexts(None, 2, use_context=False) == ["", ""]
    assert check_contexts(["a", "b"], 2, use_context=False) == ["", ""]
    assert check_contexts([[], "b"], 2, use_context=True) == ["", "b"]


def test_lengths():
    check_lengths(predictions=["a"], references=["b"])
    with pytest.raises(ValueError, match=r"predictions has 1, references has 2, contexts has 1; add or remove"):
        check_lengths(predictions=["a"], references=["b", "c"], contexts=["d"])


def test_no_rows():
    assert check_candidates([]) == check_references([]) == check_contexts([], 0, use_context=True) == []


def test_halves_of_characters_are_replaced():
    assert check_candidates(["a\ud83d", "\ud83d\ude00"]) == ["a\ufffd", "\U0001f600"]
    assert check_references(["a\udc00b"]) == [("a\ufffdb",)]


def test_where_names_the_row():
    with pytest.raises(TypeError, match=r"^rows.jsonl:8 must be a string"):
        check_candidates(["text", None], where=lambda row: f"rows.jsonl:{row + 7}")
