"""Candidates without references: the score against a plain form, in every place where rows come in."""

import json
from types import SimpleNamespace

import jsonl
import numpy as np
import oracle_forms
import pytest
import tiny_models

from mars_metric import Mars
from mars_score import MarsScorer
from mars_score.augment.sampling.samples import UNKNOWN_LIMIT, Samples
from mars_score.cli import main
from mars_score.compare import rank_systems
from mars_score.errors import MarsWarning
from mars_score.integrations.trainer import compute_metrics
from mars_score.settings import presets, resolve_settings
from mars_score.space.inputs import PRESET

LATE, RIVER = "It was late and they won.", "By the river, where they waited for the train home."
ROWS = [  # candidate, context, task by its form
    ("She took a train.", "Her old car broke down.", "story"),
    (" ", "It was late, and they lost it.", "story"),
    ("They won the old game \u2014 \u4f60\u597d!", "They won the old game. It was late.", "story"),
    ("At the museum.", "Where did they go?", "answer"),
    ("  The end.  ", "Was it the end?\nI think so.", "dialogue"),
    ("A train, their train: the last Train home.", "Her old car broke down.", "story"),
]
CANDIDATES, CONTEXTS = [row[0] for row in ROWS], [row[1] for row in ROWS]


@pytest.fixture(scope="module")
def wide():
    """A language model whose window holds all texts."""
    return tiny_models.tiny_gpt2(seed=1, n_positions=256, initializer_range=0.1)


@pytest.fixture(autouse=True)
def tiny(monkeypatch, wide, encoder):
    """Preset "mini" is of tiny models, whose samples are two set texts."""
    models = {"language_model": wide, "encoder": encoder, "masked_language_model": None}
    for name in ("mini", PRESET):
        monkeypatch.setitem(presets.PRESETS, name, models)
    monkeypatch.setenv("MARS_PRESET", "mini")

    def draw(model, request, settings):
        assert request.token_limit == UNKNOWN_LIMIT
        return Samples((LATE, RIVER))

    monkeypatch.setattr("mars_score.augment.sampling.samples.draw_samples", draw)
    return models


def expected(candidate, context, task, models, variant):
    """The score of a row in plain Python."""
    candidate, encoder = candidate.strip(), models["encoder"]
    if not candidate:
        return 0.0
    total = 0.5 * oracle_forms.nearness(encoder, candidate, context)
    if task not in ("answer", "data"):
        total += 0.2 * max(oracle_forms.recall(encoder, candidate, one) for one in (LATE, RIVER))
    if variant == "plus" and task != "dialogue":
        given, alone = (
            oracle_forms.log_probability(*models["language_model"], one, candidate) for one in (context, "")
        )
        total += 0.15 * (alone / 2 + given - alone)
    return total - 0.3 * oracle_forms.repeated(candidate)


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
@pytest.mark.parametrize("variant", ["fast", "plus"])
def test_scores_are_those_of_the_plain_form(tiny, variant):
    result = MarsScorer("mini", store=False, variant=variant, sample_count=2).score(CANDIDATES, contexts=CONTEXTS)
    assert result.scores == pytest.approx([expected(*row, tiny, variant) for row in ROWS], abs=1e-6)
    assert f"|variant:{variant}|references:0|" in str(result.signature)
    assert result.rows[1].terms == result.rows[1].samples == ()
    assert [len(row.samples) for row in result.rows] == [2, 0, 2, 0, 2, 2]


def test_what_a_user_set_stays(tiny):
    settings = resolve_settings("mini", context_weight=0.9, matching="sentences", variant="plus").given(None)
    assert (settings.variant, settings.similarity.context_weight) == ("plus", 0.9)
    assert (settings.similarity.matching, settings.similarity.sample_weight) == ("sentences", 0.2)


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ({}, {}, "references and contexts are missing"),
        ({}, {"contexts": ["c", " "]}, r"contexts\[1\] is blank.*without references"),
        ({}, {"contexts": ["c"]}, "predictions has 2, contexts has 1"),
        ({}, {"references": ["r", []], "contexts": ["c", "c"]}, r"references\[1\] is an empty list.*at all"),
        ({"variant": "paper"}, {"contexts": ["c", "c"]}, "'paper' needs references.*variant='plus' or"),
        ({"use_context": False}, {"contexts": ["c", "c"]}, "leave out use_context=False"),
    ],
)
def test_bad_input(settings, rows, message):
    with pytest.raises(ValueError, match=message):
        MarsScorer("mini", store=False, **{"variant": "plus", **settings}).score(["a", "b"], **rows)


def test_evaluate(tmp_path):
    metric, rows = (
        Mars("plus", sample_count=2, cache_dir=str(tmp_path)),
        {"predictions": CANDIDATES[2:], "contexts": CONTEXTS[2:]},
    )
    scores = (
        MarsScorer("mini", store=False, variant="plus", sample_count=2)
        .score(CANDIDATES[2:], None, CONTEXTS[2:])
        .scores
    )
    found = metric.compute(**rows, detailed=True)
    assert found["scores"] == pytest.approx(scores, abs=1e-6)
    assert "variant:plus|references:0" in found["signature"]
    assert found["augmented_references"] == [[LATE, RIVER], [], [LATE, RIVER], [LATE, RIVER]]
    metric.add(prediction=CANDIDATES[2], context=CONTEXTS[2])
    with pytest.raises(ValueError, match="some rows have references and some have none"):
        metric.compute(**rows, references=["r"] * 4)
    assert metric.compute()["mars"] == pytest.approx(scores[0], abs=1e-6)  # the added row is still there


def test_trainer():
    tokenizer = SimpleNamespace(batch_decode=lambda rows, **_: ["They won it."] * len(rows))
    ids = np.ones((2, 3), int)
    prediction = SimpleNamespace(predictions=ids, label_ids=ids, inputs=None)
    scorer = MarsScorer("mini", store=False, variant="plus")
    found = compute_metrics(scorer, tokenizer, CONTEXTS[:2], use_references=False)(prediction)
    assert found["mars"] == scorer.score(["They won it."] * 2, None, CONTEXTS[:2]).score


def test_command_line(tmp_path, capsys):
    rows = [{"prediction": a, "context": b} for a, b, _ in ROWS]
    path = str(jsonl.write(tmp_path / "rows.jsonl", rows))
    assert (
        main(
            ["score", path, "--no-references", "--json", "--detailed", "--variant", "plus", "--sample-count", "2"]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    with pytest.warns(MarsWarning, match="blank candidates"):
        result = MarsScorer("mini", variant="plus", sample_count=2).score(CANDIDATES, None, CONTEXTS)
    assert found["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert found["signature"] == str(result.signature)
    assert [one["text"] for one in found["rows"][0]["samples"]] == [LATE, RIVER]
    assert main(["score", path]) == 2
    assert "'reference' is missing" in (error := capsys.readouterr().err)
    assert "--no-references" in error
    mixed = jsonl.write(tmp_path / "mixed.jsonl", [{**rows[0], "reference": "r"}, {**rows[2], "reference": []}])
    assert main(["score", str(mixed)]) == 2
    assert "mixed.jsonl:2: column 'reference' is an empty list" in capsys.readouterr().err
    jsonl.write(tmp_path / "rows.jsonl", [{**rows[0], "context": " "}])
    assert main(["score", path, "--no-references", "--variant", "plus"]) == 2
    assert "rows.jsonl:1: column 'context' is blank" in capsys.readouterr().err
    assert main(["score", path, "--no-references", "--no-use-context", "--variant", "plus"]) == 2
    assert "leave out use_context=False" in capsys.readouterr().err


def test_two_systems(tmp_path, capsys):
    others = ["It was late.", *CANDIDATES[3:]]
    paths = []
    for name, some in (("one", CANDIDATES[2:]), ("other", others)):
        rows = [{"prediction": a, "context": b} for a, b in zip(some, CONTEXTS[2:], strict=True)]
        paths.append(str(jsonl.write(tmp_path / f"{name}.jsonl", rows)))
    assert main(["compare", *paths, "--no-references", "--variant", "plus", "--json", "--resamples", "10"]) == 0
    printed = json.loads(capsys.readouterr().out)
    systems = {"one": CANDIDATES[2:], "other": others}
    ranking = rank_systems(MarsScorer("mini", variant="plus"), systems, contexts=CONTEXTS[2:], resamples=10)
    assert printed["pairs"][0]["difference"] == ranking.pairs[0].difference > 0
    assert "variant:plus|references:0" in printed["signature"]
