"""What an NLI model says of candidates: tiny random classifiers, against one pair at a time."""

import json

import jsonl
import oracle_forms
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.errors import CONTRADICTED, SENTENCES_CUT, UnsupportedModelError
from mars_score.text import nearest_passage

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
LONG = "The council built a new road between the station and the market. Nobody went there. " * 9
ROWS = [
    ("The road was closed. They went there.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], "The work began in March."),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]


@pytest.fixture
def make(tiny_mini):
    """Makes scorers with an NLI model, or with None."""

    def make_scorer(model, **settings):
        return MarsScorer(**{**tiny_mini, "entailment_model": model}, **{"variant": "fast", **settings})

    return make_scorer


def values(row):
    return {term.name: term.value for term in row.terms}


@pytest.mark.parametrize("batch_size", [1, 3])
def test_each_sentence_is_compared_with_its_premises(make, batch_size):
    model = tiny_models.tiny_nli()
    result, plain = (make(one, encoder_batch_size=batch_size).score(*COLUMNS) for one in (model, None))
    for (candidate, references, context), row, before in zip(ROWS[:3], result.rows, plain.rows, strict=False):
        found = [
            oracle_forms.contradicted(*model, sentence, references, context)
            for sentence in oracle_forms.sentences(candidate)
        ]
        value = max(0, values(row)["references"]) ** 2 * sum(found) / len(found)
        assert values(row)["contradiction"] == pytest.approx(value, abs=1e-9)
        assert row.score == pytest.approx(before.score - 0.4 * value, abs=1e-9)
        assert row.terms[:-1] == before.terms
    assert (result.rows[3].score, result.rows[3].terms) == (0, ())
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    assert plain.signature.to_dict()["entailment_model"] == "none"
    assert plain.signature.to_dict()["contradiction_penalty"] == 0


def test_paper_has_no_contradictions(make):
    result = make(tiny_models.tiny_nli(), variant="paper", planner="none").score(*COLUMNS)
    assert {name for row in result.rows for name in values(row)} == {"references"}


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        (tiny_models.NLI_LABELS, "contradicted"),
        ({0: "contradiction", 1: "neutral", 2: "entailment"}, "supported"),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, "not found"),
    ],
)
def test_verdicts(make, labels, verdict):
    """The last class is as good as sure."""
    result = make(tiny_models.tiny_nli(60, labels=labels)).score(*COLUMNS, explain=True)
    explained, *_, blank = result.explanations
    assert [one.sentence for one in explained.verdicts] == ["The road was closed.", "They went there."]
    for one in explained.verdicts:
        assert (one.verdict, one.probability) == (verdict, pytest.approx(1, abs=1e-6))
        passage = oracle_forms.nearest_passage(one.sentence, LONG)
        assert (one.premise in {*ROWS[0][1], passage}) is (verdict != "not found")
    assert f"  {verdict} 1.00: They went there." in str(explained)
    assert f"<b>{verdict} 1.00</b> They went there." in explained._repr_html_()
    assert any(notice.startswith(CONTRADICTED) for notice in result.notices) is (verdict == "contradicted")
    assert blank.verdicts == make(None).score(*COLUMNS, explain=True).explanations[0].verdicts == ()


@pytest.mark.parametrize(
    "labels",
    [{0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {0: "entailment", 1: "not_entailment"}],
)
def test_a_model_without_the_classes_is_refused(make, labels):
    with pytest.raises(UnsupportedModelError, match=f"^entailment_model .*{labels[0].lower()}"):
        make(tiny_models.tiny_nli(labels=labels)).score(["a"], ["b"], ["c d"])


def test_of_many_sentences_the_first_are_judged(make):
    """300 sentences: the first 20 are, and a notice says so."""
    candidates = [" ".join(f"It rained on day {day}." for day in range(count)) for count in (20, 300)]
    result = make(tiny_models.tiny_nli()).score(candidates, ["It rained every day."] * 2, [LONG] * 2)
    assert [notice for notice in result.notices if notice.startswith(SENTENCES_CUT)] == [
        f"{SENTENCES_CUT}: 1 of 2 rows (index 1)"
    ]
    assert all("contradiction" in values(row) for row in result.rows)


def test_what_is_stored_is_not_computed_again(make, tmp_path):
    totals = []

    def score(bias):
        """The result, and how many pairs were classified for first and second premises."""
        totals.clear()
        progress = {"progress": lambda stage, done, total: totals.append((stage, done, total))}
        result = make(tiny_models.tiny_nli(bias), store=tmp_path, **progress).score(*COLUMNS)
        return result, [total for stage, done, total in totals if (stage, done) == ("contradiction", 0)]

    result, computed = score(0)
    assert (len(computed), computed[0]) == (2, 4)
    assert score(0) == (result, [])
    result, computed = score(-60)
    assert computed == [4]  # What the first premise does not contradict is not compared with the second.
    assert not any(notice.startswith(CONTRADICTED) for notice in result.notices)


def test_the_nearest_passage_of_a_context():
    far = "It rained. " * 30
    context = f"{far}The road was closed in March. It was busy again in May. {far}"
    passage = nearest_passage("The road is closed.", context, 60)
    assert "The road was closed in March. It was busy again in May." in passage
    assert 50 < len(passage.split()) <= 60
    assert nearest_passage("No shared word", "A b. C d.", 60) == "A b. C d."
    assert nearest_passage("", "word " * 200, 60).split() == ["word"] * 200


def test_files(make, tmp_path, run):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    for part in tiny_models.tiny_nli(60):
        part.save_pretrained(tmp_path / "model")
    names = ("prediction", "reference", "context")
    path = jsonl.write(tmp_path / "rows.jsonl", [dict(zip(names, row, strict=True)) for row in ROWS * 2])
    options = ["--preset", "mini", "--variant", "fast", "--chunk-size", 2]
    options += ["--entailment-model", tmp_path / "model"]
    printed = json.loads(run("score", path, *options, "--json")[1])
    result = make(str(tmp_path / "model")).score(*zip(*ROWS * 2, strict=True))
    assert printed["scores"] == pytest.approx(result.scores, abs=1e-6)
    assert printed["settings"]["entailment_model"].startswith("folder@")
    assert "6 of 8 rows (line 1, 2, 3, 5, 6, ...)" in " ".join(printed["notices"])
