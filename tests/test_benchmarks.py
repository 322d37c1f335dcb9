"""What the benchmarks of speed count, and that forms made from features are the scorer's."""

import contextlib
import importlib
import io
import json
from pathlib import Path

import jsonl
import numpy as np
import pytest
import tiny_models
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import common
from benchmarks.all import SCRIPTS
from benchmarks.arithmetic import Prices, operations
from mars_score import MarsScorer
from mars_score.augment.infilling.jobs import Blank, Infill, Job
from mars_score.models.engine.language_model import CausalLanguageModel


@pytest.mark.parametrize("build", [tiny_models.tiny_gpt2, tiny_models.tiny_llama])
def test_price_of_a_token_is_what_torch_counts(build):
    wrapped = CausalLanguageModel(*build(attn_implementation="eager"))
    model, prices = wrapped.model, Prices.of(wrapped)
    tokens = torch.arange(8)[None]
    cache = model(input_ids=tokens[:, :7], use_cache=True).past_key_values
    with FlopCounterMode(display=False) as counter:
        model(input_ids=tokens[:, 7:], past_key_values=cache, use_cache=True)
    assert counter.get_total_flops() == prices.feed(7, 1)


def test_operations_of_a_job():
    prices = Prices(body=100, head=10, position=1)
    job = Job((1, 2, 3), (4, 5), (Blank(1, True, (6, 7)), Blank(1, True, ())), False)
    infills = {job: [Infill((8,), (2.0, 1.0)), Infill((9,), (1.0,))]}
    prompt = 3 * 100 + (1 + 2 + 3)
    lead = 110 + 4
    drafted = 7 * (2 * 110 + 5 + 6)  # the pending token 5 is the fifth, then the first drafted one
    judged = (110 + 7) + (110 + 7) + (110 + 8)  # the last drafted token; 6 behind either prefix
    trailing = 110 + 8  # written: 5 + 8, 6, 7
    assert operations(prices, infills, passes=7) == prompt + lead + drafted + judged + trailing


@pytest.fixture
def rated(tiny_mini, tmp_path):
    """Rated rows and their file; tiny models."""
    words = tiny_models.TEXT.split()
    rows = [
        {
            "group": str(number // 3),
            "system": str(number % 3),
            "candidate": " ".join(words[number : number + 3 + number % 4]) if number else " ",
            "references": [" ".join(words[number // 3 * 3 : number // 3 * 3 + 5]), "She took a train."],
            "context": ""
            if number > 9
            else "Her car broke. It was late. " + " ".join(words[: 40 * (number // 3)]),
            "human": float(number * 7 % 5),
        }
        for number in range(12)
    ]
    file = tmp_path / "toy.jsonl"
    jsonl.write(file, rows)
    return rows, file


@pytest.fixture
def features(rated, monkeypatch):
    """Rated rows and the file of their features."""
    rows, file = rated
    out = file.with_name("out.jsonl")
    arguments = ["features.py", str(file), "--infills", "--likelihood", "--out", str(out)]
    monkeypatch.setattr("sys.argv", [*arguments, "--store", str(file.parent)])
    importlib.import_module("research.features").main()
    return rows, out


def test_forms_of_features_are_the_scorers(features, monkeypatch, capsys):
    rows, file = features
    forms = importlib.import_module("research.forms")
    [data] = forms.read([str(file)], [])
    assert set(data.attacks) == {"reorder", "retrieve"}
    columns = (
        [row["candidate"] for row in rows],
        [row["references"] for row in rows],
        [row["context"] for row in rows],
    )
    for variant, form in forms.VARIANTS.items():
        result = MarsScorer("mini", store=False, variant=variant).score(*columns)
        # the models are in double, token vectors in half
        assert form(data.items) == pytest.approx(result.scores, abs=1e-4)
    for table in forms.COMMANDS:
        monkeypatch.setattr("sys.argv", ["forms.py", table, str(file)])
        if table == "choice":
            with pytest.raises(ValueError, match="two sets"):
                forms.main()
        else:
            forms.main()
            assert " nan" not in capsys.readouterr().out


def run_choice(file, *others):
    """The tables of research/reference_choice.py: cells by line and column, by title."""
    choice = importlib.import_module("research.reference_choice")
    arguments = ["choice.py", str(file), *others, "--metrics", "chrf,mars[samples=0]", "--store", str(file.parent)]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.setattr("sys.argv", arguments)
        choice.main()
    tables = {}
    for text in printed.getvalue().strip().split("\n\n"):
        (title, *columns), _, *lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
        ]
        tables[title] = {name: dict(zip(columns, cells, strict=True)) for name, *cells in lines}
    return choice, tables


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
def test_picked_references(rated, tiny_mini):
    """A line per choice of references; each is what the metric gives with these references by itself."""
    tiny_mini["language_model"] = tiny_models.tiny_writer()  # its samples pass the gates
    rows, file = rated
    choice, tables = run_choice(file)
    rows = rows[:10]  # the others have no context, so no samples
    assert list(tables) == ["toy, 10 items", "toy, 3 systems"]
    table = tables["toy, 10 items"]
    assert {*table} == {*choice.BASES, "lowest and highest of 4 choices"}
    assert all(list(cells) == ["chrF", "MARS, samples=0"] for cells in table.values())
    contexts, corpus = (
        [row["context"] for row in rows],
        list(dict.fromkeys(text for row in rows for text in row["references"])),
    )
    first = [row["references"][:1] for row in rows]
    infiller = MarsScorer("mini", store=False, variant="fast", max_mask_ratio=0.6, idf_corpus=corpus)
    sampler = MarsScorer("mini", store=False, **choice.FORM)
    expected = {
        "all": [row["references"] for row in rows],
        "the first alone": first,
        "the first and its infills": infiller.augment(first, contexts),
        "samples alone": sampler.sample([row["references"] for row in rows], contexts),
    }
    assert any(len(texts) > 1 for texts in expected["the first and its infills"])
    ratings, systems = np.array([row["human"] for row in rows]), np.array([row["system"] for row in rows])
    for name, references in expected.items():
        candidates = [row["candidate"] for row in rows]
        scores = np.array(
            MarsScorer("mini", store=False, variant="fast", samples=0)
            .score(candidates, references, contexts)
            .scores
        )
        of_items = np.corrcoef(scores, ratings)[0, 1]
        assert table[name]["MARS, samples=0"].split()[0] == f"{of_items:.3f}"
        means = [[values[systems == one].mean() for one in "012"] for values in (scores, ratings)]
        of_systems = np.corrcoef(*means)[0, 1]
        assert tables["toy, 3 systems"][name]["MARS, samples=0"].split()[0] == f"{of_systems:.3f}"


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
def test_picked_references_without_samples(rated, tiny_mini, tmp_path):
    """Questions have no samples: their cells are n/a. The mean gain over two sets is that of both."""
    tiny_mini["language_model"] = tiny_models.tiny_writer()  # its samples pass the gates
    rows, file = rated
    other = tmp_path / "questions.jsonl"
    other.write_text("".join(json.dumps({**row, "context": "Where did they go?"}) + "\n" for row in rows))
    choice, tables = run_choice(file, str(other), "--out", str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice.References, "of", None)  # no model is asked again
        assert run_choice(file, str(other), "--out", str(tmp_path))[1] == tables
    questions, gains = tables["questions, 12 items"], tables["mean gain, items, 2 sets"]
    assert {name for name, cells in questions.items() if cells["chrF"] == "n/a"} == {
        "nearest to the samples",
        "all and samples",
        "samples alone",
        "the first and samples",
    }

    def value(cells, metric="chrF"):
        return float(cells[metric].split()[0])

    sets = (tables["toy, 10 items"], questions)
    expected = np.mean([value(table["all"]) - value(table["one at random"]) for table in sets])
    assert value(gains["all"]) == pytest.approx(expected, abs=2e-3)
    assert [gains[name]["sets"] for name in ("all", "samples alone")] == ["2", "1"]


def test_every_benchmark_can_be_run_and_is_documented():
    folder = Path(common.__file__).parent
    text = (folder / "README.md").read_text(encoding="utf-8")
    for name in {*SCRIPTS, "rates", "stages", "same_score"}:
        assert importlib.import_module(f"benchmarks.{name}").main
        assert f"| `{name}.py` |" in text


def test_rates(monkeypatch, capsys, tiny_mini):
    """A line for each metric and length of context, and contexts that get longer."""
    rates = importlib.import_module("benchmarks.rates")
    read = []
    monkeypatch.setattr(rates, "_peers", lambda: {"peer": lambda texts: read.append(len(texts))})
    arguments = ["--rows", "1", "--repeats", "1", "--variants", "fast,paper", "--sentences", "1,3", "--json"]
    monkeypatch.setattr("sys.argv", ["rates", *arguments])
    rates.main()
    peer, *ours = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert read == [1]
    assert peer["metric"] == "peer"
    assert [line["metric"] for line in ours] == ["MARS, `fast`", "MARS, `paper`"] * 2
    words = [line["context_words"] for line in ours[::2]]
    assert words == sorted(set(words))
    assert all(line["cold"] > 0 and line["warm"] > 0 for line in ours)


def test_stages(monkeypatch, capsys, tiny_mini):
    """Each stage of a variant has a line, and together they are the whole."""
    stages = importlib.import_module("benchmarks.stages")
    monkeypatch.setattr("sys.argv", ["stages", "--rows", "1", "--variants", "fast,paper", "--json"])
    stages.main()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["variant"] for line in lines] == ["fast", "paper"]
    assert set(lines[0]["seconds"]) >= {"embed", "match", "score"}
    assert set(lines[1]["seconds"]) >= {"infill", "embed", "score"}
    assert "match" not in lines[1]["seconds"]
    assert all(value >= 0 for line in lines for value in line["seconds"].values())
