"""Values as NumPy, pandas, polars and Arrow give them: missing ones, and those of records."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from mars_score.data.checking import (
    check_candidate_lists,
    check_contexts,
    check_references,
    check_samples,
    check_tasks,
)
from mars_score.scorer import MarsScorer
from tests import jsonl

MISSING = {
    "None": None,
    "NaN": float("nan"),
    "NaN of NumPy": np.float32("nan"),
    "NaN of Decimal": decimal.Decimal("NaN"),
    "NaN of JSON": json.loads("NaN"),
    "NaT of NumPy": np.datetime64("NaT"),
    "NaT of pandas": pd.NaT,
    "NA": pd.NA,
    "null": pa.scalar(None),
    "null of strings": pa.scalar(None, pa.string()),
}
missing_values = pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)


@missing_values
def test_a_missing_value_of_a_record_is_left_out(missing):
    record = {"name": "Bob", "city": missing, "home": {"street": missing, "number": 3}, "days": ["Mon", missing]}
    [context] = check_contexts([record])
    assert context.text == 'name: Bob, home: {"number": 3}, days: ["Mon", null]'
    with pytest.raises(ValueError, match=r"contexts\[0\] is an empty record"):
        check_contexts([{"name": missing}])


@missing_values
def test_a_missing_value_of_an_optional_column_is_none(missing):
    assert check_samples([missing, "a", [missing] * 0]) == [(), ("a",), ()]
    assert check_tasks([missing, "data"], 2) == ["", "data"]


@missing_values
@pytest.mark.filterwarnings("ignore:.*hold lists")
def test_a_missing_cell_of_a_table_leaves_the_lists_beside_it_lists(missing):
    table = {
        "prediction": ["a", "b"],
        "reference": ["c", "d"],
        "context": ["e", "f"],
        "others": ['["g", "h"]', missing],
    }
    scorer = MarsScorer("mini", variant="plus")
    scorer.score_rows = lambda rows, numbers, *, explain: [row.samples for row in rows]
    assert scorer.score_table(table, columns={"samples": "others"}) == [("g", "h"), ()]


@missing_values
def test_a_missing_text_is_refused_with_its_row(missing):
    for check, name in ((check_references, "references"), (check_contexts, "contexts")):
        with pytest.raises(TypeError, match=rf"{name}\[1\] must be a string"):
            check(["a", missing])
    with pytest.raises(TypeError, match=r"predictions\[1\] must be a string"):
        check_candidate_lists(["a", ["b", missing]])


@missing_values
def test_missing_texts_within_a_list_are_left_out(missing):
    assert check_samples([["a", missing], [missing]]) == [("a",), ()]
    assert check_references([[missing, "a", missing, "b"], "c"]) == [("a", "b"), ("c",)]
    with pytest.raises(ValueError, match=r"references\[1\] is an empty list"):
        check_references(["a", [missing]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(3), "3"),
        (np.float32(1.5), "1.5"),
        (np.bool_(True), "true"),
        (np.str_("a"), "a"),
        (np.array(["Mon", "Tue"]), '["Mon", "Tue"]'),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (pd.Series([1, 2]), "[1, 2]"),
        (pl.Series(["a"]), '["a"]'),
        (pa.array(["a", None]), '["a", null]'),
        (pa.scalar(2), "2"),
        (("a", 1), '["a", 1]'),
        (decimal.Decimal("1.50"), "1.5"),
        (datetime.date(2024, 3, 1), "2024-03-01"),
        (pd.Timestamp("2024-03-01"), "2024-03-01T00:00:00"),
        (np.datetime64("2024-03-01"), "2024-03-01"),
        ({"days": np.array([1]), "from": datetime.time(9)}, '{"days": [1], "from": "09:00:00"}'),
    ],
)
def test_values_of_other_libraries_are_taken(value, text):
    assert check_contexts([{"field": value}])[0].text == f"field: {text}"


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"a": {1, 2}}, "contexts[0].a"),
        ({"days": ["Mon", b"Tue"]}, "contexts[0].days[1]"),
        ({"a": [{"b": np.array([1j])}]}, "contexts[0].a[0].b[0]"),
    ],
)
def test_another_value_is_named_by_its_path(record, path):
    with pytest.raises(TypeError) as fault:
        check_contexts([record])
    assert str(fault.value).startswith(f"{path} must be a text, a number or a date, got")


@pytest.mark.filterwarnings("ignore")
def test_a_file_of_records_scores_the_same_by_every_reader(tiny_mini, tmp_path):
    jane = {"name": "Jane", "days": ["Mon"], "price": 3}
    tom = {"name": "Tom", "days": None, "price": None}
    texts = {"prediction": "She ran.", "reference": "She went."}
    rows = [{**texts, "context": jane}, {**texts, "context": tom}]
    path = tmp_path / "rows.parquet"
    pl.DataFrame(rows).write_parquet(path)
    scorer = MarsScorer(**tiny_mini, variant="fast", store=False)
    expected = scorer.score_table(rows).scores
    for read in (pd.read_parquet, pl.read_parquet, parquet.read_table):
        assert scorer.score_table(read(path)).scores == expected
    lines = jsonl.write(tmp_path / "rows.jsonl", [rows[0], {**texts, "context": {**tom, "price": float("nan")}}])
    assert scorer.score_table(jsonl.read(lines)).scores == expected
