"""What an NLI model says of candidates: tiny random classifiers, against one pair at a time.

How scores follow is in tests/test_forms.py, too; which premises are chosen in tests/test_premises.py.
"""

import json
from dataclasses import replace

import jsonl
import oracle_forms
import pandas as pd
import pytest
import tiny_models
import torch

from mars_score import MarsScorer
from mars_score.errors import Notice, UnsupportedModelError
from mars_score.rows import Entailment, Judgement, Row
from mars_score.variants import judgements
from mars_score.variants.judgements import SHIPPED, Calibration, calibration_of, verdict_on

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
LONG = "The council built a new road between the station and the market. Nobody went there. " * 12
ROWS = [
    ("The road was closed. They went there.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], {"passages": ["The work began in March.", "It is busy."]}),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
    ("They went by train.", ["They stayed."], ["Did they go?", "They walk home."]),
]
CONTEXTS = [LONG, "The work began in March.\x1eIt is busy.", "", None, "Did they go?\nThey walk home."]
TASKS = ["text", "summary", "text", None, "dialogue"]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]


@pytest.fixture
def make(tiny_mini):
    """Makes scorers with an NLI model, or with None."""

    def make_scorer(model, **settings):
        return MarsScorer(**{**tiny_mini, "entailment_model": model}, **{"variant": "fast", **settings})

    return make_scorer


@pytest.fixture
def calibrate(monkeypatch):
    """Gives any model these calibrations by reference and by context."""
    return lambda *both: monkeypatch.setattr(judgements, "calibration_of", lambda model: both)


def values(row):
    return {term.name: term.value for term in row.terms}


# Scores


@pytest.mark.parametrize("batch_size", [1, 3])
def test_each_sentence_is_compared_with_its_premises(make, encoder, batch_size):
    model = tiny_models.tiny_nli()
    result, plain = (make(judge, encoder_batch_size=batch_size).score(*COLUMNS) for judge in (model, None))
    models = {"encoder": encoder, "entailment_model": model}
    for number, (row, before) in enumerate(zip(result.row_scores, plain.row_scores, strict=True)):
        candidate, references, _ = ROWS[number]
        if not candidate.strip():
            assert (row.score, row.terms) == (0, ())
            continue
        task = TASKS[number]
        supported, contradicted = oracle_forms.judgements(models, candidate, references, CONTEXTS[number], task)
        expected = {"contradiction": contradicted * max(0, values(row)["references"]) ** 8}
        if task == "data":
            expected = {}
        if task == "summary":
            expected["support"] = supported
        terms = values(row)
        assert {name: terms[name] for name in terms.keys() - values(before).keys()} == pytest.approx(expected)
        added = oracle_forms.inference(supported, contradicted, terms["references"], task)
        assert row.score == pytest.approx(before.score + added, abs=1e-9)
        assert row.terms[: len(before.terms)] == before.terms
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    assert plain.signature.to_dict()["entailment_model"] == "none"
    assert plain.signature.to_dict()["contradiction_penalty"] == plain.signature.to_dict()["support_weight"] == 0


def test_paper_has_no_contradictions(make):
    result = make(tiny_models.tiny_nli(), variant="paper", planner="none").score(*COLUMNS)
    assert {name for row in result.row_scores for name in values(row)} == {"references"}


@pytest.mark.parametrize(
    ("weights", "terms", "pairs"),
    [
        ({}, {"support", "contradiction"}, 4),
        ({"support_weight": 0}, {"contradiction"}, 4),
        ({"contradiction_penalty": 0}, {"support"}, 1),  # the summary alone is judged, and is its reference
        ({"support_weight": 0, "contradiction_penalty": 0}, set(), 0),
    ],
)
def test_a_weight_of_0_leaves_its_term_out(make, weights, terms, pairs):
    """And what only that term needs is not computed."""
    totals = []
    progress = {"progress": lambda stage, done, total: totals.append((stage, done, total))}
    named = [
        {"support", "contradiction"} & values(row).keys()
        for row in make(tiny_models.tiny_nli(), **weights, **progress).score(*COLUMNS).row_scores
    ]
    assert named[1] == terms
    assert set().union(*named) == terms
    assert sum(total for stage, done, total in totals if (stage, done) == ("contradiction", 0)) == pairs


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
    assert [notice for notice in result.notices if notice.startswith(Notice.SENTENCES_CUT.message)] == [
        f"{Notice.SENTENCES_CUT.message}: 1 of 2 rows (index 1)"
    ]
    assert all("contradiction" in values(row) for row in result.row_scores)


def test_what_is_stored_is_not_computed_again(make, tmp_path):
    totals = []

    def score(bias):
        """The result, and how many pairs were classified."""
        totals.clear()
        folder = tmp_path / f"nli {bias}"
        for part in tiny_models.tiny_nli(bias):
            part.save_pretrained(folder)
        progress = {"progress": lambda stage, done, total: totals.append((stage, done, total))}
        result = make(str(folder), store=tmp_path, **progress).score(*COLUMNS)
        return result, [total for stage, done, total in totals if (stage, done) == ("contradiction", 0)]

    result, computed = score(0)
    assert len(computed) == 1
    assert score(0) == (result, [])
    assert score(-60)[1] == computed


# Summaries

SUMMARY = ("They went there. It is new.", "The road is new.", "The council built a road. They went there.")


def by_type(make, run, path):
    return make().score([SUMMARY[0]], [SUMMARY[1]], [{"passages": [SUMMARY[2]]}]).scores


def by_argument(make, run, path):
    return make().score(*([text] for text in SUMMARY), tasks="summary").scores


def by_list(make, run, path):
    return make().score(*([text] for text in SUMMARY), tasks=["summary"]).scores


def by_setting(make, run, path):
    return make(task="summary").score(*([text] for text in SUMMARY)).scores


def by_column(make, run, path):
    table = pd.DataFrame([[*SUMMARY, "summary"]], columns=["prediction", "reference", "context", "kind"])
    return make().score(table, columns={"task": "kind"}).scores


def by_command(make, run, path, *options, **columns):
    row = dict(zip(("prediction", "reference", "context"), SUMMARY, strict=True)) | columns
    command = ["score", jsonl.write(path, [row]), "--preset", "mini", "--variant", "fast", "--json"]
    code, printed, error = run(*command, *(options or ("--task", "summary")))
    assert code == 0, error
    return json.loads(printed)["scores"]


def by_column_of_a_file(make, run, path):
    return by_command(make, run, path, "--task-column", "kind", kind="summary")


WAYS = [by_type, by_argument, by_list, by_setting, by_column, by_command, by_column_of_a_file]


@pytest.mark.parametrize("way", WAYS)
def test_a_summary_is_said_to_be_one(make, nli, run, tmp_path, way):
    rows = make(nli).score(*([text] * 2 for text in SUMMARY), tasks=["summary", "text"]).row_scores
    assert values(rows[0]).keys() - values(rows[1]).keys() == {"support"}
    assert rows[0].score != pytest.approx(rows[1].score, abs=1e-4)
    scores = way(lambda **settings: make(nli, **settings), run, tmp_path / "rows.jsonl")
    assert scores == pytest.approx([rows[0].score], abs=1e-6)


def test_a_summary_without_a_context_has_no_support(make, nli):
    """And one without references has."""
    scorer = make(nli, task="summary")
    assert "support" not in values(scorer.score([SUMMARY[0]], [SUMMARY[1]], [""]).row_scores[0])
    assert "support" in values(scorer.score([SUMMARY[0]], None, [SUMMARY[2]]).row_scores[0])


# Calibrations


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_temperature_divides_the_logits(temperature):
    torch.manual_seed(0)
    for logits in torch.randn(9, 3, dtype=torch.float64) * 4:
        first, after = (torch.softmax(values, -1).tolist() for values in (logits, logits / temperature))
        assert Calibration(temperature).apply(Entailment(*first[:2])) == pytest.approx(after[:2], abs=1e-9)


@pytest.mark.parametrize("sure", [Entailment(1.0, 0.0), Entailment(0.0, 1.0), Entailment(0.0, 0.0)])
def test_what_is_certain_stays_so(sure):
    assert Calibration(2.5).apply(sure) == sure


def test_scores_are_of_calibrated_probabilities(make, encoder, calibrate):
    """Each by the calibration of its kind of premise."""
    model, (candidate, reference, context) = tiny_models.tiny_nli(), ("It is new.", *SUMMARY[1:])
    both = Calibration(0.5), Calibration(3.0)
    calibrate(*both)
    [row] = make(model, task="summary").score([candidate], [reference], [context]).row_scores
    first, second = (
        calibration.apply(Entailment(*oracle_forms.probabilities(*model, premise, candidate)))
        for calibration, premise in zip(both, (reference, context), strict=True)
    )
    contradicted = first[1] * (1 - second[0]) * values(row)["references"] ** 8
    assert values(row)["support"] == pytest.approx(second[0], abs=1e-9)
    assert values(row)["contradiction"] == pytest.approx(contradicted, abs=1e-9)


def test_models_that_do_not_ship_are_taken_as_they_are():
    for model in (tiny_models.tiny_nli(), "some/model", None):
        assert calibration_of(model) == (Calibration(), Calibration())
    shipped = SHIPPED["mini-nli"]
    assert calibration_of("mini-nli") == (shipped.by_reference, shipped.by_context)


# Verdicts

SURE = Calibration(1.0, 0.8, 0.8)
YES, NO, PERHAPS = Entailment(0.9, 0.05), Entailment(0.05, 0.9), Entailment(0.4, 0.4)
ROW = Row("It is new.", ("The road is new.",), "The council built it.", (), "summary")


@pytest.fixture
def verdict(monkeypatch):
    """The verdict on a sentence, given what is said by reference and by context; thresholds differ."""
    calibrations = {"by_reference": Calibration(1.0, 0.7, 0.8), "by_context": Calibration(1.0, 0.6, None)}
    monkeypatch.setitem(SHIPPED, "mini-nli", SHIPPED["mini-nli"]._replace(**calibrations))

    def find(by_reference, by_context, sentence="It is new.", task="summary", model="mini-nli"):
        judged = Judgement(sentence, "REFERENCE", "CONTEXT", by_reference, by_context)
        verdict = verdict_on(judged, replace(ROW, task=task), model)
        assert verdict is None or verdict.sentence == sentence
        return verdict and (verdict.verdict, verdict.probability, verdict.premise)

    return find


@pytest.mark.parametrize(
    ("by_reference", "by_context", "expected"),
    [
        (Entailment(0.7, 0.1), None, ("supported", 0.7, "REFERENCE")),
        (Entailment(0.69, 0.1), None, None),
        (None, Entailment(0.6, 0.1), ("supported", 0.6, "CONTEXT")),
        (None, Entailment(0.59, 0.1), None),
        (Entailment(0.1, 0.8), None, ("contradicted", 0.8, "REFERENCE")),
        (Entailment(0.1, 0.79), None, None),
        (None, Entailment(0.0, 1.0), None),  # there is no threshold from which it is believed
        (YES, Entailment(0.8, 0.1), ("supported", 0.8, "CONTEXT")),  # the context is named where both say so
        (YES, PERHAPS, ("supported", 0.9, "REFERENCE")),
        (PERHAPS, PERHAPS, None),
        (NO, YES, None),  # they disagree
        (None, None, None),
    ],
)
def test_a_verdict_is_as_probable_as_its_kind_of_premise_asks(verdict, by_reference, by_context, expected):
    assert verdict(by_reference, by_context) == expected


@pytest.mark.parametrize(
    "sentence", ["Is it new?", '"Is it new?"', "(Is it new?)", "\u201cIs it?\u201d", "新しい\uff1f"]
)
def test_there_is_no_verdict_on_a_question(verdict, sentence):
    assert verdict(NO, None, sentence) is None
    assert verdict(NO, None, f"{sentence} No.") is not None


def test_there_is_no_verdict_in_a_dialogue(verdict):
    verdicts = {task: verdict(NO, None, task=task) for task in ("text", "summary", "data", "dialogue")}
    assert [task for task in verdicts if verdicts[task] is None] == ["dialogue"]


@pytest.mark.parametrize("model", ["some/model", (object(), object())])
def test_there_is_no_verdict_of_a_model_without_thresholds(verdict, model):
    assert verdict(NO, None, model=model) is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (tiny_models.NLI_LABELS, "contradicted"),
        ({0: "contradiction", 1: "neutral", 2: "entailment"}, "supported"),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, None),
    ],
)
def test_verdicts_are_explained(make, calibrate, labels, expected):
    """The last class is as good as sure; a notice says what is contradicted, by a verdict."""
    scorer = make(tiny_models.tiny_nli(60, labels=labels))
    untold = scorer.score(*COLUMNS, explain=True)
    calibrate(SURE, SURE)
    result = scorer.score(*COLUMNS, explain=True)
    assert untold.scores == result.scores
    for explained in (*untold.explanations, *make(None).score(*COLUMNS, explain=True).explanations):
        assert explained.verdicts == ()
    assert not any(Notice.CONTRADICTED in row.notices for row in untold.row_scores)
    sentences = [[verdict.sentence for verdict in explained.verdicts] for explained in result.explanations]
    if expected is None:
        assert sentences == [[], ["The road is busy."], [], [], []]  # a copy of its reference
        assert not any(Notice.CONTRADICTED in row.notices for row in result.row_scores)
        return
    assert sentences == [
        ["The road was closed.", "They went there."],
        ["The road is busy."] if expected == "supported" else [],  # a copy of its reference
        ["They went by train."],
        [],  # a blank candidate
        [],  # a reply
    ]
    noticed = [Notice.CONTRADICTED in row.notices for row in result.row_scores]
    assert noticed == ([bool(of_row) for of_row in sentences] if expected == "contradicted" else [False] * 5)
    for explained in result.explanations[:3]:
        for verdict in explained.verdicts:
            assert (verdict.verdict, verdict.probability) == (expected, pytest.approx(1, abs=1e-6))
            assert f"  {expected} 1.00: {verdict.sentence}\n      by: {verdict.premise}" in str(explained)
            page = explained._repr_html_()
            assert f"mars-{expected}" in page
            assert f"<b>{expected} 1.00</b> {verdict.sentence}" in page
    assert result.explanations[0].verdicts[0].premise in ROWS[0][1]
    assert [verdict.premise for verdict in result.explanations[2].verdicts] == ["They stayed."]


def test_files(make, calibrate, tmp_path, run):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    calibrate(SURE, SURE)
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
    assert f"{Notice.CONTRADICTED.message}: 4 of 10 rows (line 1, 3, 6, 8)" in printed["notices"]
