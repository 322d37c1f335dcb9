"""Aspects: each is what its term says, and there is none that the score does not compute."""

import json
from dataclasses import replace

import pytest

from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Aspects, LogProbability, RowScore, Term
from mars_score.scorer import MarsScorer
from mars_score.variants.judgements.nli_judge import NliJudge, Question
from research import aspects, forms
from tests import jsonl

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
CANDIDATES = ["They look at the boats. The baker opens the older, older, older shop.", "The mayor walks.", " "]
REFERENCES = [["The boys look at the boats!", "A walk."], "The children walk home.", "Nobody came."]
CONTEXTS = ["The baker opens her shop. The children walk along the river to look at the boats."] * 3


@pytest.mark.parametrize(
    ("value", "aspect"), [(0.25, 0.25), (0.0, 0.0), (1.0, 1.0), (-0.1, 0.0), (1.0000001, 1.0)]
)
def test_values_of_terms_within_their_limits(value, aspect):
    names = ("references", "context", "repetition", "likelihood", "support", "contradiction")
    found = Aspects.of([Term(name, value, -7.0) for name in names])
    assert found == Aspects(reference=aspect, context=aspect, repetition=aspect, supported=aspect)


@pytest.mark.parametrize(("alone", "fluency"), [(0.0, 1.0), (-2.5, 0.75), (-10.0, 0.0), (-11.0, 0.0)])
def test_fluency_is_the_likelihood_alone(alone, fluency):
    for given_context in (-1.0, -9.0):
        assert Aspects.of((), LogProbability(given_context, alone)) == Aspects(fluency=fluency)


@pytest.fixture
def make(wide_models):
    """Makes a scorer of tiny models."""
    return lambda variant="plus", **settings: MarsScorer(
        "mini", variant=variant, **{**wide_models, "store": False, **settings}
    )


def test_aspects_of_scored_rows(make):
    scorer = make()
    result = scorer.score(CANDIDATES, REFERENCES, CONTEXTS, tasks="summary")
    log_p = scorer.calls.log_probability(zip(CONTEXTS, CANDIDATES, strict=True), 2048)
    for row, texts in list(zip(result.row_scores, result.rows, strict=True))[:2]:
        found, values = row.aspects, {term.name: term.value for term in row.terms}
        judge = NliJudge(None, PlusConfig())
        judged = judge.judge([Question(texts, by_context=True)], scorer.calls)[texts]
        assert found.reference == max(one.score for one in row.references)
        assert (found.context, found.repetition) == (values["context"], values["repetition"])
        assert found.fluency == pytest.approx(max(0, 1 + log_p[texts.context, texts.candidate].alone / 10))
        supported = [one.entailment.entailment for one in judged]
        assert found.supported == pytest.approx(sum(supported) / len(supported))
    assert result.row_scores[0].aspects.repetition > result.row_scores[1].aspects.repetition == 0
    assert result.row_scores[2].aspects == Aspects()  # of a blank candidate


@pytest.mark.parametrize(
    ("variant", "settings", "references", "task", "names"),
    [
        ("plus", {}, REFERENCES, "text", {"reference", "context", "fluency", "repetition"}),
        ("fast", {}, REFERENCES, "summary", {"reference", "context", "repetition", "supported"}),
        ("plus", {}, None, "text", {"context", "fluency", "repetition"}),
        ("plus", {}, None, "summary", {"context", "fluency", "repetition", "supported"}),
        ("fast", {"support_weight": 0.0}, REFERENCES, "summary", {"reference", "context", "repetition"}),
        ("fast", {"entailment_model": None}, REFERENCES, "summary", {"reference", "context", "repetition"}),
        ("plus", {}, REFERENCES, "dialogue", {"reference", "context", "repetition"}),
        ("plus", {}, REFERENCES, "data", {"reference", "fluency", "repetition"}),
        ("fast", {"entailment_model": None}, REFERENCES, "text", {"reference", "context", "repetition"}),
        ("fast", {"repetition_penalty": 0.0}, REFERENCES, "summary", {"reference", "context", "supported"}),
        ("fast", {"use_context": False}, REFERENCES, "text", {"reference", "repetition"}),
        ("paper", {"max_mask_ratio": 0.0}, REFERENCES, "text", {"reference"}),
    ],
)
def test_there_are_those_that_the_score_computes(make, variant, settings, references, task, names):
    contexts = CONTEXTS if settings.get("use_context", True) else None
    result = make(variant, **settings).score(CANDIDATES, references, contexts, tasks=task)
    for row in result.row_scores[:2]:
        assert {name for name, value in row.aspects._asdict().items() if value is not None} == names
        assert all(0 <= value <= 1 for value in row.aspects if value is not None)


def test_of_results_and_what_is_kept_of_them(make):
    result = make().score(CANDIDATES, REFERENCES, CONTEXTS)
    told = [row.aspects._asdict() for row in result.row_scores]
    assert [record["aspects"] for record in result.to_records()] == told
    assert list(result.to_pandas()["aspects.fluency"][:2]) == [aspects["fluency"] for aspects in told[:2]]
    stored = json.loads(result.to_json())["rows"]
    for row, one in zip(result.row_scores, stored, strict=True):
        assert RowScore.from_dict(row.to_dict(), row.notices) == RowScore.from_dict(one, row.notices) == row
        assert RowScore.from_dict(one) != replace(row, aspects=Aspects(reference=0.123))


def test_the_command_tells_them_in_detail(named_models, tmp_path, run):
    names, columns = ("prediction", "reference", "context"), (CANDIDATES, REFERENCES, CONTEXTS)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    path = jsonl.write(tmp_path / "rows.jsonl", rows)
    options = ["--encoder", named_models["encoder"], "--entailment-model", named_models["entailment_model"]]
    command = ["score", path, "--variant", "fast", *options, "--dtype", "float64", "--json", "--detailed"]
    found = json.loads(run(*command)[1])["rows"]
    expected = MarsScorer(variant="fast", **{**named_models, "store": False}).score(*columns).row_scores
    assert [row["aspects"] for row in found] == [pytest.approx(row.aspects._asdict()) for row in expected]


@pytest.fixture
def rated(tmp_path):
    """Files of rated candidates of two tasks, with ratings by name."""
    files = []
    for name in ("summeval", "bagel"):
        rows = [
            {
                "id": f"{name}{group}-{number}",
                "group": str(group),
                "human": number,
                "ratings": {"fluency": number, "consistency": None if number == 2 else 3 - number, "always": 1},
                "context": f"The {group} sailors stay on board. It rains.",
                "references": [f"They stay on ship number {group} until the evening."],
                "candidate": f"They {verb} on ship {group} until the evening.",
            }
            for group in range(6)
            for number, verb in enumerate(("sleep", "play", "fish and fish and fish", "stay"))
        ]
        files.append(str(jsonl.write(tmp_path / f"{name}.jsonl", rows)))
    return files


def test_agreement_with_ratings(rated, tiny_mini, tmp_path, monkeypatch, capsys):
    saved = str(tmp_path / "features.json")
    argv = ["aspects", *rated, "--preset", "mini", "--rows", "16", "--features", saved]
    monkeypatch.setattr("sys.argv", argv)
    aspects.main()
    printed = capsys.readouterr().out
    assert printed.count("| summeval, ") == printed.count("| bagel, ") == 2  # "always" agrees with nothing
    features = [
        forms.from_json(one)
        for one in json.loads((tmp_path / "features.json").read_text())["summeval"]["features"]
    ]
    scored = MarsScorer("mini", variant="plus").row_scores([one.row for one in features])
    for one, row in zip(features, scored, strict=True):
        found = aspects.aspects_of(one, forms.VARIANTS["plus"])
        assert Aspects(**{name: found[name] for name in Aspects._fields}) == pytest.approx(row.aspects, abs=1e-9)
    monkeypatch.setattr("sys.argv", [*argv[:-3], "8", *argv[-2:]])
    with pytest.raises(ValueError, match="summeval: the saved features are of other candidates"):
        aspects.main()


def test_ratings_are_those_of_the_candidates(rated):
    (whole,) = aspects.read_sets([rated[0]])
    human = aspects.ratings_by_name(aspects.Path(rated[0]), 100, whole.ratings)
    assert list(human["fluency"]) == whole.ratings
    agreement = aspects.agreement({"reference": human["fluency"], "context": human["always"]}, human)
    assert agreement["fluency"] == {"reference": pytest.approx(1)}
    assert agreement["consistency"] == {"reference": pytest.approx(-1)}  # without those that nobody rated
    assert agreement["always"] == {}
