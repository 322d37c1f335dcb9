"""The entailment reader that ships with preset "mini"."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from mars_score import MarsScorer
from mars_score.errors import ModelUnavailableError
from mars_score.models import mini_nli
from mars_score.models.nli import classes, classify
from mars_score.models.wheels import wheel_folder

PREMISE = "The library opens at nine on Saturdays, and its cafe is closed for repairs until March."
FRENCH = "La bibliothèque ouvre à neuf heures le samedi, et son café reste fermé pour des travaux jusqu'en mars. "


@pytest.fixture(scope="module")
def reader():
    return mini_nli.load("float32", "cpu")


def test_it_tells_support_from_contradiction(reader):
    hypotheses = {
        PREMISE: "entailment",
        "The library does not open at nine on Saturdays.": "contradiction",
        "The library has many books about ships.": "neutral",
    }
    shares = {}
    pairs = [(PREMISE, hypothesis) for hypothesis in hypotheses]
    classify(reader, pairs, lambda pair, probabilities: shares.update({pair[1]: probabilities}), None)
    assert {text: mini_nli.LABELS[torch.tensor(share).argmax()] for text, share in shares.items()} == hypotheses
    assert classes(reader) == (mini_nli.LABELS.index("entailment"), mini_nli.LABELS.index("contradiction"))


def test_its_weights_are_the_encoders_and_what_was_learned(reader):
    name = "encoder.layer.3.attention.self.query"
    before = load_file(wheel_folder(mini_nli.ENCODER) / "model.safetensors")[f"{name}.weight"]
    learned = load_file(mini_nli.FILE)
    up, down = (learned[f"bert.{name}.{part}"].float() for part in ("up", "down"))
    weights = reader[0].get_parameter(f"bert.{name}.weight")
    torch.testing.assert_close(weights, before + up @ down)
    assert not torch.allclose(weights, before, atol=1e-3)
    torch.testing.assert_close(reader[0].classifier.weight, learned["classifier.weight"].float())
    assert mini_nli.FILE.stat().st_size < 3_000_000


@pytest.mark.parametrize("damaged", ["reader", "encoder"])
def test_other_weights_are_refused(damaged, tmp_path, monkeypatch):
    folder = shutil.copytree(wheel_folder(mini_nli.ENCODER), tmp_path / "encoder")
    shutil.copy(mini_nli.FILE, tmp_path)
    monkeypatch.setattr(mini_nli, "wheel_folder", lambda _: folder)
    monkeypatch.setattr(mini_nli, "FILE", tmp_path / mini_nli.FILE.name)
    path = {"reader": tmp_path / mini_nli.FILE.name, "encoder": folder / "model.safetensors"}[damaged]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=rf"{path.name} is damaged, or not .*; install mars-score and"):
        mini_nli.load("float32", "cpu")


def test_other_languages_are_not_read(tiny_mini):
    """Nor is a row read in part: its score has no such term, and a notice counts it."""
    settings = {**tiny_mini, "entailment_model": mini_nli.NAME}
    scorer = MarsScorer(**settings, variant="fast")
    references = [FRENCH * 2, "The library opens at nine.", "Oui."]
    result = scorer.score(
        ["Le café est fermé.", "It opens at nine.", "Non."], references, [FRENCH, PREMISE, "Oui."]
    )
    named = ["contradiction" in {term.name for term in row.terms} for row in result.rows]
    assert named == [False, True, True]
    [notice] = [notice for notice in result.notices if "English" in notice]
    assert notice.endswith("1 of 3 rows (0)")
