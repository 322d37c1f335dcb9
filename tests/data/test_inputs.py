"""What people have: columns, tables, rows as dicts, chat messages, passages, lists of candidates, streams.

Rows that are refused are in tests/data/test_bad_rows.py, files in tests/cli/test_command_line.py.
"""

import collections
import gzip
import itertools
import json
import warnings

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import mars_score
from mars_score import MarsScorer
from mars_score.data.checking import check_candidates, check_contexts, check_examples, check_references
from mars_score.data.columns import Columns, RawRows
from mars_score.data.frames import get_field, value_of_cell
from mars_score.data.reading import iter_rows, read_rows
from mars_score.errors import MarsWarning, Notice
from mars_score.rows import Row
from mars_score.text import as_prose, windows

ROWS = [
    {"prediction": "She took the bus.", "reference": "She went by bus.", "context": "The car broke down again."},
    {"prediction": "He was late.", "reference": ["He waited.", "He was there."], "context": "It was late."},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


@pytest.fixture
def tiny(tiny_mini):
    return MarsScorer("mini", variant="plus")


def rows_of(table, columns=None, **settings):
    """The rows that a table is scored by."""
    scorer = MarsScorer("mini", variant="plus", **settings)
    scorer.score_rows = lambda rows, numbers, *, explain: rows
    return scorer.score_table(table, columns=columns)


def texts_of(contexts):
    """The contexts as texts."""
    return [context.text for context in check_contexts(contexts)]


# Columns

KINDS = {
    "list": list,
    "tuple": tuple,
    "numpy objects": lambda texts: np.array(texts, dtype=object),
    "numpy strings": np.array,
    "pandas series, other index": lambda texts: pd.Series(texts, index=range(5, 5 + len(texts))),
    "pyarrow array": pa.array,
    "pyarrow chunks": lambda texts: pa.chunked_array([texts[:1], texts[1:]]),
    "dataset column": lambda texts: datasets.Dataset.from_dict({"text": texts})["text"],
    "deque": collections.deque,
    "generator": lambda texts: (text for text in texts),
    "values of a dict": lambda texts: dict(enumerate(texts)).values(),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_columns_of_all_kinds(make):
    texts = ["one", "two", ""]
    for checked in (check_candidates(make(texts)), texts_of(make(texts))):
        assert checked == texts
        assert [type(text) for text in checked] == [str] * 3
    assert check_references(make(["one", "two"])) == [("one",), ("two",)]
    assert check_references([make(["one", "two"]), "three"]) == [("one", "two"), ("three",)]
    assert texts_of([make(["one", "two"]), "three", []]) == ["one\ntwo", "three", ""]


@pytest.mark.parametrize(
    "make", [pa.array, lambda rows: datasets.Dataset.from_dict({"r": rows})["r"], pd.Series, np.array]
)
def test_rows_that_are_lists_in_arrow_and_numpy(make):
    assert check_references(make([["one", "two"], ["three", "four"]])) == [("one", "two"), ("three", "four")]


REMEDIES = {
    "for a single row pass a list of one": ["text", np.str_("text")],
    r'pass a column of one of its tables, such as data\["test"\]\["predictions"\]': [
        datasets.DatasetDict(test=datasets.Dataset.from_dict({"a": ["x"]})),
        {"test": pd.DataFrame({"a": ["x"]})},
    ],
    "a set has no order: pass a list": [{"a", "b"}, frozenset("a"), {"a": 1}.keys()],
    r'pass one of its columns, such as data\["predictions"\]': [
        pd.DataFrame({"a": ["x"]}),
        pa.table({"a": ["x"]}),
        datasets.Dataset.from_dict({"a": ["x"]}),
        {"a": ["b"]},
    ],
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


@pytest.mark.parametrize("value", [0.5, b"bytes", True])
@pytest.mark.parametrize("check", [check_candidates, check_references])
def test_rows_that_are_not_text(check, value):
    with pytest.raises(TypeError, match=rf"\[1\] must be a string, got {type(value).__name__} .*leave the"):
        check(["text", value])


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000\u00a0", "\ufeff \u2060", "\u200b\u200d"])
def test_blank_texts(blank):
    assert check_candidates([blank, f"a{blank}"]) == ["", "a"]
    with pytest.raises(ValueError, match=r"references\[1\] holds a blank reference; fill it or leave it out"):
        check_references(["text", ["text", blank]])


def test_halves_of_characters():
    assert check_candidates(["a\ud83d", "\ud83d\ude00", "a\udc00b"]) == ["a\ufffd", "\U0001f600", "a\ufffdb"]


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
    assert tiny.score_table(make()).scores == tiny.score(*COLUMNS.values()).scores


def test_names_of_columns():
    frame = pd.DataFrame({"answer": ["a"], "gold": ["b"], "contexts": ["c"], "kind": ["data"]})
    names = {"prediction": "answer", "reference": "gold"}
    assert rows_of(frame, names) == [Row("a", ("b",), "c")]
    assert rows_of(frame, names, use_context=False) == [Row("a", ("b",))]
    assert rows_of(frame, {**names, "reference": None}) == [Row("a", (), "c")]
    named = rows_of(frame, {**names, "samples": "gold", "task": "kind"})
    assert named == [Row("a", ("b",), "c", samples=("b",), task="data")]
    assert rows_of(frame.drop(columns="contexts"), names, use_context=False) == [Row("a", ("b",))]
    rows = [{"prediction": "a", "reference": "b", "context": "c", "tasks": "data", "samples": "d"}]
    assert rows_of(rows, {"task": "task"}) == [Row("a", ("b",), "c", task="data")]
    with pytest.raises(ValueError, match="contexts are missing: name their column, or set use_context=False"):
        rows_of(frame, {**names, "context": None})


def test_columns_that_do_not_count_are_not_read():
    read = []

    class Table(dict):
        def __getitem__(self, title):
            read.append(title)
            return super().__getitem__(title)

    expected = rows_of(ROWS)
    assert rows_of(Table(COLUMNS, picture=5, contexts_seen="none")) == expected
    assert set(read) == {*COLUMNS}
    frame = pd.DataFrame(COLUMNS)
    frame[["a", "b"]] = 5
    assert rows_of(frame.rename(columns={"a": "id", "b": "id"})) == expected


@pytest.mark.parametrize("make", [pd.DataFrame, lambda columns: pd.DataFrame(columns).to_dict("records")])
def test_a_name_that_is_given_is_not_the_plural_of_another(make):
    table = make({**COLUMNS, "references": ["c", "d"]})
    with pytest.raises(ValueError, match="columns 'reference' and 'references' could both hold the references"):
        rows_of(table)
    assert rows_of(table, {"reference": "references"})[1].references == ("d",)
    assert rows_of(table, {"reference": "reference"})[1].references == ("He waited.", "He was there.")


def test_a_table_without_references_says_so(tiny):
    frame = pd.DataFrame(COLUMNS).drop(columns="reference")
    expected = tiny.score(COLUMNS["prediction"], None, COLUMNS["context"])
    assert tiny.score_table(frame, columns={"reference": None}).scores == expected.scores
    with pytest.raises(ValueError, match=r"column 'reference' is missing .*\(None: score without references\)"):
        tiny.score_table(frame)  # a misspelt name must not change what is measured


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (
            {"text": ["a"], "reference": ["b"]},
            None,
            r"columns .*'context'.* are missing \(columns here: 'text', 'reference'\); name them: columns=\{'",
        ),
        ({"prediction": ["a"], "predictions": ["a"]}, None, "'prediction' and 'predictions' could both"),
        (pd.DataFrame([[*"abcd"]], columns=["prediction", *COLUMNS]), None, "several columns have one name"),
        (COLUMNS, {"reference": "gold"}, r"column 'gold' is missing .* columns=\{'reference': ...\}"),
        (COLUMNS, {"references": "gold"}, "unknown column 'references'; did you mean 'reference'"),
        ([*ROWS, {"prediction": "a", "reference": "b"}], None, "row 2: column 'context' is missing"),
        ([{"prediction": "a", "reference": "b"}, *ROWS], None, "row 0: column 'context' is missing"),
        ([{**ROWS[0], "answer": "a"}, ROWS[1]], {"prediction": "answer"}, "row 1: column 'answer' is missing"),
        ([{**ROWS[0], "texts": []}, ROWS[1]], {"samples": "texts"}, "row 1: column 'texts' is missing"),
        ([{**ROWS[0], "doc": {"a": "b"}}, ROWS[1]], {"prediction": "doc.a"}, r"row 1: column 'doc\.a' is missing"),
        ([*ROWS, "text"], None, r"row 2 must be a dict with a value for each column, got str \('text'\)"),
        (["text"], {"reference": "gold"}, "row 0 must be a dict with a value for each column, got str"),
        (5, None, "a table must be a frame, a dict of columns or a list of dicts, got int"),
        ([], None, "there is nothing to score: the table has no rows"),
        (pd.DataFrame(columns=[*COLUMNS]), None, "there is nothing to score: the table has no rows"),
        ({**COLUMNS, "prediction": ["a", []]}, None, "row 1: column 'prediction' is an empty list; fill it or"),
        ({**COLUMNS, "prediction": [["a"]]}, None, "'prediction' has 1, 'reference' has 2"),
        (
            datasets.DatasetDict(dev=datasets.Dataset.from_dict({"a": ["a"]})),
            None,
            r"this DatasetDict has several tables: 'dev'; pass one of them, such as data\['dev'\]",
        ),
        ({"dev": pd.DataFrame(), "test": pd.DataFrame()}, None, "this dict has several tables: 'dev', 'test';"),
        (ROWS[0], None, "column 'prediction' must be a list with one entry per row, got str .* list of one"),
    ],
)
def test_tables_that_are_wrong(table, columns, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MarsScorer("mini", variant="plus", language_model="no/model").score_table(table, columns=columns)


def test_tables_that_are_yet_to_be_computed(tiny):
    expected = tiny.score_table(ROWS).scores
    stream = datasets.IterableDataset.from_generator(lambda: iter(ROWS))
    for table in (stream, iter(ROWS), pytest.importorskip("polars").LazyFrame(NESTED)):
        assert tiny.score_table(table).scores == expected
    texts = (row["prediction"] for row in ROWS)  # no rows, but a column
    assert tiny.score(texts, COLUMNS["reference"], COLUMNS["context"]).scores == expected


def test_nested_columns_and_answers_of_harnesses(tiny):
    rows = [
        {
            "doc": {"question": row["context"], "answers": [row["reference"]]},
            "arguments": {"gen_args_0": {"arg_0": row["context"]}},
            "filtered_resps": [[row["prediction"]]],
            "doc.id": 3,
        }
        for row in ROWS
    ]
    expected = tiny.score_table(ROWS).scores
    for context in ("doc.question", "arguments.gen_args_0.arg_0"):
        names = {"prediction": "filtered_resps", "reference": "doc.answers.0", "context": context}
        for table in (rows, pd.DataFrame(rows)):
            assert tiny.score_table(table, columns=names).scores == expected
    with pytest.raises(ValueError, match=r"column 'doc\.title' is missing"):
        tiny.score_table(rows, columns={**names, "context": "doc.title"})
    assert get_field({"a.b": 1, "a": {"b": 2}}, "a.b") == 1  # a name that is there comes first
    assert get_field({"a.b": {"c": 2}}, "a.b.c") == 2
    with pytest.raises(TypeError, match=r"predictions\[0\] must be a string, got list"):
        tiny.score([[["a", "b"]]], ["a"], ["b"])


LISTS = [["She went by bus."], COLUMNS["reference"][1]]


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_lists_and_objects_in_cells_are_taken_as_such(tiny, write):
    contexts = [{"passages": [text]} for text in COLUMNS["context"]]
    expected = tiny.score(COLUMNS["prediction"], LISTS, contexts).scores
    cells = {**COLUMNS, "reference": list(map(write, LISTS)), "context": list(map(write, contexts))}
    with pytest.warns(MarsWarning, match=r"row 0: column '(reference|context)' and the others .* lists or obj"):
        assert tiny.score_table(pd.DataFrame(cells)).scores == expected
    cells["reference"][1] = "He waited."
    with pytest.raises(ValueError, match=r"row 1: column 'reference' holds a text, but row 0: .* a list"):
        tiny.score_table(pd.DataFrame(cells))


@pytest.mark.parametrize(
    "text", ["[1, 2]", "[]", "{'a'}", "['a'", "[x for x in y]", "{'a': 1}", "[['a']]", "[1] a"]
)
def test_what_is_no_list_of_texts_is_a_text(text):
    assert value_of_cell(text, "reference") == text


@pytest.mark.parametrize("text", ["__import__('os').getcwd()", "[open('x')]", "[" * 100_000, "{" + "1:" * 9999])
def test_cells_are_never_run(text):
    assert value_of_cell(text, "context") == text


# Results


def test_records_and_frame(tiny):
    result = tiny.score_table(pd.DataFrame(COLUMNS))
    for number, record in enumerate(result.to_records()):
        names = ("row", "prediction", "references", "context")
        assert [record[name] for name in names] == [number, *(NESTED[name][number] for name in COLUMNS)]
        assert record["task"] == "text"
        terms = sum(record["weights"][name] * value for name, value in record["terms"].items())
        assert record["mars"] == pytest.approx(terms)
        assert len(record["samples"]) == len(result.row_scores[number].samples)
    frame = result.to_pandas()
    assert list(frame["mars"]) == result.scores
    assert list(frame["terms.references"]) == [row.terms[0].value for row in result.row_scores]
    assert {"row", "prediction", "references", "context", "weights.context"} <= set(frame.columns)


# Several candidates per row


def test_lists_of_candidates(tiny):
    more = [["She took the bus.", "The cat slept.", ""], "He was late."]
    with pytest.warns(MarsWarning, match=rf"{Notice.BLANK.message}: 1 of 4 rows \(index 0\)"):
        result = tiny.score(more, COLUMNS["reference"], COLUMNS["context"])
    rows = [(0, "She took the bus."), (0, "The cat slept."), (0, ""), (1, "He was late.")]
    assert [(record["row"], record["prediction"]) for record in result.to_records()] == rows
    alone = tiny.score(*COLUMNS.values()).scores
    assert result.scores[::3] == pytest.approx(alone, abs=1e-9)
    assert tiny.score_table({**COLUMNS, "prediction": more}).scores == result.scores


# Contexts

TURNS = ["Be brief.", "Hello,\nyou!", "Hello.", "Where is the bus?"]
ROLES = ["system", "user", "assistant", "user"]
CHAT = [{"role": role, "content": text} for role, text in zip(ROLES, TURNS, strict=True)]


def test_turns_that_are_all_blank_are_a_blank_context():
    assert check_contexts([[""], [" ", "\n"], []]) == [("", "", "")] * 3


@pytest.mark.parametrize(
    "messages",
    [
        np.array(CHAT, dtype=object),
        [{**message, "name": "Jane", "tool_calls": None} for message in CHAT],
        [{**message, "tool_calls": []} for message in CHAT],
        TURNS,
    ],
)
def test_lists_of_turns_and_chat_messages_are_dialogues(messages):
    lines = "Be brief.\nHello, you!\nHello.\nWhere is the bus?"
    assert check_contexts([messages]) == [(lines, "dialogue", "")]


RECORD = {"name": "The Eagle", "stars": 3, "open": ["Mon", "Tue"], "garden": False}
TASKS = [  # context, its text, its task where nobody says another
    ("A: Hello.\nB: Where is\nthe bus?", "A: Hello. B: Where is the bus?", "text"),
    ('{"name": "The Eagle"}', '{"name": "The Eagle"}', "text"),
    (["Hello.", "Hello?"], "Hello.\nHello?", "dialogue"),
    (RECORD, 'name: The Eagle, stars: 3, open: ["Mon", "Tue"], garden: false', "data"),
    ({"passages": ["One.", "Two."]}, "One.\x1eTwo.", "summary"),
    ({"question": "Why?", "passages": ["One.", "Two."]}, "One.\x1eTwo.", "summary"),
]


@pytest.mark.parametrize(("context", "text", "task"), TASKS)
def test_the_task_is_said_by_the_type_of_a_context_or_else_by_the_caller(context, text, task):
    def tasks(**options):
        rows = check_examples(["a", "a"], [context, "b"], use_context=True, **options)
        # Line breaks may separate turns or fields.
        kept = isinstance(context, str) and rows[0].task in ("dialogue", "data")
        assert rows[0].context == (context if kept else text)
        return [row.task for row in rows]

    assert tasks() == [task, "text"]
    assert tasks(task="data") == ["data", "data"]
    assert tasks(tasks="dialogue", task="data") == ["dialogue", "dialogue"]
    assert tasks(tasks=["data", None]) == ["data", "text"]
    assert tasks(tasks=["", "dialogue"], task="data") == ["data", "dialogue"]


MIXED = [
    {"name": "bus", "colour": "blue", "stops": {"first": "A"}},
    {"stops": {"last": "B"}, "person": "Jane", "age": "30"},
    {"passages": ["One."], "question": "Why?"},
    {"passages": ["Two."]},
]


@pytest.mark.parametrize("make", [pa.array, lambda dicts: datasets.Dataset.from_dict({"c": dicts})["c"]])
def test_fields_with_which_arrow_fills_up_dicts_are_none_of_theirs(make):
    assert check_contexts(make(MIXED)) == check_contexts(MIXED)


def test_tasks_of_rows_count(tiny):
    """Replies to a dialogue have no likelihood; what is said of data is compared by its sentence vector."""
    columns, tasks = list(COLUMNS.values()), ["dialogue", "data"]
    result = tiny.score(*columns, tasks=tasks)
    names = [{term.name for term in row.terms} for row in result.row_scores]
    assert [{"likelihood", "sentences"} & row for row in names] == [set(), {"likelihood", "sentences"}]
    assert tiny.score_table({**COLUMNS, "kind": tasks}, columns={"task": "kind"}).scores == result.scores
    assert result.signature.to_dict()["task"] == "data,dialogue"
    scorer = MarsScorer("mini", variant="plus", task="dialogue")
    assert scorer.score(*columns).scores == tiny.score(*columns, tasks="dialogue").scores
    with pytest.raises(ValueError, match=r"tasks\[1\] must be one of 'text', 'summary', 'dialogue', 'data'"):
        tiny.score(*columns, tasks=["data", "story"])


PASSAGES = ["The bus leaves at nine.", "It stops at " + "the old " * 60 + "bridge.", "No bus on Sunday?"]


def test_passages_are_encoded_one_by_one(tiny):
    [context] = texts_of([{"passages": PASSAGES}])
    first, *parts, last = windows(context, 100)
    assert (first, last) == (PASSAGES[0], PASSAGES[2])
    assert (len(parts), " ".join(parts)) == (2, PASSAGES[1])  # of more than 100 words, none of another passage
    assert as_prose(context) == "\n\n".join(PASSAGES)
    assert texts_of([context]) == [context]  # as evaluate passes it on
    [record] = tiny.score(["At nine."], ["At ten."], [{"passages": PASSAGES}]).to_records()
    assert record["context"] == as_prose(context)


# Streams

STREAM = {"preset": "mini", "variant": "plus"}


def test_a_stream_is_scored_as_it_comes(tiny):
    read = []

    def stream():
        for number in itertools.count():  # never ends
            read.append(number)
            yield ROWS[number % 2]

    records = list(itertools.islice(mars_score.score_iter(stream(), chunk_size=3, **STREAM), 5))
    assert [record["row"] for record in records] == [0, 1, 2, 3, 4]
    assert len(read) == 6
    expected = tiny.score_table(ROWS).scores
    assert [record["mars"] for record in records] == pytest.approx([*expected, *expected, expected[0]], abs=1e-9)


def test_masks_of_a_stream_need_a_corpus(tiny):
    options = {"preset": "mini", "variant": "paper", "planner": "none"}
    with pytest.raises(ValueError, match="idf_corpus"):
        mars_score.score_iter(iter(ROWS), **options)
    options["idf_corpus"] = ["She went by bus.", "He waited.", "He was there."]
    scores = [record["mars"] for record in mars_score.score_iter(iter(ROWS), chunk_size=1, **options)]
    assert scores == pytest.approx(mars_score.score_table(ROWS, **options).scores, abs=1e-9)


FAULTS_IN_STREAMS = {
    r"row 5: column 'prediction' must be a string": {"prediction": None},
    r"row 5: column 'reference' holds a blank": {"reference": " "},
    r"row 5: column 'context'\[1\] is blank": {"context": ["Where?", ""]},
    r"row 5: column 'prediction' is an empty list": {"prediction": []},
    r"row 5: column 'reference' holds a list .*, but row 0: column 'reference' a text": {"reference": '["a"]'},
}


@pytest.mark.parametrize("match", FAULTS_IN_STREAMS)
def test_a_fault_in_a_stream_is_named_by_its_row_after_the_chunks_before(tiny, match):
    rows = [ROWS[0]] * 5 + [{**ROWS[0], **FAULTS_IN_STREAMS[match]}]
    for size, before in ((4, 4), (64, 0)):
        records = mars_score.score_iter(rows, chunk_size=size, **STREAM)
        assert [next(records)["row"] for _ in range(before)] == list(range(before))
        with pytest.raises((TypeError, ValueError), match=match):
            list(records)


def test_a_chunk_of_a_stream_has_a_row_at_least():
    with pytest.raises(ValueError, match="chunk_size must be at least 1, got 0"):
        mars_score.score_iter([], chunk_size=0)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_a_stream_warns_once_of_its_rows(tiny, size):
    rows = [{**ROWS[0], "prediction": " " if number % 3 == 1 else "She took the bus."} for number in range(8)]
    rows[6]["context"] = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MarsWarning)
        assert len(list(mars_score.score_iter(rows, chunk_size=size, **STREAM))) == 8
    messages = [str(warning.message) for warning in caught if warning.category is MarsWarning]
    assert [message.rpartition(": ")[2] for message in messages] == [
        "3 of 8 rows (index 1, 4, 7)",
        "1 of 8 rows (index 6)",
    ]
    assert caught[-1].filename == __file__


def test_a_stream_that_is_closed_warns_of_the_rows_before(tiny):
    rows = mars_score.score_iter([{**ROWS[0], "prediction": ""}] * 4, chunk_size=1, **STREAM)
    next(rows), next(rows)
    with pytest.warns(MarsWarning, match=r"2 of 2 rows \(index 0, 1\)"):
        rows.close()


def test_cells_of_a_stream_are_told_of_once(tiny):
    rows = [{**ROWS[0], "reference": text} for text in ("['a bus']", '["a", "b"]', "['c']")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MarsWarning)
        list(mars_score.score_iter(rows, chunk_size=1, **STREAM))
    told = [str(warning.message) for warning in caught if "hold lists" in str(warning.message)]
    assert len(told) == 1
    assert told[0].startswith("row 0: column 'reference' and the others")


# Files


@pytest.mark.parametrize("text", [json.dumps(ROWS), "\ufeff\n" + json.dumps(ROWS, indent=1)])
def test_a_list_in_a_file(tmp_path, text):
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")
    assert read_rows(path).rows == ROWS


def test_a_saved_data_set(tmp_path):
    rows = TABLES["datasets"]()
    rows.save_to_disk(str(tmp_path / "rows"))
    assert read_rows(tmp_path / "rows").rows == list(rows)


@pytest.mark.parametrize("text", ["a,b\r\n1,x y\r\n", "a\tb\n1\tx y\n", "a;b\n1;x y\n", '{"a": "1", "b": "x y"}'])
def test_the_first_line_tells_formats_apart_where_a_name_does_not(tmp_path, text):
    path = tmp_path / "standard input"
    path.write_text("\ufeff" + text, encoding="utf-8", newline="")
    assert read_rows(path).rows == [{"a": "1", "b": "x y"}]


QUOTES = [
    ('"So far so good', "All is well.", "How is it?"),
    ("It broke.", "It is broken.", "What happened?"),
    ('All done"', "It is done.", "Is it done?"),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_of_tsv_are_letters(tmp_path, end):
    path = tmp_path / "rows.tsv"
    lines = ["\t".join(row) for row in [("prediction", "reference", "context"), *QUOTES]]
    path.write_text(end.join(lines) + end, newline="")
    assert [tuple(row.values()) for row in read_rows(path).rows] == QUOTES
    assert [row.number + 1 for row in iter_rows(path)] == [2, 3, 4]


@pytest.mark.parametrize("field", ["reference", "context", "prediction", "samples", "task"])
def test_names_of_columns_are_found_in_both_numbers(field):
    for names in itertools.product((field.removesuffix("s"), f"{field.removesuffix('s')}s"), repeat=2):
        columns = Columns(**{"reference": None, "context": None, field: names[0]})
        assert getattr(columns.found_in(RawRows("rows", [{names[1]: "x"}], [0])), field) == names[1]


AS_LETTERS = [
    '"a" and "b"',
    '"',
    '"So it is."',
    'He said "no".',
    '""no""',
    '6" by 4"',
    '"[1]" is a source',
    'a ""',
]


@pytest.mark.parametrize("text", AS_LETTERS)
def test_quotes_that_no_csv_writer_puts_are_letters(tmp_path, text):
    path = tmp_path / "rows.tsv"
    path.write_text(f"prediction\treference\n{text}\tx\ny\tz\n")
    assert [row["prediction"] for row in read_rows(path).rows] == [text, "y"]
    assert not read_rows(path).is_unquoted


def test_a_notice_tells_of_tsv_that_a_csv_writer_wrote(tmp_path):
    """Other texts of writers are read back in test_writers.py."""
    path = tmp_path / "rows.tsv"
    path.write_text('prediction\treference\na\t"[""b"", ""c""]"\nb\t"[""d"", ""e""]"\n')
    columns = Columns("reference", None, None)
    with pytest.warns(MarsWarning, match="rows.tsv has cells between quotes, as a CSV writer wrote it"):
        parsed = columns.parse_cells(read_rows(path))
    assert [row["reference"] for row in parsed.rows] == [["b", "c"], ["d", "e"]]
    plain = tmp_path / "plain.tsv"
    plain.write_text("prediction\treference\na\tb\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarsWarning)
        columns.parse_cells(read_rows(plain))


def test_tsv_with_quotes_of_both_kinds_is_refused(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text('prediction\treference\n"a" and "b"\tx\n"He said ""no""."\ty\n')
    with pytest.raises(ValueError, match=r"rows.tsv:3: column 'prediction' holds a text quoted as in CSV, .*;"):
        read_rows(path)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("rows.json", '[{"a": 1},\n\n {"a":\n 2}, {"a": 3}]', [1, 3, 4]),
        ("rows.csv", 'a,b\n1,"x\ny"\n\n2,z\n"3",""\n', [2, 5, 6]),
        ("rows.tsv", "a\tb\n1\tx\n\n2\t\n", [2, 4]),
    ],
)
def test_rows_are_named_by_their_lines(tmp_path, name, text, lines):
    path = tmp_path / name
    path.write_text(text, newline="")
    assert [row.number + 1 for row in iter_rows(path)] == lines
    assert [row.values["a"] for row in iter_rows(path)] in ([1, 2, 3], ["1", "2", "3"], ["1", "2"])


@pytest.mark.parametrize(("end", "remedy"), [("csv", 'remove it; a blank cell is ""'), ("tsv", "remove it$")])
def test_a_blank_line_in_a_file_of_one_column_may_be_meant_as_a_cell(tmp_path, end, remedy):
    path = tmp_path / f"rows.{end}"
    path.write_text("a\n1\n2\n\n\n")
    assert read_rows(path).rows == [{"a": "1"}, {"a": "2"}]
    path.write_text("a\n1\n\n2\n")
    with pytest.raises(ValueError, match=f"rows.{end}:3: the line is blank; {remedy}"):
        read_rows(path)


def test_a_parquet_file_without_rows(tmp_path):
    parquet.write_table(pa.table({"prediction": pa.array([], pa.string())}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"rows.parquet: the file holds no rows; give one that has some"):
        read_rows(tmp_path / "rows.parquet")


def test_gzip_is_told_by_the_first_bytes(tmp_path):
    path = tmp_path / "standard input"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_rows(path).rows == [{"a": "1", "b": "2"}]


def test_long_lists_are_read_up_to_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    rows = [{"a": "\u05e9" * (number % 70) * 97, "b": ["]", '"', "\\"]} for number in range(500)]
    for indent in (None, 1):
        path.write_text(json.dumps(rows, ensure_ascii=bool(indent), indent=indent), encoding="utf-8")
        assert read_rows(path).rows == rows
    monkeypatch.setattr("mars_score.data.reading.LONGEST_LIST", 1000)
    with pytest.raises(ValueError, match=r"rows.json: a JSON list of over 1,000 bytes, .*; write one object"):
        read_rows(path)
