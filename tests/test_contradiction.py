"""Contradictions of the context or a reference, found by tiny random classifiers."""

import json

import jsonl
import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.overlap import windows
from mars_score.errors import UnsupportedModelError
from mars_score.models.engine import entailment
from mars_score.models.engine.entailment import classify

LABELS = {0: "Entailment", 1: "Neutral", 2: "CONTRADICTION"}
LONG = "The council built a new road between the station and the market. " * 15
ROWS = [
    ("The road was closed.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], "The work began in March."),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
]


def classifier(bias=0.0, labels=LABELS, seed=7):
    """A classifier that finds contradictions more likely by ``bias``."""
    model, tokenizer = tiny_models.tiny_classifier(len(labels), seed, torch.float64, id2label=labels)
    with torch.no_grad():
        model.classifier.out_proj.bias[-1] += bias
    return model, tokenizer


@pytest.fixture
def models(tiny_mini):
    return tiny_mini


def contradiction(row):
    """The value of the term, which is the last."""
    *_, term = row.terms
    assert term.name == "contradiction"
    return term.value


def probability(model, premise, hypothesis, place=2):
    """By hand, one pair alone."""
    network, tokenizer = model
    tokens = tokenizer(premise, hypothesis, truncation=True, max_length=96, return_tensors="pt")
    with torch.no_grad():
        return float(network(**tokens).logits.softmax(-1)[0, place])


@pytest.mark.parametrize("variant", ["fast", "paper"])
def test_the_largest_probability_over_windows_and_references_counts(models, variant):
    model = classifier()
    plain = MarsScorer(variant=variant, **models).score(*zip(*ROWS, strict=True))
    scorer = MarsScorer(variant=variant, **models, entailment_model=model, contradiction_penalty=0.5)
    result = scorer.score(*zip(*ROWS, strict=True))
    assert len(windows(LONG)) == 2
    for (candidate, references, context), row, before in zip(ROWS[:3], result.rows, plain.rows, strict=False):
        found = [probability(model, text, candidate) for text in [*windows(context), *references]]
        assert contradiction(row) == pytest.approx(max(found), abs=1e-9)
        assert row.score == pytest.approx(before.score - 0.5 * max(found), abs=1e-9)
        assert row.score == sum(term.weight * term.value for term in row.terms)
        assert row.terms[:-1] == before.terms
    assert result.rows[3].score == 0
    assert not result.rows[3].terms
    assert "|contradiction_penalty:0.5|" in str(result.signature)
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    assert plain.signature.to_dict()["entailment_model"] == "none"
    assert "entailment" not in str(plain.signature)


@pytest.mark.parametrize(("bias", "said"), [(60, True), (-60, False)])
def test_without_a_weight_there_is_a_notice_alone(models, bias, said):
    plain = MarsScorer(**models).score(*zip(*ROWS, strict=True))
    result = MarsScorer(**models, entailment_model=classifier(bias)).score(*zip(*ROWS, strict=True))
    assert result.scores == plain.scores
    assert [row.terms[-1].weight for row in result.rows[:3]] == [0, 0, 0]
    assert [notice for notice in result.notices if notice not in plain.notices] == (
        ["the candidate probably contradicts its context or a reference: 3 of 4 rows (0, 1, 2)"] if said else []
    )


def test_without_references_the_context_alone_can_be_contradicted(models):
    model = classifier()
    scorer = MarsScorer(**models, variant="plus", entailment_model=model)
    result = scorer.score(["The road was closed."], contexts=[LONG])
    found = max(probability(model, text, "The road was closed.") for text in windows(LONG))
    assert contradiction(result.rows[0]) == pytest.approx(found, abs=1e-9)


def test_the_class_is_found_by_its_name(models):
    row = (["They went by train."], ["They stayed."], ["The work began."])
    turned = {0: "contradiction", 1: "neutral", 2: "entailment"}
    scores = [MarsScorer(**models, entailment_model=classifier(60, one)).score(*row) for one in (LABELS, turned)]
    assert [round(contradiction(one.rows[0])) for one in scores] == [1, 0]


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, "LABEL_0, LABEL_1, LABEL_2"),
        ({0: "entailment", 1: "not_entailment"}, "entailment, not_entailment"),
    ],
)
def test_a_model_without_the_class_is_refused(models, labels, named):
    scorer = MarsScorer(**models, entailment_model=classifier(labels=labels))
    with pytest.raises(
        UnsupportedModelError, match=f"no class named contradiction, but {named}; choose a model for"
    ):
        scorer.score(["a"], ["b"], ["c d"])


def test_what_is_kept_is_not_computed_again(models, tmp_path, monkeypatch):
    settings = {**models, "store": tmp_path, "contradiction_penalty": 0.5}
    model = classifier()
    first = MarsScorer(**settings, entailment_model=model).score(*zip(*ROWS, strict=True))
    asked = []

    def counted(model, pairs, *options):
        asked.extend(pairs)
        classify(model, pairs, *options)

    monkeypatch.setattr(entailment, "classify", counted)
    again = MarsScorer(**settings, entailment_model=model).score(*zip(*ROWS, strict=True))
    assert (again.rows, asked) == (first.rows, [])
    MarsScorer(**settings, entailment_model=classifier(seed=8)).score(*zip(*ROWS, strict=True))
    assert len(asked) == len(set(asked)) == 7


@pytest.mark.parametrize("size", [None, 1, 3])
def test_a_pair_does_not_depend_on_its_batch(size):
    model = classifier()
    pairs = [(text, candidate) for candidate, texts, _ in ROWS[:3] for text in (*texts, LONG, "No.", "")]
    found = {}
    classify(model, pairs, found.__setitem__, size)
    assert set(found) == set(pairs)
    for (premise, hypothesis), probabilities in found.items():
        assert sum(probabilities) == pytest.approx(1)
        assert probabilities[2] == pytest.approx(probability(model, premise, hypothesis), abs=1e-9)


def test_files(models, tmp_path, capsys):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    model, tokenizer = classifier(60)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    names = ("prediction", "reference", "context")
    jsonl.write(tmp_path / "rows.jsonl", [dict(zip(names, row, strict=True)) for row in ROWS * 2])
    options = ["--preset", "mini", "--variant", "plus", "--chunk-size", "2", "--json", "--detailed"]
    options += ["--contradiction-penalty", "0.25"]
    model_of = ["--entailment-model", str(tmp_path / "model")]
    assert main(["score", str(tmp_path / "rows.jsonl"), *model_of, *options]) == 0
    found = json.loads(capsys.readouterr().out)
    settings = {"entailment_model": str(tmp_path / "model"), "contradiction_penalty": 0.25}
    result = MarsScorer("mini", variant="plus", **settings).score(*zip(*ROWS * 2, strict=True))
    assert found["scores"] == pytest.approx(result.scores, abs=1e-6)
    terms = [{term["name"]: term for term in row["terms"]} for row in found["rows"][:3]]
    for of_row, row in zip(terms, result.rows, strict=False):
        assert of_row["contradiction"]["weight"] == -0.25
        assert of_row["contradiction"]["value"] == pytest.approx(contradiction(row), abs=1e-6)
    assert "contradicts its context or a reference: 6 of 8 rows (line 1, 2, 3, 5, 6, ...)" in " ".join(
        found["notices"]
    )
    assert found["settings"]["entailment_model"].startswith("folder@")
