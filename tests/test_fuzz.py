"""Random bytes, rows, values and settings: a finite score or a documented error, and nothing changed in silence.

Each property has a quick number of cases for ``make test`` and a full one, marked slow: over 10,000 in total.
"""

import csv
import gzip
import io
import itertools
import json
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from mars_score.data.checking import Context, check_candidates, check_contexts, check_references
from mars_score.data.reading import read_rows
from mars_score.data.writing import convert, plain, row_line
from mars_score.errors import MarsWarning
from mars_score.runs import ADDED as ADDED_COLUMNS
from mars_score.scorer import MarsScorer
from mars_score.text import is_blank, normalise
from tests import word_recall
from tests.belief import believe


def cases(quick, full):
    """Numbers of cases; the full one is slow."""
    return pytest.mark.parametrize("count", [quick, pytest.param(full, marks=pytest.mark.slow)])


def fuzz(count, check, *strategies):
    """Call ``check`` with ``count`` random arguments."""

    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
    )
    @given(st.tuples(*strategies))
    def one_case(arguments):
        check(*arguments)

    one_case()


# Characters of all planes, unpaired surrogates among them
ANY_TEXT = st.text(st.characters(), max_size=20)
ODD_WORDS = [
    *("a", "The", "cat", "sat", "harbour", "isn't", "e.g.", "1,250", "I", ".", "?!", "..."),
    *("\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    *("\u05e9\u05dc\u05d5\u05dd", "\u202e\u0645\u0631", "\ud83d", "\ude00", "\U0010ffff"),
    *("\u4f60\u597d", "e\u0301\u0302\u0303", "\x00", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\u200d", "\ufffd"),
    *("<|endoftext|>", "<s>", "</s>", "<mask>", "<pad>", "https://a.b/c", "#tag"),
    *("x" * 600, "\U0001f600" * 150, "-" * 200, "\u0300" * 100, "../../etc/passwd", '"', "\\"),
]
WORD = st.one_of(st.sampled_from(ODD_WORDS), st.sampled_from(ODD_WORDS), st.text(st.characters(), max_size=4))
GAP = st.sampled_from(["", " ", " ", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "\r\n"])


def texts(longest=4):
    """A few odd words with odd gaps; blank now and then."""
    return st.lists(st.builds(str.__add__, WORD, GAP), max_size=longest).map("".join)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
# As json.loads gives them: halves that fit together have become one character
JSON_ROWS = st.dictionaries(ANY_TEXT, JSON, max_size=5).map(lambda row: json.loads(json.dumps(row)))


# Files of rows


def same(first, second):
    """Equality to the last bit, in which NaN equals NaN and 1 is neither 1.0 nor True."""
    return repr(first) == repr(second)


def read_or_refused(path):
    """The rows of a file, or None if they are refused with a ValueError of one line that names it."""
    rows = result_or_fault(lambda: read_rows(path).rows)
    if type(rows) is list:
        assert rows
        assert all(type(row) is dict for row in rows)
        return rows
    assert rows.startswith(str(path)), rows
    assert "\n" not in rows, rows
    return None


def result_or_fault(function, *arguments):
    """What a call returns, or the text of the error that is documented."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        return str(error)


def of_different_keys(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def by_the_line(content):
    """The rows of lines of JSON, or of a list, according to json.loads, or None if they must be refused."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    try:
        if content.lstrip().startswith(b"["):
            rows = json.loads(content.decode(), object_pairs_hook=of_different_keys)
        else:
            rows = [json.loads(line.decode(), object_pairs_hook=of_different_keys) for line in lines]
    except (ValueError, RecursionError):
        return None
    return rows if rows and all(isinstance(row, dict) for row in rows) else None


LINE = st.one_of(
    JSON_ROWS.map(lambda row: json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    (JSON_ROWS | JSON).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=20),
    st.sampled_from(
        [
            *(b"", b" ", b"{}", b"{", b"null", b"[" * 5000, b'{"a":' * 5000, b"\xef\xbb\xbf{}", b'{"a": 1} '),
            *(b'{"a": NaN}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}", b"{'a': 1}", b'{"a": 1, "a": 2}'),
            *(b'{"a": "\\ud83d"}', b'{"a": "\xed\xa0\xbd"}', '{"a": "\u2028\u0085"}'.encode(), b'{"a": "\x00"}'),
            b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}",
        ]
    ),
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda mark, lines, between, end: mark + between.join(lines) + end,
        st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xff\xfe"]),
        st.lists(LINE, max_size=4),
        st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n"]),
        st.sampled_from([b"", b"\n", b"\n\n \r\n"]),
    ),
    st.lists(JSON_ROWS, min_size=1, max_size=5).map(lambda rows: "".join(map(row_line, rows)).encode()),
)


@cases(25, 2500)
def test_json_lines(count, tmp_path):
    path, compressed = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.gz"

    def check(content):
        path.write_bytes(content)
        compressed.write_bytes(gzip.compress(content, 1))
        expected = by_the_line(content)
        assert same(read_or_refused(path), expected)
        assert same(read_or_refused(compressed), expected)

    fuzz(count, check, CONTENTS)


CELL = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CELLS = st.fixed_dictionaries({"text": CELL, "other": CELL})
JSON_CELL = CELL.map(lambda text: json.dumps({"reference": text}))  # which each output of scores has
TAB_CELLS = st.fixed_dictionaries({"text": CELL, "other": CELL, "aspects": JSON_CELL})


@pytest.mark.parametrize(
    ("kind", "name"),
    [(JSON_ROWS, "out.jsonl"), (CELLS, "out.csv"), (TAB_CELLS, "out.tsv.gz")],
    ids=["json", "csv", "tsv"],
)
@cases(20, 1500)
def test_written_rows_are_read_as_they_were(count, kind, name, tmp_path):
    lines = tmp_path / "rows.jsonl"

    def check(rows):
        lines.write_text("".join(map(row_line, rows)), encoding="utf-8", newline="")
        read = read_rows(convert(lines, name).rename(tmp_path / name)).rows
        expected = [plain(row) for row in rows]  # without NaN and infinities
        # Records have one order of columns.
        assert same(read, expected) if kind is JSON_ROWS else read == expected

    fuzz(count, check, st.lists(kind, min_size=1, max_size=4))


QUOTED_TEXT = st.lists(st.sampled_from(['"', '""', "\t", "\n", "\r\n", "a", " ", "[", "\u05e9"]), max_size=8)
QUOTED_CELLS = st.fixed_dictionaries(dict.fromkeys(("text", "other"), QUOTED_TEXT.map("".join)))


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@cases(40, 1500)
def test_tsv_of_a_csv_writer_is_read_as_it_was(count, quoting, tmp_path):
    path = tmp_path / "rows.tsv"

    def check(rows):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="\t", quoting=quoting)
            writer.writeheader()
            writer.writerows(rows)
        read = read_or_refused(path)
        letters = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        assert read == rows or (quoting == csv.QUOTE_MINIMAL and [list(row.values()) for row in read] == letters)

    fuzz(count, check, st.lists(QUOTED_CELLS, min_size=1, max_size=4))


@st.composite
def damaged(draw, wholes):
    """One of ``wholes`` with bytes changed, cut off, put in or added."""
    content = bytearray(draw(st.sampled_from(wholes)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["change", "change", "change", "cut", "insert", "append"]))
        if kind == "change" and place < len(content):
            content[place] = draw(st.integers(0, 255))
        elif kind == "cut":
            del content[place:]
        elif kind == "insert":
            content[place:place] = draw(st.binary(min_size=1, max_size=8))
        else:
            content += draw(st.binary(max_size=8))
    return bytes(content)


ROWS = [{"prediction": f"one {row}", "reference": ["two", "\u05e9"], "context": "a" * row} for row in range(20)]


def parquet_files():
    """Small files of several kinds of columns and compressions."""
    table = pa.Table.from_pylist(ROWS[:3])
    more = table.append_column("when", pa.array([1, 2, None], pa.timestamp("us", "UTC")))
    more = more.append_column("deep", pa.array([{"a": [1.5]}, None, {"a": []}]))
    for written, compression in ((table, "NONE"), (more, "NONE"), (more, "SNAPPY"), (more, "GZIP")):
        buffer = io.BytesIO()
        parquet.write_table(written, buffer, compression=compression)
        yield buffer.getvalue()


DAMAGED = {"jsonl.gz": [gzip.compress("".join(map(row_line, ROWS)).encode())], "parquet": list(parquet_files())}


@pytest.mark.parametrize("kind", DAMAGED)
@cases(30, 1500)
def test_damaged_files(count, kind, tmp_path):
    """Refused or read; Parquet is without checksums: what is damaged may pass for other rows."""
    path = tmp_path / f"rows.{kind}"

    def check(content):
        path.write_bytes(content)
        rows = read_or_refused(path)
        assert rows is None or rows == ROWS or (kind == "parquet" and len(rows) < 1000)

    fuzz(count, check, damaged(DAMAGED[kind]))


_NOT_UTF8 = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
NO_ROWS = {
    "not UTF-8": pa.table({"a": _NOT_UTF8}),
    "one name twice": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    "one name twice within": pa.table({"a": pa.StructArray.from_arrays([[1], [2]], names=["b", "b"])}),
    "year 148,000": pa.table({"a": pa.array([2**62], pa.timestamp("us"))}),
    "day in the far future": pa.table({"a": pa.array([2**30], pa.date32())}),
    "unknown time zone": pa.table({"a": pa.array([1], pa.timestamp("us", "Nowhere/Nope"))}),
}


@pytest.mark.parametrize("table", NO_ROWS.values(), ids=NO_ROWS)
def test_parquet_that_python_cannot_hold_is_refused(table, tmp_path):
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert read_or_refused(tmp_path / "rows.parquet") is None


# Checks of what is passed in

CHECKS = (check_candidates, check_references, check_contexts)

ODD_VALUES = st.one_of(
    SCALARS,
    st.binary(max_size=5),
    st.complex_numbers(),
    st.sampled_from(
        [object(), object, memoryview(b"ab"), range(3), {"a", "b"}, bytearray(b"ab"), np.str_("a"), ...]
    ),
    st.sampled_from([np.array("a"), np.array(["a", "b"]), np.array([["a"], ["b"]]), np.float64("nan")]),
    st.sampled_from([pa.array(["a", None]), pa.array([["a"], []]), pa.scalar("a"), pa.table({"a": ["x"]})]),
)


VALUES = st.recursive(
    ODD_VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(texts(), max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(ANY_TEXT, inner, max_size=3),
        st.frozensets(ANY_TEXT, max_size=3),
    ),
    max_leaves=10,
)


@cases(30, 2000)
def test_checks_of_rows(count):
    def check(value):
        for column, checker in itertools.product((value, [value], [[value]]), CHECKS):
            checked = result_or_fault(checker, column)
            if type(checked) is str:
                assert checked.startswith(("predictions", "references", "contexts"))
                continue
            assert type(checked) is list
            if checker is check_contexts:
                checked = [context.text for context in checked]
            texts = [text for row in checked for text in (row if type(row) is tuple else [row])]
            assert {type(text) for text in texts} <= {str}
            "".join(texts).encode()  # no halves of characters

    fuzz(count, check, VALUES)


@pytest.mark.parametrize("depth", [3, 900, 1000, 5000, 100_000])
def test_checks_of_values_nested_deeply(depth):
    value = "a"
    for _ in range(depth):
        value = [value]
    for checker in CHECKS:
        assert "must be a string, got list" in result_or_fault(checker, value)


@cases(30, 2000)
def test_texts_are_normalised_once(count):
    def check(text):
        [checked] = check_candidates([text])
        assert checked == ("" if is_blank(text) else normalise(text))
        assert check_candidates([checked]) == [checked]
        assert check_contexts([text]) == [Context("" if is_blank(text) else text, "")]  # its task is not known yet
        assert is_blank(text) or check_references([text]) == [(checked,)]

    fuzz(count, check, CELL)


# Scores

SMALL = {"variant": "paper", "max_mask_ratio": 0.5, "mask_ratio_step": 0.5, "sigma": 0}
SCORERS = {
    "fast": {"variant": "fast"},
    "plus": {"variant": "plus"},
    "data": {"variant": "fast", "task": "data"},
    "dialogue": {"variant": "plus", "task": "dialogue"},
    "no context": {"variant": "fast", "use_context": False},
    "paper": {**SMALL, "sigma": 1, "planner": "none"},
    "planned": {**SMALL, "max_mask_ratio": 0.2, "mask_ratio_step": 0.2, "plan_iterations": 1},
    "paper without context": {**SMALL, "planner": "none", "use_context": False},
}
LOWEST = -6  # with the likelihood: (log p / 2 + PMI) * .15, log p of at least that of a uniform guess
HIGHEST = 1.2  # with the support of a summary
PASSAGES = st.lists(texts(9).map(lambda text: f"{text}x"), min_size=1, max_size=3)
CONTEXTS = st.one_of(texts(), st.just(""), PASSAGES, PASSAGES.map(lambda passages: {"passages": passages}))
SCORED_ROWS = st.lists(
    st.tuples(texts(), st.lists(texts(), min_size=1, max_size=2) | texts(), CONTEXTS), min_size=1, max_size=3
)


@pytest.fixture(scope="module", params=SCORERS)
def scorer(request, gpt2, encoder, nli):
    """One for all cases; the NLI model is believed."""
    models = {"language_model": gpt2, "encoder": encoder, "entailment_model": nli, "dtype": "float64"}
    with pytest.MonkeyPatch.context() as patch:
        believe(patch, certain=0.25, likely=0.2)
        yield MarsScorer("mini", store=False, **models, **SCORERS[request.param])


def result_of(scorer, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)
        return scorer.score(*([row[column] for row in rows] for column in range(3)))


@cases(3, 100)
def test_random_rows_have_finite_scores(count, scorer):
    def check(rows):
        result = result_or_fault(result_of, scorer, rows)
        if type(result) is str:
            assert "blank reference" in result  # the only fault that texts can have
            return
        scores = result.scores
        assert len(scores) == len(rows)
        assert all(type(score) is float and LOWEST <= score <= HIGHEST + 1e-9 for score in scores)
        assert not any(score for row, score in zip(rows, scores, strict=True) if is_blank(row[0]))
        assert result_of(scorer, rows[::-1]).scores == pytest.approx(scores[::-1], abs=1e-9)

    fuzz(count, check, SCORED_ROWS)


@pytest.mark.parametrize("scorer", ["fast"], indirect=True)
@cases(10, 200)
def test_the_similarity_with_an_equal_reference_is_one(count, scorer):
    def check(text, context):
        if not is_blank(text):
            [row] = result_of(scorer, [(text, text, context)]).row_scores
            assert row.terms[0].value == pytest.approx(1.0, abs=1e-9)

    fuzz(count, check, texts(), texts())


# The command


def _file(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


GOOD_COLUMNS = {"prediction": texts(), "reference": texts(2).map(lambda text: text + "x"), "context": texts()}
ADDED = dict.fromkeys(ADDED_COLUMNS["score"], 0)  # columns, with values that are no matter
OTHER_COLUMNS = {"id": JSON, **dict.fromkeys(ADDED, JSON), "\ud83d": JSON}
ANY_COLUMNS = {"prediction": texts() | JSON, "reference": st.lists(texts(), max_size=2) | JSON, "context": JSON}
GOOD_ROW = st.fixed_dictionaries(GOOD_COLUMNS, optional=OTHER_COLUMNS)
ANY_ROW = GOOD_ROW | st.fixed_dictionaries({}, optional={**ANY_COLUMNS, **OTHER_COLUMNS})
FILES = st.one_of(
    st.lists(GOOD_ROW, min_size=1, max_size=4).map(_file), st.lists(ANY_ROW, max_size=3).map(_file), CONTENTS
)


@cases(15, 500)
def test_the_command(count, tmp_path, word_models, run):
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"

    def check(content, as_json):
        path.write_bytes(content)
        out.unlink(missing_ok=True)
        options = ["--quiet", "--no-store", *word_recall.OPTIONS, *(["--json"] if as_json else [])]
        code, printed, errors = run("score", path, "--out", out, *options)
        if code == 2:
            assert errors.startswith("mars: error: ")
            assert errors.count("\n") == 1
            assert printed == ""
            assert {entry.name for entry in tmp_path.iterdir()} <= {"rows.jsonl", "store"}
            return
        assert code == 0
        rows = []
        for row in read_rows(path).rows:
            prediction = row["prediction"]
            row = json.loads(json.dumps(row), parse_constant=lambda _: None)  # JSON has no NaN and no infinities
            candidates = prediction if type(prediction) is list else [prediction]
            rows += [{**row, "prediction": candidate, **ADDED} for candidate in candidates]
        scored = read_rows(out).rows
        assert same([{**row, **ADDED} for row in scored], rows)
        assert all(math.isfinite(row["mars"]) for row in scored)
        if as_json:
            assert json.loads(printed)["scores"] == [row["mars"] for row in scored]

    fuzz(count, check, FILES, st.booleans())
