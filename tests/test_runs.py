"""Runs over files: streamed, stopped and begun again, by several processes; with real tiny models."""

import decimal
import gzip
import itertools
import json
import math
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from mars_score import MarsScorer
from mars_score.atomic import temporary_folder
from mars_score.cache import ResultStore
from mars_score.cli import main
from mars_score.data import reading
from mars_score.data.reading import read_chunks, read_rows
from mars_score.data.writing import RUN_PREFIX, LineFile, is_stream
from mars_score.errors import Notice, WorkerError
from mars_score.results import FOUND
from mars_score.rows import Row
from mars_score.runs import ADDED, RowAction
from mars_score.workers import in_processes, worker_of
from tests import ROOT, tiny_models, word_recall
from tests.jsonl import read, write
from tests.setting_values import as_options

MARS = [sys.executable, "-c", "import sys; from mars_score.cli import main; sys.exit(main())"]
WORDS = tiny_models.TEXT.split()


def make_rows(count):
    """Rows of which every third repeats a reference, every fifth a candidate, and one in eleven is blank."""
    starts = [(number, number - number % 3, number - number % 5) for number in range(count)]
    return [
        {
            "id": number,
            "prediction": "" if number % 11 == 10 else " ".join(WORDS[candidate : candidate + 6]),
            "reference": " ".join(WORDS[reference : reference + 5]),
            "context": " ".join(WORDS[reference + 20 : reference + 30]),
        }
        for number, reference, candidate in starts
    ]


@pytest.fixture(scope="module")
def models(named_models):
    """Options that name tiny models in folders, in float64."""
    return as_options(named_models)


def score(*argv):
    return main(["score", *map(str, argv), "--quiet"])


def score_words(*argv):
    """Scores by shared words, with the fixture ``word_models``."""
    return score(*argv, *word_recall.OPTIONS)


@pytest.mark.parametrize("variant", ["paper", "plus"])  # together they call all models
def test_a_run_scores_as_the_scorer_does(named_models, tmp_path, capsys, variant):
    settings = {**named_models, "variant": variant}
    rows, out = make_rows(12), tmp_path / "out.jsonl"
    argv = [write(tmp_path / "rows.jsonl", rows), "--out", out, "--chunk-size", 3, "--json", *as_options(settings)]
    assert score(*argv) == 0
    shown = json.loads(capsys.readouterr().out)
    scorer = MarsScorer(store=False, **settings, batch_size=5)
    with pytest.warns(match="blank candidate"):
        expected = scorer.score(*([row[name] for row in rows] for name in ("prediction", "reference", "context")))
    assert shown["scores"] == pytest.approx(expected.scores, abs=1e-9)
    assert shown["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert shown["notices"][0] == f"{Notice.BLANK.message}: 1 of 12 rows (line 11)"
    notices, scorers = ([text.split("(")[0] for text in of] for of in (shown["notices"], expected.notices))
    # Models that do not ship have no verdicts; `paper` asks for none.
    unchecked = (
        "no row can be checked for contradictions: 11 rows not judged by this NLI model, 1 blank candidate; "
        "the NLI models of --preset mini and medium can judge English rows"
    )
    assert notices == scorers + [unchecked] * (variant == "plus")
    assert shown["signature"] == str(expected.signature)
    written = read(out)
    aspects = [row.pop("aspects") for row in written]
    assert aspects == [pytest.approx(row.aspects._asdict(), abs=1e-9) for row in expected.row_scores]
    of_rows = [row.to_dict() for row in expected.row_scores]
    for name in FOUND:
        assert [row.pop(name) for row in written] == [row[name] for row in of_rows]
    assert {row.pop("mars_signature") for row in written} == {str(expected.signature)}
    assert written == [{**row, "mars": value} for row, value in zip(rows, shown["scores"], strict=True)]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.jsonl", "rows.jsonl"]


OPTIONS = {
    "plain": [],
    "JSON": ["--json", "--detailed", "--explain"],
    "gates": [
        *("--fail-rows-under", 2, "--fail-contradicted", "--fail-unsupported", "--fail-unchecked"),
        *("--fail-under", 2, "--fail-under-baseline", "baseline.jsonl", "--detailed", "--out", "out.csv"),
    ],
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.usefixtures("word_models")
def test_a_file_is_read_three_times(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    iter_rows, read_paths = reading.iter_rows, []
    monkeypatch.setattr(reading, "iter_rows", lambda path: read_paths.append(str(path)) or iter_rows(path))
    path = write(tmp_path / "rows.jsonl", make_rows(20))
    write(tmp_path / "baseline.jsonl", [{"mars": 2}] * 20)
    assert score_words(path, "--chunk-size", 8, *options) == (3 if "--fail-rows-under" in options else 0)
    assert read_paths.count(str(path)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("action", ["score", "augment"])
def test_several_processes_give_the_same(named_models, tmp_path, action):
    path = write(tmp_path / "rows.jsonl", make_rows(40))
    unused = () if action == "score" else ("encoder", "entailment_model")
    options = as_options({name: value for name, value in named_models.items() if name not in unused})
    outs = {workers: tmp_path / f"{workers}.jsonl" for workers in (1, 3)}
    for workers, out in outs.items():
        argv = [action, path, "--out", out, "--workers", workers, "--chunk-size", 8, "--no-store", "--quiet"]
        assert main([*map(str, argv), *options]) == 0
    single, three = map(read, outs.values())
    if action == "augment":
        assert single == three
    else:
        assert [row["mars"] for row in single] == pytest.approx([row["mars"] for row in three], abs=1e-9)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.csv", "rows.tsv.gz", "rows.parquet"])
@pytest.mark.usefixtures("word_models")
def test_outputs_are_written_by_suffix_and_read_back_equal(tmp_path, name):
    lines = 'two, "quoted"\n\tlines'
    rows = [{**row, "reference": lines, "rank": 0.5} for row in make_rows(12)]
    rows[1] |= {"prediction": "42", "context": "true"}  # texts, whatever they look like
    expected, out = tmp_path / "plain.jsonl", tmp_path / name
    path = write(tmp_path / "rows0.jsonl", rows)
    assert [score_words(path, "--out", written) for written in (expected, out)] == [0, 0]
    assert (out.read_bytes() == expected.read_bytes()) == (name == "rows.jsonl")
    texts = {"id", "rank", *ADDED["score"]} - {"mars_signature"}
    texts = texts if ".csv" in name or ".tsv" in name else ()  # cells are texts

    def as_cell(value):
        return "" if value is None else json.dumps(value)

    rows = [{key: as_cell(row[key]) if key in texts else row[key] for key in row} for row in read(expected)]
    assert read_rows(out).rows == rows
    assert {path.name for path in tmp_path.iterdir()} == {"rows0.jsonl", expected.name, name}


@pytest.mark.usefixtures("word_models")
def test_standard_input_and_output(tmp_path, capfdbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "rows.jsonl", make_rows(12))
    assert score_words(path, "--out", "out.jsonl") == 0
    capfdbinary.readouterr()
    with open(sys.stdout.fileno(), "w", closefd=False) as stdout, path.open() as stdin:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "stdin", stdin)
        assert score_words("-", "--out", "-") == 0
        assert score("-", "--out", "-", "--json") == 2
    assert capfdbinary.readouterr().out == Path("out.jsonl").read_bytes()
    assert sorted(os.listdir()) == ["out.jsonl", "rows.jsonl"]
    path.write_text("{\n")
    with path.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert score("-") == 2
    assert capfdbinary.readouterr().err.startswith(b"mars: error: standard input:1: a JSON object")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.usefixtures("word_models")
def test_a_device_is_written_to_and_a_file_in_memory_replaced(tmp_path, failing):
    assert is_stream("/dev/stdout")
    assert not is_stream("/dev/shm/out.jsonl")
    path = write(tmp_path / "rows.jsonl", make_rows(3))
    error = failing("score", path, "--out", "/dev/full", "--variant", "fast")
    assert error == "/dev/full: No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("together", [0, 2**20], ids=["while lines are added", "at the end"])
def test_a_disk_that_is_full_while_lines_are_kept(monkeypatch, together):
    monkeypatch.setattr("mars_score.data.writing._LINES_TOGETHER", together)
    lines = LineFile(Path("/dev/full"), "out.jsonl")
    with pytest.raises(OSError, match="No space left") as caught:
        lines.add("a\n"), list(lines)
    assert caught.value.filename == "out.jsonl"


@pytest.mark.parametrize("together", [0, 2, 2**20])
def test_lines_are_read_as_they_were_added(tmp_path, monkeypatch, together):
    monkeypatch.setattr("mars_score.data.writing._LINES_TOGETHER", together)
    lines, added = LineFile(tmp_path / "lines"), ["a\n", "\u2028b\r\n", "\ud83d\n", "\n"]
    for line in added:
        lines.add(line)
    assert list(lines) == added


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.usefixtures("word_models")
def test_a_disk_that_is_full_while_results_are_kept(tmp_path, failing, monkeypatch):
    monkeypatch.setattr("mars_score.runs.RESULTS", "/dev/full")
    path = write(tmp_path / "rows.jsonl", make_rows(3))
    assert failing("score", path, "--variant", "fast") == "/dev/full: No space left on device"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_run_removes_what_killed_ones_left(tmp_path):
    killed = subprocess.Popen([sys.executable, "-c", ""])
    with temporary_folder(RUN_PREFIX, tmp_path) as folder:
        left = tmp_path / folder.name.replace(f"-{os.getpid()}-", f"-{killed.pid}-")
        others = tmp_path / f"{RUN_PREFIX}00000000-{killed.pid}-another-machine"
        left.mkdir(), others.mkdir()
        killed.wait()
        with temporary_folder(RUN_PREFIX, tmp_path) as second:
            assert {path.name for path in tmp_path.iterdir()} == {folder.name, second.name, others.name}
    assert list(tmp_path.iterdir()) == [others]


PEAK = r"""
import re, sys
from pathlib import Path
from mars_score.cli import main
codes = [main(["score", path, "--variant", "fast", "--quiet"]) for path in sys.argv[1:]]
# Unlike ru_maxrss, it does not begin with the peak of the process that started this one.
print(*codes, int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def repeated(number, size):
    """A column of a long text that Parquet holds once, and a list of it in one row."""
    text = pyarrow.array(["a" * size])
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * number, pyarrow.int32()), text)
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, number], pyarrow.int32()), texts)
    buffers = [pyarrow.BufferOutputStream() for _ in range(2)]
    for sink, table in zip(buffers, (pyarrow.table({"a": texts}), pyarrow.table({"a": lists})), strict=True):
        parquet.write_table(table, sink, compression="zstd")
    return [buffer.getvalue().to_pybytes() for buffer in buffers]


def compressed(start, part, number):
    """A gzip file of several members, which takes no time to make."""
    return gzip.compress(start) + number * gzip.compress(part, 1)


BOMBS = {  # files of less than 3 MB that would take over 1.5 GB
    "rows.jsonl.gz": lambda: compressed(b'{"a": "', b"a" * 2**20, 600),
    "rows.csv.gz": lambda: compressed(b"a,b\n", b"a" * 2**20, 600),
    "rows.tsv.gz": lambda: compressed(b"a\tb\n", b"a" * 2**20, 600),
    "rows.json.gz": lambda: compressed(b"[{}", b",{}" * 2**18, 100),
    "deep.json.gz": lambda: compressed(b'[{"a": [{}', b",{}" * 2**18, 100),
    "rows.parquet": lambda: repeated(500, 20_000_000)[0],
    "lists.parquet": lambda: repeated(100_000, 100_000)[1],
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_small_files_do_not_fill_memory(tmp_path):
    paths = [tmp_path / name for name in BOMBS]
    for path in paths:
        path.write_bytes(BOMBS[path.name]())
        assert path.stat().st_size < 3_000_000
    command = [sys.executable, "-c", PEAK, *map(str, paths)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *codes, peak = map(int, process.stdout.split())
    assert codes == [2] * len(paths)
    assert peak < 1500
    for path, error in zip(paths, process.stderr.splitlines(), strict=True):
        assert error.startswith(f"mars: error: {path}")


def test_files_that_are_held_whole_have_a_limit(tmp_path, failing, monkeypatch):
    monkeypatch.setattr("mars_score.data.reading.LARGEST_FILE", 50_000)
    path = write(tmp_path / "rows.jsonl", make_rows(200))
    error = failing("compare", path, path, "--variant", "fast")
    assert re.match(rf"{re.escape(str(path))}:\d+: over 50,000 bytes of rows", error)


def test_chunks_have_a_limit_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("mars_score.data.reading._LARGEST_CHUNK", 5000)
    path = write(tmp_path / "rows.jsonl", make_rows(40))
    sizes = [len(chunk.rows) for chunk in read_chunks(path, 30)]
    assert sum(sizes) == 40
    assert max(sizes) < 20


CLOSED = {  # by redirection and arguments: exit code, and whether there is an error for standard error
    "<&- - --json": (2, "standard input is closed; send the rows to it, or name a file"),
    ">&- <&- FILE": (2, "standard output is closed; send it to /dev/null if nobody is to read it"),
    "2>&- FILE --json": (0, ""),
    "<&- FILE --json": (0, ""),
    "2>&- <&- FILE --json --fail-under 2": (3, ""),
    "2>&- FILE --json --out OUT": (0, ""),
    "2>&- missing --json": (2, ""),
    "2>&- FILE --nonsense": (2, ""),
    "2>&- >&- <&- -": (2, ""),
}


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize(
    "case",
    # Scoring takes seconds to import torch.
    [pytest.param(case, marks=[pytest.mark.slow] * (code != 2)) for case, (code, _) in CLOSED.items()],
)
def test_closed_standard_streams(tmp_path, case):
    """A blank candidate is scored without a model."""
    path, out = write(tmp_path / "rows.jsonl", [{**make_rows(1)[0], "prediction": ""}]), tmp_path / "out.jsonl"
    closed, arguments = case[: case.rindex("&-") + 2], case[case.rindex("&-") + 2 :].split()
    argv = [str({"FILE": path, "OUT": out}.get(argument, argument)) for argument in arguments]
    code, error = CLOSED[case]
    command = ["sh", "-c", f'"$@" {closed}', "sh", *MARS, "score", *argv, "--variant=fast", "--quiet"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == code
    assert process.stderr == (f"mars: error: {error}\n" if error else "")
    if code in (0, 3):
        assert json.loads(process.stdout)["scores"] == [0]
    else:
        assert process.stdout == ""
    assert not out.exists() or [row["mars"] for row in read(out)] == [0]


def test_rows_are_divided_among_processes_by_context_or_else_references():
    for context, reference in (("", "reference {}"), ("context {}", "the same")):
        rows = [Row(str(n), (reference.format(n // 2),), context.format(n // 2)) for n in range(60)]
        numbers = [worker_of(row, 3) for row in rows]
        assert numbers[::2] == numbers[1::2]
        assert set(numbers) == {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        ({"reference": ["a", "b"]}, "out.parquet", "Parquet cannot hold these rows"),
        ({"id": 2**63}, "out.parquet", "Parquet cannot hold these rows (an integer of 64 bits or more)"),
        ({"id": 10**30}, "out.parquet", "Parquet cannot hold these rows (an integer of 64 bits or more)"),
        ({"meta": {}}, "out.parquet", "Parquet cannot hold these rows (Cannot write struct type 'meta'"),
        ({"meta": [{"a": {"b": {}}}]}, "out.parquet", "Parquet cannot hold these rows (Cannot write struct"),
        ({"aspects": 1}, "out.jsonl", "the output has a column 'aspects' of its own"),
        ({"mars": 1}, "out.jsonl", "the output has a column 'mars' of its own; rename that of the input"),
    ],
)
def test_what_cannot_be_written_is_found_before_any_scoring(tmp_path, failing, change, name, message):
    """The models of the default preset could not be loaded."""
    rows = make_rows(3)
    rows[1] |= change
    assert message in failing("score", write(tmp_path / "rows.jsonl", rows), "--out", tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.usefixtures("word_models")
def test_columns_of_parquet_that_json_does_not_have(tmp_path, failing):
    path, out = tmp_path / "rows.parquet", tmp_path / "out.jsonl"
    table = pyarrow.Table.from_pylist(make_rows(2))
    price, number = pyarrow.array([decimal.Decimal("1.5")] * 2), pyarrow.array([math.nan, 1.0])
    parquet.write_table(table.append_column("raw", [[b"a", b"b"]]), path)
    assert "rows.parquet:1: column 'raw' cannot be written as JSON" in failing("score", path, "--out", out)
    parquet.write_table(table.append_column("price", price).append_column("x", number), path)
    assert score_words(path, "--out", out) == 0
    assert [(row["price"], row["x"]) for row in read(out)] == [(1.5, None), (1.5, 1.0)]


@pytest.mark.usefixtures("word_models")
def test_an_object_of_parquet_has_fields_in_a_later_row(tmp_path, monkeypatch):
    """Names of fields say nothing of their types."""
    monkeypatch.setattr("mars_score.data.writing._ROW_GROUP_SIZE", 1)
    metas = [{}, {"uint64": 1, "struct<>": {}}, {"struct<>": {"a": [{}]}}, {"struct<>": {"a": [{"b": 2}]}}]
    rows = [{**row, "meta": meta} for row, meta in zip(make_rows(4), metas, strict=True)]
    path, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "out.parquet"
    assert score_words(path, "--out", out) == 0
    written = [row["meta"] for row in read_rows(out).rows]
    assert [meta["uint64"] for meta in written] == [None, 1, None, None]
    assert written[3]["struct<>"] == metas[3]["struct<>"]


@pytest.mark.usefixtures("word_models")
@pytest.mark.parametrize("large_first", [False, True])
def test_an_integer_that_no_float_equals_and_fractions(tmp_path, monkeypatch, failing, large_first):
    """In groups of rows that are written apart; alone such integers are written."""
    monkeypatch.setattr("mars_score.data.writing._ROW_GROUP_SIZE", 1)
    numbers = [2**53 + 1, 3, 1.5] if large_first else [1.5, 3, 2**53 + 1]
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.parquet"
    write(path, [{**row, "number": number} for row, number in zip(make_rows(3), numbers, strict=True)])
    error = failing("score", path, "--out", out)
    assert error.startswith(f"{out}: Parquet cannot hold these rows (Integer value 9007199254740993")
    write(path, [{**row, "number": 2**53 + 1} for row in make_rows(3)])
    assert score_words(path, "--out", out) == 0
    assert [row["number"] for row in read_rows(out).rows] == [2**53 + 1] * 3


# Stopped and begun again


@pytest.mark.usefixtures("word_models")
def test_a_stopped_run_goes_on_with_what_the_store_has(models, monkeypatch, tmp_path):
    chunks, row_scores = itertools.count(1), MarsScorer.row_scores

    def stopping(*args, **options):
        if next(chunks) == 4:
            raise KeyboardInterrupt
        return row_scores(*args, **options)

    def run(name="out.jsonl", *options):
        return score_words(path, "--out", tmp_path / name, "--chunk-size", 4, *models, *options)

    def stored():
        return ResultStore(tmp_path / "store").info()["encodings"][0]

    rows = [{**row, "prediction": f"{row['prediction']} {row['id']}"} for row in make_rows(24)]
    path, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "out.jsonl"
    out.write_text("as before")
    monkeypatch.setattr(MarsScorer, "row_scores", stopping)
    assert run() == 130
    assert out.read_text() == "as before"  # whole or not at all
    done = {text.strip() for row in rows[:12] for text in (row["prediction"], row["reference"])}
    assert stored() == len(done)
    assert run() == 0
    assert stored() == len({text.strip() for row in rows for text in (row["prediction"], row["reference"])})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl", "store"]
    assert run("fresh.jsonl", "--no-store") == 0
    fresh = [row["mars"] for row in read(tmp_path / "fresh.jsonl")]
    assert [row["mars"] for row in read(out)] == pytest.approx(fresh, abs=1e-6)


@pytest.mark.usefixtures("word_models")
@pytest.mark.parametrize("changed", [[*make_rows(40), {"other": 1}], [{"x": 1}, *make_rows(39)]])
def test_an_input_that_changes_during_a_run(monkeypatch, tmp_path, failing, changed):
    path, row_scores = write(tmp_path / "rows.jsonl", make_rows(40)), MarsScorer.row_scores
    monkeypatch.setattr(MarsScorer, "row_scores", lambda *args, **_: write(path, changed) and row_scores(*args))
    error = failing("score", path, "--chunk-size", 4, "--variant", "fast")
    assert error == f"{path} changed during the run; run the command again"


# Real processes


def started(*argv, **options):
    command = [*MARS, "score", *map(str, argv), "--quiet"]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options)


def wait_until(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_what_a_stopped_process_leaves(models, tmp_path, number, status):
    """Neither a copy of standard input nor the run's folder."""
    texts, folder = tmp_path / "temporary", tmp_path / "out"
    texts.mkdir(), folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(texts)}
    argv = ["-", "--out", folder / "out.jsonl", "--chunk-size", 2, "--variant", "paper", *models]
    with started(*argv, stdin=subprocess.PIPE, env=environment) as process:
        process.stdin.write("".join(json.dumps(row) + "\n" for row in make_rows(200) * 10).encode())
        process.stdin.close()
        wait_until(lambda: any(folder.glob(".mars-run-*/results.jsonl")))
        process.send_signal(number)
        assert process.wait(60) == status
    assert list(folder.iterdir()) == []
    assert not list(texts.glob("mars-*"))


IGNORED = """
import os, sys, time
from mars_score import cli
class Freed:
    def __del__(self):
        os.kill(os.getpid(), {number})
def run(args):
    Freed()
    time.sleep(60)
cli.parse = lambda argv: type("Args", (), {{"run": staticmethod(run)}})
sys.exit(cli.main([]))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_that_python_ignores_is_sent_again(number, status):
    """As one that comes while a destructor runs, whose exceptions are printed and ignored."""
    done = subprocess.run([sys.executable, "-c", IGNORED.format(number=int(number))], cwd=ROOT, timeout=50)
    assert done.returncode == status


@pytest.mark.parametrize("noticed", [True, False], ids=["before more rows are sent", "when results are awaited"])
def test_a_killed_worker_is_named(noticed):
    before = set(threading.enumerate())

    def chunks():
        row = Row("a", ("a",), "a")
        yield [row]
        for process in multiprocessing.active_children():
            process.kill()
        if noticed:
            wait_until(lambda: set(threading.enumerate()) <= before)
        yield [row]

    with pytest.raises(WorkerError, match="a worker process died"):
        list(in_processes(RowAction("score", {}).start, chunks(), 1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_end_with_a_killed_parent(models, tmp_path):
    def children(parent):
        processes = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [int(child) for child in processes if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]

    argv = [write(tmp_path / "rows.jsonl", make_rows(240)), "--workers", 2, "--chunk-size", 4, *models]
    with started(*argv, "--out", tmp_path / "out.jsonl") as process:
        wait_until(lambda: len(children(process.pid)) == 2 and list(tmp_path.glob(".mars-run-*/results.jsonl")))
        workers = children(process.pid)
        process.kill()
        process.wait(60)
        wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    assert score(*argv[:1], "--out", tmp_path / "out.jsonl", *models) == 0
    assert len(read(tmp_path / "out.jsonl")) == 240
