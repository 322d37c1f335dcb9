"""Runs over files: streamed, resumed after any stop, by several processes; with real tiny models in float64."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fakes
import pytest
import tiny_models
from jsonl import read, write

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.readers import stream_rows
from mars_score.errors import BLANK
from mars_score.runs import executors
from mars_score.runs import input as rows
from mars_score.runs.folder import SUFFIX, is_stream
from mars_score.runs.records import Distinct, Records
from mars_score.store.results import ResultStore

ROOT = Path(__file__).parent.parent
MARS = [sys.executable, "-c", "import sys; from mars_score.cli import main; sys.exit(main())"]
WORDS = tiny_models.TEXT.split()


def make_rows(count):
    """Rows of which every third repeats a reference, every fifth a candidate, and one in eleven is blank."""
    made = []
    for number in range(count):
        reference, candidate = number - number % 3, number - number % 5
        made.append(
            {
                "id": number,
                "prediction": "" if number % 11 == 10 else " ".join(WORDS[candidate : candidate + 6]),
                "reference": " ".join(WORDS[reference : reference + 5]),
                "context": " ".join(WORDS[reference + 20 : reference + 30]),
            }
        )
    return made


@pytest.fixture(scope="module")
def models(named_models):
    """Options that name tiny models in folders, in float64."""
    return [part for name, value in named_models.items() for part in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture
def fake(monkeypatch):
    return fakes.install_worker(monkeypatch)


def score(*argv):
    return main(["score", *map(str, argv), "--quiet"])


@pytest.mark.parametrize("variant", ["paper", "plus"])  # all that others read is among what these do
def test_a_run_scores_as_the_scorer_does(models, tmp_path, monkeypatch, capsys, variant):
    monkeypatch.setattr("mars_score.runs.survey.PART", 7)
    models = [*models, "--variant", variant]
    if variant == "plus":
        flat = tiny_models.tiny_gpt2(seed=1, initializer_range=0.1)  # does better than a guess with some texts
        for part in flat:
            part.save_pretrained(tmp_path / "flat")
        models += ["--language-model", str(tmp_path / "flat")]
    made = make_rows(30)
    out = tmp_path / "out.jsonl"
    assert score(write(tmp_path / "rows.jsonl", made), "--out", out, "--chunk-size", 3, "--json", *models) == 0
    shown = json.loads(capsys.readouterr().out)
    settings = dict(zip(models[::2], models[1::2], strict=True))
    scorer = MarsScorer(
        store=False,
        **{name[2:].replace("-", "_"): value for name, value in settings.items()},
        batch_size=5,
    )
    with pytest.warns(match="blank candidates"):
        expected = scorer.score(*([row[name] for row in made] for name in ("prediction", "reference", "context")))
    likelihoods = {term.value for row in expected.rows for term in row.terms if term.name == "likelihood"}
    assert (len(likelihoods) > 2) == (variant == "plus")
    assert shown["scores"] == pytest.approx(expected.scores, abs=1e-9)
    assert shown["mars"] == pytest.approx(expected.score, abs=1e-9)
    assert shown["notices"][0] == f"{BLANK}: 2 of 30 rows (line 11, 22)"
    assert [one.split("(")[0] for one in shown["notices"]] == [one.split("(")[0] for one in expected.notices]
    assert shown["signature"] == str(expected.signature)
    assert read(out) == [{**row, "mars": one} for row, one in zip(made, shown["scores"], strict=True)]
    assert not Path(f"{out}{SUFFIX}").exists()


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(models, tmp_path):
    """In float32: a test below has float64."""
    path = write(tmp_path / "rows.jsonl", make_rows(40))
    outs = {workers: tmp_path / f"{workers}.jsonl" for workers in (1, 3)}
    for workers, out in outs.items():
        argv = ["--out", out, "--workers", workers, "--threads", 1, "--chunk-size", 4, "--no-store"]
        assert score(path, *argv, *models, "--dtype", "float32") == 0
    assert len({out.read_bytes() for out in outs.values()}) == 1


FORMATS = ["rows.jsonl", "rows.jsonl.gz", "rows.csv", "rows.tsv.gz", "rows.parquet"]


@pytest.mark.parametrize("name", FORMATS)
def test_outputs_are_written_by_suffix_and_read_back_equal(fake, tmp_path, name):
    other = 'two, "quoted"\n\tlines'
    made = [{**row, "reference": other, "rank": 0.5} for row in make_rows(12)]
    made[1] |= {"prediction": "42", "context": "true"}  # texts, whatever they look like
    expected, out, again = (tmp_path / one for one in ("plain.jsonl", name, f"again_{name}"))
    assert score(write(tmp_path / "rows0.jsonl", made), "--out", expected) == 0
    assert score(tmp_path / "rows0.jsonl", "--out", out) == 0
    assert (out.read_bytes() == expected.read_bytes()) == (name == "rows.jsonl")
    found = list(stream_rows(out))
    of_cells = ".csv" in name or ".tsv" in name  # which are texts
    assert found == [
        {key: str(value) if of_cells and key in ("id", "rank", "mars") else value for key, value in row.items()}
        for row in read(expected)
    ]
    assert score(out, "--out", again) == 0  # with the same scores
    assert again.read_bytes() == out.read_bytes()
    assert main(["augment", str(out), "--out", str(again), "--quiet"]) == 0
    assert all(row["augmentations"] for row in stream_rows(again))
    assert {one.name for one in tmp_path.iterdir()} == {"rows0.jsonl", expected.name, name, again.name}


def test_a_saved_data_set_is_read(fake, tmp_path):
    import datasets

    datasets.Dataset.from_list(make_rows(12)).save_to_disk(str(tmp_path / "rows"))
    outs = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    for path, out in zip((tmp_path / "rows", write(tmp_path / "rows.jsonl", make_rows(12))), outs, strict=True):
        assert score(path, "--out", out) == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()


def test_standard_output(fake, tmp_path, capfdbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "rows.jsonl", make_rows(12))
    assert score(path, "--out", "out.jsonl") == 0
    capfdbinary.readouterr()
    with open(sys.stdout.fileno(), "w", closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert score(path, "--out", "-") == 0
        assert score(path, "--out", "-", "--json") == 2
    assert capfdbinary.readouterr().out == Path("out.jsonl").read_bytes()
    assert sorted(os.listdir()) == ["out.jsonl", "rows.jsonl"]


def test_devices_are_streams_and_files_in_memory_are_not():
    assert is_stream("/dev/stdout")
    assert not is_stream("/dev/shm/out.jsonl")


def test_rows_that_parquet_cannot_hold(fake, tmp_path, capsys):
    made = make_rows(3)
    made[1]["reference"] = ["a", "b"]
    out = tmp_path / "out.parquet"
    assert score(write(tmp_path / "rows.jsonl", made), "--out", out) == 2
    assert "Parquet cannot hold these rows" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.jsonl.gz", b"no gzip", "not a whole gzip file"),
        ("cut.jsonl.gz", gzip.compress(b'{"prediction": "a"}\n' * 99, mtime=0)[:-9], "not a whole gzip file"),
        ("rows.parquet", b"no parquet", "not a Parquet file that can be read"),
        (
            "rows.csv",
            b"prediction,reference\na\n",
            "the row that ends on line 2 has 1 cells",
        ),
        ("twice.tsv", b"prediction\tprediction\na\tb\n", "several columns have one name, in 'prediction'"),
        ("quote.csv", b'prediction,reference\n"a,b\n', "not a CSV or TSV file that can be read"),
        ("latin.csv", b"prediction,reference\ncaf\xe9,a\n", "not a CSV or TSV file that can be read"),
        ("huge.jsonl", b'{"prediction": ' + b"1" * 5000 + b"}\n", "huge.jsonl:1: not JSON"),
    ],
)
def test_files_that_are_damaged(tmp_path, capsys, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert score(tmp_path / name) == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="needs a named pipe")
def test_a_pipe_is_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert score(tmp_path / "pipe") == 2
    assert "can be read only once" in capsys.readouterr().err


def test_a_line_too_long_for_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mars_score.data.readers.LONGEST_LINE", 100)
    path = write(tmp_path / "rows.jsonl", [*make_rows(1)[:0], {"prediction": "a" * 200}])
    assert score(path) == 2
    assert ":1: a line of over 100 bytes" in capsys.readouterr().err


# Stopped and begun again


@pytest.fixture
def faulty(monkeypatch, fake):
    """Fake workers that stop at a chunk; the chunks that all of them have begun."""
    worker = fake
    begun = []
    work = worker.work

    def limited(self, chunk):
        begun.append((chunk.stage, chunk.number))
        if len(begun) == limited.stop_at:
            raise limited.error
        return work(self, chunk)

    limited.stop_at, limited.error = 0, KeyboardInterrupt()
    monkeypatch.setattr(worker, "work", limited)
    return limited, begun


@pytest.mark.parametrize(("variant", "stages"), [("plus", []), ("fast", ["sample"])])
def test_a_stopped_run_goes_on_where_it_was(faulty, tmp_path, capsys, variant, stages):
    limited, begun = faulty
    path, out = write(tmp_path / "rows.jsonl", make_rows(24)), tmp_path / "out.jsonl"
    argv = [path, "--out", out, "--chunk-size", 4, "--variant", variant]
    assert score(*argv) == 0
    whole, chunks = out.read_bytes(), list(begun)
    assert list(dict.fromkeys(stage for stage, _ in chunks)) == ["augment", *stages, "features", "score"]
    assert min(Counter(stage for stage, _ in chunks).values()) > 1
    out.write_text("as before")
    for stop_at in range(2, len(chunks) + 1):
        begun.clear()
        limited.stop_at = stop_at
        assert score(*argv) == 130
        assert out.read_text() == "as before"  # whole or not at all
        assert "the same command goes on from there" in capsys.readouterr().err
        limited.stop_at = 0
        again = len(begun)
        assert score(*argv) == 0
        assert begun[:again] == chunks[:stop_at]
        assert begun[again:] == chunks[stop_at - 1 :]  # the one that was stopped, and what comes after it
        assert out.read_bytes() == whole
        out.write_text("as before")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl"]


def test_a_run_stopped_between_samples_keeps_its_bytes(models, tmp_path, monkeypatch):
    work, drawn, stop_at = executors.work.Worker.work, [], [2]

    def stopping(self, chunk):
        if chunk.stage == "sample":
            drawn.append(chunk.number)
            if chunk.number in stop_at:
                stop_at.clear()
                raise KeyboardInterrupt
        return work(self, chunk)

    argv = [write(tmp_path / "rows.jsonl", make_rows(15)), "--chunk-size", 2, "--no-store", *models, "--out"]
    assert score(*argv, tmp_path / "whole.jsonl") == 0
    monkeypatch.setattr(executors.work.Worker, "work", stopping)
    assert [score(*argv, tmp_path / "stopped.jsonl") for _ in range(2)] == [130, 0]
    assert drawn[:4] == [0, 1, 2, 2]
    assert sorted(drawn[3:]) == drawn[3:] == list(range(2, drawn[-1] + 1))
    assert (tmp_path / "stopped.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_another_input_or_setting_is_refused(faulty, tmp_path, capsys):
    limited, _ = faulty
    path, out = write(tmp_path / "rows.jsonl", make_rows(40)), tmp_path / "out.jsonl"
    argv = [path, "--out", out, "--chunk-size", 3]
    limited.stop_at = 4
    assert score(*argv) == 130
    limited.stop_at = 0
    for change, what in (
        (["--samples", "3"], "samples (was 4, now 3)"),
        (["--batch-size", "7"], "batch_size (was None, now 7)"),
        (["--chunk-size", "5"], "chunk_size (was 3, now 5)"),
    ):
        capsys.readouterr()
        assert score(*argv, *change) == 2
        assert what in capsys.readouterr().err
    before = path.read_bytes()
    write(path, make_rows(41))
    assert score(*argv) == 2
    assert "with another input (was" in capsys.readouterr().err
    path.write_bytes(before)
    assert score(*argv) == 0
    assert len(read(out)) == 40


def test_two_processes_do_not_write_one_output(faulty, tmp_path, capsys):
    from mars_score.runs.folder import run_folder

    path, out = write(tmp_path / "rows.jsonl", make_rows(4)), tmp_path / "out.jsonl"
    with run_folder(str(out)):
        assert score(path, "--out", out) == 2
    assert "another process uses" in capsys.readouterr().err
    assert score(path, "--out", out) == 0


def test_an_input_that_changes_while_it_is_read(faulty, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mars_score.runs.survey.PART", 10)
    path = write(tmp_path / "rows.jsonl", make_rows(40))
    digest = rows.Input.digest

    def then_changed(name):
        found = digest(name)
        write(path, make_rows(41))
        return found

    monkeypatch.setattr(rows.Input, "digest", then_changed)
    assert score(path) == 0  # changed before it was read: all passes saw the same
    parts = rows.Input.parts

    def changing(self, size):
        for part in parts(self, size):
            yield part
            os.utime(path, (1, 1))

    monkeypatch.setattr(rows.Input, "parts", changing)
    assert score(path) == 2
    assert "changed while it was read" in capsys.readouterr().err


def test_a_disk_that_is_full(faulty, tmp_path, monkeypatch, capsys):
    limited, _ = faulty
    path, out = write(tmp_path / "rows.jsonl", make_rows(40)), tmp_path / "out.jsonl"
    out.write_text("as before")
    limited.stop_at, limited.error = 5, OSError(28, "No space left on device", "somewhere")
    assert score(path, "--out", out, "--chunk-size", 3) == 2
    assert "somewhere: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "as before"
    limited.stop_at = 0

    def full(row):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("mars_score.runs.writing.row_line", full)
        assert score(path, "--out", out, "--chunk-size", 3) == 2
    assert f"{out}{SUFFIX}/" in capsys.readouterr().err
    assert score(path, "--out", out, "--chunk-size", 3) == 0
    assert len(read(out)) == 40


def test_damaged_records(faulty, tmp_path, capsys):
    limited, _ = faulty
    path, out = write(tmp_path / "rows.jsonl", make_rows(40)), tmp_path / "out.jsonl"
    limited.stop_at = 4
    assert score(path, "--out", out, "--chunk-size", 3) == 130
    limited.stop_at = 0
    records = Path(f"{out}{SUFFIX}/run.sqlite3")
    records.write_bytes(b"damage" * 1000)
    capsys.readouterr()
    assert score(path, "--out", out, "--chunk-size", 3) == 2
    assert "is damaged" in capsys.readouterr().err
    assert score(path, "--out", out, "--chunk-size", 3, "--restart") == 0


# The parts


def test_results_of_a_chunk_are_kept_whole(tmp_path):
    with Records(tmp_path) as records:
        assert not records.worked
        records.add("features", 3, {b"a": b"1", b"b": b"2"})
        records.note("state", {"x": [1, None]})
    with Records(tmp_path) as records:
        assert records.worked
        assert records.done("features") == {3}
        assert records.done("augment") == set()
        assert records.get("features", [b"a", b"c"]) == {b"a": b"1"}
        assert records.fact("state") == {"x": [1, None]}


def test_distinct_keys():
    distinct = Distinct()
    keys = [str(number).encode() for number in range(5000)]
    assert distinct.new(keys[:3000] * 2) == keys[:3000]
    assert distinct.new(keys) == keys[3000:]
    assert distinct.new(keys) == []
    distinct.close()


# Processes that die

# A shell that runs the tests in the background has its children ignore Ctrl-C.
STOPPABLE = """if True:
    import signal, sys
    from mars_score.cli import main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_has_stored_its_infills(models, tmp_path, workers):
    made = [
        {
            "prediction": "a book",
            "reference": f"{' '.join(WORDS[row % 200 : row % 200 + 12])} {row}",
            "context": " ".join(WORDS[row % 150 : row % 150 + 20]),
        }
        for row in range(2000)
    ]
    command = [sys.executable, "-c", STOPPABLE, "score", str(write(tmp_path / "rows.jsonl", made)), *models]
    command += ["--chunk-size", "1000", "--batch-size", "2", "--workers", str(workers), "--quiet"]  # minutes
    command += [
        "--variant",
        "fast",
        "--max-mask-ratio",
        "0.6",
        "--store",
        str(tmp_path / "store"),
    ]  # which infills
    store, environment = ResultStore(tmp_path / "store"), {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not (before := store.info()["infills"][0]) and process.poll() is None:
            time.sleep(0.2)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "mars: error: interrupted\n"  # and with --quiet nothing else
    kept = store.info()["infills"][0]
    assert kept >= before > 0
    assert kept > before or workers == 2  # a worker process is killed; it saves every two seconds


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(models, tmp_path):
    path = write(tmp_path / "rows.jsonl", make_rows(24))
    argv = ["--threads", "1", "--chunk-size", "2", "--quiet", *models]
    assert main(["score", str(path), "--out", str(tmp_path / "one.jsonl"), *argv]) == 0
    command = [*MARS, "score", str(path), "--out", str(tmp_path / "two.jsonl")]
    environment = {**os.environ, "MARS_STORE": str(tmp_path / "other"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*command, *argv, "--workers", "2"], cwd=ROOT, env=environment) as process:
        deadline = time.monotonic() + 100
        while process.poll() is None and time.monotonic() < deadline:
            if children := _workers(process.pid):
                os.kill(children[0], signal.SIGKILL)
                break
            time.sleep(0.05)
        assert process.wait(100) == 0
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def _workers(parent):
    """Process numbers of a process's spawned workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_text()
        except OSError:
            continue
        if int(stat[1]) == parent and "spawn_main" in line:
            found.append(int(folder.name))
    return found


@pytest.mark.slow
def test_workers_end_with_a_killed_parent(models, tmp_path):
    path = write(tmp_path / "rows.jsonl", make_rows(24))
    command = [*MARS, "score", str(path), "--workers", "2", *models]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # what it leaves behind
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 100
        while not (children := _workers(process.pid)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert children
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_processes_that_die_again_and_again_are_given_up(monkeypatch):
    lost = []

    class Pool:
        _processes = None

        def submit(self, *_):
            raise executors.BrokenProcessPool

        def shutdown(self, **_):
            lost.append(1)

    monkeypatch.setattr(executors, "ProcessPoolExecutor", lambda *_: Pool())
    made = executors.ProcessExecutor(None, 2)
    with pytest.raises(OSError, match="killed again and again"):
        list(made.map([executors.Chunk("features", 0, ("a",))]))
    assert len(lost) == 4


# A store that goes wrong, and memory that is short


@pytest.mark.parametrize("fault", ["truncated", "replaced by a folder"])
def test_a_store_that_goes_wrong_under_a_run(models, tmp_path, monkeypatch, fault):
    path, store = write(tmp_path / "rows.jsonl", make_rows(30)), tmp_path / "store"
    argv = [path, "--chunk-size", 3, "--variant", "fast", "--max-mask-ratio", "0.6", *models]
    assert score(*argv, "--out", tmp_path / "sound.jsonl", "--store", tmp_path / "sound") == 0
    work = executors.work.Worker.work
    harmed = []

    def harming(self, chunk):
        results = work(self, chunk)
        if chunk.number == 2 and chunk.stage not in harmed:
            harmed.append(chunk.stage)
            if fault == "truncated":
                os.truncate(store / "results.sqlite3", 5000)
            else:
                shutil.rmtree(store)
                (store / "results.sqlite3").mkdir(parents=True)
        return results

    monkeypatch.setattr(executors.work.Worker, "work", harming)
    assert score(*argv, "--out", tmp_path / "harmed.jsonl", "--store", store) == 0
    assert harmed[0] == "augment"
    scores, sound = ([row["mars"] for row in read(tmp_path / f"{one}.jsonl")] for one in ("harmed", "sound"))
    assert scores == pytest.approx(sound, abs=1e-12)


def test_a_batch_too_large_for_memory_is_halved():
    import torch

    from mars_score.models.engine.encoder import SentenceEncoder

    class Model:
        sizes = ()

        def encode(self, texts, batch_size, **_):
            self.sizes += (batch_size,)
            if batch_size > self.most:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return torch.tensor([[float(len(text)), 1.0] for text in texts])

    model = Model()
    model.most = 8
    texts = ["a" * number for number in range(50)]
    encoded = SentenceEncoder(model, 32).encode(texts)
    assert [one.vector[0] for one in encoded] == list(range(50))
    assert model.sizes == (32, 16, 8)
    model.most = 0
    with pytest.raises(RuntimeError, match="allocate"):
        SentenceEncoder(model, 4).encode(texts)
