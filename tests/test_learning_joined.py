"""A head of terms joined with a trained encoder: learns, is saved in one folder, scores the same when loaded."""

import json
import subprocess
import sys

import numpy as np
import pytest

from mars_score import MarsScorer
from mars_score.cli import main
from mars_score.learning.encoder import EncoderHead
from mars_score.learning.fitting import train
from mars_score.learning.ratings import TrainingSet
from mars_score.learning.training import TrainingSettings
from mars_score.scoring.head_folder import read_head, write_head
from mars_score.scoring.heads import Example
from mars_score.settings import resolve_settings
from mars_score.store.runtime import Runtime

GOOD = ("baker", "opens", "shop", "window", "bread", "fishermen", "weather")
BAD = ("children", "school", "river", "library", "museum", "bridge", "boats")
ROWS = (["bread shop window", "river school boats"], ["the old harbour town"] * 2, ["wakes early"] * 2)


def rated(name, seed, count=160):
    """Candidates of six words, rated by how many are in GOOD, which an encoder can learn and no term sees."""
    drawn = np.random.default_rng(seed).choice(len(GOOD + BAD), (count, 6))
    rows = tuple(
        (" ".join((GOOD + BAD)[index] for index in one), ("the old harbour town",), "wakes early") for one in drawn
    )
    ratings = (drawn < len(GOOD)).sum(axis=1).astype(float)
    groups = tuple(str(index // 4) for index in range(count))
    return TrainingSet(name, rows, (ratings - ratings.mean()) / ratings.std(), groups)


@pytest.fixture(scope="module")
def models(named_models):
    return {**named_models, "samples": 0}


@pytest.fixture(scope="module")
def encoder_head(named_models, tmp_path_factory):
    data = rated("lesson", 0)
    settings = resolve_settings("mini", variant="plus", **EncoderHead.form, **named_models)
    head = EncoderHead(settings, Runtime(), TrainingSettings(8, 16, 6e-3, patience=8))
    examples = [Example(candidate, references, context) for candidate, references, context in data.rows]
    return head.fit([data], [examples]).save(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def joined(models, encoder_head, tmp_path_factory):
    folder = tmp_path_factory.mktemp("joined")
    return train([rated("own", 1)], folder, joined=encoder_head.path, store=False, **models)


def test_the_encoder_is_a_term_with_a_weight(joined, encoder_head, models, named_models):
    result = MarsScorer(learned=joined.path, variant="plus", **models).score(*ROWS)
    alone = MarsScorer(learned=encoder_head.path, variant="plus", **named_models).score(*ROWS)
    for row, score in zip(result.rows, alone.scores, strict=True):
        terms = {term.name: term for term in row.terms}
        assert terms["encoder"].value == pytest.approx(score)
        assert terms["encoder"].weight > 0
        assert terms["references"].weight > 0
        assert row.score == pytest.approx(sum(term.value * term.weight for term in row.terms))
    assert result.signature.to_dict()["learned"] == joined.fingerprint


def test_it_learns_what_the_encoder_knows(joined, models):
    test = rated("test", 2)
    columns = list(zip(*test.rows, strict=True))
    before, after = (
        np.corrcoef(MarsScorer(**models, **head).score(*columns).scores, test.ratings)[0, 1]
        for head in ({}, {"learned": joined.path})
    )
    assert after > before + 0.1


def test_one_folder_holds_all(joined, encoder_head):
    assert sorted(path.name for path in joined.path.iterdir()) == ["head.json", "head.safetensors"]
    assert joined.arrays.keys() == {"weights", *encoder_head.arrays}
    assert joined.about["encoder"]["fingerprint"] == encoder_head.fingerprint
    assert [one["name"] for one in joined.about["encoder"]["learned_from"]] == ["lesson"]
    assert [one["name"] for one in joined.about["learned_from"]] == ["own"]


def test_it_goes_on_with_the_same_encoder(joined, encoder_head, models, tmp_path):
    again = train([rated("more", 3)], tmp_path, start=joined.path, store=False, **models)
    assert again.about["encoder"] == joined.about["encoder"]
    name = "layers.rating.weight"
    assert again.arrays[name].tolist() == joined.arrays[name].tolist()
    with pytest.raises(ValueError, match=r"is joined with an encoder already; leave .* out"):
        train([rated("more", 3)], tmp_path, start=joined.path, joined=encoder_head.path, **models)


def test_an_encoder_without_weight_is_left_out(encoder_head, models, tmp_path):
    data = rated("own", 1)
    opposite = TrainingSet("opposite", data.rows, -data.ratings, data.groups)
    saved = train([opposite], tmp_path, joined=encoder_head.path, store=False, **models)
    assert "encoder" not in saved.about["parameters"]["features"]
    assert saved.arrays.keys() == {"weights"}


def test_what_cannot_be_joined_is_refused(encoder_head, joined, models, tmp_path):
    with pytest.raises(ValueError, match=r"was trained on lesson, too: .* learn terms from other ratings"):
        train([rated("lesson", 1)], tmp_path, joined=encoder_head.path, **models)
    with pytest.raises(ValueError, match="is a head of kind 'terms'; only 'encoder' can be joined"):
        train([rated("own", 1)], tmp_path, joined=joined.path, **models)


def test_a_folder_without_the_encoder_s_weights_is_refused_by_name(joined, models, tmp_path):
    parts = {name: joined.about[name] for name in ("models", "settings", "parameters", "encoder")}
    arrays = {name: one for name, one in joined.arrays.items() if name != "layers.rating.weight"}
    some = next(name for name in arrays if name.startswith("transformer."))
    arrays.pop(some)
    damaged = write_head(tmp_path / "part", "terms", arrays=arrays, **parts)
    with pytest.raises(ValueError, match=f"part: the weights of {some} are missing"):
        MarsScorer(learned=damaged.path, variant="plus", **models).score(*ROWS)
    numbers = damaged.path / "head.safetensors"
    numbers.write_bytes(numbers.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"head\.safetensors is not the file that was saved"):
        read_head(damaged.path)


@pytest.mark.slow
def test_trained_by_the_command_it_scores_the_same_in_another_process(
    encoder_head, named_models, tmp_path, capsys
):
    data = rated("own", 1)
    columns = ("candidate", "references", "context", "human", "group")
    lines = [
        json.dumps(dict(zip(columns, (*row, rating, group), strict=True)))
        for row, rating, group in zip(data.rows, data.ratings.tolist(), data.groups, strict=True)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    options = [f"--{name.replace('_', '-')}={value}" for name, value in named_models.items()]
    head, own = str(tmp_path / "head"), str(tmp_path / "own.jsonl")
    command = ["train", own, "--with", str(encoder_head.path), "--out", head, "--samples=0", "--quiet", *options]
    assert main(command) == 0
    assert main([*command, "--head", "encoder"]) != 0
    assert "--with joins an encoder with head terms" in capsys.readouterr().err
    code = (
        "import json, sys; from mars_score import MarsScorer; "
        "print(json.dumps(MarsScorer(**json.loads(sys.argv[1])).score(*json.loads(sys.argv[2])).scores))"
    )
    arguments = {**named_models, "learned": head}
    found = subprocess.run(
        [sys.executable, "-c", code, json.dumps(arguments), json.dumps(ROWS)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(found.stdout) == pytest.approx(MarsScorer(**arguments).score(*ROWS).scores, abs=1e-9)
