"""Learned heads: ratings to learn from, folders, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mars_score.learning.folder import read_head, write_head
from mars_score.learning.heads import load_head
from mars_score.learning.ratings import training_sets
from mars_score.meta.items import Item, RatedSet
from mars_score.runtime import Runtime
from mars_score.settings import resolve_settings


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
        (lambda folder: change(folder, kind="terms", settings={"samples": 3}), "trained with samples=3, .* is 8"),
    ],
)
def test_folders_that_are_refused(saved, damage, message, encoder, llama):
    damage(saved.path)
    settings = resolve_settings("mini", encoder=encoder, language_model=llama)
    with pytest.raises(ValueError, match=message):
        load_head(saved.path, settings, Runtime())


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="give a folder that mars train wrote"):
        read_head(tmp_path / "nothing")
