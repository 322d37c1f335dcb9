"""Systems compared, by ``rank_systems`` and by ``mars compare``, with the scores of tests/word_recall.py."""

import json
import re

import numpy as np
import pytest

from mars_score.compare import rank_systems
from mars_score.errors import Notice
from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.scorer import MarsScorer
from mars_score.stats.resampling import holm, mean_interval, mean_p
from tests import jsonl
from tests.word_recall import OPTIONS, SETTINGS

REFERENCES = ["a b", ["x y", "c z"], "d", "e f"]
CONTEXTS = ["first", ["second", "part"], "", "fourth"]
SYSTEMS = {"poor": ["q", "q", "q", "q"], "A": ["a b", "x q", "d", "q"], "B": ["a q", "x q", "q", " "]}
# The same for the command, of three rows.
COLUMNS = REFERENCES[:3], CONTEXTS[:3], SYSTEMS["A"][:3]
ROWS = [{"reference": row[0], "context": row[1], "prediction": row[2]} for row in zip(*COLUMNS, strict=True)]
OTHERS = [{**row, "prediction": text} for row, text in zip(ROWS, ("a q", "x q", "q\x1b[31m"), strict=True)]
STORIES = [{**row, "story": number // 2} for number, row in enumerate(ROWS)]
NO_STORY = [{**STORIES[0], "story": None}, *STORIES[1:]]
# Of sixteen rows weak and poor differ in eight, all in one direction.
MANY = [{"prediction": "a b", "reference": "a b", "context": f"number {row}"} for row in range(16)]
WEAK, POOR = (
    [{**row, "prediction": "q" if row["context"][-1] in "13579" else text} for row in MANY]
    for text in ("a b", "a q")
)
THREE = {"first": WEAK, "second": MANY, "more": [POOR]}


@pytest.fixture
def compare(tmp_path, run, word_models):
    """Runs the command over lists of rows; returns exit code, standard output, standard error."""

    def run_command(
        *options, first=ROWS, second=OTHERS, more=(), names=("ours", "theirs", "third"), settings=OPTIONS
    ):
        paths = []
        for name, rows in zip(names, (first, second, *more), strict=False):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            paths.append(jsonl.write(tmp_path / f"{name}.jsonl", rows))
        return run("compare", *paths, *settings, *options)

    return run_command


def changed(row, **values):
    return [*OTHERS[:row], {**OTHERS[row], **values}, *OTHERS[row + 1 :]]


def test_systems_rows_and_notices_are_in_the_order_of_the_ranking(word_models):
    """Of four contexts there are no intervals and no p-values."""
    ranking = rank_systems(MarsScorer(**SETTINGS), SYSTEMS, REFERENCES, CONTEXTS)
    assert ranking.signature == MarsScorer(**SETTINGS).score(SYSTEMS["A"], REFERENCES, CONTEXTS).signature
    assert [(system.name, system.score) for system in ranking.systems] == [("A", 0.625), ("B", 0.25), ("poor", 0)]
    assert ranking.systems[0].scores == (1.0, 0.5, 1.0, 0.0)
    pairs = [(pair.first, pair.second, pair.difference, pair.wins, pair.ties) for pair in ranking.pairs]
    assert pairs == [("A", "B", 0.375, 2, 2), ("A", "poor", 0.625, 3, 1), ("B", "poor", 0.25, 2, 2)]
    assert [row.row for row in ranking.most_different(9)] == [0, 2, 1]
    row = ranking.rows[1]
    assert (row.candidates, row.references, row.context) == (("x q", "x q", "q"), ("x y", "c z"), "second\npart")
    assert ranking.notices[0] == f"{Notice.BLANK.message}: 1 of 12 rows (B[3]); by system: poor 0, A 0, B 1"
    assert ranking.notices[-1] == "no intervals and no p-values: 4 different contexts, fewer than 10"
    untold = "A cannot be told apart from B and poor; B cannot be told apart from poor; no test: "
    assert ranking.verdict == f"{untold}4 different contexts, fewer than 10"
    grouped = rank_systems(MarsScorer(**SETTINGS), SYSTEMS, REFERENCES, CONTEXTS, groups=["a", "b", "a", "b"])
    assert grouped.verdict == f"{untold}2 groups, fewer than 10"
    plain = json.loads(json.dumps(ranking.to_dict(rows=1), allow_nan=False))
    assert (plain["pairs"][0]["p"], plain["pairs"][0]["interval"], plain["systems"][0]["interval"]) == (None,) * 3
    assert [row["candidates"] for row in plain["most_different"]] == [["a b", "a q", "q"]]


def test_rows_of_one_context_are_drawn_together(word_models):
    """P-values are adjusted for the three pairs."""
    contexts = [f"context {max(row - 2, 0):02}" for row in range(14)]  # twelve, the first of which has three rows
    systems = {"B": ["a q"] * 7 + ["q"] * 7, "A": ["a b"] * 7 + ["a q"] * 7, "C": ["a q"] * 14}

    def rank(**options):
        return rank_systems(MarsScorer(**SETTINGS), systems, ["a b"] * 14, contexts, resamples=200, **options)

    ranking, alone = rank(), rank(groups=range(14), confidence=0.8)
    assert (ranking.groups, alone.groups) == (12, 14)
    scores = {system.name: np.array(system.scores) for system in ranking.systems}
    for system in ranking.systems:
        assert system.interval == mean_interval(system.scores, contexts)
    differences = [scores[pair.first] - scores[pair.second] for pair in ranking.pairs]
    p_values = holm([mean_p(values, contexts, resamples=200) for values in differences])
    for pair, values, p in zip(ranking.pairs, differences, p_values, strict=True):
        assert (pair.interval, pair.p) == (mean_interval(values, contexts), p)
    assert alone.systems[0].interval == mean_interval(scores["A"], confidence=0.8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"systems": {"A": ["a"] * 4}}, "at least two systems, got 1"),
        ({"systems": {"A": ["a"], "B": ["b"] * 4}}, r"systems\['A'\] has 1, systems\['B'\] has 4, references"),
        ({"systems": {"A": ["a"] * 4, "B": ["a", None]}}, r"systems\['B'\]\[1\] must be a string, got None"),
        ({"contexts": None}, "contexts are missing"),
        ({"groups": [1]}, "groups must be one label per item"),
        ({"resamples": 0}, "resamples must be positive"),
        ({"systems": {"A": [], "B": []}, "references": [], "contexts": []}, "there are no rows to compare"),
    ],
)
def test_bad_input_is_found_before_scoring(word_models, changes, message):
    rows = {"systems": SYSTEMS, "references": REFERENCES, "contexts": CONTEXTS}
    with pytest.raises((ValueError, TypeError), match=message):
        rank_systems(MarsScorer(**SETTINGS), **{**rows, **changes})
    assert not word_models


def test_tasks_are_those_of_the_rows(tiny_mini):
    """Without contexts that say so themselves they are said by name, for all rows or for each."""
    scorer = MarsScorer("mini", variant="plus", store=False)
    columns = {"references": REFERENCES, "contexts": CONTEXTS}
    systems = {name: SYSTEMS[name] for name in ("A", "B")}
    for tasks in (None, "dialogue", ["text", "", "dialogue", "data"]):
        ranking = rank_systems(scorer, systems, **columns, tasks=tasks)
        for system in ranking.systems:
            scored = scorer.score(systems[system.name], **columns, tasks=tasks)
            assert system.scores == pytest.approx(scored.scores, abs=1e-9)
        assert ranking.signature == scored.signature
    with pytest.raises(ValueError, match=r"tasks\[1\].*'table'"):
        rank_systems(scorer, systems, **columns, tasks=["text", "table", "", ""])


def test_text(compare, tmp_path):
    code, out, err = compare("--rows", 1, **THREE, names=("weak", "good", "poor"))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["16 rows, 3 systems", "bootstrap intervals over 16 rows"]
    assert lines[2].split() == ["system", "MARS", "95%", "interval"]
    scores = [line.split()[:2] for line in lines[3:6]]
    assert scores == [["good", "1.0000"], ["weak", "0.5000"], ["poor", "0.2500"]]
    tests = "approximate randomisation, 10000 resamples of 16 rows, p adjusted for 3 tests (Holm)"
    assert lines[6:8] == ["differences", tests]
    assert re.fullmatch(r"good - weak +\+0\.5000 +0\.\d+ \.\. 0\.\d+ +0\.01\d+ +8, 8, 0", lines[9])
    # For weak and poor p = 2/256, twice that for the second of three tests.
    assert re.fullmatch(
        r"verdict: good scores higher than weak \(\+0\.500, p = 0\.01\d+\) and poor \(\+0\.750, p = 0\.000\d+\); "
        r"weak scores higher than poor \(\+0\.250, p = 0\.01\d+\)",
        lines[12],
    )
    assert lines[13].startswith("signature mars|version:")
    files = ", ".join(f"{tmp_path}/{name}.jsonl:2" for name in ("weak", "good", "poor"))
    assert lines[-6:] == [
        f"{files}: 1.0000 apart",
        "  context: number 1",
        "  reference: a b",
        "  good 1.0000: a b",
        "  weak 0.0000: q",
        "  poor 0.0000: q",
    ]
    verdict = compare("--confidence", 0.99, **THREE, names=("weak", "good", "poor"))[1].splitlines()[12]
    assert re.fullmatch(
        r"verdict: good scores higher than poor \(\+0\.750, p = 0\.000\d+\), but cannot be told apart from weak "
        r"\(p = 0\.01\d+\); weak cannot be told apart from poor \(p = 0\.01\d+\)",
        verdict,
    )


def test_two_systems_in_few_rows(compare):
    """Nothing can be said of three contexts; what would move the cursor is not printed."""
    lines = (out := compare()[1]).splitlines()
    assert re.fullmatch(r"ours - theirs +\+0\.5000 +n/a +n/a +2, 1, 0", lines[8])
    untold = "ours cannot be told apart from theirs; no test: 3 different contexts, fewer than 10"
    assert lines[9] == f"verdict: {untold}"
    assert "notice: no intervals and no p-values: 3 different contexts, fewer than 10" in lines
    assert "  theirs 0.0000: q [31m" in lines
    assert "\x1b" not in out


def test_json_has_the_interval_of_score(compare, tmp_path, run):
    """Rows of a context, or of a group, are drawn together by both commands."""
    repeated = [{**row, "context": f"number {number // 2}"} for number, row in enumerate(WEAK * 2)]
    code, out, err = compare("--json", "--rows", 0, first=repeated, second=repeated)
    assert (code, err) == (0, "")
    plain = json.loads(out)
    assert (plain["groups"], plain["pairs"][0]["ties"], plain["most_different"]) == (16, 32, [])
    scored = json.loads(run("score", tmp_path / "ours.jsonl", *OPTIONS, "--json")[1])
    assert [system["interval"] for system in plain["systems"]] == [scored["interval"]] * 2
    assert json.loads(compare("--json", "--group-column", "story", first=STORIES)[1])["groups"] == 2


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ((), {"second": changed(1, reference=["c z", "x y"])}, "theirs.jsonl:2: column 'reference' differs from"),
        ((), {"second": changed(2, context="other")}, "theirs.jsonl:3: column 'context' differs from"),
        ((), {"second": OTHERS[:2]}, "ours.jsonl:3: "),
        ((), {"second": [*OTHERS, OTHERS[0]]}, "theirs.jsonl:4: "),
        ((), {"second": changed(0, prediction=None)}, "theirs.jsonl:1: column 'prediction' must be a string"),
        ((), {"more": [changed(1, context="x")]}, "third.jsonl:2: column 'context' differs from"),
        (("--group-column", "tale"), {}, "'prediction'); add it or name another with --group-column"),
        (("--group-column", "story"), {"first": NO_STORY}, "ours.jsonl:1: column 'story' must be a string or an"),
        (("--rows", -1), {}, "--rows must be at least 0"),
        (("--rows", 3, "--table", "latex"), {}, "--table latex"),
        (("--rows", 1, "--table", "markdown"), {}, "--table markdown"),
        (("--json", "--table", "latex"), {}, "--table latex"),
        (("--confidence", 2), {}, "confidence must lie between"),
    ],
)
def test_what_is_wrong_with_files_is_found_before_scoring(compare, word_models, options, changes, message):
    code, out, err = compare(*options, **changes)
    assert (code, out) == (2, "")
    assert message in err
    assert word_models == []


def test_lines_of_contexts_count_as_the_first_file_says(compare):
    """Whether the other files have a column of tasks or not."""

    kinds, context = ("dialogue", "", "text"), "A: Hi.\nB: Hello."
    first = [{**row, "context": context, "kind": kind} for row, kind in zip(ROWS, kinds, strict=True)]
    without_kinds = [{**row, "context": context} for row in OTHERS]
    same = [{**row, "kind": kind} for row, kind in zip(without_kinds, kinds, strict=True)]
    on_one_line = [{**row, "context": " ".join(context.splitlines())} for row in OTHERS]
    options = "--task-column", "kind", "--json"
    for others in (same, without_kinds):
        code, out, _ = compare(*options, first=first, second=others)
        assert (code, json.loads(out)["pairs"][0]["wins"]) == (0, 2)
    for others, message in (
        (on_one_line, "theirs.jsonl:1: column 'context' differs from"),
        ([*same, OTHERS[0]], "theirs.jsonl:4: "),
    ):
        code, _, err = compare(*options, first=first, second=others)
        assert (code, message in err) == (2, True)


def test_without_contexts(compare):
    rows = [{name: value for name, value in row.items() if name != "context"} for row in OTHERS]
    assert compare(first=rows, second=rows)[0] == 2
    options = {"first": rows, "second": rows, "settings": ("--variant", "fast")}
    code, out, _ = compare("--no-use-context", "--json", **options)
    assert (code, json.loads(out)["pairs"][0]["ties"]) == (0, 3)


def test_long_texts_are_cut_to_fit(compare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = compare(first=[{**ROWS[0], "prediction": "word " * 100}], second=OTHERS[:1])[1]
    assert re.search(r"^  ours 0\.0000: [word ]{44}…$", out, flags=re.MULTILINE)


def test_tables_for_papers(compare):
    names = ("100%_weak", "good", "poor")
    latex, markdown = (compare("--table", form, **THREE, names=names)[1] for form in ("latex", "markdown"))
    assert "mars|version:" in latex
    assert latex.count(r"\begin{tabular}{lrr") == latex.count(r"\bottomrule") == 2
    assert r"100\%\_weak & 0.5000 & " in latex
    assert all(line.startswith("%") or "mars|" not in line for line in latex.splitlines())
    assert r"\caption{16 rows, 3 systems}" in latex
    assert re.search(r"& 0\.\d+--0\.\d+ \\\\", latex)
    assert r"good -- 100\%\_weak & +0.5000" in latex
    assert "100%\\_weak" in markdown
    assert len(re.findall(r"^\| +systems? .*\|$\n\| :-[-:| ]+\|$", markdown, flags=re.MULTILINE)) == 2
    assert "scores higher than" in markdown
    assert "fewer than 10" in compare("--table", "markdown")[1]
    assert compare("--table", "latex", "--rows", 0)[0] == 0


def test_names_of_systems(compare, run, tmp_path):
    """Files without their endings; paths where these are equal, numbered where a file is given twice."""

    def names(result):
        systems = json.loads(result[1])["systems"]
        return {system["name"].removeprefix(f"{tmp_path}/") for system in systems}

    assert names(compare("--json")) == {"ours", "theirs"}
    assert names(compare("--json", names=("one/rows", "two/rows"))) == {"one/rows.jsonl", "two/rows.jsonl"}
    ours, theirs = (tmp_path / f"{name}.jsonl" for name in ("ours", "theirs"))
    again = run("compare", ours, theirs, ours, *OPTIONS, "--json")
    assert names(again) == {"ours.jsonl (1)", "theirs.jsonl", "ours.jsonl (3)"}
    code, _, err = run("compare", ours)
    assert code == 2
    assert "needs at least two files" in err


def test_the_example_brings_its_own_files(run, tmp_path, monkeypatch, word_models):
    """Their rows are such that metrics of words are misled."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("compare", "--example", *OPTIONS, "--json")
    assert code == 0
    paths = [tmp_path / "mars-example" / f"{name}.jsonl" for name in ("other_words", "same_words")]
    assert all(str(path.relative_to(tmp_path)) in err for path in paths)
    systems = json.loads(out)["systems"]
    assert [system["name"] for system in systems] == ["same_words", "other_words"]  # by the words in common
    rows = [list(map(json.loads, path.read_text("utf-8").splitlines())) for path in paths]
    for metric in (sentence_bleu, rouge_l):
        scores = [[metric(row["prediction"], [row["reference"]]) for row in of_system] for of_system in rows]
        assert np.mean(scores[0]) < np.mean(scores[1])
    assert systems[1]["interval"]
    assert run("compare", "--example", *OPTIONS, "--json")[1] == out
    code, _, err = run("compare", paths[0], "--example", *OPTIONS)
    assert (code, "--example brings files of its own" in err) == (2, True)
    paths[0].write_text("{}", "utf-8")
    code, _, err = run("compare", "--example", *OPTIONS)
    assert (code, paths[0].read_text("utf-8")) == (2, "{}")
    assert "other_words.jsonl" in err
    assert run("compare", *OPTIONS)[0] == 2


@pytest.mark.slow
def test_the_example_is_ranked_as_a_reader_would(presets_as_they_are, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--preset", "mini", "--variant", "plus", "--json", "--rows", 0)
    ranking = json.loads(run("compare", "--example", *options)[1])
    assert [system["name"] for system in ranking["systems"]] == ["other_words", "same_words"]
    assert ranking["pairs"][0]["p"] < 0.01


def test_files_of_other_formats_are_named_with_their_lines(tmp_path, run, word_models):
    """Columns may have plural names in one of them; a row of CSV may span lines."""
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.jsonl"
    ours.write_text('predictions,references,contexts\na b,a b,"one\ntwo"\na b,a b,three\n,d,four\n')
    texts = ("a b", "one two"), ("a b", "three"), ("d", "four")
    rows = [{"reference": text, "prediction": "q", "context": context} for text, context in texts]
    jsonl.write(theirs, rows)
    code, out, err = run("compare", ours, theirs, *OPTIONS, "--rows", 1)
    assert (code, err) == (0, "")
    assert f"{ours}:2, {theirs}:1: 1.0000 apart" in out
    assert f"{Notice.BLANK.message}: 1 of 6 rows ({ours}:5)" in out
    plain = json.loads(run("compare", ours, theirs, *OPTIONS, "--json", "--rows", 2)[1])
    assert plain["most_different"][1]["lines"] == {"ours": f"{ours}:4", "theirs": f"{theirs}:2"}
    jsonl.write(theirs, [rows[0]] * 3)
    code, out, err = run("compare", ours, theirs, *OPTIONS)
    assert f"{theirs}:2: column 'context' differs from {ours}:4" in err


@pytest.mark.parametrize("name", ["gold {t=0}", "{}", "{0.x}", "a}b{", "%s"])
def test_names_of_systems_and_columns_may_have_braces(tiny_mini, name):
    rows = ["She took the bus.", "At nine."], ["The car broke.", "There is a bus."]
    with pytest.raises(TypeError, match=r"systems\['other'\]\[1\] must be a string"):
        rank_systems(MarsScorer(), {name: ["a", "b"], "other": ["a", 5]}, *rows)
    with pytest.raises(TypeError) as of_system:
        rank_systems(MarsScorer(), {"other": ["a", "b"], name: ["a", None]}, *rows)
    assert str(of_system.value).startswith(f"systems[{name!r}][1] must be a string")
    rows = [{"prediction": "a", name: text, "context": "c"} for text in ("['a']", "b")]
    with pytest.raises(ValueError, match="holds a text, but") as of_column:
        MarsScorer().score_table(rows, columns={"reference": name})
    assert str(of_column.value).startswith(f"row 1: column {name!r} holds")


def test_notices_in_which_systems_differ_are_counted_by_system(word_models):
    def notices(*candidates):
        systems = dict(zip("AB", candidates, strict=True))
        return rank_systems(MarsScorer(**SETTINGS), systems, ["a b"] * 3, ["c"] * 3).notices

    differing, equal = notices(["a", "", ""], ["", "b", "a"])[0], notices(["a", "", "b"], ["", "b", "a"])[0]
    assert differing.endswith("3 of 6 rows (A[1], A[2], B[0]); by system: A 2, B 1")
    assert equal.endswith("2 of 6 rows (A[1], B[0])")
    assert "by system" not in "".join(notices(["a"] * 3, ["b"] * 3))


ASKED = {
    "Where is the bus?": ["Be brief.", "Where is the bus?"],
    "And on Sundays?": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "At ten."},
        {"role": "user", "content": "And on Sundays?"},
    ],
}


@pytest.mark.parametrize("asked", ASKED)
def test_of_a_dialogue_the_last_turn_is_shown(compare, asked):
    rows = [{**row, "context": ASKED[asked]} for row in ROWS]
    _, text, _ = compare(first=rows, second=[{**row, "prediction": "q"} for row in rows])
    shown = text.partition("rows that differ most")[2]
    assert f"  answers: {asked}" in shown
    assert "Be brief" not in shown
    found = json.loads(compare("--json", first=rows, second=[{**row, "prediction": "q"} for row in rows])[1])
    assert {row["asked"] for row in found["most_different"]} == {asked}
