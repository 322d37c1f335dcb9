"""Which rows an NLI model is asked of, and what is told of its answers, through :meth:`MarsScorer.score`.

Scores that follow: tests/variants/test_scores.py; the rules of judgements: judgements/test_nli_judge.py.
"""

import json

import pytest

from mars_score import MarsScorer
from mars_score.errors import Notice, UnsupportedModelError
from mars_score.presets import RELIABILITY, Reliability, reliability_of
from mars_score.rows import TASKS as KINDS
from tests import jsonl, tiny_models
from tests.belief import ALL, believe

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
LONG = "The council built a new road between the station and the market. Nobody went there. " * 12
ROWS = [
    ("The road was closed. They went there.", ["The road is busy.", "Nobody was surprised."], LONG),
    ("The road is busy.", ["The road is busy."], {"passages": ["The work began in March.", "It is busy."]}),
    ("They went by train.", ["They stayed."], ""),
    (" ", ["They stayed."], "The work began in March."),
    ("They went by train.", ["They stayed."], ["Did they go?", "They walk home."]),
]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]


@pytest.fixture
def make(tiny_mini):
    """Makes scorers with an NLI model, or with None."""

    def make_scorer(model, **settings):
        return MarsScorer(**{**tiny_mini, "entailment_model": model, "variant": "fast", **settings})

    return make_scorer


def values(row):
    return {term.name: term.value for term in row.terms}


def pairs_of(reports):
    """How many pairs were classified, by the reports of progress."""
    return sum(total for stage, done, total in reports if (stage, done) == ("contradiction", 0))


def test_without_a_model_its_terms_alone_are_left_out(make, nli, monkeypatch):
    believe(monkeypatch)
    result, without = (make(model).score(*COLUMNS) for model in (nli, None))
    for row, plain in zip(result.row_scores, without.row_scores, strict=True):
        assert row.terms[: len(plain.terms)] == plain.terms
        assert {term.name for term in row.terms[len(plain.terms) :]} <= {"support", "contradiction"}
    assert result.row_scores[1].terms[-2].name == "support"
    assert "|entailment_model:RobertaForSequenceClassification@" in str(result.signature)
    signature = without.signature.to_dict()
    assert signature["entailment_model"] == "none"
    assert signature["contradiction_penalty"] == signature["support_weight"] == 0


def test_paper_has_no_contradictions(make, nli):
    result = make(nli, variant="paper", planner="none").score(*COLUMNS)
    assert {name for row in result.row_scores for name in values(row)} == {"references"}


@pytest.mark.parametrize(
    ("weights", "terms", "pairs"),
    [
        ({}, {"support", "contradiction"}, 4),
        ({"support_weight": 0}, {"contradiction"}, 4),
        ({"contradiction_penalty": 0}, {"support"}, 4),  # what is contradicted is told all the same
        ({"support_weight": 0, "contradiction_penalty": 0}, set(), 0),
    ],
)
def test_a_weight_of_0_leaves_its_term_out(make, nli, monkeypatch, weights, terms, pairs):
    """And what only that term needs is not computed."""
    believe(monkeypatch)
    reports = []
    scorer = make(nli, **weights, progress=lambda *report: reports.append(report))
    named = [{"support", "contradiction"} & values(row).keys() for row in scorer.score(*COLUMNS).row_scores]
    assert named[1] == terms
    assert set().union(*named) == terms
    assert pairs_of(reports) == pairs


def test_a_summary_that_nothing_can_be_said_of_is_not_judged(make, nli, monkeypatch):
    """It is far from its reference, the context alone is not believed, and support does not count."""
    believe(monkeypatch, ALL._replace(by_context=False, max_support=0.0))
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 1.1)
    reports = []
    scorer = make(nli, support_weight=0.0, task="summary", progress=lambda *report: reports.append(report))
    [row] = scorer.score(*([text] for text in SUMMARY)).row_scores
    assert (pairs_of(reports), "contradiction" in values(row)) == (0, False)


@pytest.mark.parametrize(
    "labels", [{0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {0: "entailment", 1: "not_entailment"}]
)
def test_a_model_without_the_classes_is_refused(make, labels):
    with pytest.raises(UnsupportedModelError, match=f"^entailment_model .*{labels[0].lower()}"):
        make(tiny_models.tiny_nli(labels=labels)).score(["They went."], ["b"], ["c d"], tasks="summary")


def test_of_many_sentences_the_first_are_judged(make, nli):
    """The first 20, and a notice says so. Those that state nothing do not count."""
    days = [" ".join(f"It rained on day {day}." for day in range(count)) for count in (20, 30)]
    candidates = [f"Thanks! {days[0]} \U0001f600 Bye.", days[1]]
    result = make(nli, task="summary").score(candidates, ["It rained every day."] * 2, [LONG] * 2)
    assert [notice for notice in result.notices if notice.startswith(Notice.SENTENCES_CUT.message)] == [
        f"{Notice.SENTENCES_CUT.message}: 1 of 2 rows (index 1)"
    ]
    assert values(result.row_scores[0])["support"] == pytest.approx(values(result.row_scores[1])["support"])


def test_what_is_stored_is_not_computed_again(make, tmp_path):
    reports = []

    def score(bias):
        """The result, and how many pairs were classified."""
        reports.clear()
        folder = tmp_path / f"nli {bias}"
        for part in tiny_models.tiny_nli(bias):
            part.save_pretrained(folder)
        result = make(str(folder), store=tmp_path, progress=lambda *report: reports.append(report)).score(*COLUMNS)
        return result, pairs_of(reports)

    result, computed = score(0)
    assert computed > 0
    assert score(0) == (result, 0)
    assert score(-60)[1] == computed


# Summaries

SUMMARY = ("They went there. It is new.", "The road is new.", "The council built a road. They went there.")


# What is believed


@pytest.mark.parametrize(("has_references", "context"), [(True, ""), (True, SUMMARY[2]), (False, SUMMARY[2])])
@pytest.mark.parametrize("known", [ALL, Reliability(0.0, False, True), Reliability(0.2, True, False), None])
def test_which_rows_have_which_terms(make, nli, monkeypatch, known, context, has_references):
    """Replies, records, and texts by a context alone have none; what is not believed is left out."""
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.0)
    known = known or reliability_of(nli)
    believe(monkeypatch, known)
    references = [SUMMARY[1]] * len(KINDS) if has_references else None
    result = make(nli).score([SUMMARY[0]] * len(KINDS), references, [context] * len(KINDS), tasks=KINDS)
    by_reference = has_references and known.by_reference
    believed = {"summary": context and (known.by_context or by_reference), "text": by_reference}
    for task, row in zip(KINDS, result.row_scores, strict=True):
        expected = {"support"} if task == "summary" and context and known.support else set()
        expected |= {"contradiction"} if believed.get(task) else set()
        assert {"support", "contradiction"} & values(row).keys() == expected
        weights = [term.weight for term in row.terms if term.name == "support"]
        assert weights == pytest.approx([known.support * 0.2] if "support" in expected else [])


def test_models_that_do_not_ship_have_no_verdicts():
    for model in (tiny_models.tiny_nli(), "some/model", None):
        assert reliability_of(model) == Reliability(reliability_of(model).support, False, False)
        assert 0 < reliability_of(model).support < 1
    assert reliability_of("mini-nli") is RELIABILITY["mini-nli"]


@pytest.mark.parametrize("task", ["text", "summary"])
def test_only_a_text_that_is_close_to_a_reference_is_judged_by_it(make, monkeypatch, task):
    """Of five words, four are enough and three are not; a summary is judged by its context in any case."""
    believe(monkeypatch)
    reports, encoder = [], tiny_models.word_encoder()
    settings = {"encoder": encoder, "dtype": "float32", "progress": lambda *report: reports.append(report)}
    scorer = make(tiny_models.tiny_nli(60), **settings)
    for candidate, is_close in (("The road is busy today.", True), ("The road is today.", False)):
        reports.clear()
        [row] = scorer.score([candidate], ["The road is busy now"], ["They went. Why?"], tasks=task).row_scores
        is_judged = task == "summary" or is_close
        assert pairs_of(reports) == (task == "summary") + is_close
        assert len(row.contradicted) == is_judged
        assert values(row).get("contradiction") == (None if not is_judged else 0 if task == "summary" else 1)
        assert row.unchecked == ("" if is_judged else "far from its references")


# Verdicts


@pytest.mark.parametrize("max_support", [0.0, 1.0])
def test_unsupported_sentences_are_told_where_that_is_reliable(make, nli, monkeypatch, max_support):
    believe(monkeypatch, ALL._replace(max_support=max_support))
    [row] = make(nli, task="summary").score([SUMMARY[0]], [SUMMARY[1]], [SUMMARY[2]]).row_scores
    assert [one.sentence for one in row.unsupported] == (["It is new."] if max_support else [])
    assert row.aspects.supported is not None


@pytest.mark.parametrize(
    ("labels", "is_contradicted"),
    [
        ({0: "Entailment", 1: "Neutral", 2: "CONTRADICTION"}, True),
        ({0: "contradiction", 1: "neutral", 2: "entailment"}, False),
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, False),
    ],
)
def test_classes_are_found_by_their_labels(make, monkeypatch, labels, is_contradicted):
    """The last class is as good as sure."""
    believe(monkeypatch)
    [row] = make(tiny_models.tiny_nli(60, labels=labels)).score(*([column[0]] for column in COLUMNS)).row_scores
    assert bool(row.contradicted) is is_contradicted


def test_verdicts_are_explained(make, monkeypatch):
    """Where they are believed; a notice says what is contradicted."""
    scorer = make(tiny_models.tiny_nli(60))
    untold = scorer.score(*COLUMNS)
    assert not any(row.contradicted or Notice.CONTRADICTED in row.notices for row in untold.row_scores)
    believe(monkeypatch, ALL._replace(support=reliability_of(None).support))
    result = scorer.score(*COLUMNS, explain=True)
    told = [[verdict.sentence for verdict in explained.score.contradicted] for explained in result.explanations]
    # The second is a copy of its reference, the fourth a blank candidate, the fifth a reply.
    assert told == [["The road was closed.", "They went there."], [], ["They went by train."], [], []]
    assert [Notice.CONTRADICTED in row.notices for row in result.row_scores] == list(map(bool, told))
    half = [0.5 if of_row else 1 for of_row in told]
    assert result.scores == pytest.approx([one * score for one, score in zip(half, untold.scores, strict=True)])
    for explained in result.explanations:
        for verdict in explained.score.contradicted:
            assert verdict.probability == pytest.approx(1, abs=1e-6)
            reason = f'contradicts the {verdict.source} "{verdict.premise}" (1.00)'
            assert f"  contradicted: {verdict.sentence}\n      {reason}\n" in f"{explained}\n"
            assert f"<b>contradicted</b> {verdict.sentence}" in explained._repr_html_()


def test_files(make, monkeypatch, tmp_path, run):
    """A model by its folder, in a run whose chunks share pairs: all is as in one call."""
    believe(monkeypatch)
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
