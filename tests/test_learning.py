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
from mars_score.data.validation import Row
from mars_score.data.words import repetition
from mars_score.errors import MarsWarning
from mars_score.learning.heads import read_head, write_head
from mars_score.learning.ratings import centred, training_sets
from mars_score.learning.train_terms import fit_weights, train_terms
from mars_score.meta.rated import RatedSet

RATINGS = [1.0 + index % 5 for index in range(40)]
TWOS = [str(index // 2) for index in range(40)]


def rated(ratings, groups=TWOS):
    """Every second candidate repeats words."""
    rows = []
    for index, group in enumerate(groups):
        good = f"people wait for boat number {index} at the old bridge"
        text = f"boat boat number {index} bridge bridge bridge people people" if index % 2 else good
        rows.append(Row(text, ("the boat leaves the bridge",), f"The ferry. {group}"))
    labels = [""] * len(rows)
    return RatedSet("talk", rows, ratings, groups, labels, labels, ("the boat leaves the bridge",))


TALK = rated([1.0 + 3 * (index % 2 == 0) + index % 3 * 0.1 for index in range(40)])
COLUMNS = [list(column) for column in zip(*(row[:3] for row in TALK.rows[:12]), strict=True)]


def test_ratings_are_standardised_in_the_set_or_in_groups_where_a_group_of_one_compares_with_nothing():
    for ratings in (RATINGS, [20 * rating - 7 for rating in RATINGS]):
        (data,) = training_sets([rated(ratings)])
        assert data.ratings == pytest.approx((np.array(RATINGS) - 3) / np.sqrt(2))
    easier = [rating + 10 * (index // 2 % 2) for index, rating in enumerate(RATINGS)]
    (data,), (other,) = (
        training_sets([rated([*ratings, 5.0], [*TWOS, "alone"])], ["talk"]) for ratings in (RATINGS, easier)
    )
    assert data.ratings == pytest.approx(other.ratings)
    assert data.ratings.reshape(-1, 2).sum(axis=1) == pytest.approx(0)
    assert data.ratings.std() == pytest.approx(1)
    assert "alone" not in data.groups


@pytest.mark.parametrize(
    ("ratings", "groups", "within", "message"),
    [
        ([3.0] * 40, TWOS, [], "talk: all ratings are equal, so there is nothing to learn"),
        ([float(index // 2) for index in range(40)], TWOS, ["talk"], "all ratings are equal within every group"),
        (RATINGS[:3], TWOS[:3], [], "3 ratings in 2 groups that can be learned from; 20 in 10 groups"),
        (RATINGS, ["a"] * 40, [], "40 ratings in 1 groups that"),
        (RATINGS, [str(index) for index in range(40)], ["talk"], "0 ratings in 0 groups that can be learned from"),
        (RATINGS, TWOS, ["chat"], "unknown data set 'chat'"),
    ],
)
def test_ratings_that_are_refused(ratings, groups, within, message):
    with pytest.raises(ValueError, match=message):
        training_sets([rated(ratings, groups)], within)


@pytest.fixture(scope="module")
def models(encoder, llama):
    named = {"encoder": encoder, "language_model": llama, "entailment_model": None, "dtype": "float64"}
    return {**named, "variant": "fast", "repetition_penalty": 0.0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, models):
    return train_terms(
        MarsScorer(**models, store=False), tmp_path_factory.mktemp("trained"), training_sets([TALK])
    )


def test_a_head_of_terms_learns_what_ratings_ask_for(trained, models):
    learned = MarsScorer(**models, learned=trained.path)
    before, after = MarsScorer(**models).score(*COLUMNS), learned.score(*COLUMNS)
    agreement = [np.corrcoef(result.scores, TALK.ratings[:12])[0, 1] for result in (before, after)]
    assert agreement[1] > agreement[0] + 0.01
    for row in after.rows:
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
    weights = {term.name: term.weight for term in after.rows[1].terms}
    assert weights["repetition"] < 0
    assert len(after.rows[1].terms) == len(weights)
    assert [result.signature.to_dict()["learned"] for result in (before, after)] == [None, trained.fingerprint]
    assert f"|learned:{trained.fingerprint}|" in str(after.signature)
    assert pickle.loads(pickle.dumps(learned)).score(*COLUMNS).scores == after.scores


def test_features_of_a_row(models):
    context = "The ferry leaves in the morning before the rain."
    row = Row("The ferry leaves in the morning boat", ("one two", "one two three"), context)
    fast, plus = (MarsScorer(**{**models, "variant": name}).examples([row])[0] for name in ("fast", "plus"))
    own = {"copied": 6 / 7, "length": np.log(7 / 2.5), "repetition": repetition(row.candidate)}
    assert fast.features == pytest.approx(own)
    assert plus.features.keys() == {*own, "log_probability", "lift"}
    assert plus.features["log_probability"] < 0


def test_a_blank_candidate_keeps_its_score_and_references_are_needed(trained, models):
    scorer = MarsScorer(**models, learned=trained.path)
    with pytest.warns(MarsWarning):
        result = scorer.score([" ", "a boat"], ["the boat"] * 2, ["x", "x"])
    assert result.scores[0] == 0 != result.scores[1]
    with pytest.raises(ValueError, match="needs references; give them, or leave learned out"):
        scorer.score(["a boat"], contexts=["the boat"])


def test_settings_follow_from_the_head(tmp_path, models):
    named = {name: models[name] for name in ("encoder", "language_model", "dtype")}
    train_terms(MarsScorer(**named, variant="plus", store=False), tmp_path, training_sets([TALK]))
    settings = MarsScorer(**named, learned=tmp_path).settings
    assert (settings.variant, settings.similarity.likelihood_weight) == ("plus", 0.15)
    for changed, message in (
        ({"likelihood_weight": 0.3}, r"trained with likelihood_weight=0\.15, but here it is 0\.3; leave"),
        ({"variant": "fast"}, "trained with variant='plus', but here it is 'fast'"),
        ({"encoder": tiny_models.tiny_encoder(seed=99)}, "encoder SentenceTransformer@.*, but here it is .*; use"),
    ):
        with pytest.raises(ValueError, match=message):
            MarsScorer(**{**named, **changed}, learned=tmp_path)


DAMAGED = "head.json is damaged or not of format 3, .*; train the head again"
OTHER_NUMBERS = "head.safetensors is not the file that was saved"


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
        (("head.json", "[1]"), DAMAGED),
        (("head.json", '{"format": 3'), DAMAGED),
        (("head.safetensors", "1"), OTHER_NUMBERS),
        (("head.safetensors", None), OTHER_NUMBERS),
    ],
)
def test_folders_that_are_refused(trained, damage, message, models, tmp_path):
    folder = shutil.copytree(trained.path, tmp_path / "head")
    if isinstance(damage, dict):
        damage = "head.json", json.dumps({**json.loads((folder / "head.json").read_text()), **damage})
    name, content = damage
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        MarsScorer(**models, learned=folder).score(["a"], ["b"], ["c"])


@pytest.mark.parametrize("head", ["nothing", "x" * 5000, "a\0b", "\ud83d"])
def test_a_folder_that_is_not_there(head, tmp_path):
    with pytest.raises(FileNotFoundError, match="give a folder that mars train wrote"):
        read_head(tmp_path / head)


def test_a_fingerprint_is_of_the_content(tmp_path):
    about = {"kind": "terms", "models": {}, "settings": {}, "parameters": {"a": 1}, "learned_from": []}
    same, again, other = (
        write_head(tmp_path / name, {"weights": np.arange(3.0) + shift}, **about)
        for name, shift in (("a", 0), ("b", 0), ("c", 1e-9))
    )
    assert same.fingerprint == again.fingerprint != other.fingerprint
    assert same.arrays["weights"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in same.path.iterdir()) == ["head.json", "head.safetensors"]


def test_weights_maximise_the_correlation_within_bounds_and_few_groups_change_little():
    features, scores = np.split(np.random.default_rng(0).normal(size=(300, 4)), [3], axis=1)
    features[:, 2] = np.log(1.5)  # the same in all rows, from whose mean rounding leaves differences
    ratings = scores[:, 0] + 0.5 * features[:, 0] - features[:, 1]
    columns = centred((features, scores[:, 0], ratings))
    assert columns[0][:, 2].any()

    def weights(groups, penalty, least=None):
        return fit_weights([(*columns, groups)], [(least, None)] * 3, penalty).tolist()

    assert weights(300, 1e-9) == pytest.approx([0.5, -1, 0], abs=1e-3)
    bounded = weights(300, 1e-9, least=0)
    assert bounded[1:] == [0, 0]
    assert bounded[0] > 0
    assert np.all(np.abs(weights(10, 100)) < [0.05, 0.1, 1e-9])


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
@pytest.mark.parametrize("chosen", [[], ["--head=encoder", "--epochs=1"]])
def test_a_head_scores_the_same_in_another_process(named_models, tmp_path, run, chosen):
    """With models in folders, as objects cannot be shared; through the command line."""
    names = ("candidate", "references", "context")
    rated = zip(TALK.rows, TALK.ratings, strict=True)
    rows = [{**dict(zip(names, row, strict=False)), "human": rating} for row, rating in rated]
    named = {**named_models, "variant": "fast", "contradiction_penalty": 0}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in named.items()]
    file = jsonl.write(tmp_path / "talk.jsonl", rows)
    code, printed, errors = run("train", file, *chosen, "--out", tmp_path, "--quiet", *options)
    assert code == 0, errors
    assert "learned from 40 ratings" in printed
    script = (
        "import json, sys; from mars_score import MarsScorer; "
        "print(json.dumps(MarsScorer(**json.loads(sys.argv[1])).score(*json.loads(sys.argv[2])).scores))"
    )
    arguments = {**named, "learned": str(tmp_path)}
    command = [sys.executable, "-c", script, json.dumps(arguments), json.dumps(COLUMNS)]
    there = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(there.stdout) == pytest.approx(MarsScorer(**arguments).score(*COLUMNS).scores, abs=1e-6)
