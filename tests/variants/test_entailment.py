"""What an NLI model says of candidates: tiny random classifiers, against one pair at a time.

Scores that follow: tests/variants/test_scores.py; the choice of premises: judgements/test_premises.py.
"""

import json

import pytest

from mars_score import MarsScorer
from mars_score.errors import Notice, UnsupportedModelError
from mars_score.presets import RELIABILITY, Reliability, reliability_of
from mars_score.rows import TASKS as KINDS
from tests import jsonl, oracle_forms, tiny_models
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
CONTEXTS = [LONG, "The work began in March.\x1eIt is busy.", "", None, "Did they go?\nThey walk home."]
TASKS = ["text", "summary", "text", None, "dialogue"]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]


@pytest.fixture
def make(tiny_mini):
    """Makes scorers with an NLI model, or with None."""

    def make_scorer(model, **settings):
        return MarsScorer(**{**tiny_mini, "entailment_model": model, "variant": "fast", **settings})

    return make_scorer


def values(row):
    return {term.name: term.value for term in row.terms}


# Scores


@pytest.mark.parametrize("batch_size", [1, 3])
def test_each_sentence_is_compared_with_its_premise(make, encoder, monkeypatch, batch_size):
    verdicts = 0.5, 0.2
    believe(monkeypatch, ALL, *verdicts)
    model, shares = tiny_models.tiny_nli(1.0), set()  # Entailments are too small to acquit a sentence.
    result, plain = (make(judge, encoder_batch_size=batch_size).score(*COLUMNS) for judge in (model, None))
    models = {"encoder": encoder, "entailment_model": model}
    for number, (row, before) in enumerate(zip(result.row_scores, plain.row_scores, strict=True)):
        candidate, references, _ = ROWS[number]
        if not candidate.strip():
            assert (row.score, row.terms) == (0, ())
            continue
        task, expected, score = TASKS[number], {}, before.score
        judged = oracle_forms.judgements(models, candidate, references, CONTEXTS[number], task, verdicts[0])
        denied = [one.denial(*verdicts) is not None for one in judged]
        if task == "summary":
            supported = [
                0.0 if is_denied else one.supported for one, is_denied in zip(judged, denied, strict=True)
            ]
            expected["support"] = sum(supported) / len(judged)
            score += 0.2 * expected["support"]
        if task != "dialogue":
            expected["contradiction"] = sum(denied) / len(judged) if task == "text" else 0.0
            score *= 1 - 0.5 * expected["contradiction"]
            shares.add((task, expected["contradiction"]))
        terms = values(row)
        assert {name: terms[name] for name in terms.keys() - values(before).keys()} == pytest.approx(expected)
        assert row.score == pytest.approx(score, abs=1e-9)
        assert row.terms[: len(before.terms)] == before.terms
    assert shares == {("text", 0.0), ("text", 0.5), ("summary", 0.0)}
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
        ({"contradiction_penalty": 0}, {"support"}, 4),  # what is contradicted is told all the same
        ({"support_weight": 0, "contradiction_penalty": 0}, set(), 0),
    ],
)
def test_a_weight_of_0_leaves_its_term_out(make, monkeypatch, weights, terms, pairs):
    """And what only that term needs is not computed."""
    believe(monkeypatch)
    totals = []
    progress = {"progress": lambda stage, done, total: totals.append((stage, done, total))}
    named = [
        {"support", "contradiction"} & values(row).keys()
        for row in make(tiny_models.tiny_nli(), **weights, **progress).score(*COLUMNS).row_scores
    ]
    assert named[1] == terms
    assert set().union(*named) == terms
    assert sum(total for stage, done, total in totals if (stage, done) == ("contradiction", 0)) == pairs


def test_a_summary_that_nothing_can_be_said_of_is_not_judged(make, monkeypatch):
    """It is far from its reference, the context alone is not believed, and support does not count."""
    believe(monkeypatch, ALL._replace(by_context=False, max_support=0.0))
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 1.1)
    asked = []
    scorer = make(
        tiny_models.tiny_nli(), support_weight=0.0, task="summary", progress=lambda stage, *_: asked.append(stage)
    )
    [row] = scorer.score(*([text] for text in SUMMARY)).row_scores
    assert "contradiction" not in {*asked, *values(row)}


@pytest.mark.parametrize(
    "labels", [{0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, {0: "entailment", 1: "not_entailment"}]
)
def test_a_model_without_the_classes_is_refused(make, labels):
    with pytest.raises(UnsupportedModelError, match=f"^entailment_model .*{labels[0].lower()}"):
        make(tiny_models.tiny_nli(labels=labels)).score(["They went."], ["b"], ["c d"], tasks="summary")


def test_of_many_sentences_the_first_are_judged(make):
    """300 sentences: the first 20 are, and a notice says so. Those that state nothing do not count."""
    days = [" ".join(f"It rained on day {day}." for day in range(count)) for count in (20, 300)]
    candidates = [f"Thanks! {days[0]} \U0001f600 Bye.", days[1]]
    scorer = make(tiny_models.tiny_nli(), task="summary")
    result = scorer.score(candidates, ["It rained every day."] * 2, [LONG] * 2)
    assert [notice for notice in result.notices if notice.startswith(Notice.SENTENCES_CUT.message)] == [
        f"{Notice.SENTENCES_CUT.message}: 1 of 2 rows (index 1)"
    ]
    assert values(result.row_scores[0])["support"] == pytest.approx(values(result.row_scores[1])["support"])


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


def test_a_summary_without_a_context_has_no_support(make, nli):
    """And one without references has."""
    scorer = make(nli, task="summary")
    assert "support" not in values(scorer.score([SUMMARY[0]], [SUMMARY[1]], [""]).row_scores[0])
    assert "support" in values(scorer.score([SUMMARY[0]], None, [SUMMARY[2]]).row_scores[0])


# What is believed


@pytest.mark.parametrize(("has_references", "context"), [(True, ""), (True, SUMMARY[2]), (False, SUMMARY[2])])
@pytest.mark.parametrize("task", KINDS)
def test_which_rows_have_which_terms(make, nli, monkeypatch, task, context, has_references):
    """Replies, records, and texts by a context alone have none; what is not believed is left out."""
    monkeypatch.setattr("mars_score.variants.judgements.nli_judge.MIN_RECALL", 0.0)
    for known in (ALL, Reliability(0.0, False, True), Reliability(0.2, True, False), reliability_of(nli)):
        believe(monkeypatch, known)
        texts = [SUMMARY[0]], [SUMMARY[1]] if has_references else None, [context]
        [row] = make(nli).score(*texts, tasks=task).row_scores
        by_reference = has_references and known.by_reference
        believed = {"summary": context and (known.by_context or by_reference), "text": by_reference}
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
    seen = []
    scorer = make(
        tiny_models.tiny_nli(60),
        encoder=tiny_models.word_encoder(),
        dtype="float32",
        progress=lambda stage, done, total: seen.append((stage, done, total)),
    )
    asked = []
    for candidate in ("The road is busy today.", "The road is today.", "They walk home."):
        seen.clear()
        [row] = scorer.score(
            [candidate], ["The road is busy now"], ["They went there. Why?"], tasks=task
        ).row_scores
        asked.append(sum(total for stage, done, total in seen if (stage, done) == ("contradiction", 0)))
        is_judged = task == "summary" or asked[-1] == 1
        assert len(row.contradicted) == is_judged
        assert values(row).get("contradiction") == (None if not is_judged else 0 if task == "summary" else 1)
        assert row.unchecked == ("" if is_judged else "far from its references")
    assert asked == ([2, 1, 1] if task == "summary" else [1, 0, 0])


# Verdicts


@pytest.mark.parametrize("max_support", [0.0, 1.0])
def test_unsupported_sentences_are_told_where_that_is_reliable(make, nli, monkeypatch, max_support):
    believe(monkeypatch, ALL._replace(max_support=max_support))
    [row] = make(nli, task="summary").score([SUMMARY[0]], [SUMMARY[1]], [SUMMARY[2]]).row_scores
    assert [one.sentence for one in row.unsupported] == (["It is new."] if max_support else [])
    assert row.aspects.supported is not None


@pytest.mark.parametrize(
    "labels",
    [
        tiny_models.NLI_LABELS,
        {0: "contradiction", 1: "neutral", 2: "entailment"},
        {0: "contradiction", 1: "entailment", 2: "neutral"},
    ],
)
def test_verdicts_are_explained(make, monkeypatch, labels):
    """The last class is as good as sure; a notice says what is contradicted."""
    scorer = make(tiny_models.tiny_nli(60, labels=labels))
    untold = scorer.score(*COLUMNS, explain=True)
    believe(monkeypatch, ALL._replace(support=reliability_of(None).support))
    result = scorer.score(*COLUMNS, explain=True)
    for explained in (*untold.explanations, *make(None).score(*COLUMNS, explain=True).explanations):
        assert explained.score.contradicted == ()
    assert not any(Notice.CONTRADICTED in row.notices for row in untold.row_scores)
    sentences = [
        [verdict.sentence for verdict in explained.score.contradicted] for explained in result.explanations
    ]
    noticed = [Notice.CONTRADICTED in row.notices for row in result.row_scores]
    if labels != tiny_models.NLI_LABELS:
        assert (sentences, noticed, result.scores) == ([[]] * 5, [False] * 5, untold.scores)
        return
    assert sentences == [
        ["The road was closed.", "They went there."],
        [],  # a copy of its reference
        ["They went by train."],
        [],  # a blank candidate
        [],  # a reply
    ]
    assert noticed == [bool(of_row) for of_row in sentences]
    half = [0.5 if of_row else 1 for of_row in sentences]
    assert result.scores == pytest.approx([one * score for one, score in zip(half, untold.scores, strict=True)])
    for explained in result.explanations[:3]:
        for verdict in explained.score.contradicted:
            assert verdict.probability == pytest.approx(1, abs=1e-6)
            reason = f'contradicts the {verdict.source} "{verdict.premise}" (1.00)'
            assert f"  contradicted: {verdict.sentence}\n      {reason}\n" in f"{explained}\n"
            page = explained._repr_html_()
            assert f"<b>contradicted</b> {verdict.sentence}" in page
    assert result.explanations[0].score.contradicted[0].premise in ROWS[0][1]
    assert [verdict.premise for verdict in result.explanations[2].score.contradicted] == ["They stayed."]


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
