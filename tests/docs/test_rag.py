"""docs/rag.md and its file: the commands run, and preset medium finds and misses what the page says."""

import json
import re
import shlex

import pytest

from mars_score.models.packages import KNOWN
from mars_score.presets import RELIABILITY
from research import results
from tests import ROOT, jsonl

PAGE = (ROOT / "docs" / "rag.md").read_text(encoding="utf-8")
ROWS = jsonl.read(ROOT / "examples" / "rag" / "answers.jsonl")
SOME = ROWS[-3:]  # with the wrong facts
BLOCKS = re.findall(
    r"^```bash\nmars ([^\n]*)\n```\n(?:\n```text\n(.*?)^```$)?", PAGE, flags=re.MULTILINE | re.DOTALL
)
COMMANDS = [shlex.split(command) for command, _ in BLOCKS]
SCORE = re.compile(r"\b\d\.\d{4}\b")
CLOSE = 0.011  # Scores differ no more with the machine.


def lines_in(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def scores_in(text):
    return [float(score) for score in SCORE.findall(text)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with examples/rag/answers.jsonl."""
    (tmp_path / "examples" / "rag").mkdir(parents=True)
    jsonl.write(tmp_path / "examples" / "rag" / "answers.jsonl", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file():
    assert len(ROWS) == len({row["context"]["question"] for row in ROWS}) == 10
    for row in ROWS:
        assert list(row) == ["prediction", "reference", "context"]
        assert row["prediction"] != row["reference"]
        passages = row["context"]["passages"]
        assert len(set(passages)) == 3
        assert all(40 <= len(passage.split()) <= 90 for passage in passages)
    assert json.dumps(ROWS).isascii()


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_commands(argv, tiny_preset, gpt2, folder, run):
    """With tiny models, which contradict nothing (a quantity does); their scores pass no threshold."""
    tiny_preset("medium", gpt2)
    jsonl.write(folder / "examples" / "rag" / "answers.jsonl", SOME)
    code, out, err = run(*argv)
    assert code == (3 if any(option.startswith("--fail") for option in argv) else 0), err
    assert out.startswith("MARS ")
    assert "|task:summary|" in out
    if "--explain" in argv:
        assert out.count("\nline ") == 1 + int(argv[argv.index("--explain") + 1])
    if "--out" in argv:
        written = jsonl.read(folder / argv[argv.index("--out") + 1])
        assert [row["prediction"] for row in written] == [row["prediction"] for row in SOME]
        assert written[0].keys() >= {"mars", "supported", "contradicted"}


def test_figures_are_those_that_were_measured():
    page, measured = " ".join(PAGE.split()), results.read()["entailment"]["medium"]
    source, reference = (
        [one["contradicted"] for name, one in measured[by].items() if name.startswith("summedits")]
        for by in ("context", "reference")
    )

    def sums(sets):
        right, said, due = (sum(one[key] for one in sets) for key in ("right", "said", "due"))
        return f"{right:,}", f"{said:,}", f"{due:,}"

    right, said, due = sums(source)
    assert f"by the source alone, {right} of {due} (of {said} verdicts {right} are right)" in page
    right, said, due = sums(reference)
    assert f"by a close reference alone {right} of {due} ({right} of {said} are right)" in page
    rated, passages = measured["rated"].values(), measured["rated"]["qa_feedback"]
    best, accused = (sum(one[key] for one in rated) for key in ("best", "best accused"))
    assert f"{passages['best accused']} of {passages['best']} well-rated answers from passages" in page
    assert f"{passages['worst accused']} of {passages['worst']} badly rated ones" in page
    assert f"{accused} of {best:,} well-rated texts" in page


def test_how_often_an_unsupported_sentence_is_wrong():
    page = " ".join((ROOT / "docs" / "method.md").read_text(encoding="utf-8").split())
    measured = results.read()["entailment"]["medium"]
    told = [one["unsupported"] for name, one in measured["context"].items() if name.startswith("summedits")]
    right, said = (sum(one[key] for one in told) for key in ("right", "said"))
    assert f"Of the edited summaries in which it told one, {right} of {said} were wrong" in page
    for model in RELIABILITY.values():
        assert f"{model.max_support:g}".replace("0.", ".") in page.split("**Unsupported**")[1][:200]
    rated = [one for one in measured["rated"].values() if "best unsupported" in one]
    best, told_best, worst, told_worst = (
        sum(one[f"{part}{of}"] for one in rated) for part in ("best", "worst") for of in ("", " unsupported")
    )
    assert (
        f"in {told_best} of the {best} that people rated best, and {told_worst} of the {worst} rated worst" in page
    )
    of_models = " ".join((ROOT / "research/entailment/measure.md").read_text(encoding="utf-8").split())
    assert f"in {told_best} of the {best} best and {told_worst} of the {worst} worst" in of_models


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
def test_preset_mini_finds_what_the_page_says(folder, run):
    argv = ["score", "examples/rag/answers.jsonl", "--fail-contradicted", "--out", "scores.jsonl"]
    code, _, err = run(*argv)
    assert code == 3
    found = [line for line, row in enumerate(jsonl.read(folder / "scores.jsonl"), 1) if row["contradicted"]]
    assert found == [9, 10]
    assert "6 of 10 rows cannot be checked" in err
    assert "finds both wrong facts (lines 9 and 10), and says that it cannot check six rows" in (
        " ".join(PAGE.split())
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not KNOWN["all-mpnet-base-v2"].is_here(None), reason="needs the packages of requirements-medium.txt"
)
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
def test_preset_medium_finds_and_misses_what_the_page_says(folder, run):
    for argv, (_, shown) in zip(COMMANDS[:2], BLOCKS, strict=False):
        code, out, err = run(*argv)
        assert code == (3 if "--fail-contradicted" in argv else 0)
        printed = {SCORE.sub("", line): scores_in(line) for line in (out + err).splitlines()}
        for line in shown.splitlines():
            assert printed[SCORE.sub("", line)] == pytest.approx(scores_in(line), abs=CLOSE)

    # The table
    written = jsonl.read(folder / "scores.jsonl")
    table = re.findall(r"^\| (\d.*?) \| .*? \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, flags=re.MULTILINE)
    assert [line for lines, *_ in table for line in lines_in(lines)] == [1, 2, 4, 5, 6, 3, 7, 8, 9, 10]
    for lines, *ranges, contradicted in table:
        rows = [written[line - 1] for line in lines_in(lines)]
        for name, text in zip(("mars", "supported"), ranges, strict=True):
            ends = [float(end) for end in text.split(" to ")]
            values = [row[name] for row in rows]
            assert [min(values), max(values)] == pytest.approx([ends[0], ends[-1]], abs=CLOSE), name
        assert {bool(row["contradicted"]) for row in rows} == {contradicted.startswith("yes")}

    [faithfulness] = re.findall(r"as \*faithfulness\* \((\.\d+) here\)", PAGE)
    assert sum(row["supported"] for row in written) / len(written) == pytest.approx(float(faithfulness), abs=CLOSE)
    with_words = [any(one["words"] for one in row["unsupported"]) for row in written]
    assert [line for line, has_words in enumerate(with_words, 1) if has_words] == [1, 7, 9]

    # Without references
    code, out, err = run(*COMMANDS[2], "--json")
    assert code == 3
    found = {*map(int, re.findall(r"^mars:   line (\d+): ", err, flags=re.MULTILINE))}
    [certain] = map(lines_in, re.search(r"Lines? (.*) (?:is|are) contradicted,", PAGE).groups())
    assert {*certain} == found
    scores, [above] = json.loads(out)["scores"], re.findall(r"line (\d+) scores above all good ones", PAGE)
    assert min(scores[line - 1] for line in lines_in(above)) > max(scores[:6])
