"""Columns of all kinds, what is no column, and odd texts; rows that are refused are in tests/test_bad_rows.py."""

import collections

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mars_score.data.validation import check_candidates, check_contexts, check_references

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
    texts = ["one", "two", ""]
    for checked in (check_candidates(make(texts)), check_contexts(make(texts), 3, use_context=True)):
        assert checked == texts
        assert [type(text) for text in checked] == [str] * 3
    assert check_references(make(["one", "two"])) == [("one",), ("two",)]
    assert check_references([make(["one", "two"]), "three"]) == [("one", "two"), ("three",)]
    assert check_contexts([make(["one", "two"]), "three", []], 3, use_context=True) == ["one\ntwo", "three", ""]


@pytest.mark.parametrize(
    "make", [pa.array, lambda rows: datasets.Dataset.from_dict({"r": rows})["r"], pd.Series, np.array]
)
def test_rows_that_are_lists_in_arrow_and_numpy(make):
    assert check_references(make([["one", "two"], ["three", "four"]])) == [("one", "two"), ("three", "four")]


TABLES = [
    pd.DataFrame({"a": ["x"]}),
    pa.table({"a": ["x"]}),
    datasets.Dataset.from_dict({"a": ["x"]}),
    {"a": ["b"]},
]
REMEDIES = {
    "for a single row pass a list of one": ["text", np.str_("text")],
    "a set has no order: pass a list": [{"a", "b"}, frozenset("a"), {"a": 1}.keys()],
    r'pass one of its columns, such as data\["predictions"\]': TABLES,
    "pass a list": [b"bytes", 5, object(), np.array("text")],
}


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize("check", [check_candidates, check_references, check_contexts])
def test_what_is_not_a_list_is_refused(check, remedy):
    name = check.__name__.replace("check_candidates", "predictions").removeprefix("check_")
    for value in REMEDIES[remedy]:
        expected = f"{name} must be a list with one entry per row, got .*; {remedy.replace('predictions', name)}"
        with pytest.raises(TypeError, match=expected):
            check(value)


@pytest.mark.parametrize("value", [0.5, float("nan"), b"bytes", pd.NA, True])
def test_rows_that_are_not_text(value):
    for check, row in ((check_candidates, value), (check_references, value), (check_references, ["text", value])):
        with pytest.raises(TypeError, match=rf"\[1\] must be a string, got {type(value).__name__} .*leave the"):
            check(["text", row])


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000\u00a0", "\u200b", "\ufeff \u2060", "\u200b\u200d"])
def test_blank_texts(blank):
    assert check_candidates([blank, f"a{blank}"]) == ["", f"a{blank}"]
    with pytest.raises(ValueError, match=r"references\[1\] holds a blank reference; fill it or leave it out"):
        check_references(["text", ["text", blank]])


def test_halves_of_characters():
    assert check_candidates(["a\ud83d", "\ud83d\ude00"]) == ["a\ufffd", "\U0001f600"]
    assert check_references(["a\udc00b"]) == [("a\ufffdb",)]
