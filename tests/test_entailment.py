"""What an entailment model says of candidates: tiny random classifiers, against one pair at a time."""

import json
import math

import jsonl
import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.sentences import sentences
from mars_score.errors import MarsWarning, UnsupportedModelError
from mars_score.models.engine import entailment
from mars_score.models.engine.entailment import classify
from mars_score.scoring.entailment import nearest_passage

LABELS = {0: "Entailment", 1: "Neutral", 2: "CONTRADICTION"}
LONG = "The council built a new road between the station and the market. Nobody went there. " * 9
ROWS = [
    ("The road was closed. They went there.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], "The work began in March."),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
]
PENALTY = {"contradiction_penalty": 0.5}


def classifier(bias=0.0, labels=LABELS, seed=7):
    """A classifier that finds contradictions more likely by ``bias``."""
    model, tokenizer = tiny_models.tiny_classifier(len(labels), seed, torch.float64, id2label=labels)
    with torch.no_grad():
        model.classifier.out_proj.bias[-1] += bias
    return model, tokenizer


@pytest.fixture
def models(tiny_mini):
    return tiny_mini


def values(row):
    return {term.name: term.value for term in row.terms}


def probabilities(model, premise, hypothesis):
    """By hand, one pair alone."""
    network, tokenizer = model
    tokens = tokenizer(premise, hypothesis, truncation=True, max_length=96, return_tensors="pt")
    with torch.no_grad():
        return network(**tokens).logits.softmax(-1)[0].tolist()


def oracle(model, candidate, references, context):
    """The mean over sentences of the probability that all premises contradict and none supports."""
    values = []
    for sentence in sentences(candidate):
        own = set(sentence.lower().strip(".").split())
        others = [set(text.lower().strip(".").split()) for text in references]
        shares = [len(own & words) / (len(own) * len(words)) ** 0.5 for words in others]
        premises = [references[shares.index(max(shares))]] if references else []
        premises += [nearest_passage(sentence, context)] if context else []
        found = [probabilities(model, premise, sentence) for premise in premises]
        probable = math.prod(one[2] for one in found)
        values.append(probable * (1 - max(one[0] for one in found)) if probable >= 0.1 else 0.0)
    return sum(values) / len(values)


@pytest.mark.parametrize("variant", ["fast", "paper"])
def test_each_sentence_is_read_beside_its_premises(models, variant):
    model = classifier()
    settings = {**models, "variant": variant}
    plain = MarsScorer(**{**settings, "entailment_model": None}).score(*zip(*ROWS, strict=True))
    result = MarsScorer(**{**settings, "entailment_model": model}, **PENALTY).score(*zip(*ROWS, strict=True))
    for (candidate, references, context), row, before in zip(ROWS[:3], result.rows, plain.rows, strict=False):
        probable = oracle(model, candidate, references, context)
        value = max(0, values(row)["references"]) ** 2 * probable
        assert values(row)["contradiction"] == pytest.approx(value, abs=1e-9)
        assert row.score == pytest.approx(before.score - 0.5 * value, abs=1e-9)
        assert row.terms[:-1] == before.terms
    assert result.rows[3].score == 0
    assert not result.rows[3].terms
    assert "|contradiction_penalty:0.5|" in str(result.signature)
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    assert plain.signature.to_dict()["entailment_model"] == "none"


@pytest.mark.parametrize(("bias", "count"), [(60, 3), (-60, 0)])
def test_a_notice_counts_probable_contradictions(models, bias, count):
    scorer = MarsScorer(**{**models, "entailment_model": classifier(bias)}, contradiction_penalty=0.1)
    notices = [one for one in scorer.score(*zip(*ROWS, strict=True)).notices if "contradicts" in one]
    assert notices == (
        ["the candidate probably contradicts its context or a reference: 3 of 4 rows (0, 1, 2)"] if count else []
    )


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        (LABELS, "contradicted"),
        ({0: "contradiction", 1: "neutral", 2: "entailment"}, "supported"),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, "not found"),
    ],
)
def test_verdicts(models, labels, verdict):
    """The last class is as good as sure."""
    scorer = MarsScorer(**{**models, "entailment_model": classifier(60, labels)}, **PENALTY)
    explained, *_, blank = scorer.score(*zip(*ROWS, strict=True), explain=True).explanations
    assert [one.sentence for one in explained.verdicts] == ["The road was closed.", "They went there."]
    assert {one.verdict for one in explained.verdicts} == {verdict}
    assert blank.verdicts == ()
    for one in explained.verdicts:
        assert one.probability == pytest.approx(1, abs=1e-6)
        assert (one.premise in {*ROWS[0][1], nearest_passage(one.sentence, LONG)}) is (verdict != "not found")
    assert f"  {verdict} 1.00: They went there." in str(explained)
    assert f"<b>{verdict} 1.00</b> They went there." in explained._repr_html_()
    unread = MarsScorer(**{**models, "entailment_model": None}).score(*zip(*ROWS, strict=True), explain=True)
    assert unread.explanations[0].verdicts == ()


def test_without_references_the_context_is_the_premise(models):
    model = classifier()
    scorer = MarsScorer(**{**models, "entailment_model": model}, variant="plus", contradiction_penalty=0.3)
    [row] = scorer.score(["The road was closed."], contexts=[LONG]).rows
    value = max(0, values(row)["context"]) ** 2 * oracle(model, "The road was closed.", [], LONG)
    assert values(row)["contradiction"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    "labels",
    [{0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {0: "entailment", 1: "not_entailment"}],
)
def test_a_model_without_the_classes_is_refused(models, labels):
    scorer = MarsScorer(**{**models, "entailment_model": classifier(labels=labels)}, **PENALTY)
    with pytest.raises(
        UnsupportedModelError, match=r"no classes named entailment and contradiction, but .*; choose"
    ):
        scorer.score(["a"], ["b"], ["c d"])


def test_many_sentences_are_read_in_part(models):
    """300 sentences: the first 20 are, and a notice says so."""
    candidates = [" ".join(f"It rained on day {day}." for day in range(count)) for count in (20, 300)]
    with pytest.warns(MarsWarning, match=r"read the first 20 sentences of the candidate alone: 1 of 2 rows \(1\)"):
        result = MarsScorer(**{**models, "entailment_model": classifier()}, **PENALTY).score(
            candidates, ["It rained every day."] * 2, [LONG] * 2
        )
    assert all("contradiction" in values(row) for row in result.rows)


def test_what_is_stored_is_not_read_again(models, tmp_path, monkeypatch):
    asked = []

    def counted(model, pairs, *options):
        asked.extend(pairs)
        classify(model, pairs, *options)

    monkeypatch.setattr(entailment, "classify", counted)
    settings = {**models, "store": tmp_path, **PENALTY}
    first, again = (
        MarsScorer(**{**settings, "entailment_model": classifier()}).score(*zip(*ROWS, strict=True))
        for _ in range(2)
    )
    assert again.rows == first.rows
    before = len(asked)
    assert before == len(set(asked)) > 4
    MarsScorer(**{**settings, "entailment_model": classifier(-60)}).score(*zip(*ROWS, strict=True))
    assert len(asked) == before + 4  # what the first premise does not contradict is not read beside the second


@pytest.mark.parametrize("size", [None, 1, 3])
def test_a_pair_does_not_depend_on_its_batch(size):
    model = classifier()
    pairs = [(text, candidate) for candidate, texts, _ in ROWS[:3] for text in (*texts, LONG, "No.", "")]
    found = {}
    classify(model, pairs, found.__setitem__, size)
    assert set(found) == set(pairs)
    for (premise, hypothesis), shares in found.items():
        assert shares == pytest.approx(probabilities(model, premise, hypothesis), abs=1e-9)


def test_the_nearest_passage_of_a_context():
    far = "It rained. " * 30
    context = f"{far}The road was closed in March. It was busy again in May. {far}"
    passage = nearest_passage("The road is closed.", context)
    assert "The road was closed in March. It was busy again in May." in passage
    assert 50 < len(passage.split()) <= 60
    assert nearest_passage("No shared word", "A b. C d.") == "A b. C d."
    assert nearest_passage("", "word " * 200).split() == ["word"] * 200


def test_files(models, tmp_path, capsys):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    model, tokenizer = classifier(60)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    names = ("prediction", "reference", "context")
    jsonl.write(tmp_path / "rows.jsonl", [dict(zip(names, row, strict=True)) for row in ROWS * 2])
    options = ["--preset", "mini", "--variant", "plus", "--chunk-size", "2", "--json", "--detailed"]
    options += ["--contradiction-penalty", "0.25", "--entailment-model", str(tmp_path / "model")]
    assert main(["score", str(tmp_path / "rows.jsonl"), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    settings = {"entailment_model": str(tmp_path / "model"), "contradiction_penalty": 0.25}
    result = MarsScorer("mini", variant="plus", **settings).score(*zip(*ROWS * 2, strict=True))
    assert found["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert found["settings"]["entailment_model"].startswith("folder@")
    assert "6 of 8 rows (line 1, 2, 3, 5, 6, ...)" in " ".join(found["notices"])
