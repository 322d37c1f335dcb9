"""Gates for builds: ``mars score --fail-under`` and the others, alone and together."""

import itertools
import json
import math
import re
from collections import Counter
from dataclasses import replace

import pytest

from mars_score.cli.baseline import Baseline
from mars_score.cli.run_summary import describe_unchecked
from mars_score.rows import Row, RowScore, Verdict
from mars_score.variants import plus_variant
from tests import jsonl, word_recall
from tests.result_rows import gates_of, read

ROWS = [
    {"prediction": "a b", "reference": "a b", "context": "first"},
    {"prediction": "c\nq\x1b[2J\x07", "reference": "c d", "context": "second"},
    {"prediction": " ", "reference": "d", "context": "third"},
]
# They score 1, 0.5 and 0.


@pytest.fixture
def score(tmp_path, word_models, run):
    """Runs ``mars score`` over the rows; returns exit code, standard output, standard error."""

    def run_command(*options, rows=ROWS):
        return run("score", jsonl.write(tmp_path / "rows.jsonl", rows), *word_recall.OPTIONS, *options)

    return run_command


def test_a_build_that_passes(score):
    code, out, err = score("--fail-under", 0.49, "--fail-rows-under", 0)
    assert (code, err) == (0, "")
    assert out.startswith("MARS 0.5000")


def test_a_build_that_fails(score, tmp_path):
    code, out, err = score("--fail-under", 0.51, "--fail-rows-under", 0.6, "--out", tmp_path / "scores.jsonl")
    assert code == 3
    assert out.startswith("MARS 0.5000")
    assert err.splitlines() == [
        "mars: the mean score 0.5000 is below 0.51",
        "mars: 2 scores are below 0.6:",
        "mars:   line 3: 0.0000  ",
        "mars:   line 2: 0.5000  c q [2J",  # nothing that a terminal obeys
    ]
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 3  # written all the same
    code, out, _ = score("--fail-under", 0.51, "--fail-rows-under", -9, "--json")
    assert (code, len(json.loads(out)["scores"])) == (3, 3)


def test_a_score_that_is_no_number_passes_no_gate(score, monkeypatch):
    """It is refused where it enters; if one comes through nevertheless, it is below every threshold."""
    plus, from_dict = plus_variant.plus, RowScore.from_dict
    with monkeypatch.context() as patch:
        patch.setattr(plus_variant, "plus", lambda *args: [replace(term, value=math.nan) for term in plus(*args)])
        code, out, err = score("--fail-under", 0.1)
    assert (code, out) == (2, "")
    assert "the score of 'a b' is nan, no finite number" in err
    monkeypatch.setattr(RowScore, "from_dict", lambda *args: replace(from_dict(*args), score=math.nan))
    for options in (("--fail-under", -9), ("--fail-rows-under", -9)):
        assert score(*options)[0] == 3


def test_the_lowest_of_many_rows_are_shown(score):
    code, _, err = score("--fail-rows-under", 0.6, rows=ROWS[1:2] * 30)
    assert code == 3
    assert err.splitlines()[0] == "mars: 30 scores are below 0.6; the 20 lowest are:"
    assert len(err.splitlines()) == 21


@pytest.mark.parametrize("value", ["nan", "x"])
def test_thresholds_that_are_no_numbers(failing, value):
    for option in ("--fail-under", "--fail-rows-under"):
        assert f"{option}: must be a finite number, got '{value}'" in failing("score", "rows.jsonl", option, value)


@pytest.mark.parametrize("share", ["-0.1", "1", "x"])
def test_shares_that_are_none(failing, share):
    for option in ("--fail-contradicted", "--fail-unsupported", "--fail-unchecked"):
        assert re.search(f"{option}: .*(share|number)", failing("score", "rows.jsonl", f"{option}={share}"))


# Rows that cannot be checked, and all gates together

VERDICT = Verdict("a b", 0.95, "b a", "reference")
LACKING = Verdict("a b", None, "", "context", ("a",))
CONTEXT_ALONE = "--preset medium --task summary can judge candidates by their contexts alone"
ENGLISH = "not judged by this NLI model; the NLI models of --preset mini and medium can judge English rows"
CANNOT = "that this preset cannot judge by {} context; --preset medium can judge these summaries"
REASONS = {
    "dialogue": ("1 dialogue", "2 dialogues"),
    "record": ("1 record", "2 records"),
    "blank candidate": ("1 blank candidate", "2 blank candidates"),
    "no reference": (f"1 row without references; {CONTEXT_ALONE}", f"2 rows without references; {CONTEXT_ALONE}"),
    "no context": ("1 summary without a context", "2 summaries without a context"),
    "not judged by this NLI model": (f"1 row {ENGLISH}", f"2 rows {ENGLISH}"),
    "not English": ("1 row that is not English", "2 rows that are not English"),
    "far from its references": ("1 row far from its references", "2 rows far from their references"),
    "this preset cannot judge summaries by their context": (
        *(f"1 summary {CANNOT.format('its')}", f"2 summaries {CANNOT.format('their')}"),
    ),
    "nothing is stated": ("1 row that states nothing", "2 rows that state nothing"),
    "unread for once": ("1 row unread for once", "2 rows unread for once"),
}


@pytest.fixture
def found(monkeypatch):
    """Lets the rows of a run be contradicted, or unchecked for a reason, one after the other."""

    def let(*findings):
        from_dict, turn = RowScore.from_dict, itertools.cycle(findings)

        def changed(*arguments):
            finding = next(turn)
            changes = {"contradicted": (VERDICT,), "unsupported": (LACKING,)}
            changes = {finding: changes[finding]} if finding in changes else {}
            return replace(from_dict(*arguments), unchecked="" if changes else finding, **changes)

        monkeypatch.setattr(RowScore, "from_dict", changed)

    return let


@pytest.mark.parametrize("reason", REASONS)
def test_the_reasons_that_apply_are_counted(reason):
    for count, shown in enumerate(REASONS[reason], 1):
        told = describe_unchecked(Counter({reason: count}), 3)
        assert told == f"{count} of 3 rows cannot be checked for contradictions: {shown}"


def test_reasons_stand_by_their_number(score, found):
    found("record", "dialogue", "dialogue")
    expected = "no row can be checked for contradictions: 2 dialogues, 1 record"
    code, out, error = score()
    assert (code, error) == (0, "")
    assert f"notice: {expected}\n" in out
    assert expected in json.loads(score("--json")[1])["notices"]
    code, _, error = score("--fail-contradicted")
    assert (code, error) == (0, f"mars: {expected}\n")
    code, _, error = score("--fail-unchecked")
    assert (code, error) == (3, f"mars: {expected}\n")


def test_without_a_gate_only_a_run_without_any_checked_row_is_told_of(score, found):
    found("dialogue", "dialogue", "")
    assert "checked" not in score()[1]
    found("")
    assert "checked" not in score()[1]


def test_what_can_check_a_row_is_told_once(score, found):
    found("dialogue", "this preset cannot judge summaries by their context", "")
    expected = (
        "2 of 3 rows cannot be checked for contradictions: 1 dialogue, "
        "1 summary that this preset cannot judge by its context; --preset medium can judge these summaries"
    )
    assert score()[1].count(f"notice: {expected}\n") == 1
    for gates in (["--fail-contradicted"], ["--fail-unchecked"], ["--fail-contradicted", "--fail-unchecked"]):
        _, out, error = score(*gates)
        assert "checked" not in out
        assert error == f"mars: {expected}\n"


@pytest.mark.parametrize(
    ("unchecked", "share", "fails"),
    [(0, [], False), (1, [], True), (1, [0.3], True), (1, [0.34], False), (2, [0.5], True), (2, [0.67], False)],
)
def test_a_share_of_unchecked_rows_fails(unchecked, share, fails):
    [gate] = gates_of("--fail-unchecked", *share)
    reasons = ["dialogue"] * unchecked + [""] * (3 - unchecked)
    read(gate, *((Row("a", ("b",), "c"), RowScore(0.5, unchecked=reason)) for reason in reasons))
    assert len(list(gate.failures())) == fails
    assert gate.unchecked().count("checked for contradictions") == (unchecked > 0)


GATES = {  # options with which the gate fails, and with which it passes; the rows score 1, 0.5 and 0
    "--fail-under": (0.51, 0.49),
    "--fail-rows-under": (0.1, -0.1),
    "--fail-contradicted": (0.3, 0.34),
    "--fail-unsupported": (0.3, 0.34),
    "--fail-unchecked": (0.3, 0.34),
    "--fail-under-baseline": (0.6, 0.5),  # the mean of the baseline
}


def test_each_gate_that_fails_says_so_whatever_the_others_do():
    rows = [
        RowScore(1.0, contradicted=(VERDICT,)),
        RowScore(0.5, unsupported=(LACKING,)),
        RowScore(0.0, unchecked="blank candidate"),
    ]
    for places in itertools.product([0, 1], repeat=len(GATES)):
        values = {option: values[place] for (option, values), place in zip(GATES.items(), places, strict=True)}
        baseline = Baseline("scores.jsonl", [values.pop("--fail-under-baseline")] * 3)
        failed = []
        for gate in gates_of(*itertools.chain(*values.items()), baseline=baseline):
            read(gate, *((Row("a", ("b",), "c"), row) for row in rows))
            failed += [line for line in gate.failures() if not line.startswith(" ")]
        assert len(failed) == places.count(0), values


@pytest.mark.parametrize("option", GATES)
@pytest.mark.parametrize("fails", [True, False])
def test_the_status_of_each_gate(score, found, option, fails, tmp_path):
    value = GATES[option][not fails]
    if option == "--fail-under-baseline":
        value = jsonl.write(tmp_path / "baseline.jsonl", [{"mars": value}] * 3)
    found("contradicted", "unsupported", "dialogue")
    assert score("--fail-rows-under", "-9", option, value)[0] == (3 if fails else 0)


def test_bad_input_comes_before_gates(score):
    assert score("--fail-under", 9, "--fail-unchecked", rows=[*ROWS, {"prediction": 3}])[0] == 2
