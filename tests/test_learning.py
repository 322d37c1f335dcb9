"""Learned heads: ratings to learn from, folders and what is refused, and the head of terms."""

import json
import pickle
import shutil
import subprocess
import sys

import jsonl
import numpy as np
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.data.rated import Item, RatedSet, read_rated_set
from mars_score.data.repetition import repetition
from mars_score.data.validation import Row
from mars_score.errors import MarsWarning
from mars_score.learning.ratings import centred, training_sets
from mars_score.learning.terms import fit_weights, learn_weights, train_terms
from mars_score.scoring.head_folder import read_head, write_head


def rated(ratings, groups=None, name="talk"):
    groups = groups or [str(index // 2) for index in range(len(ratings))]
    items = tuple(
        Item(str(index), group, "", Row(f"candidate {index}", ("reference",), f"context {group}"), rating)
        for index, (group, rating) in enumerate(zip(groups, ratings, strict=True))
    )
    return RatedSet(name, items, ("reference",))


RATINGS = [1.0 + index % 5 for index in range(40)]


def test_ratings_are_standardised_in_the_set():
    for ratings in (RATINGS, [20 * rating - 7 for rating in RATINGS]):
        (data,) = training_sets([rated(ratings)])
        assert data.ratings == pytest.approx((np.array(RATINGS) - 3) / np.sqrt(2))


def test_ratings_are_standardised_in_their_groups_where_a_group_of_one_compares_with_nothing():
    easier = [rating + 10 * (index // 2 % 2) for index, rating in enumerate(RATINGS)]
    groups = [*(str(index // 2) for index in range(40)), "alone"]
    (data,), (other,) = (
        training_sets([rated([*ratings, 5.0], groups)], ["talk"]) for ratings in (RATINGS, easier)
    )
    assert data.ratings == pytest.approx(other.ratings)
    assert data.ratings.reshape(-1, 2).sum(axis=1) == pytest.approx(0)
    assert data.ratings.std() == pytest.approx(1)
    assert "alone" not in data.groups


@pytest.mark.parametrize(
    ("ratings", "groups", "within", "message"),
    [
        ([3.0] * 40, None, [], "talk: all ratings are equal, so there is nothing to learn"),
        ([float(index // 2) for index in range(40)], None, ["talk"], "all ratings are equal within every group"),
        ([1.0, 2.0, 3.0], None, [], "3 ratings in 2 groups that can be learned from; 20 in 10 groups"),
        (RATINGS, ["a"] * 40, [], "40 ratings in 1 groups that"),
        (RATINGS, [str(index) for index in range(40)], ["talk"], "0 ratings in 0 groups that can be learned from"),
        (RATINGS, None, ["chat"], "unknown data set 'chat'"),
    ],
)
def test_ratings_that_are_refused(ratings, groups, within, message):
    with pytest.raises(ValueError, match=message):
        training_sets([rated(ratings, groups)], within)


@pytest.fixture(scope="module")
def models(encoder, llama):
    named = {"encoder": encoder, "language_model": llama, "entailment_model": None, "dtype": "float64"}
    return {**named, "variant": "fast", "repetition_penalty": 0.0}


def talk(size=40):
    """Candidates whose ratings are low where words are repeated, in groups of two."""
    rows, ratings = [], []
    for index in range(size):
        good = f"people wait for boat number {index} at the old bridge"
        bad = f"boat boat number {index} bridge bridge bridge people people"
        context = f"The ferry leaves in the morning before the rain. {index // 2}"
        rows.append((bad if index % 2 else good, ("the boat leaves the bridge",), context))
        ratings.append(1.0 + 3 * (index % 2 == 0) + index % 3 * 0.1)
    return rows, ratings


@pytest.fixture(scope="module")
def rated_file(tmp_path_factory):
    names = ("candidate", "references", "context", "human")
    rows = [dict(zip(names, (*row, rating), strict=True)) for row, rating in zip(*talk(), strict=True)]
    return jsonl.write(tmp_path_factory.mktemp("rated") / "talk.jsonl", rows)


def train(rated_file, folder, **models):
    return train_terms(MarsScorer(**models, store=False), folder, training_sets([read_rated_set(rated_file)]))


@pytest.fixture(scope="module")
def trained(rated_file, tmp_path_factory, models):
    return train(rated_file, tmp_path_factory.mktemp("trained"), **models)


def test_a_head_of_terms_learns_what_ratings_ask_for(trained, models):
    rows, ratings = talk(12)
    columns = list(zip(*rows, strict=True))
    plain, learned = MarsScorer(**models), MarsScorer(**models, learned=trained.path)
    before, after = (scorer.score(*columns) for scorer in (plain, learned))
    assert np.corrcoef(after.scores, ratings)[0, 1] > np.corrcoef(before.scores, ratings)[0, 1] + 0.01
    for row in after.rows:
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
    weights = {term.name: term.weight for term in after.rows[1].terms}
    assert weights["repetition"] < 0
    assert len(after.rows[1].terms) == len(weights)
    assert after.signature.to_dict()["learned"] == trained.fingerprint
    assert f"|learned:{trained.fingerprint}|" in str(after.signature)
    assert before.signature.to_dict()["learned"] is None
    assert pickle.loads(pickle.dumps(learned)).score(*columns).scores == after.scores


def test_features_of_a_row(models):
    row = Row("The ferry leaves in the morning boat", ("one two", "one two three"), talk()[0][0][2])
    [example] = MarsScorer(**models).examples([row])
    assert example.features == pytest.approx(
        {"copied": 6 / 7, "length": np.log(7 / 2.5), "repetition": repetition(row.candidate)}
    )
    [example] = MarsScorer(**{**models, "variant": "plus"}).examples([row])
    assert example.features["log_probability"] < 0
    assert "lift" in example.features


def test_a_blank_candidate_keeps_its_score_and_references_are_needed(trained, models):
    scorer = MarsScorer(**models, learned=trained.path)
    with pytest.warns(MarsWarning):
        result = scorer.score([" ", "a boat"], ["the boat"] * 2, ["x", "x"])
    assert result.scores[0] == 0 != result.scores[1]
    with pytest.raises(ValueError, match="needs references; give them, or leave learned out"):
        scorer.score(["a boat"], contexts=["the boat"])


def test_settings_follow_from_the_head(rated_file, tmp_path, models):
    named = {name: models[name] for name in ("encoder", "language_model", "dtype")}
    saved = train(rated_file, tmp_path, **named, variant="plus")
    settings = MarsScorer(**named, learned=saved.path).settings
    assert settings.variant == "plus"
    assert settings.similarity.likelihood_weight == 0.15
    for changed, message in (
        ({"likelihood_weight": 0.3}, r"trained with likelihood_weight=0\.15, but here it is 0\.3; leave"),
        ({"variant": "fast"}, "trained with variant='plus', but here it is 'fast'"),
        (
            {"encoder": tiny_models.tiny_encoder(seed=99)},
            "trained with encoder SentenceTransformer@.*, but here it is .*; use the",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            MarsScorer(**{**named, **changed}, learned=saved.path)


def change(folder, **values):
    path = folder / "head.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


DAMAGED, NUMBERS = (
    "head.json is damaged or not of format 3, .*; train the head again",
    "head.safetensors is not the",
)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": 1}, DAMAGED),
        ({"models": None}, DAMAGED),
        ({"charm": 1}, DAMAGED),
        ({"kind": "other"}, "a head of kind 'other'; this version has: terms, encoder"),
        ({"models": {"encoder": "gone@1"}}, "trained with encoder gone@1"),
        # A head chooses no model: a folder from elsewhere could name any.
        ({"models": {"oracle": "gone@1"}}, "the head sets oracle, which no head may set"),
        ({"settings": {"charm": 1, "encoder": "x"}}, "the head sets charm, encoder, which no head may set"),
        ({"settings": {"language_model": "x/y"}}, "the head sets language_model, which"),
        ({"settings": {"learned": "x/y"}}, "the head sets learned, which no head may"),
        (lambda folder: (folder / "head.json").write_text("[1]"), DAMAGED),
        (lambda folder: (folder / "head.json").write_text('{"format": 3'), DAMAGED),
        (lambda folder: (folder / "head.safetensors").write_bytes(b"1"), NUMBERS),
        (lambda folder: (folder / "head.safetensors").unlink(), NUMBERS),
    ],
)
def test_folders_that_are_refused(trained, damage, message, models, tmp_path):
    folder = shutil.copytree(trained.path, tmp_path / "head")
    change(folder, **damage) if isinstance(damage, dict) else damage(folder)
    with pytest.raises(ValueError, match=message):
        MarsScorer(**models, learned=folder).score(["a"], ["b"], ["c"])


@pytest.mark.parametrize("head", ["nothing", "0", "x" * 5000, "a\0b", "\ud83d"])
def test_a_folder_that_is_not_there(head, tmp_path):
    for folder in (head, tmp_path / head):
        with pytest.raises(FileNotFoundError, match="give a folder that mars train wrote"):
            read_head(folder)


def test_a_fingerprint_is_of_the_content(tmp_path):
    about = {"kind": "terms", "models": {}, "settings": {}, "parameters": {"a": 1}, "learned_from": []}
    weights = (np.arange(3.0), np.arange(3.0), np.arange(3.0) + 1e-9)
    saved = [
        write_head(tmp_path / str(number), {"weights": array}, **about) for number, array in enumerate(weights)
    ]
    assert saved[0].fingerprint == saved[1].fingerprint != saved[2].fingerprint
    assert saved[0].arrays["weights"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in saved[0].path.iterdir()) == ["head.json", "head.safetensors"]


def test_few_ratings_change_little(rated_file, models):
    (data,) = training_sets([read_rated_set(rated_file)])
    examples = MarsScorer(**models).examples(data.rows)
    much, little = (learn_weights([data], [examples], penalty=penalty) for penalty in (0.1, 1000))
    assert abs(little["repetition"]) < abs(much["repetition"]) / 10


def test_weights_are_those_that_maximise_the_correlation():
    rng = np.random.default_rng(0)
    features, scores = rng.normal(size=(300, 2)), rng.normal(size=300)
    ratings = scores + 0.5 * features[:, 0] - features[:, 1]
    part = (*centred((features, scores, ratings)), 300)
    assert fit_weights([part], [(None, None)] * 2, 1e-9).tolist() == pytest.approx([0.5, -1], abs=1e-3)
    bounded = fit_weights([part], [(0, None)] * 2, 1e-9)
    assert bounded[1] == 0 < bounded[0]


def test_a_feature_that_is_the_same_in_all_rows_gets_no_weight():
    scores, ratings = np.random.default_rng(0).normal(size=(2, 160))
    columns = centred((np.column_stack([np.full(160, np.log(1.5)), ratings]), scores, ratings))
    assert columns[0][:, 0].any()  # rounding leaves differences from the mean
    constant, other = fit_weights([(*columns, 160)], [(None, None)] * 2, 0.1)
    assert constant == 0 < other


ROWS = (["bread shop window", "river school boats"], ["the old harbour town"] * 2, ["wakes early"] * 2)


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
@pytest.mark.parametrize("chosen", [[], ["--head=encoder", "--epochs=1"]])
def test_a_head_scores_the_same_in_another_process(named_models, tmp_path, rated_file, run, chosen):
    """With models in folders, as objects cannot be shared; through the command line."""
    named = {**named_models, "variant": "fast", "contradiction_penalty": 0}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in named.items()]
    code, printed, errors = run("train", rated_file, *chosen, "--out", tmp_path, "--quiet", *options)
    assert code == 0, errors
    assert "learned from 40 ratings" in printed
    script = (
        "import json, sys; from mars_score import MarsScorer; "
        "print(json.dumps(MarsScorer(**json.loads(sys.argv[1])).score(*json.loads(sys.argv[2])).scores))"
    )
    arguments = {**named, "learned": str(tmp_path)}
    command = [sys.executable, "-c", script, json.dumps(arguments), json.dumps(ROWS)]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(there.stdout) == pytest.approx(MarsScorer(**arguments).score(*ROWS).scores, abs=1e-6)
