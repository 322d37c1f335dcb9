"""The command line; where scores count they are those of shared words (tests/word_recall.py)."""

import bz2
import contextlib
import errno
import gzip
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas
import pytest

from mars_score.atomic import write_whole
from mars_score.cli import main, make_parser
from mars_score.data.reading import read_rows
from mars_score.errors import MarsWarning, ModelUnavailableError, Notice, WorkerError
from mars_score.progress import progress_bars
from mars_score.rows import Aspects
from mars_score.scorer import MarsScorer
from mars_score.settings import SETTING_NAMES
from tests import ROOT, jsonl, word_recall
from tests.setting_values import GENERAL, PAPER, PLUS

ROWS = [
    {"id": 1, "prediction": "a b", "reference": "a b", "context": "first"},
    {"id": 2, "prediction": "c d", "reference": ["x y", "c z"], "context": ["second", "part"]},
]
SCORES = [1.0, 0.5]  # all and half of the nearest reference's words


@pytest.fixture(autouse=True)
def scorers(monkeypatch, word_models):
    """The scorers whose rows were scored."""
    scorers, row_scores = [], MarsScorer.row_scores

    def noted(self, *args, **options):
        scorers.append(self)
        return row_scores(self, *args, **options)

    monkeypatch.setattr(MarsScorer, "row_scores", noted)
    return scorers


@pytest.fixture
def write(tmp_path):
    """Writes rows to a file and returns its path."""
    return lambda rows=ROWS: jsonl.write(tmp_path / "rows.jsonl", rows)


@pytest.fixture
def score(run):
    """Runs ``mars score`` by shared words; returns exit code, standard output, standard error."""
    return lambda *argv: run("score", *argv, *word_recall.OPTIONS)


# mars score


def test_score_as_json(score, write, scorers, monkeypatch):
    row_scores = MarsScorer.row_scores

    def chattering(self, *args, **options):
        print("a library that prints while it loads")
        return row_scores(self, *args, **options)

    monkeypatch.setattr(MarsScorer, "row_scores", chattering)
    code, out, err = score(write(), "--json")
    assert (code, err) == (0, "a library that prints while it loads\n")
    result = json.loads(out)  # one object and nothing else
    assert " ".join(result) == "mars interval faithfulness scores signature settings notices read"
    assert result["read"] == ["context: 2 turns a row (1 of 2 rows)"]
    assert result["interval"] is None  # of two contexts nothing can be said
    assert result["signature"].startswith("mars|")
    assert (result["mars"], result["scores"], result["notices"]) == (pytest.approx(0.75), SCORES, [])
    runtime = scorers[0].runtime  # what no option says is left to the scorer
    assert (runtime.batch_size, runtime.device) == (None, None)
    assert runtime.store.folder == Path(os.environ["MARS_STORE"])


def test_json_in_detail_is_ascii_whatever_the_text(score, write):
    more = {"prediction": "\U0001f600 \ud83d", "reference": "\u05e9\U0001f600", "context": ""}
    _, out, _ = score(write([*ROWS, more]), "--json", "--detailed")
    assert out.isascii()
    rows = json.loads(out)["rows"]
    references = [[reference["reference"] for reference in row["references"]] for row in rows]
    assert references == [["a b"], ["x y", "c z"], ["\u05e9\U0001f600"]]
    assert [[term["name"] for term in row["terms"]] for row in rows] == 3 * [["references"]]


def test_score_in_plain_text(score, write):
    rows = [*ROWS, {"prediction": " ", "reference": "a\nb", "context": "third"}]
    code, out, err = score(write(rows))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "MARS 0.5000   no interval: fewer than 10 contexts   rows 3"
    assert lines[1].startswith("signature mars|version:")
    assert "|encoder:" in lines[1]
    assert lines[2] == "context: 2 turns a row (1 of 3 rows)"
    assert lines[3] == f"notice: {Notice.BLANK.message}: 1 of 3 rows (line 3)"
    assert lines[4:] == ["line  score   candidate", "   3  0.0000  ", "   2  0.5000  c d", "   1  1.0000  a b"]


def test_of_many_rows_some_are_shown(score, write):
    rows = [
        {"prediction": "c " * row + "b", "reference": "a " * row + "b", "context": "x?"} for row in range(0, 56, 4)
    ]
    rows[1]["reference"] = "[red]\x1b[31m blood"  # control characters take no effect
    heading, *shown = score(write(rows))[1].splitlines()[3:]
    assert heading == "line  score   candidate (lowest and highest)"
    assert [int(line.split()[0]) for line in shown] == [2, 14, 13, 4, 3, 1]
    assert max(map(len, shown)) <= 100
    shown = score(write(rows), "--detailed")[1].splitlines()[4:]
    assert len(shown) == 2 * 14
    assert any(line.endswith("[red] [31m blood") for line in shown)


def test_scores_in_a_file(score, write, tmp_path):
    """Written through a link, in the place of the rows, and whatever UTF-8 cannot hold."""
    cut = {"prediction": "cut \ud83d", "reference": "a", "context": ""}
    whole = {"prediction": "\U0001f600", "reference": "b", "context": ""}
    rows, out, link = [*ROWS, cut, whole], tmp_path / "scores.jsonl", tmp_path / "link.jsonl"
    out.touch()
    link.symlink_to(out)
    assert score(write(rows), "--out", link)[0] == 0
    assert link.is_symlink()
    none, judged = dict.fromkeys(Aspects._fields), {"contradicted": [], "supported": None, "unsupported": []}
    written = jsonl.read(out)
    [signature] = {row.pop("mars_signature") for row in written}
    assert signature.startswith("mars|version:")
    assert written == [
        {**row, "mars": score, "aspects": {**none, "reference": score}, **judged}
        for row, score in zip(rows, [*SCORES, 0.0, 0.0], strict=True)
    ]
    assert "\U0001f600" in out.read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"rows.jsonl", "link.jsonl", "scores.jsonl"}
    path = write(rows)
    assert score(path, "--out", path)[0] == 0
    assert path.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("option", ["--json", "--detailed", "--explain"])
def test_standard_output_is_for_the_rows_or_for_what_is_shown(failing, write, scorers, option):
    error = failing("score", write(), "--out", "-", "--variant", "fast", option)
    assert error.startswith(f"{option} and --out - ")
    assert scorers == []


def test_what_is_shown_of_a_run_that_replaces_its_input(score, write):
    for options in (["--detailed"], ["--json", "--detailed", "--explain"]):
        expected = score(write(), *options)
        path = write()
        assert score(path, "--out", path, *options) == expected


@pytest.mark.skipif(os.name != "posix", reason="needs a named pipe")
def test_a_pipe_is_written_and_not_read(score, failing, write, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert score(write(), "--out", pipe)[0] == 0
    assert [json.loads(line)["mars"] for line in os.read(reader, 10_000).splitlines()] == SCORES
    os.close(reader)
    assert pipe.is_fifo()
    assert failing("score", pipe).startswith(f"{pipe} can be read only once")


def test_several_candidates_of_a_row(score, write, tmp_path):
    several = {"id": 3, "prediction": [" x y", "q", ""], "reference": "x y", "context": "third"}
    path, out = write([ROWS[0], several, ROWS[1]]), tmp_path / "out.jsonl"
    code, text, _ = score(path, "--out", out, "--fail-rows-under", 0.1)
    assert code == 3
    assert [(row["id"], row["prediction"], row["mars"]) for row in jsonl.read(out)] == [
        *((1, "a b", 1.0), (3, " x y", 1.0), (3, "q", 0.0), (3, "", 0.0), (2, "c d", 0.5))
    ]
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][-2:] == ["rows", "5"]
    assert f"notice: {Notice.BLANK.message}: 1 of 5 rows (line 2)" in text
    assert lines[lines.index(["line", "score", "candidate"]) + 1 :] == [
        *(["2", "0.0000", "q"], ["2", "0.0000"], ["3", "0.5000", "c", "d"]),
        *(["1", "1.0000", "a", "b"], ["2", "1.0000", "x", "y"]),
    ]


def test_without_contexts(run, failing, write):
    rows = [{"prediction": "a", "reference": "a"}]
    code, out, _ = run("score", write(rows), "--no-use-context", "--json", "--variant", "fast")
    assert (code, json.loads(out)["settings"]["use_context"]) == (0, False)
    message = failing("score", write(rows))
    assert "column 'context' is missing" in message
    assert "--no-use-context" in message


TASKS = {  # of the second row -> where it is said
    "text": [],
    "dialogue": ["--task", "dialogue"],
    "data": ["--task", "dialogue", "--task-column", "kind"],
}


@pytest.mark.parametrize(("task", "options"), TASKS.items())
def test_the_task_is_said(run, failing, write, task, options):
    """By an option, by a column, or by the type of a context, and not by what a text looks like."""
    context = "A: Who took the old car?\nB: Nobody did."
    rows = [{**ROWS[0], "context": ["one", "two"], "kind": ""}, {**ROWS[0], "context": context, "kind": "data"}]
    argv = ["score", write(rows), "--variant", "plus", "--json", "--detailed", *options]
    scored = json.loads(run(*argv)[1])
    names = [{term["name"] for term in row["terms"]} for row in scored["rows"]]
    assert [("likelihood" in row, "sentences" in row) for row in names] == [
        (False, False),
        (task != "dialogue", task == "data"),
    ]
    assert scored["settings"]["task"] == ",".join(sorted({"dialogue", task}))
    if task == "data":
        path = write([*rows, {**rows[0], "kind": "story"}])
        assert failing(*argv[:1], path, *argv[2:]).startswith(f"{path}:3: column 'kind' must be one of")


# mars augment


def test_augment(run, failing, write, tmp_path):
    out = tmp_path / "augmented.jsonl"
    rows = [{name: value for name, value in row.items() if name != "prediction"} for row in ROWS]
    settings = ["--max-mask-ratio=0.6", "--mask-ratio-step=0.6", "--planner=none"]
    argv = ["augment", write(rows), "--out", out, *settings]
    assert run(*argv, "--no-store", "--quiet") == (0, "", "")
    for row, augmented, references in zip(rows, jsonl.read(out), (["a b"], ["x y", "c z"]), strict=True):
        assert augmented == {**augmented, **row}
        assert augmented.keys() - row.keys() == {"augmented_references", "augmentations"}
        assert [each["reference"] for each in augmented["augmentations"]] == references
        infills = [each["augmentations"][0] for each in augmented["augmentations"]]
        assert all(infill["mask_ratio"] == 0.6 and "_" in infill["template"] for infill in infills)
        texts = [text for each, infill in zip(references, infills, strict=True) for text in (each, infill["text"])]
        assert augmented["augmented_references"] == list(dict.fromkeys(texts))
    assert run(*argv, "--no-store")[2].endswith(f"2 rows with augmented references written to {out}\n")
    path = write(rows)
    assert run("augment", path, "--out", path, *settings, "--quiet") == (0, "", "")
    assert path.read_bytes() == out.read_bytes()
    for options in (["--variant", "plus"], ["--max-mask-ratio", "0"]):
        assert "masks nothing" in failing("augment", write(rows), "--out", out, *options)


# Options, and --help, which lists what a command takes, in groups, and nothing that it does not use


@pytest.mark.parametrize(("variant", "own"), [("plus", PLUS), ("paper", PAPER)])
def test_options_become_arguments(run, write, scorers, monkeypatch, tmp_path, variant, own):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one text\n\n\u05e9 two\u2028still two\n", encoding="utf-8")
    texts = ("one text", "\u05e9 two\u2028still two")
    options = {"batch_size": 7, "encoder_batch_size": 9, "device": "cpu", "store": tmp_path / "s"}
    settings = {**GENERAL, **own, "variant": variant, "use_context": True}
    argv = ["--preset", "mini"]
    for name, value in {**options, **settings}.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            argv.append(f"--{option}" if value else f"--no-{option}")
        elif name == "idf_corpus":
            argv += [f"--{option}", str(corpus)]
            settings["idf_corpus"] = texts
        else:
            argv += [f"--{option}", json.dumps(value) if isinstance(value, dict) else str(value)]
    monkeypatch.setattr(MarsScorer, "row_scores", lambda self, rows, *_, **__: scorers.append(self) or [])
    assert "shorter" in run("score", write(), *argv)[2]  # the models of these settings are not there
    [scorer] = scorers
    runtime = scorer.runtime
    assert (runtime.batch_size, runtime.encoder_batch_size, runtime.device) == (7, 9, "cpu")
    assert runtime.store.folder == tmp_path / "s"
    assert dict(scorer.settings.items()) == {**settings, "learned": None}


def test_progress_bars_are_for_terminals(run, write, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert "read" in run("score", write(), "--variant", "fast")[2]
    assert run("score", write(), "--variant", "fast", "--quiet")[2] == ""


UNUSED = {
    "augment": {*PLUS, "task", "clean", "learned", "q", "reference_aggregation", "encoder", "entailment_model"},
    "references": set(SETTING_NAMES) - {"use_context", "encoder", "dtype"},
    "train": {"learned"},
}


@pytest.mark.parametrize("command", ["score", "augment", "compare", "references", "meta", "train"])
def test_help_lists_options_and_settings_once_and_an_example(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, flags=re.MULTILINE)
    assert len(set(options)) == len(options)
    settings = {name for name in SETTING_NAMES if f"--{name.replace('_', '-')}" in options}
    assert settings == set(SETTING_NAMES) - UNUSED.get(command, set())
    titles = re.findall(r"^settings.*:$", shown, flags=re.MULTILINE)
    owners = {"settings of plus and fast:": "context_weight", "settings of paper:": "sigma"}
    assert titles == ["settings:", *(title for title, name in owners.items() if name in settings)]
    defaults = {"context_weight": "0.5", "max_mask_ratio": "0.6"}  # of the variant that has the setting
    for name in defaults.keys() & settings:
        assert re.search(rf"--{name.replace('_', '-')} .*\(default: {defaults[name]}\)", shown)
    assert ("reference_cosine" in shown) == (command == "meta")  # it names the metrics
    [example] = re.findall(r"^example: mars (.*)$", shown, flags=re.MULTILINE)
    parser, commands = make_parser()
    assert parser.parse_args(shlex.split(example)).command == command
    assert commands[command].format_help() == shown


@pytest.mark.parametrize(
    ("name", "before", "value"),
    [
        ("OMP_WAIT_POLICY", None, "PASSIVE"),
        ("OMP_WAIT_POLICY", "ACTIVE", "ACTIVE"),
        ("TQDM_DISABLE", None, "1"),
        ("HF_HUB_DISABLE_PROGRESS_BARS", None, "1"),
        ("TRANSFORMERS_VERBOSITY", None, "error"),
    ],
)
def test_threads_do_not_spin_unless_asked_to_and_libraries_show_nothing(name, before, value, monkeypatch):
    monkeypatch.setenv(name, before or "")
    if before is None:
        monkeypatch.delenv(name)
    assert main(["--version"]) == 0
    assert os.environ[name] == value


# Errors: one line, no traceback, nothing written


GOOD = json.dumps(ROWS[0]).encode()
INDENTED = json.dumps(ROWS[0], indent=1).encode()
BAD_FILES = [
    ("rows.jsonl", GOOD + b'\n{"prediction": "a",, }', ":2: not JSON: Expecting property name"),
    ("rows.jsonl", GOOD + GOOD, f":1: not JSON: Extra data (character {len(GOOD) + 1})"),
    ("rows.jsonl", GOOD + b"\n\n" + GOOD, ":2: not JSON: the line is blank"),
    ("rows.jsonl", GOOD + b'\n["a"]', ":2: not a JSON object but list; write one object per line"),
    ("rows.jsonl", b'{"prediction": ' + b"1" * 5000 + b"}", ":1: not JSON"),
    ("rows.jsonl", b'{"prediction": "caf\xe9"}', ":1: not UTF-8; convert the file"),
    ("rows.jsonl", b" " * 6000 + GOOD, ":1: a line of over 5,500 bytes"),
    ("rows.jsonl", GOOD + b'\n{"prediction": 1}', ":2: column 'reference' is missing (columns here: 'predic"),
    (
        "rows.jsonl",
        b'{"prediction": [], "reference": "a", "context": ""}',
        ":1: column 'prediction' is an empty list",
    ),
    ("list.json", b'[{"a": 1},\n 3]', ":2: not a JSON object but int"),
    ("list.json", b'[{"a": 1},\n {"b" 3}]', ":2: not JSON: Expecting ':' delimiter (character 7)"),
    ("list.json", b"[]", ": the file holds no rows"),
    ("list.json", b"[" * 5000, ":1: not JSON: nested too deeply"),
    ("list.json", b'[{"a": "\xff"}]', ":1: not UTF-8; convert the file"),
    ("rows.jsonl.gz", b"no gzip", ": not a whole gzip file"),
    ("rows.jsonl.gz", gzip.compress(b'{"prediction": "a"}\n' * 99, mtime=0)[:-9], ": not a whole gzip file"),
    ("rows.parquet", b"no parquet", ": not a Parquet file that can be read"),
    ("list.json", b'[{"a": 1}] {', ":1: not JSON: more text after the end"),
    ("list.json", b'[{"a": 1}', ":1: not JSON: Expecting"),
    ("list.json", b'[\n{"a": "' + b"x" * 6000, ":2: "),
    ("rows.jsonl", INDENTED, ":1: a JSON object that spans several lines"),
    ("rows.jsonl", GOOD + b'\n{"a": 1, "b": {"c": 1, "c": 2}}', ":2: not JSON: the key 'c' is repeated"),
    ("rows.csv", b"a,b\nc\n", ":2: the row has 1 cells, but there are 2 columns"),
    ("rows.csv", b'a,b\n"c\n\nd",e\n\nf\n', ":6: the row has 1 cells"),
    ("rows.csv", b'a,b\n"c,d\n', ":2: a quote in this row, read to line 2, is not closed"),
    ("rows.csv", b'a,b\n"x\ny","a ""word"""\nc,"d\ne,f\ng,h\n', ":4: a quote in this row"),
    ("rows.csv", b'a,b\nc,d\n"e" f,g\n', ":3: a quote in this row"),
    ("rows.csv", b"a,b\n" + b"c" * 6000 + b",d\n", ":2: a row of over 5,500 characters; shorten"),
    ("rows.csv", b'a,b\nc,"d\n' + b"e,f\n" * 2000, ":2: a row of over 5,500 characters; is a quote missing?"),
    ("rows.csv", b"a,b\ncaf\xe9,c\n", ": not UTF-8 (near line"),
    ("rows.jsonl", b'{"a": 1},\n', ":1: a comma follows the JSON object; remove it, or write"),
    ("rows", b'{"a": 1} , \r\n{"a": 2}', ":1: a comma follows the JSON object; remove it, or write"),
    ("rows.csv", b"sep=;\na;b\n", ":1: the line 'sep=;' is meant for Excel alone; remove it, and write commas"),
    ("rows.csv", b"sep=,\r\na,b\r\n1,2\r\n", ":1: the line 'sep=,' is meant for Excel alone; remove it"),
    ("rows.tsv", b"SEP=\t\na\tb\n1\t2\n", ":1: the line 'SEP=\\t' is meant for Excel alone; remove it"),
    ("rows", b"sep=;\na;b\n1;2\n", ":1: the line 'sep=;' is meant for Excel alone; remove it"),
    ("rows.csv", b"a\tb\n", ":1: the header has no commas, but tabs (columns: a b); name it .tsv, or write"),
    ("rows.csv", b"a|b\n", ":1: the header has no commas, but vertical bars (columns: a|b); save it with commas"),
    ("rows.tsv", b"a,b\n", ":1: the header has no tabs, but commas (columns: a,b); name it .csv, or write"),
    ("rows.tsv", b"a;b\n", ":1: the header has no tabs, but semicolons (columns: a;b); name it .csv, or write"),
    ("rows.tsv", b"a\ta\nb\tc\n", ":1: several columns have one name, in 'a', 'a'"),
    ("rows.tsv", b'a\tb\n"c\td\ne"\n', ":3: the row has 1 cells"),
    ("rows.tsv", b"a\tb\n", ": the file holds no rows; write a header"),
    ("rows.jsonl.bz2", bz2.compress(GOOD), ": not text in UTF-8, but compressed, an Excel workbook"),
    ("rows.jsonl", gzip.compress(GOOD, mtime=0)[:-9], ": not a whole gzip file"),
    ("rows.csv", GOOD.decode().encode("utf-16"), ": not text in UTF-8, but compressed, an Excel workbook"),
    ("rows", b"PAR1", ": not text in UTF-8, but compressed, an Excel workbook"),
    ("rows.xlsx", b"PK\x03\x04....", ": not text in UTF-8, but compressed, an Excel workbook"),
    ("rows", b"no rows\n", ":1: not JSON, and no header of a CSV or TSV file"),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES)
def test_bad_files(failing, scorers, tmp_path, monkeypatch, name, content, message):
    monkeypatch.setattr("mars_score.data.reading.LONGEST_LINE", 5500)
    path, out = tmp_path / name, tmp_path / "out.jsonl"
    path.write_bytes(content)
    out.write_text("as before")
    assert failing("score", path, "--out", out).startswith(f"{path}{message}")
    assert out.read_text() == "as before"
    assert scorers == []
    assert {path.name for path in tmp_path.iterdir()} == {"out.jsonl", name}


def test_columns_of_other_names(score, failing, write):
    path = write([{"answer": "a", "gold": ["a"], "doc": {"question": "q"}}])
    names = ["--prediction-column=answer", "--reference-column=gold", "--context-column=doc.question"]
    assert json.loads(score(path, *names, "--json")[1])["scores"] == [1.0]
    assert failing("score", path, "--reference-column", "target", names[2]) == (
        f"{path}:1: columns 'prediction', 'target' are missing (columns here: 'answer', 'gold', 'doc'); "
        "name them with --prediction-column, --reference-column"
    )


MISSING_COLUMNS = [
    ("score FILE --context-column x", "--context-column, or pass --no-use-context"),
    ("score FILE --reference-column x", "--reference-column, or pass --no-references to score all rows without"),
    ("score FILE --prediction-column x", "--prediction-column"),
    ("score FILE --samples-column x --variant fast", "--samples-column"),
    ("augment FILE --out OUT --reference-column x", "--reference-column"),
    ("references FILE --ratings x", "--ratings"),
    ("train FILE --out OUT --rating-column x", "--rating-column"),
]


@pytest.mark.parametrize(("command", "remedy"), MISSING_COLUMNS)
def test_a_command_names_its_option_for_a_column(failing, write, scorers, tmp_path, command, remedy):
    names = {"FILE": write(), "OUT": tmp_path / "out"}
    error = failing(*(names.get(word, word) for word in command.split()), "--preset", "mini")
    assert error.startswith(f"{names['FILE']}:1: column 'x' is missing (columns here: ")
    assert error.endswith(f"; add it or name another with {remedy}")


def test_an_error_of_standard_input_names_the_option(failing, write, monkeypatch):
    with write().open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        error = failing("score", "-", "--prediction-column", "x")
    assert error.startswith("standard input:1: column 'x' is missing")
    assert error.endswith("name another with --prediction-column")


def test_lists_and_objects_in_cells(score, failing, write, tmp_path):
    """They are as those of JSON; a column of which some cells hold none is refused."""
    path, out = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    text = json.dumps(["x y", "c z"]).replace('"', '""')
    path.write_text(f'prediction,reference,context\nc d,"{text}",one\na b,"[\'a b\']",\n')
    code, printed, err = score(path, "--json", "--chunk-size", 1, "--out", out, "--quiet")
    assert (code, json.loads(printed)["scores"]) == (0, [0.5, 1.0])
    assert (
        err == f"mars: notice: {path}:2: column 'reference' and the others of its column hold lists or objects, "
        "and are parsed\n"
    )
    assert [row["reference"] for row in jsonl.read(out)] == [["x y", "c z"], ["a b"]]
    with path.open("a") as file:
        file.write("a,a text,\n")
    error = failing("score", path, "--chunk-size", 1, "--variant", "fast")
    assert error.startswith(f"{path}:4: column 'reference' holds a text, but {path}:2: column 'reference' a list")


def test_notices_name_standard_input(run, monkeypatch, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('prediction,reference,context\na b,"[""a c""]",d\n')
    for command, options in (("score", word_recall.OPTIONS), ("references", [])):
        with path.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            code, _, err = run(command, "-", *options, "--preset", "mini")
        assert (code, "mars-stdin" in err) == (0, False), err
        assert err.startswith("mars: notice: standard input:2: column 'reference' and the others")


def test_names_of_files_do_not_reach_the_terminal_as_they_are(run, failing, tmp_path):
    name = "rows\x1b[31m\x07\u202e.jsonl"
    path = tmp_path / name
    assert "rows [31m .jsonl" in " ".join(failing("score", path).split())
    jsonl.write(path, ROWS)
    rows = [{**ROWS[0], "prediction": "q"}, *ROWS[1:]]
    other = jsonl.write(tmp_path / "other.jsonl", rows)
    for argv in (["compare", path, other], ["compare", path, other, "--table", "markdown"], ["references", path]):
        code, out, err = run(*argv, "--preset", "mini", *(word_recall.OPTIONS if argv[0] == "compare" else []))
        assert code == 0
        assert not set("\x1b\x07\u202e") & set(out + err)


def test_files_that_are_not_there(failing, write, tmp_path, scorers):
    missing = tmp_path / "missing.jsonl"
    assert failing("score", missing) == f"{missing}: No such file or directory"
    assert failing("score", tmp_path).startswith(f"{tmp_path}: not a data set that can be read: ")
    assert failing("score", write(), "--out", tmp_path) == f"{tmp_path}: Is a directory"
    nowhere = tmp_path / "nowhere" / "out.jsonl"
    assert failing("score", write(), "--out", nowhere).startswith(f"{nowhere}: the folder")
    assert scorers == []


BAD_USAGE = {
    "": "the following arguments are required: COMMAND (see: mars --help)",
    "score": "the following arguments are required: FILE (see: mars score --help)",
    "augment FILE": "the following arguments are required: --out",
    "augment FILE --out b.jsonl --q .5": "unrecognized arguments: --q .5",  # a setting that it does not use
    "score FILE --max-mask 1": "unrecognized arguments: --max-mask 1",
    "score FILE --sigma 2.5": "argument --sigma: invalid int value: '2.5'",
    "score FILE --workers 0": "argument --workers: must be an integer of at least 1, got '0'",
    "score FILE --preset huge": "unknown preset 'huge'; choose one of mini, medium, base",
    "score FILE --variant paper --max-mask-ratio 60": "max_mask_ratio must be less than or equal to 1, got 60",
    "score FILE --max-mask-ratio .4": "max_mask_ratio has no effect with variant 'plus'",
    "score FILE --variant paper --context-weight .4": "context_weight has no effect with variant 'paper'",
    "score FILE --variant paper --no-references": "variant 'paper' needs references",
    "score FILE --variant plus --no-references --no-use-context": "without references a candidate is scored by",
    "score FILE --variant paper --samples-column id": "samples have no effect with variant 'paper'",
    "score FILE --reference-aggregation min": "argument --reference-aggregation: invalid choice: 'min' (",
    "score FILE --task story": "argument --task: invalid choice: 'story' (",
    "score FILE --pos-weights {": "argument --pos-weights: not JSON: Expecting",
    "score FILE --variant paper --pos-weights [1]": "pos_weights must be a mapping",
    "score FILE --variant paper --idf-corpus no/a": "idf_corpus must be a list of strings or a file (No such file",
    f"score FILE --variant paper --idf-corpus {os.devnull}": "idf_corpus ",
    "scor FILE": "unknown command 'scor'; did you mean mars score? (see: mars --help)",
    "comapre a b": "unknown command 'comapre'; did you mean mars compare? (see: mars --help)",
    "quux": "unknown command 'quux'; choose one of score, augment, compare,",
    "score FILE --fail-bellow 3": "unrecognized arguments: --fail-bellow 3; did you mean --fail-under?",
    "score FILE --presset=mini": "unrecognized arguments: --presset=mini; did you mean --preset? (see: mars score",
    "compare a b --sample-from-others": "unrecognized arguments: --sample-from-others; did you mean --samples",
    "score FILE --zzzz": "unrecognized arguments: --zzzz (see: mars score --help)",
}


@pytest.mark.parametrize(("argv", "message"), BAD_USAGE.items())
def test_bad_usage(failing, write, scorers, argv, message):
    argv = [write() if part == "FILE" else part for part in argv.split()]
    assert failing(*argv).startswith(message)
    assert scorers == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelUnavailableError('could not load "x";\n use preset="mini"'), 1),
        (ImportError("no module named gguf"), 1),
        (WorkerError("a worker process died"), 1),
        (ValueError("no"), 2),
        (OSError(28, "No space left on device", "somewhere"), 2),
        (KeyboardInterrupt(), 130),
    ],
    ids=str,
)
def test_errors_while_scoring(failing, write, monkeypatch, tmp_path, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(MarsScorer, "row_scores", fail)
    monkeypatch.setattr(MarsScorer, "augment_rows", fail)
    out = tmp_path / "out.jsonl"
    for command in ("score", "augment"):
        variant = "fast" if command == "score" else "paper"
        message = failing(command, write(), "--out", out, "--no-store", "--variant", variant, code=code)
        says = "somewhere: No space left on device" if isinstance(error, OSError) and error.errno else str(error)
        assert message == (" ".join(says.split()) or "interrupted")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl"]


def test_what_is_no_documented_error_keeps_its_traceback(run, write, monkeypatch):
    monkeypatch.setattr(MarsScorer, "row_scores", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("score", write(), "--variant", "fast")


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out.jsonl"
    target.write_text("as before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "half of a character: \ud83d")
    assert target.read_text() == "as before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize(("name", "mode"), [("kept.jsonl", 0o600), ("link.jsonl", 0o620)])
def test_a_file_that_is_replaced_keeps_mode_and_owner(run, write, tmp_path, name, mode):
    kept = tmp_path / "kept.jsonl"
    kept.write_text("as before")
    kept.chmod(mode)
    if os.geteuid() == 0:
        os.chown(kept, 1234, 2345)
    if name != kept.name:
        (tmp_path / name).symlink_to(kept)
    before = kept.stat()
    write_whole(tmp_path / name, "new")
    assert kept.read_text() == "new"
    assert run("score", write(), "--out", tmp_path / name, "--variant", "fast")[0] == 0
    assert "mars" in jsonl.read(kept)[0]
    after = kept.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert not list(tmp_path.glob("*.tmp"))


READ_ONLY = {  # the file that a command would write, and its options
    "score": ("out.jsonl", "--out out.jsonl --variant plus"),
    "augment": ("out.jsonl", "--out out.jsonl --variant paper"),
    "references": ("best.jsonl", "--ratings marks --best best.jsonl"),
    "train": ("head.json", "--out . --variant plus"),
    "meta": ("report.md", "--report . --metrics mars_plus"),
}


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize("command", READ_ONLY)
def test_a_read_only_file_is_refused_before_anything_is_scored(failing, write, tmp_path, monkeypatch, command):
    fixed = {"reference": "a b", "prediction": "a", "marks": [1], "system": "one"}
    rows = [{**fixed, "context": f"text {n}", "human": n, "group": f"group {n}"} for n in range(20)]
    name, options = READ_ONLY[command]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MarsScorer, "row_scores", None)
    monkeypatch.setattr(MarsScorer, "augment_rows", None)
    path, target = write(rows), Path(name)
    target.write_text("as before")
    target.chmod(0o444)
    expected = f"{name}: the file is read-only; name another, or allow writing"
    assert failing(command, path, *options.split(), "--preset", "mini") == expected
    assert target.read_text() == "as before"
    assert oct(target.stat().st_mode)[-3:] == "444"


# The process itself


@pytest.mark.slow
def test_a_reader_that_leaves(write):
    code = """if True:
        import sys
        import pytest
        from tests import word_recall
        word_recall.install_models(pytest.MonkeyPatch())
        from mars_score.cli import main
        sys.exit(main([*sys.argv[1:], *word_recall.OPTIONS]))
    """
    rows = [{"prediction": f"a {row}", "reference": "a", "context": ""} for row in range(3000)]
    command = [sys.executable, "-c", code, "score", write(rows), "--detailed", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(60) == 1
    assert errors == ""


def test_rates_and_times_are_told_when_they_are_known(monkeypatch, capsys):
    """Of a stage that begins late with its second report, and the time when a tenth is done."""
    monkeypatch.setattr("mars_score.progress._LINE_SECONDS", 0)
    with progress_bars(quiet=False) as report:
        for stage in (("load a/model", 0, 1), ("augment", 5, 9), ("augment", 6, 9)):
            report(*stage)
        for done in (0, 9, 10):
            report("score", done, 100)
    loading, first, second, *scored = capsys.readouterr().err.splitlines()
    assert (loading, first) == ("mars: load a/model: 0 of 1", "mars: augment: 5 of 9")
    assert second.startswith("mars: augment: 6 of 9 (")
    assert second.endswith(" left)")
    assert [" left" in line for line in scored] == [False, False, True]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_stage_that_begins_anew_is_measured_anew(terminal, monkeypatch, capsys):
    """As texts are encoded once for each chunk of rows."""
    clock = itertools.count(time.monotonic() + 10, 10)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("mars_score.progress._LINE_SECONDS", 0)
    with progress_bars(quiet=False) as report:
        for done in (0, 20, 0, 10):
            now = next(clock)
            with monkeypatch.context() as patched:
                patched.setattr("mars_score.progress.time.monotonic", lambda now=now: now)
                report("encode", done, 40)
    shown = capsys.readouterr().err
    assert "1.0/s, 0:00:30 left" in shown
    assert terminal or "2.0/s, 0:00:10 left" in shown


# What people type, and the files they have


@pytest.mark.parametrize(
    ("command", "name", "typed"),
    [
        ("score", "x.XLS", "x.csv"),
        ("score", "x.pkl", "x.csv"),
        ("score", "x.jsonl.zip", "x.jsonl.jsonl.gz"),
        ("score", "x.parquet.gz", "x.jsonl.gz"),
        ("augment", "x.xlsx", "x.csv"),
    ],
)
def test_an_output_in_no_known_format_is_refused(failing, write, name, typed, command, scorers):
    message = failing(command, write(), "--out", name)
    assert message.startswith(f"{name}: rows are not written as .")
    assert f"; type {typed}" in message
    assert not scorers
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["x", "x.json", "x.JSONL", "x.v2", "x.csv.gz"])
def test_an_output_of_another_name_is_lines_of_json_or_cells(score, write, tmp_path, name):
    assert score(write(), "--out", tmp_path / name)[0] == 0
    assert len(read_rows(tmp_path / name).rows) == len(ROWS)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows"])
def test_csv_with_semicolons_is_read_with_a_notice(tmp_path, name):
    content = b'a;b\n"x; y";"say ""yes"", then"\nz;"two\nlines"\n'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.warns(MarsWarning, match="semicolons") if "csv" in name else contextlib.nullcontext():
        rows = read_rows(tmp_path / name).rows
    assert rows == [{"a": "x; y", "b": 'say "yes", then'}, {"a": "z", "b": "two\nlines"}]


@pytest.mark.parametrize("header", ["text", "a b", "a-b"])
def test_a_file_of_one_column_needs_no_delimiter(tmp_path, header):
    (tmp_path / "rows.csv").write_text(f"{header}\none; two | three\n")
    assert read_rows(tmp_path / "rows.csv").rows == [{header: "one; two | three"}]


def test_a_tsv_of_scores_is_read_by_pandas_and_again(score, write, tmp_path):
    rows = [
        {"prediction": 'He said "no".', "reference": '"quoted"', "context": "tab\tand\nline"},
        {"prediction": '"a', "reference": 'b"', "context": '""'},
    ]
    out = tmp_path / "out.tsv"
    assert score(write(rows), "--out", out)[0] == 0
    frame = pandas.read_csv(out, sep="\t", keep_default_na=False)
    assert frame[list(rows[0])].to_dict("records") == rows
    again = read_rows(out).rows
    assert [{name: row[name] for name in rows[0]} for row in again] == rows
    assert [json.loads(text).keys() for text in frame["aspects"]] == [set(Aspects._fields)] * 2


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_named_with_the_output(failing, write, tmp_path, monkeypatch, code):
    out, mkdtemp = tmp_path / "out.csv", tempfile.mkdtemp

    def refuse(*place):
        if str(place[-1]) != str(tmp_path):
            return mkdtemp(*place)
        raise OSError(code, os.strerror(code), f"{tmp_path}/.mars-run-1")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    path = write()
    message = failing("score", path, "--out", out)
    assert message.startswith(f"{out}: {os.strerror(code)}: the folder {tmp_path} cannot be written; name another")
    assert ".mars-run" not in message
