"""What an entailment model says of candidates: tiny random classifiers, against one pair at a time."""

import json
import math

import jsonl
import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.data.sentences import sentences
from mars_score.errors import MarsWarning, UnsupportedModelError
from mars_score.scoring.entailment import nearest_passage

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
LABELS = {0: "Entailment", 1: "Neutral", 2: "CONTRADICTION"}
LONG = "The council built a new road between the station and the market. Nobody went there. " * 9
ROWS = [
    ("The road was closed. They went there.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], "The work began in March."),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]


def classifier(bias=0.0, labels=LABELS, seed=7):
    """A classifier that finds contradictions more likely by ``bias``."""
    model, tokenizer = tiny_models.tiny_classifier(len(labels), seed, torch.float64, id2label=labels)
    with torch.no_grad():
        model.classifier.out_proj.bias[-1] += bias
    return model, tokenizer


@pytest.fixture
def make(tiny_mini):
    """A scorer that reads with a classifier."""

    def make_scorer(model, **settings):
        penalty = {"contradiction_penalty": 0.5} if model else {}
        return MarsScorer(**tiny_mini, entailment_model=model, **{"variant": "fast", **penalty, **settings})

    return make_scorer


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


@pytest.mark.parametrize(("variant", "batch_size"), [("fast", 3), ("paper", 1)])
def test_each_sentence_is_read_beside_its_premises(make, variant, batch_size):
    model, settings = classifier(), {"variant": variant, "encoder_batch_size": batch_size}
    result, plain = (make(one, **settings).score(*COLUMNS) for one in (model, None))
    for (candidate, references, context), row, before in zip(ROWS[:3], result.rows, plain.rows, strict=False):
        value = max(0, values(row)["references"]) ** 2 * oracle(model, candidate, references, context)
        assert values(row)["contradiction"] == pytest.approx(value, abs=1e-9)
        assert row.score == pytest.approx(before.score - 0.5 * value, abs=1e-9)
        assert row.terms[:-1] == before.terms
    assert (result.rows[3].score, result.rows[3].terms) == (0, ())
    assert "|contradiction_penalty:0.5|" in str(result.signature)
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    assert plain.signature.to_dict()["entailment_model"] == "none"


def test_without_references_the_context_is_the_premise(make):
    model, candidate = classifier(), "The road was closed."
    [row] = make(model).score([candidate], contexts=[LONG]).rows
    value = max(0, values(row)["context"]) ** 2 * oracle(model, candidate, [], LONG)
    assert values(row)["contradiction"] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        (LABELS, "contradicted"),
        ({0: "contradiction", 1: "neutral", 2: "entailment"}, "supported"),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, "not found"),
    ],
)
def test_verdicts(make, labels, verdict):
    """The last class is as good as sure."""
    explained, *_, blank = make(classifier(60, labels)).score(*COLUMNS, explain=True).explanations
    assert [one.sentence for one in explained.verdicts] == ["The road was closed.", "They went there."]
    for one in explained.verdicts:
        assert (one.verdict, one.probability) == (verdict, pytest.approx(1, abs=1e-6))
        assert (one.premise in {*ROWS[0][1], nearest_passage(one.sentence, LONG)}) is (verdict != "not found")
    assert f"  {verdict} 1.00: They went there." in str(explained)
    assert f"<b>{verdict} 1.00</b> They went there." in explained._repr_html_()
    assert blank.verdicts == make(None).score(*COLUMNS, explain=True).explanations[0].verdicts == ()


@pytest.mark.parametrize(
    "labels",
    [{0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {0: "entailment", 1: "not_entailment"}],
)
def test_a_model_without_the_classes_is_refused(make, labels):
    with pytest.raises(
        UnsupportedModelError, match=r"no classes named entailment and contradiction, but .*; choose"
    ):
        make(classifier(labels=labels)).score(["a"], ["b"], ["c d"])


def test_many_sentences_are_read_in_part(make):
    """300 sentences: the first 20 are, and a notice says so."""
    candidates = [" ".join(f"It rained on day {day}." for day in range(count)) for count in (20, 300)]
    with pytest.warns(MarsWarning, match=r"read the first 20 sentences of the candidate alone: 1 of 2 rows \(1\)"):
        result = make(classifier()).score(candidates, ["It rained every day."] * 2, [LONG] * 2)
    assert all("contradiction" in values(row) for row in result.rows)


def test_what_is_stored_is_not_read_again(make, tmp_path):
    totals = []

    def score(bias):
        """The result, and how many pairs were read beside first and second premises."""
        totals.clear()
        settings = {"store": tmp_path, "progress": lambda stage, done, total: totals.append((stage, done, total))}
        result = make(classifier(bias), **settings).score(*COLUMNS)
        return result, [total for stage, done, total in totals if (stage, done) == ("contradiction", 0)]

    result, read = score(0)
    assert (len(read), read[0]) == (2, 4)
    assert score(0) == (result, [])
    result, read = score(-60)
    assert read == [4]  # what the first premise does not contradict is not read beside the second
    assert not any("contradicts" in notice for notice in result.notices)


def test_the_nearest_passage_of_a_context():
    far = "It rained. " * 30
    context = f"{far}The road was closed in March. It was busy again in May. {far}"
    passage = nearest_passage("The road is closed.", context)
    assert "The road was closed in March. It was busy again in May." in passage
    assert 50 < len(passage.split()) <= 60
    assert nearest_passage("No shared word", "A b. C d.") == "A b. C d."
    assert nearest_passage("", "word " * 200).split() == ["word"] * 200


def test_files(make, tmp_path, run):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    for part in classifier(60):
        part.save_pretrained(tmp_path / "model")
    names = ("prediction", "reference", "context")
    path = jsonl.write(tmp_path / "rows.jsonl", [dict(zip(names, row, strict=True)) for row in ROWS * 2])
    options = ["--preset", "mini", "--variant", "fast", "--contradiction-penalty", 0.5, "--chunk-size", 2]
    options += ["--entailment-model", tmp_path / "model"]
    printed = json.loads(run("score", path, *options, "--json")[1])
    result = make(str(tmp_path / "model")).score(*zip(*ROWS * 2, strict=True))
    assert printed["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert printed["settings"]["entailment_model"].startswith("folder@")
    assert "6 of 8 rows (line 1, 2, 3, 5, 6, ...)" in " ".join(printed["notices"])
