"""Rows as five libraries write them: the same rows are read back, and a missing text is refused."""

import csv
import json
import warnings

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from mars_score.data.checking import check_rows
from mars_score.data.columns import Columns
from mars_score.data.reading import read_rows
from tests import jsonl

COLUMNS = Columns("reference", "context", "prediction", "samples")


def with_cells(rows):
    """Return rows whose lists and records are written as JSON, as cells hold them."""
    return [
        {name: value if isinstance(value, str | None) else json.dumps(value) for name, value in row.items()}
        for row in rows
    ]


def write_csv(rows, path, delimiter, **options):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, **options)
        writer.writeheader()
        writer.writerows(rows)


def write_with_pyarrow(rows, path, delimiter):
    pyarrow.csv.write_csv(pa.Table.from_pylist(rows), path, pyarrow.csv.WriteOptions(delimiter=delimiter))


data_set = datasets.Dataset.from_list
CELL_WRITERS = {
    "csv": write_csv,
    "csv with all cells quoted": lambda *args: write_csv(*args, quoting=csv.QUOTE_ALL),
    "pandas": lambda rows, path, delimiter: pd.DataFrame(rows).to_csv(path, sep=delimiter, index=False),
    "polars": lambda rows, path, delimiter: pl.DataFrame(rows).write_csv(path, separator=delimiter),
    "pyarrow": write_with_pyarrow,
    "datasets": lambda rows, path, delimiter: data_set(rows).to_csv(path, sep=delimiter, index=False),
}
TYPED_WRITERS = {
    "json": (lambda rows, path: jsonl.write(path, rows), None),
    "pandas": (
        lambda rows, path: pd.DataFrame(rows).to_json(path, orient="records", lines=True),
        lambda rows, path: pd.DataFrame(rows).to_parquet(path),
    ),
    "polars": (
        lambda rows, path: pl.DataFrame(rows).write_ndjson(path),
        lambda rows, path: pl.DataFrame(rows).write_parquet(path),
    ),
    "pyarrow": (None, lambda rows, path: parquet.write_table(pa.Table.from_pylist(rows), path)),
    "datasets": (
        lambda rows, path: data_set(rows).to_json(path),
        lambda rows, path: data_set(rows).to_parquet(path),
    ),
}
WRITERS = {
    **{f"{name} to CSV": (write, ".csv") for name, write in CELL_WRITERS.items()},
    **{f"{name} to TSV": (write, ".tsv") for name, write in CELL_WRITERS.items()},
    **{f"{name} to JSON lines": (write, ".jsonl") for name, (write, _) in TYPED_WRITERS.items() if write},
    **{f"{name} to Parquet": (write, ".parquet") for name, (_, write) in TYPED_WRITERS.items() if write},
}
MISSING = {"None": None, "NaN": float("nan"), "NaN of NumPy": np.float64("nan"), "NA": pd.NA}

WORDS = [
    *("She", "went", "to", "town", '"no"', '""', '"', "it's", ",", ";", "\\", "|", "é", "你好", "\U0001f600"),
    *("#1", "=2"),
]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).flatmap(
    lambda words: st.sampled_from([" ", " ", " ", "\n", "\t", " \r\n"]).map(
        lambda gap: f"Bob {' '.join(words[:-1])}{gap}{words[-1]}"
    )
)
QUOTED = st.one_of(TEXTS, TEXTS, TEXTS.map(lambda text: f'"{text}"'))
# Fields in one order, as those of a column with types have.
RECORDS = st.builds(
    lambda name, city, price: {"name": name, "city": city, "price": price},
    TEXTS,
    st.one_of(st.none(), TEXTS),
    st.integers(0, 9),
)
LISTS = st.lists(TEXTS, min_size=1, max_size=3)


def rows_of(contexts):
    return st.lists(
        st.fixed_dictionaries(
            {"prediction": QUOTED, "reference": LISTS, "context": contexts, "samples": st.one_of(st.none(), LISTS)}
        ),
        min_size=2,
        max_size=5,
    ).filter(lambda rows: any(row["samples"] for row in rows))


def write(rows, name, folder):
    write_rows, suffix = WRITERS[name]
    path = folder / f"rows{suffix}"
    delimiters = {".csv": ",", ".tsv": "\t"}
    if suffix in delimiters:
        write_rows(with_cells(rows), path, delimiters[suffix])
    else:
        write_rows(rows, path)
    return path


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = read_rows(path)
        return COLUMNS.rows(file)


def expected_rows(rows):
    names = ("prediction", "reference", "context", "samples")
    *columns, samples = ([row[name] for row in rows] for name in names)
    return check_rows(*columns, samples=samples, use_context=True)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("contexts", [QUOTED, RECORDS, LISTS], ids=["texts", "records", "dialogues"])
@pytest.mark.parametrize("count", [3, pytest.param(300, marks=pytest.mark.slow)])
def test_what_a_library_writes_is_read_back(name, contexts, count, tmp_path):

    alone = {"deadline": None, "database": None, "phases": [Phase.generate]}

    @settings(max_examples=count, suppress_health_check=list(HealthCheck), **alone)
    @given(rows_of(contexts))
    def check(rows):
        assert read(write(rows, name, tmp_path)) == expected_rows(rows)

    check()


# JSON writes NaN, and pandas takes each of them as missing; others write None alone.
WRITTEN_MISSING = [
    (name, label)
    for name, (_, suffix) in WRITERS.items()
    for label in (
        MISSING if name.startswith("pandas") else ["None", "NaN"] if name.startswith("json") else ["None"]
    )
    if suffix in (".jsonl", ".parquet")
]
ROW = {"prediction": "She ran.", "reference": "She went.", "context": "Where did Ann go?", "samples": "Who ran?"}


@pytest.mark.parametrize(("name", "label"), WRITTEN_MISSING)
@pytest.mark.parametrize("column", ["prediction", "reference", "context"])
def test_a_missing_text_is_refused_with_its_row(name, label, column, tmp_path):
    path = write([ROW, {**ROW, column: MISSING[label]}, ROW], name, tmp_path)
    with pytest.raises((TypeError, ValueError), match=rf"rows\..*:.*2.*{column}"):
        read(path)


@pytest.mark.parametrize("name", [name for name, (_, suffix) in WRITERS.items() if suffix in (".csv", ".tsv")])
@pytest.mark.parametrize("column", ["prediction", "reference", "context"])
def test_in_cells_a_missing_text_is_a_blank_one(name, column, tmp_path):
    path = write([ROW, {**ROW, column: None}, ROW], name, tmp_path)
    if column == "reference":
        with pytest.raises(ValueError, match=r"rows\..*:3.*reference"):
            read(path)
    else:
        assert getattr(read(path)[1], {"prediction": "candidate"}.get(column, column)) == ""
