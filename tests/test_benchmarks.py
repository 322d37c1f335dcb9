"""What the benchmarks of speed count, and that scores made from saved features are the scorer's."""

import importlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import common, rates, stages
from benchmarks.all import SCRIPTS
from benchmarks.arithmetic import Prices, operations
from mars_score import MarsScorer
from mars_score.infilling.jobs import Blank, FilledBlank, Job
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.presets import PRESETS
from mars_score.rows import TASKS, Row
from research import forms, samples, sets
from tests import jsonl, tiny_models
from tests.belief import ALL, believe


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
    infills = {job: [FilledBlank((8,), (2.0, 1.0)), FilledBlank((9,), (1.0,))]}
    prompt = 3 * 100 + (1 + 2 + 3)
    lead = 110 + 4
    drafted = 7 * (2 * 110 + 5 + 6)  # the pending token 5 is the fifth, then the first drafted one
    judged = (110 + 7) + (110 + 7) + (110 + 8)  # the last drafted token; 6 behind either prefix
    trailing = 110 + 8  # written: 5 + 8, 6, 7
    assert operations(prices, infills, passes=7) == prompt + lead + drafted + judged + trailing


def test_every_benchmark_can_be_run_and_is_documented():
    text = Path(common.__file__).with_name("README.md").read_text(encoding="utf-8")
    for name in {*SCRIPTS, "rates", "stages", "same_score"}:
        assert importlib.import_module(f"benchmarks.{name}").main
        assert f"| `{name}.py` |" in text


@pytest.fixture
def printed(monkeypatch, capsys, named_models):
    """Runs a benchmark with tiny models in the place of preset "mini"; returns what it prints as JSON."""
    models = {name: named_models[name] for name in PRESETS["mini"]}
    monkeypatch.setitem(PRESETS, "mini", models)

    def run(script, *options):
        monkeypatch.setattr("sys.argv", ["script", "--rows=1", "--variants=fast,paper", "--json", *options])
        script.main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_rates(monkeypatch, printed):
    """A line for each metric and length of context, and contexts that get longer."""
    sizes = []
    monkeypatch.setattr(rates, "_peers", lambda preset: {"peer": lambda texts: sizes.append(len(texts))})
    *ours, peer = printed(rates, "--repeats=1", "--sentences=1,3", "--variants=fast,plus")
    assert (peer["metric"], sizes) == ("peer", [1])
    assert [line["metric"] for line in ours] == ["MARS, `fast`", "MARS, `plus`"] * 2
    assert ours[0]["context_words"] < ours[2]["context_words"]
    assert all(line[name] > 0 for line in ours for name in rates.COLUMNS)


def test_stages(printed):
    """Each variant has its stages, of each kind of row; nothing is infilled for new candidates."""
    lines = printed(stages, "--sentences=2")
    seconds = {(line["variant"], line["of"]): line["seconds"] for line in lines}
    assert list(seconds) == list(
        itertools.product(["fast", "paper"], ["first score", "new candidates", "kept rows"])
    )
    assert set(seconds["fast", "first score"]) >= {"encode", "rest"}
    assert set(seconds["paper", "first score"]) >= {"infill", "encode", "rest"}
    assert "infill" not in seconds["paper", "new candidates"]


ROWS = [
    Row(
        "She took the bus to work every day until Friday.",
        ("She went to work by bus.", "She took the bus until her car was mended."),
        "Jane's car broke down on Monday. She took the bus to work every day, which she liked.",
        ("A bus took her there.", "She walked."),
        task,
    )
    for task in TASKS
]


@pytest.mark.parametrize(
    ("variant", "known"), [("plus", ALL), ("plus", ALL._replace(by_context=False)), ("fast", ALL)]
)
def test_scores_of_saved_features_are_those_of_the_scorer(variant, known, tiny_mini, monkeypatch):
    """Without references no verdict is left that needs one; ``contradiction_penalty=0`` leaves none at all."""
    believe(monkeypatch, known, certain=0.4, likely=0.0)
    calls = MarsScorer("mini", variant=variant).calls
    rows_and_features = []
    for rows in (ROWS, [replace(row, references=()) for row in ROWS]):
        saved = json.loads(json.dumps([*map(forms.to_json, forms.every_feature(rows, calls))]))
        rows_and_features.append((rows, [*map(forms.from_json, saved)]))
    assert any(one.contradicted_share for one in rows_and_features[0][1])
    changes = {"context_weight": 0.3, "repetition_penalty": 0.6, "copied_words": 3}
    for settings in ({}, {"contradiction_penalty": 0.0}, {"support_weight": 0.0}, changes):
        scorer = MarsScorer("mini", variant=variant, **settings)
        for rows, features in rows_and_features:
            expected = [row.score for row in scorer.row_scores(rows)]
            assert forms.scores(features, forms.VARIANTS[variant], **settings) == pytest.approx(
                expected, abs=1e-12
            )


def test_each_change_of_the_formula_changes_a_score(tiny_mini, monkeypatch):
    believe(monkeypatch)
    config = forms.VARIANTS["plus"]
    features = forms.every_feature(ROWS, MarsScorer("mini", variant="plus").calls)
    features = [
        one._replace(
            support=0.4,
            contradicted_share=0.5,
            reference_context_cosine=0.9,
            log_p=one.log_p._replace(given_context=9.0, alone=-4.0),
        )
        for one in features
    ]
    as_it_is = forms.scores(features, config)
    for name, changes in forms.CHANGES.items():
        assert (forms.scores(features, config, **changes) != as_it_is).any(), name


@pytest.mark.slow
def test_tables_of_forms_and_samples(tiny_mini, tmp_path, monkeypatch, capsys):
    """By random models, from rated candidates of different tasks."""

    def printed(script, *files):
        features = tmp_path / f"{script.__name__}.json"
        monkeypatch.setattr("sys.argv", ["script", *files, "--features", str(features)])
        script.main()
        return capsys.readouterr().out

    names = ("usr_topicalchat", "bagel", "summeval", "qgeval")
    files = jsonl.write_rated(tmp_path, names, groups=3, systems=("sleep", "play"))
    for script, count in ((forms, 5), (samples, 4)):
        first = printed(script, *files)
        assert printed(script) == first  # of the features that were kept
        assert len(re.findall(r"^\| ?---", first, flags=re.MULTILINE)) == count
    assert [sets.TASKS[name] for name in names] == ["dialogue", "data", "summary", "text"]
