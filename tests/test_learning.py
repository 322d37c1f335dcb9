"""Learned heads: ratings to learn from, folders, and what is refused."""

import json
import shutil
import subprocess
import sys

import jsonl
import numpy as np
import pytest
import tiny_models

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.data.rated import Item, RatedSet, read_rated_set
from mars_score.errors import MarsWarning
from mars_score.learning.fitting import train
from mars_score.learning.ratings import training_sets
from mars_score.learning.terms import Part, TermsHead, fit_weights
from mars_score.scoring.head_folder import read_head, write_head
from mars_score.scoring.heads import load_head
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime


def rated(ratings, groups=None, name="talk"):
    groups = groups or [str(index // 2) for index in range(len(ratings))]
    items = tuple(
        Item(str(index), group, "", (f"candidate {index}", ("reference",), f"context {group}"), rating)
        for index, (group, rating) in enumerate(zip(groups, ratings, strict=True))
    )
    return RatedSet(name, items, ("reference",))


RATINGS = [1.0 + index % 5 for index in range(40)]


def test_ratings_are_standardised_in_the_set():
    (one,) = training_sets([rated(RATINGS)])
    assert one.ratings.tolist() == pytest.approx(((np.array(RATINGS) - 3) / np.sqrt(2)).tolist())
    (same,) = training_sets([rated([20 * rating - 7 for rating in RATINGS])])
    assert same.ratings.tolist() == pytest.approx(one.ratings.tolist())


def test_ratings_are_standardised_in_their_groups():
    easier = [rating + 10 * (index // 2 % 2) for index, rating in enumerate(RATINGS)]
    (one,), (other,) = (training_sets([rated(each)], ["talk"]) for each in (RATINGS, easier))
    assert one.ratings.tolist() == pytest.approx(other.ratings.tolist())
    assert one.ratings.reshape(-1, 2).sum(axis=1).tolist() == pytest.approx([0.0] * 20)
    assert one.ratings.std() == pytest.approx(1)


def test_a_group_of_one_compares_with_nothing():
    groups = [*(str(index // 2) for index in range(40)), "alone"]
    (one,) = training_sets([rated([*RATINGS, 5.0], groups)], ["talk"])
    assert "alone" not in one.groups
    assert len(one.rows) == 40


@pytest.mark.parametrize(
    ("ratings", "groups", "within", "message"),
    [
        ([3.0] * 40, None, [], "talk: all ratings are equal, so there is nothing to learn"),
        ([float(index // 2) for index in range(40)], None, ["talk"], "all ratings are equal within every group"),
        ([1.0, 2.0, 3.0], None, [], "3 ratings in 2 groups; at least 20 ratings in 10 groups"),
        (RATINGS, ["a"] * 40, [], "40 ratings in 1 groups; at least"),
        (RATINGS, [str(index) for index in range(40)], ["talk"], "0 ratings in 0 groups of two or more"),
        (RATINGS[:20] + [20 * one for one in RATINGS[20:]], None, [], "look like two scales: .* 5 or less, .* 40"),
        (RATINGS, None, ["chat"], "unknown data set 'chat'"),
    ],
)
def test_ratings_that_are_refused(ratings, groups, within, message):
    with pytest.raises(ValueError, match=message):
        training_sets([rated(ratings, groups)], within)


@pytest.fixture
def saved(tmp_path):
    arrays = {"weights": np.arange(3.0)}
    return write_head(tmp_path / "head", "other", models={}, settings={}, parameters={"a": 1}, arrays=arrays)


def test_a_folder_is_read_as_it_was_written(saved):
    again = read_head(saved.path)
    assert again == saved
    assert again.about["parameters"] == {"a": 1}
    assert again.arrays["weights"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in saved.path.iterdir()) == ["head.json", "head.safetensors"]


def test_a_fingerprint_is_of_the_content(saved, tmp_path):
    make = {"models": {}, "settings": {}, "parameters": {"a": 1}}
    same = write_head(tmp_path / "same", "other", **make, arrays={"weights": np.arange(3.0)})
    other = write_head(tmp_path / "other", "other", **make, arrays={"weights": np.arange(3.0) + 1e-9})
    assert same.fingerprint == saved.fingerprint
    assert other.fingerprint != saved.fingerprint


def change(folder, **values):
    path = folder / "head.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def cut(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: change(folder, format=99), "format 99, .* reads format 1; train it again"),
        (lambda folder: change(folder, models=None), "damaged: 'models' of head.json"),
        (lambda folder: (folder / "head.json").write_text("[1]"), "not the description of a learned head"),
        (lambda folder: cut(folder, "head.json"), "damaged: head.json cannot be read"),
        (lambda folder: cut(folder, "head.safetensors"), "head.safetensors is not the file that was saved"),
        (lambda folder: (folder / "head.safetensors").unlink(), "head.safetensors is missing"),
        (lambda folder: None, "a head of kind 'other'; this version has: terms, encoder"),
        (
            lambda folder: change(folder, kind="terms", models={"encoder": "gone==1"}),
            "trained with encoder gone==1",
        ),
        (lambda folder: change(folder, kind="terms", settings={"samples": 3}), "trained with samples=3, .* is 4"),
    ],
)
def test_folders_that_are_refused(saved, damage, message, encoder, llama):
    damage(saved.path)
    settings = resolve_settings("mini", encoder=encoder, language_model=llama, variant="plus")
    with pytest.raises(ValueError, match=message):
        load_head(saved.path, settings, Runtime())


@pytest.mark.parametrize("head", ["nothing", "0", "x" * 5000, "a\0b", "\ud83d"])
def test_a_folder_that_is_not_there(head, tmp_path):
    for folder in (head, tmp_path / head):
        with pytest.raises(FileNotFoundError, match="give a folder that mars train wrote"):
            read_head(folder)


CONTEXT = "The ferry leaves in the morning before the rain. "


def talk(size=40):
    """Candidates whose ratings are low where words are repeated, in groups of two."""
    rows, ratings = [], []
    for index in range(size):
        good = f"people wait for boat number {index} at the old bridge"
        bad = f"boat boat number {index} bridge bridge bridge people people"
        rows.append((bad if index % 2 else good, ("the boat leaves the bridge",), f"{CONTEXT}{index // 2}"))
        ratings.append(1.0 + 3 * (index % 2 == 0) + index % 3 * 0.1)
    return rows, ratings


@pytest.fixture(scope="module")
def models(encoder, llama):
    return {"encoder": encoder, "language_model": llama, "samples": 2, "repetition_penalty": 0.0}


@pytest.fixture(scope="module")
def rated_file(tmp_path_factory):
    rows, ratings = talk()
    path = tmp_path_factory.mktemp("rated") / "talk.jsonl"
    lines = [
        {"candidate": row[0], "references": list(row[1]), "context": row[2], "human": rating}
        for row, rating in zip(rows, ratings, strict=True)
    ]
    jsonl.write(path, lines)
    return path


@pytest.fixture(scope="module")
def trained(rated_file, tmp_path_factory, models):
    folder = tmp_path_factory.mktemp("trained")
    return train(training_sets([read_rated_set(rated_file)]), folder, store=False, **models)


def test_a_head_of_terms_learns_what_ratings_ask_for(trained, models):
    rows, ratings = talk(12)
    plain, learned = MarsScorer(**models), MarsScorer(**{**models, "samples": 2}, learned=trained.path)
    before, after = (scorer.score(*zip(*rows, strict=True)) for scorer in (plain, learned))
    assert np.corrcoef(after.scores, ratings)[0, 1] > np.corrcoef(before.scores, ratings)[0, 1] + 0.01
    for row in after.rows:
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
    weights = {term.name: term.weight for term in after.rows[1].terms}
    assert weights["repetition"] < 0
    assert len(after.rows[1].terms) == len(weights)
    assert after.signature.to_dict()["learned"] == trained.fingerprint
    assert f"|learned:{trained.fingerprint}|" in str(after.signature)
    assert before.signature.to_dict()["learned"] is None


def test_copying_is_a_merit_or_a_fault_as_ratings_say(models, tmp_path):
    rows, _ = talk()
    copied = [index % 2 for index in range(len(rows))]
    texts = {False: "people wait for boat number", True: "The ferry leaves in the morning"}
    rows = [
        (f"{texts[one > 0]} {row}", *rest) for row, (one, (_, *rest)) in enumerate(zip(copied, rows, strict=True))
    ]
    for sign in (1, -1):
        path = tmp_path / f"{sign}.jsonl"
        lines = [
            {
                "candidate": text,
                "references": list(references),
                "context": context,
                "human": sign * one + row % 3 / 9,
            }
            for row, ((text, references, context), one) in enumerate(zip(rows, copied, strict=True))
        ]
        jsonl.write(path, lines)
        head = train(training_sets([read_rated_set(path)]), tmp_path / str(sign), store=False, **models)
        [weight] = [
            weight
            for name, weight in zip(head.about["parameters"]["features"], head.arrays["weights"], strict=True)
            if name == "copied"
        ]
        assert weight * sign > 0
        [row] = MarsScorer(**models, learned=head.path).score(*([one] for one in rows[1])).rows
        [term] = [term for term in row.terms if term.name == "copied"]
        assert (term.value, term.weight) == (pytest.approx(6 / 7), pytest.approx(weight))


def test_a_blank_candidate_keeps_its_score(trained, models):
    with pytest.warns(MarsWarning):
        result = MarsScorer(**models, learned=trained.path).score([" ", "a boat"], ["the boat"] * 2, ["x", "x"])
    assert result.scores[0] == 0
    assert result.scores[1] != 0


def test_settings_follow_from_the_head(rated_file, tmp_path, models):
    sets = training_sets([read_rated_set(rated_file)])
    saved = train(sets, tmp_path / "head", **{**models, "samples": 0}, variant="plus")
    settings = resolve_settings(
        encoder=models["encoder"], language_model=models["language_model"], learned=saved.path, variant="plus"
    )
    assert (settings.variant, settings.sampling.samples) == ("plus", 0)
    assert settings.similarity.likelihood_weight == 0.15
    with pytest.raises(ValueError, match="trained with samples=0, but here it is 2; leave samples out"):
        MarsScorer(**models, learned=saved.path)
    with pytest.raises(ValueError, match="trained with variant='plus', but here it is 'fast'"):
        MarsScorer(
            encoder=models["encoder"], language_model=models["language_model"], variant="fast", learned=saved.path
        )


def test_other_models_are_refused_by_name(trained, models):
    with pytest.raises(
        ValueError, match=r"trained with encoder SentenceTransformer@.*, but here it is .*; use the preset"
    ):
        MarsScorer(**{**models, "encoder": tiny_models.tiny_encoder(seed=99)}, learned=trained.path)


def test_a_weight_must_be_there_for_each_feature(trained, models, tmp_path):
    head = shutil.copytree(trained.path, tmp_path / "head")
    change(head, parameters={"features": ["repetition"] * 99})
    with pytest.raises(ValueError, match="99 features need as many weights"):
        MarsScorer(**models, learned=head).score(["a"], ["b"], ["c"])
    change(head, parameters={"features": ["charm"]})
    with pytest.raises(ValueError, match="features that this version lacks: charm"):
        MarsScorer(**models, learned=head).score(["a"], ["b"], ["c"])


def test_few_ratings_change_little(rated_file, models):
    (data,) = training_sets([read_rated_set(rated_file)])
    scorer = MarsScorer(**models)
    examples = scorer.examples(data.rows)
    much, little = (
        TermsHead(scorer.settings, penalty=penalty).fit([data], [examples]).weights for penalty in (0.1, 1000)
    )
    assert abs(little["repetition"]) < abs(much["repetition"]) / 10


def test_weights_are_those_that_maximise_the_correlation():
    rng = np.random.default_rng(0)
    features, scores = rng.normal(size=(300, 2)), rng.normal(size=300)
    ratings = scores + 0.5 * features[:, 0] - features[:, 1]
    part = Part(features, scores, ratings, list(map(str, range(300))), within_groups=False)
    free = fit_weights([part], [(None, None)] * 2, 1e-9)
    assert free.tolist() == pytest.approx([0.5, -1], abs=1e-3)
    bounded = fit_weights([part], [(0, None)] * 2, 1e-9)
    assert bounded[1] == 0
    assert bounded[0] > 0


@pytest.mark.slow
def test_a_head_that_a_process_has_trained_scores_the_same_in_another(named_models, tmp_path, rated_file):
    """With models in folders, as objects cannot be shared."""
    paths = {name: named_models[name] for name in ("encoder", "language_model")}
    options = ["--encoder", paths["encoder"], "--language-model", paths["language_model"], "--quiet"]
    head = str(tmp_path / "head")
    assert main(["train", str(rated_file), "--out", head, "--samples", "2", *options]) == 0
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(
            json.dumps({"prediction": row[0], "reference": row[1], "context": row[2]}) + "\n" for row in talk(6)[0]
        )
    )
    command = ["score", str(rows), "--json", "--learned", head, *options]
    script = f"import sys; from mars_score.cli import main; sys.exit(main({command!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = MarsScorer(**paths, learned=head).score(*zip(*talk(6)[0], strict=True))
    assert json.loads(done.stdout)["mars"] == pytest.approx(here.score, abs=1e-9)
    assert "learned:terms:" in done.stdout


def test_a_head_needs_references(trained, models):
    with pytest.raises(ValueError, match="needs references; give them, or leave learned out"):
        MarsScorer(**models, learned=trained.path).score(["a boat"], contexts=["the boat"])


def test_training_goes_on_from_another_head(trained, rated_file, tmp_path, models):
    sets = training_sets([read_rated_set(rated_file)])
    again = train(sets, tmp_path / "again", start=trained.path, **models)
    here, there = (load_head(one.path, resolve_settings(**models), Runtime()).weights for one in (trained, again))
    assert there["repetition"] < here["repetition"] < 0  # pulled to the first weights instead of to 0


def test_a_feature_that_is_the_same_in_all_rows_gets_no_weight():
    rng = np.random.default_rng(0)
    scores, ratings = rng.normal(size=(2, 160))
    features = np.column_stack([np.full(160, np.log(1.5)), ratings])
    part = Part(features, scores, ratings, list(map(str, range(160))), within_groups=False)
    assert part.features[:, 0].any()  # rounding leaves differences from the mean
    constant, other = fit_weights([part], [(None, None)] * 2, 0.1)
    assert constant == 0
    assert other > 0
