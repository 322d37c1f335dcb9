"""The snippets of README and docs run, in order and in one namespace, and their tables say what the code says."""

import csv
import json
import re
import shlex
import shutil
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from rouge_score import rouge_scorer

from docs import settings, snippets
from mars_score import presets
from mars_score.cache import LIMIT
from mars_score.cli import main
from mars_score.metrics import plus
from mars_score.settings import SETTING_NAMES
from mars_score.variants.judgements.premises import WHOLE_PREMISE_FACTOR
from research import forms, held_out, ladders, results, typical_values
from research.entailment import measure
from research.entailment.surface import MEASURED
from tests import ROOT, jsonl

# Those with snippets; test_recipes.py runs docs/frameworks.md.
PAGES = {
    f"{name}.md": (ROOT / f"{name}.md").read_text(encoding="utf-8")
    for name in ["README", "CONTRIBUTING", "docs/settings", "docs/scale", "docs/meta-evaluation", "docs/method"]
}
# Its Python snippets run in test_recipes.py.
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def commands(program):
    """Command lines of the bash blocks that begin with ``program``, as lists of words without it."""
    pages = "".join([*PAGES.values(), DATA])
    blocks = re.findall(r"^```bash\n(.*?)^```$", pages, flags=re.MULTILINE | re.DOTALL)
    lines = snippets.FILES.sub("", "\n".join(blocks)).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[1:] for line in words if line[:1] == [program]]


def rows_of_readme():
    return list(csv.DictReader(dict(snippets.FILES.findall(PAGES["README.md"]))["answers.csv"].splitlines()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the pages' files and what commands in a checkout find there."""
    for name in ("mars", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    files = dict(snippets.FILES.findall("".join(PAGES.values())))
    assert set(files) == {"rated.jsonl", "answers.csv"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    rows = rows_of_readme()
    for name in ("rows.jsonl", "other.jsonl"):
        jsonl.write(tmp_path / name, rows)
    jsonl.write(tmp_path / "sampled.jsonl", [{**row, "samples": ["It opens.", "Soon."]} for row in rows])
    answers = tmp_path / "examples" / "rag" / "answers.jsonl"
    jsonl.write(answers, jsonl.read(answers)[4:7])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("tiny_mini", "folder")
def test_python():
    left = {"__name__": "readme"}
    for name, text in PAGES.items():
        snippets.run_page(name, text, left)
    assert left["mars"].compute(**left["rows"])["mars"] == pytest.approx(left["result"].score, abs=1e-6)
    assert left["evaluation"].sets["rated"].pearson("Overlap") == pytest.approx(-0.341, abs=1e-3)


def assert_printed(ours, shown, tolerance=0.011):
    """Text is as it is shown, but for the last digit of a number, which may differ with the machine."""
    number = re.compile(r"-?\d+\.\d+(?![\w.])")
    assert number.sub("", ours) == number.sub("", shown)
    values = [[float(digits) for digits in number.findall(text)] for text in (ours, shown)]
    assert values[0] == pytest.approx(values[1], abs=tolerance)


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "folder", "store_with_mini")
def test_what_is_printed_is_what_is_shown():
    page = PAGES["README.md"]
    assert_printed(snippets.run_page("README.md", page, {"__name__": "readme"}), page)


@pytest.mark.usefixtures("tiny_mini")
@pytest.mark.parametrize("argv", commands("mars"), ids=" ".join)
def test_command_lines(argv, folder, capsys):
    assert main(argv) == 0, capsys.readouterr().err
    if "--report" in argv:
        assert "BLEU-1" in (folder / argv[argv.index("--report") + 1] / "report.md").read_text(encoding="utf-8")
    for option in {"--json", "--out"} & {*argv}:
        rows = len((folder / argv[1]).read_text(encoding="utf-8").splitlines())
        if option == "--json":
            assert len(json.loads(capsys.readouterr().out)["scores"]) == rows
        else:
            assert len((folder / argv[argv.index("--out") + 1]).read_text(encoding="utf-8").splitlines()) == rows


def test_commands_name_what_exists():
    assert {argv[0] for argv in commands("mars")} >= {"score", "meta", "cache"}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    named = re.findall("`make ([a-z-]+)", "".join(PAGES.values()))
    assert {"demo", "docs"} <= {*named, *(target for (target,) in commands("make"))} <= set(targets)
    for argv in commands("pip"):
        files = [value for option, value in pairwise(argv) if option in ("-r", "-c")]
        assert all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize("page", results.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_figures_are_those_of_the_file_of_results(page):
    text = page.read_text(encoding="utf-8")
    assert results.page(text) == text, "run python -m research.results"


def test_figures_of_readme_are_those_that_were_measured():
    """Figures outside tables, by their place."""
    page, recorded = PAGES["README.md"], results.read()
    means = {
        column: np.mean([values[column] for values in recorded["held_out"]["mini"].values()])
        for column in held_out.COLUMNS
    }
    [ours, theirs] = re.findall(r"mean of ten held-out sets \| (\.\d+) \| (\.\d+) \|", page)[0]
    assert (ours, theirs) == (f"{means['plus']:.3f}"[1:], f"{means['BERTScore F1']:.3f}"[1:])
    judged = recorded["entailment"].values()
    said = [
        one["contradicted"]
        for of_preset in judged
        for name, one in of_preset["reference"].items()
        if name.startswith("summedits")
    ]
    shown = re.findall(r"precision (\d+) % \((\d+)/(\d+)\), recall (\d+) %", page)[0]
    right, of, due = (sum(one[key] for one in said) for key in ("right", "said", "due"))
    assert [*map(int, shown)] == [round(100 * right / of), right, of, round(100 * right / due)]
    best, accused = re.findall(r"Of ([\d,]+) texts that people rated well each accuses (\d+) at most", page)[0]
    for of_preset in judged:
        rated = of_preset["rated"].values()
        assert sum(one["best"] for one in rated) == int(best.replace(",", ""))
        assert sum(one["best accused"] for one in rated) <= int(accused)
    wrong = re.findall(
        r"in (\d+) \(`mini`\) and (\d+) \(`medium`\) of (\d+) cases; said as summaries, in (\d+) and (\d+)", page
    )
    ranks = [recorded["entailment"][preset]["ranks"] for preset in ("mini", "medium")]
    text, summary = ([one[task]["pairs"] - one[task]["above"] for one in ranks] for task in ("text", "summary"))
    assert [*map(int, wrong[0])] == [*text, ranks[0]["text"]["pairs"], *summary]
    stages = recorded["stages"]
    times = [
        stages[preset][variant]["99 words"]
        for preset, variant in (("mini", "plus"), ("mini", "fast"), ("medium", "plus"))
    ]
    shown = re.findall(r"\| (\d+) ms; (\d+) ms", page)
    assert shown == [(str(one["first"]), str(one["new"])) for one in times]
    prose = re.sub(r"^(```.*?^```|\|.*?)$", "", page, flags=re.MULTILINE | re.DOTALL)
    sets, free, recall = re.findall(
        r"mean of (\d+) development sets \| (\.\d+) \| (\.\d+), with references \|", page
    )[0]
    means = recorded["forms"]["mini"]["mean of sets"]
    assert len(recorded["forms"]["mini"]["sets"]) == int(sets)
    assert (free, recall) == tuple(f"{means[name]:.3f}"[1:] for name in ("without references", "token recall"))
    assert not re.findall(r"(?<![\w.])\.\d{3}\b", prose)  # All correlations stand in tables.


def test_rouge_scores_the_rows_of_readme_as_it_says():
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    right, wrong, _ = (
        scorer.score(row["reference"], row["prediction"])["rougeL"].fmeasure for row in rows_of_readme()
    )
    stated = re.findall(
        r"gives the wrong answer of line 3 (\.\d+) and the right one of line 2 (\.\d+)", PAGES["README.md"]
    )[0]
    assert (f"{wrong:.2f}"[1:], f"{right:.2f}"[1:]) == stated


def test_figures_are_written_as_those_that_stand_there(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    results.RESULTS.write_text("{}", "utf-8")
    results.record("one.mini", {"r": -0.12345, "by set": {"a b": 0.5, "count": 3}, "name": "x#1"})
    results.record("one.medium", {"r": 1.0})
    results.record("one.mini", {**results.read()["one"]["mini"], "r": 0.98765})
    names = "1 one.mini.r | 2 one.mini.by set.a b\n3 one.mini.by set.count | 4 one.mini.name | 5 one.medium.r"
    before = "**.1<!--1-->**, +.25<!--2-->, 0.5<!--2-->, 7<!--3-->, y#2<!--4-->, -.3<!--5-->, 0.44"
    page = f"{before}\n\n<!-- figures\n{{}}\n-->\n"
    after = "**1.0<!--1-->**, +.50<!--2-->, 0.5<!--2-->, 3<!--3-->, x#1<!--4-->, 1.0<!--5-->, 0.44"
    assert results.page(page.format(names)) == page.format(names).replace(before, after)
    for wrong in (
        names.replace("5 ", "6 "),
        f"{names} | 6 one.mini.r",
        names.replace("one.medium.r", "one.large.r"),
    ):
        with pytest.raises((KeyError, ValueError), match=r"6|5|large"):
            results.page(page.format(wrong))


def test_tables_are_made_of_what_is_recorded():
    scores = [dict.fromkeys(ladders.KINDS, 0.25)] * 2
    recorded = results.rounded({"mini": ladders.figures({"plus": scores})})
    assert "| copied | 0.250 |" in ladders.tables(recorded)["mini means"]
    rows = list(typical_values.rows_of_examples())
    figures = typical_values.figures(rows, [len(row.kind) for row in rows])
    [table] = typical_values.tables({"mini": {"kinds": {"fast": figures}}}).values()
    assert "| identical to the reference | 26 | 9.00 (9.00 to 9.00) |" in table


def test_tables_of_the_nli_models_sum_up():
    names = [f"{kind} ({task})" for kind in MEASURED for task in ("text", "summary")]
    surfaces = {name: {"accused": 0, "loss": 0.0, "judged": -0.01} for name in names}
    surfaces["tag (text)"] = {"accused": 2, "loss": 0.58, "judged": 0.02}
    rated = {
        "one": {"best": 4, "best accused": 1, "worst": 5, "worst accused": 0},
        "two": {"best": 6, "best accused": 0, "worst": 7, "worst accused": 0},
        "three": {"best": 8, "best accused": 0, "worst": 9, "worst accused": 0},
    }
    judged = {
        "facts": {"pairs": 3, "accuracy": 0.25, "twins": 0.5},
        "summedits_a": {"pairs": 9, "auc": 0.5, "contradicted": {"right": 1, "said": 2, "due": 3}},
        "summedits_b": {"pairs": 9, "auc": 0.75, "contradicted": {"right": 2, "said": 2, "due": 4}},
    }
    for part, right in (("summedits_a", 4), ("summedits_b", 0)):
        judged[part]["unsupported"] = {"right": right, "said": 5, "due": 6}
        judged[part]["found"] = {"right": right, "said": 6, "due": 6}
    counts = {"pairs": 4, "above": 1, "flipped contradicted": 2, "others contradicted": 3}
    ranks = {"text": counts, "summary": {**counts, "above": 0}}
    made = measure.tables({"mini": {"surface": surfaces, "rated": rated, "context": judged, "ranks": ranks}})
    assert made.keys() == {"surface", "rated", "context", "ranks"}
    shown = {name: table.splitlines()[2:] for name, table in made.items()}
    assert shown["rated"] == ["| one | 1/4 | 0/5 |", "| 2 others | 0/14 | 0/16 |", "| all | 1/18 | 0/21 |"]
    assert shown["ranks"] == ["| text | 1/4 | 2/4 | 3/12 |", "| summary | 0/4 | 2/4 | 3/12 |"]
    assert shown["surface"][0] == "| 30 learned | 2/1920 | 0.010 | tag (text) 0.580 | 0.020 |"
    facts = ["| facts | 0.250 |  |  |  |", "| facts, twins | 0.500 |  |  |  |"]
    assert shown["context"] == [*facts, "| 2 of summedits (AUC) | 0.625 | 3/4 of 7 | 4/10 of 12 | 4/12 of 12 |"]


def test_constants_are_shown_with_the_kind_that_needs_them_most():
    head = ["| `plus` without | mean | one | two |", "|---|---:|---:|---:|"]
    lines = [*head, "| context | -2.5 [-9, +1] | -3 | -12 |", "| limit | +2.5 [-9, +9] | +3 | +0 |"]
    recorded = {"mini": {}, "medium": {"plus": {"constants": lines}}}
    shown = ["| context | -2.5 [-9, +1] | two -12 |", "| limit | +2.5 [-9, +9] |  |"]
    assert forms.constants_table(recorded).splitlines()[2:] == shown


EVERY_PAGE = sorted(
    {page for pages in ("*.md", "docs/*.md", "[!.]*/README.md", "research/**/*.md") for page in ROOT.glob(pages)}
)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_commands_files_and_links_exist(page):
    """Figures name the command that prints them; the command is there."""
    text = page.read_text(encoding="utf-8")
    modules = re.findall(r"python -m ((?:benchmarks|research|docs|examples)(?:\.\w+)+)", text)
    assert all(find_spec(module) for module in modules), modules
    for path in re.findall(r"`((?:docs|tests|examples|benchmarks|research|mars_score)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path

    for target in re.findall(r"\]\((?!https?:)([^)]*)\)", text):
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}, target


@pytest.mark.usefixtures("presets_as_they_are")
def test_settings_presets_and_the_limit_of_the_store_are_those_of_the_code():
    page = PAGES["docs/settings.md"]
    assert settings.render(page) == page, "run python -m docs.settings"
    assert settings.types() == settings.TYPES.read_text(encoding="utf-8"), "run python -m docs.settings"
    assert sorted(re.findall(r"^\| `(\w+)` \|", settings.table(), flags=re.MULTILINE)) == sorted(SETTING_NAMES)
    models = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    section = models.split("\n## Presets\n")[1].split("\n\n")[1]
    lines = re.findall(r"^\| `.*$", re.sub(r" \(default of .*?\)", "", section), flags=re.MULTILINE)
    rows = [re.findall("`(.*?)`", line) for line in lines]
    parts = ("language_model", "encoder", "entailment_model")
    assert rows == [[name, *(preset[part] for part in parts)] for name, preset in presets.PRESETS.items()]
    assert dict(re.findall(r"`(\w+)` \(default of `(\w+)`", section)) == {
        presets.DEFAULT_PRESETS[variant]: variant for variant in ("plus", "paper")
    }
    assert f"at most {LIMIT / 2**30:g} GiB" in PAGES["docs/scale.md"]


def test_the_formula_of_the_method_and_its_constants_are_those_of_the_code():
    page, config = PAGES["docs/method.md"], plus.PlusConfig()
    [formula] = re.findall(r"^    (score = .*)$", plus.__doc__, flags=re.MULTILINE)
    assert f"\n    {formula}  " in page
    values = {
        name: f"{getattr(config, name):g}".removeprefix("0") for name in vars(config) if name.endswith("weight")
    }
    shares = {
        "w": f"{values['context_weight']} g n / (n + {config.context_words:g})",
        "v": f"{values['sample_weight']} (g n / (n + {config.context_words:g}))\u00b2",
        "l": f"{values['likelihood_weight']} n\u00b2 / (n\u00b2 + {config.likelihood_words:g}\u00b2)",
    }
    words = {4: "four", 5: "five", 10: "ten"}
    for text in (
        *(f"{name} = {share}" for name, share in shares.items()),
        f"log p / {1 / config.log_p_weight:g}",
        f"is {config.close_context:g} or less".replace("0.", "."),
        f"{config.max_pmi:g} at most",
        f"at most {config.window_words} words",
        f"{words[config.word_letters]} letters or more that are among the {words[config.repetition_words]} such",
        f"a candidate of {words[config.copied_words]} words or more",
        f"over {WHOLE_PREMISE_FACTOR * config.premise_words:g} words",
        f"an excerpt of at most {config.premise_words} words",
        f"first {config.max_sentences} sentences",
        f"| -{config.repetition_penalty:g} |".replace("0.", "."),
        f"-{config.contradiction_penalty:g} of the rest |".replace("0.", "."),
        f"s = {config.support_weight:g} |".replace("0.", "."),
    ):
        assert text in page


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
def test_typical_values_are_those_that_were_recorded(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["typical_values", "--preset", "mini"])
    typical_values.main()
    recorded = typical_values.tables(results.read()["typical_values"])["mini"]
    assert_printed(capsys.readouterr().out, f"{recorded}\n")
