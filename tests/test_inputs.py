"""What people have: frames, data sets, rows as dicts, chat messages, passages, lists of candidates, streams."""

import itertools
import json

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mars_score
from mars_score import MarsScorer
from mars_score.augment.sampling.prompts import task_of
from mars_score.data.contexts import as_prose
from mars_score.data.overlap import windows
from mars_score.data.readers import stream_rows
from mars_score.data.tables import columns_of
from mars_score.data.validation import check_contexts
from mars_score.errors import BLANK, MarsWarning

ROWS = [
    {"prediction": "She took the bus.", "reference": "She went by bus.", "context": "The car broke down again."},
    {"prediction": "He was late.", "reference": ["He waited.", "He was there."], "context": "It was late."},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


@pytest.fixture
def tiny(tiny_mini):
    return MarsScorer("mini", sample_count=2, variant="plus")


# Tables

NESTED = {**COLUMNS, "reference": [["She went by bus."], COLUMNS["reference"][1]]}  # of one type
TABLES = {
    "dict of columns": lambda: COLUMNS,
    "pandas": lambda: pd.DataFrame(COLUMNS, index=[7, 3]),
    "polars": lambda: pytest.importorskip("polars").DataFrame(NESTED),
    "pyarrow": lambda: pa.table(NESTED),
    "datasets": lambda: datasets.Dataset.from_dict(NESTED),
    "list of dicts": lambda: ROWS,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_a_table_is_scored_as_its_columns(tiny, make):
    assert tiny.score(make()).scores == tiny.score(*COLUMNS.values()).scores


def test_names_of_columns():
    frame = pd.DataFrame({"answer": ["a"], "gold": ["b"], "contexts": ["c"], "id": [1]})
    names = {"prediction": "answer", "reference": "gold"}
    assert columns_of(frame, names) == (["a"], ["b"], ["c"], None)
    assert columns_of(frame, {**names, "context": None}) == (["a"], ["b"], None, None)
    assert columns_of(frame, {**names, "samples": "gold"})[3] == ["b"]
    assert columns_of(frame.drop(columns="contexts"), names, use_context=False) == (["a"], ["b"], None, None)


def test_a_table_without_references_says_so(tiny):
    frame = pd.DataFrame(COLUMNS).drop(columns="reference")
    expected = tiny.score(COLUMNS["prediction"], None, COLUMNS["context"])
    assert tiny.score(frame, columns={"reference": None}).scores == expected.scores
    with pytest.raises(ValueError, match=r"no column 'reference' .*\(None: score without references\)"):
        tiny.score(frame)  # a misspelt name must not change what is measured


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (pd.DataFrame({"text": ["a"]}), None, r"no column 'prediction' \(columns here: 'text'\); say which"),
        (pd.DataFrame({"prediction": ["a"], "predictions": ["a"]}), None, "several columns could be 'prediction'"),
        (pd.DataFrame([["a", "b"]], columns=["prediction"] * 2), None, "several columns could be 'prediction'"),
        (pd.DataFrame(COLUMNS), {"reference": "gold"}, r"no column 'gold' .* columns=\{'reference': ...\}"),
        (pd.DataFrame(COLUMNS), {"references": "gold"}, "unknown column 'references'; did you mean 'reference'"),
        ([*ROWS, {"prediction": "a", "reference": "b"}], None, "row 2 has no 'context', which the first has"),
        ([*ROWS, "text"], None, r"row 2 must be a dict like the first, got str \('text'\)"),
        (COLUMNS["prediction"], {"reference": "gold"}, "columns names the columns of a table"),
        ({**COLUMNS, "prediction": ["a", []]}, None, r"predictions\[1\] is an empty list; give at least one cand"),
        ({**COLUMNS, "prediction": [["a"]]}, None, "predictions has 1, references has 2"),
    ],
)
def test_tables_that_are_wrong(table, columns, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MarsScorer("mini", variant="plus", language_model="no/model").score(table, columns=columns)


# Results


def test_records_and_frame(tiny):
    result = tiny.score(pd.DataFrame(COLUMNS))
    for number, record in enumerate(result.to_records()):
        names = ("row", "prediction", "references", "context")
        assert [record[name] for name in names] == [number, *(NESTED[name][number] for name in COLUMNS)]
        terms = sum(record["weights"][name] * value for name, value in record["terms"].items())
        assert record["mars"] == pytest.approx(terms)
        assert len(record["samples"]) == len(result.rows[number].samples)
    frame = result.to_pandas()
    assert list(frame["mars"]) == result.scores
    assert list(frame["terms.references"]) == [row.terms[0].value for row in result.rows]
    assert {"row", "prediction", "references", "context", "weights.context"} <= set(frame.columns)


# Several candidates per row


def test_lists_of_candidates(tiny):
    more = [["She took the bus.", "The cat slept.", ""], "He was late."]
    with pytest.warns(MarsWarning, match=rf"{BLANK}: 1 of 4 rows \(0\)"):
        result = tiny.score(more, COLUMNS["reference"], COLUMNS["context"])
    rows = [(0, "She took the bus."), (0, "The cat slept."), (0, ""), (1, "He was late.")]
    assert [(record["row"], record["prediction"]) for record in result.to_records()] == rows
    alone = tiny.score(*COLUMNS.values()).scores
    assert result.scores[::3] == pytest.approx(alone, abs=1e-9)
    frame = pd.DataFrame({**COLUMNS, "prediction": pd.Series(more)})
    assert tiny.score(frame).scores == result.scores


# Contexts

TURNS = ["Be brief.", "Hello,\nyou!", "Hello.", "Where is the bus?"]
ROLES = ["system", "user", "assistant", "user"]
CHAT = [{"role": role, "content": text} for role, text in zip(ROLES, TURNS, strict=True)]


@pytest.mark.parametrize("messages", [CHAT, tuple(CHAT), np.array(CHAT, dtype=object), TURNS])
def test_chat_messages_are_a_dialogue(messages):
    lines = "Be brief.\nHello, you!\nHello.\nWhere is the bus?"
    assert check_contexts([messages, messages[1:2]], 2, use_context=True) == [lines, "Hello,\nyou!"]


PASSAGES = ["The bus leaves at nine.", "It stops at " + "the old " * 60 + "bridge.", "No bus on Sunday?"]


def test_passages_are_read_one_by_one():
    [context] = check_contexts([{"passages": PASSAGES}], 1, use_context=True)
    first, *parts, last = windows(context)
    assert (first, last) == (PASSAGES[0], PASSAGES[2])
    assert (len(parts), " ".join(parts)) == (2, PASSAGES[1])  # of more than 100 words, none of another passage
    assert as_prose(context) == "\n\n".join(PASSAGES)
    assert check_contexts([context], 1, use_context=True) == [context]  # as evaluate passes it on
    lines = ["The bus leaves at nine in the morning.", "It stops at the old bridge over the river."]
    [short] = check_contexts([{"passages": lines}], 1, use_context=True)
    assert (task_of(short, [], 16), task_of("\n".join(lines), [], 16)) == ("story", "dialogue")


def test_a_row_with_passages_is_scored(tiny):
    candidate, references = ["It leaves at nine."], ["At nine."]
    passages = [PASSAGES[0], "No bus goes on Sunday or on Monday."]
    [row] = tiny.score(candidate, references, [{"passages": passages}]).rows
    alone = [tiny.score(candidate, references, [passage]).rows[0].terms[1].value for passage in passages]
    assert (row.terms[1].name, row.terms[1].value) == ("context", pytest.approx(max(alone), abs=1e-9))
    [record] = tiny.score(candidate, references, [{"passages": PASSAGES}]).to_records()
    assert record["context"] == "\n\n".join(PASSAGES)
    assert "context" in record["terms"]  # the last passage is a question, but the context is none


# Streams

STREAM = {"preset": "mini", "variant": "plus", "sample_count": 2}


def test_a_stream_is_scored_as_it_comes(tiny):
    read = []

    def stream():
        for number in itertools.count():  # never ends
            read.append(number)
            yield ROWS[number % 2]

    records = list(itertools.islice(mars_score.score_iter(stream(), chunk_size=3, **STREAM), 5))
    assert [record["row"] for record in records] == [0, 1, 2, 3, 4]
    assert len(read) == 6
    expected = tiny.score(ROWS).scores
    assert [record["mars"] for record in records] == pytest.approx([*expected, *expected, expected[0]], abs=1e-9)


def test_masks_of_a_stream_need_a_corpus(tiny):
    options = {"preset": "mini", "variant": "fast", "max_mask_ratio": 0.6}
    with pytest.raises(ValueError, match="pass some as idf_corpus"):
        mars_score.score_iter(iter(ROWS), **options)
    options["idf_corpus"] = ["She went by bus.", "He waited.", "He was there."]
    scores = [record["mars"] for record in mars_score.score_iter(iter(ROWS), chunk_size=1, **options)]
    assert scores == pytest.approx(mars_score.score(ROWS, **options).scores, abs=1e-9)


def test_faults_in_a_stream(tiny):
    rows = mars_score.score_iter([*ROWS, {**ROWS[0], "prediction": None}], chunk_size=2, **STREAM)
    assert [next(rows)["row"], next(rows)["row"]] == [0, 1]
    with pytest.raises(TypeError, match=r"predictions\[0\] must be a string.*\(of the rows from 2 on\)"):
        next(rows)
    with pytest.raises(ValueError, match="chunk_size must be at least 1, got 0"):
        mars_score.score_iter([], chunk_size=0)


# Files


@pytest.mark.parametrize("text", [json.dumps(ROWS), "\ufeff\n" + json.dumps(ROWS, indent=1)])
def test_a_list_in_a_file(tmp_path, text):
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")
    assert list(stream_rows(path)) == ROWS


def test_a_saved_data_set(tmp_path):
    rows = TABLES["datasets"]()
    rows.save_to_disk(str(tmp_path / "rows"))
    assert list(stream_rows(tmp_path / "rows")) == list(rows)


@pytest.mark.parametrize("text", ["a,b\r\n1,x y\r\n", "a\tb\n1\tx y\n", "a;b\n1;x y\n", '{"a": "1", "b": "x y"}'])
def test_the_first_line_tells_formats_apart_where_a_name_does_not(tmp_path, text):
    path = tmp_path / "standard input"
    path.write_text("\ufeff" + text, encoding="utf-8", newline="")
    assert list(stream_rows(path)) == [{"a": "1", "b": "x y"}]
