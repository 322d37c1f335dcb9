"""``mars score --fail-under-baseline``: what counts as a fall, and which files are compared at all."""

import pytest

from mars_score.cli.baseline import Baseline
from mars_score.models.calls import ModelCalls
from mars_score.rows import Row, RowScore
from tests import jsonl, word_recall
from tests.result_rows import gates_of, read

ROWS = [
    {"prediction": f"a b {number}", "reference": f"a b c {number}", "context": f"It was day {number}."}
    for number in range(12)
]


@pytest.fixture
def score(tmp_path, word_models, run):
    """Runs ``mars score`` over rows; returns exit code and standard error."""

    def run_command(*options, rows=ROWS):
        path = jsonl.write(tmp_path / "rows.jsonl", rows)
        code, _, error = run("score", path, *word_recall.OPTIONS, *options)
        return code, error

    return run_command


@pytest.fixture
def baseline(score, tmp_path):
    """Writes a baseline of the rows, with other scores and columns."""

    def write(change=lambda row: {}, rows=ROWS, options=(), name="baseline.jsonl"):
        path = tmp_path / name
        assert score("--out", path, *options, rows=rows)[0] == 0
        if name.endswith(".jsonl"):
            jsonl.write(path, [{**row, **change(row)} for row in jsonl.read(path)])
        return path

    return write


@pytest.mark.parametrize("count", [2, 12])  # without and with an interval
@pytest.mark.parametrize(
    ("fall", "options", "fails"),
    [
        (1e-12, (), False),
        (0.0009, (), False),
        (0.0011, (), True),
        (0.25, (), True),
        (-0.25, (), False),
        (1e-6, ("--least-fall", "1e-7"), True),
        (0.04, ("--least-fall", "0.05"), False),
        (0.06, ("--least-fall", "0.05"), True),
    ],
)
def test_a_fall_that_counts(count, fall, options, fails):
    [gate] = gates_of(*options, baseline=Baseline("baseline.jsonl", [0.5 + fall] * count))
    read(gate, *((Row("a", ("b",), f"It was day {number}."), RowScore(0.5)) for number in range(count)))
    error = "".join(gate.failures())
    assert (f"the mean score fell by {fall:.4f} from baseline.jsonl" in error) == fails
    assert bool(error) == fails


def test_the_rows_that_fell_most_are_named(score, baseline):
    path = baseline(lambda row: {"mars": row["mars"] + 0.1 * ("day 3" in row["context"]) + 0.1})
    _, error = score("--fail-under-baseline", path)
    lines = error.splitlines()
    assert "most in" in lines[0]
    assert lines[1].startswith("mars:   line 4: ")
    assert len(lines) == 11


def test_chance_does_not_fail_a_build(score, baseline):
    """Half of the rows rise and half fall, by a little more: the interval of the mean holds 0."""
    sign = {row["context"]: 1 if number % 2 else -1 for number, row in enumerate(ROWS)}
    path = baseline(lambda row: {"mars": row["mars"] + 0.1 * sign[row["context"]] + 0.002})
    assert score("--fail-under-baseline", path) == (0, "")


def test_questions_on_the_same_passages_are_different_contexts():
    [gate] = gates_of(baseline=Baseline("baseline.jsonl", [0.6] * 12))
    rows = [Row("a", ("b",), "It was day 1.", question=f"Which day was {number}?") for number in range(12)]
    read(gate, *((row, RowScore(0.5)) for row in rows))
    assert "95 % interval -0.1000 to -0.1000" in "".join(gate.failures())


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_a_baseline_in_any_format(score, baseline, name):
    assert score("--fail-under-baseline", baseline(name=name)) == (0, "")


def test_other_candidates_are_compared(score, baseline):
    worse = [{**row, "prediction": "x"} for row in ROWS]
    assert score("--fail-under-baseline", baseline(), rows=worse)[0] == 3
    assert score("--fail-under-baseline", baseline(rows=worse), rows=ROWS)[0] == 0


def swapped(rows, first=2, second=5):
    rows = list(rows)
    rows[first], rows[second] = rows[second], rows[first]
    return rows


ALIKE = [{**row, "reference": ["yes", "no"][number % 2]} for number, row in enumerate(ROWS)]
FIRST_ELSE = [{**ROWS[0], "reference": "x"}, *ROWS[1:]]
ELSEWHERE = [{**ROWS[0], "context": "x"}, *ROWS[1:]]
WITHOUT = ("--no-references", "--context-weight", "1")


@pytest.fixture
def refused(score, monkeypatch):
    """Compares with a baseline that is refused before any model is asked; returns the error."""

    def compare(path, *options, **rows):
        monkeypatch.setattr(ModelCalls, "_model", lambda *_: pytest.fail("a model was asked for"))
        code, error = score("--fail-under-baseline", path, *options, **rows)
        assert code == 2
        return error

    return compare


@pytest.mark.parametrize(
    ("before", "today", "options", "fault"),
    [
        (ROWS[:-1], ROWS, (), "has 11 scores, and there are 12 rows"),
        (ROWS, ROWS[:-1], (), "has 12 scores, and there are 11 rows"),
        (swapped(ROWS), ROWS, (), "rows.jsonl:3 has references other than row 3 of"),
        (swapped(ALIKE, 2, 4), ALIKE, (), "rows.jsonl:3 has a context other than"),
        (FIRST_ELSE, ROWS, (), "rows.jsonl:1 has references other"),
        (ELSEWHERE, ROWS, WITHOUT, "rows.jsonl:1 has a context other than row 1"),
    ],
)
def test_other_rows_are_refused_before_anything_is_scored(refused, baseline, before, today, options, fault):
    error = refused(baseline(rows=before, options=options), *options, rows=today)
    assert fault in error
    assert "the same rows in the same order" in error


@pytest.mark.parametrize(
    ("before", "today", "difference"),
    [
        ("--window-words 50 --context-weight 1", "--context-weight 1", "window_words 50 (now by"),
        ("--context-weight 1", "--context-weight 0.5", "context_weight"),
        ("--variant plus --likelihood-weight 0", "", "variant plus (now fast)"),
        ("--dtype float64", "--dtype float32", "dtype float64 (now float32)"),
        ("--task summary", "", "task summary (now by default)"),
    ],
)
def test_other_settings_are_refused_before_anything_is_scored(refused, baseline, before, today, difference):
    path = baseline(options=before.split())
    error = refused(path, *today.split())
    assert f"{path} was scored with " in error
    assert difference in error
    assert "write a new baseline with --out" in error


def test_another_version_of_a_library_is_the_same(score, baseline):
    path = baseline(lambda row: {"mars_signature": row["mars_signature"].replace("|torch:", "|torch:9")})
    assert score("--fail-under-baseline", path) == (0, "")


def test_contexts_that_were_retrieved_anew_are_told_of(score, baseline):
    today = [{**row, "context": f"{row['context']} It rained."} for row in ROWS[:5]] + ROWS[5:]
    code, error = score("--fail-under-baseline", baseline(), rows=today)
    assert code == 0
    assert "5 of 12 rows have another context than in" in error


def test_what_a_baseline_lacks_is_told(score, tmp_path):
    path = jsonl.write(tmp_path / "baseline.jsonl", [{"mars": 0.1}] * len(ROWS))
    code, error = score("--fail-under-baseline", path)
    assert code == 0
    assert "has no signatures" in error
    assert "has no references and no contexts: only the number of rows was compared" in error


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"mars": 0.5}, {"score": 1}], ":2 has no score"),
        ([{"mars": 0.5}, {"mars": None}], ":2 has no score"),
        ([{"mars": "much"}], ":1 has no score"),
        ([{"mars": "nan"}], ":1 has no score"),
    ],
)
def test_a_baseline_without_scores_is_refused(refused, tmp_path, rows, fault):
    assert fault in refused(jsonl.write(tmp_path / "baseline.jsonl", rows))


@pytest.mark.parametrize("value", ["-1", "nan", "x"])
def test_a_least_fall_is_a_number_of_at_least_0(failing, value):
    assert "--least-fall: must be a" in failing("score", "rows.jsonl", f"--least-fall={value}")
