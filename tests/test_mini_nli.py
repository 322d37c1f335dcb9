"""The NLI model that ships with preset "mini"."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mars_score import MarsScorer
from mars_score.errors import NOT_ENGLISH, ModelUnavailableError
from mars_score.models import mini_nli
from mars_score.models.nli import NliModel
from mars_score.models.wheels import wheel_folder

PREMISE = "The library opens at nine on Saturdays, and its cafe is closed for repairs until March."
FRENCH = "La bibliothèque ouvre à neuf heures le samedi, et son café reste fermé pour des travaux jusqu'en mars. "


@pytest.fixture(scope="module")
def pair():
    return mini_nli.load("float32", "cpu")


def test_it_tells_support_from_contradiction(pair):
    hypotheses = {
        PREMISE: "entailment",
        "The library does not open at nine on Saturdays.": "contradiction",
        "The library has many books about ships.": "neutral",
    }
    verdicts = NliModel(*pair).entails([(PREMISE, hypothesis) for hypothesis in hypotheses])
    names = ("entailment", "contradiction", "neutral")
    assert [names[int(np.argmax([*one, 1 - sum(one)]))] for one in verdicts] == list(hypotheses.values())


def test_its_weights_are_the_encoders_and_what_was_learned(pair):
    name = "encoder.layer.3.attention.self.query"
    before = load_file(wheel_folder(mini_nli.ENCODER) / "model.safetensors")[f"{name}.weight"]
    learned = load_file(mini_nli.FILE)
    up, down = (learned[f"bert.{name}.{part}"].float() for part in ("up", "down"))
    weights = pair[0].get_parameter(f"bert.{name}.weight")
    torch.testing.assert_close(weights, before + up @ down)
    assert not torch.allclose(weights, before, atol=1e-3)
    torch.testing.assert_close(pair[0].classifier.weight, learned["classifier.weight"].float())
    assert mini_nli.FILE.stat().st_size < 3_000_000


@pytest.mark.parametrize("damaged", ["ours", "encoder"])
def test_other_weights_are_refused(damaged, tmp_path, monkeypatch):
    folder = shutil.copytree(wheel_folder(mini_nli.ENCODER), tmp_path / "encoder")
    shutil.copy(mini_nli.FILE, tmp_path)
    monkeypatch.setattr(mini_nli, "wheel_folder", lambda _: folder)
    monkeypatch.setattr(mini_nli, "FILE", tmp_path / mini_nli.FILE.name)
    path = {"ours": tmp_path / mini_nli.FILE.name, "encoder": folder / "model.safetensors"}[damaged]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match=rf"^{path.name} is damaged"):
        mini_nli.load("float32", "cpu")


def test_rows_in_other_languages_are_scored_without_it(tiny_mini):
    """Their scores have no such term, and a notice counts them."""
    settings = {**tiny_mini, "entailment_model": mini_nli.NAME}
    scorer = MarsScorer(**settings, variant="fast")
    candidates = ["Le café est fermé.", "It opens at nine."]
    result = scorer.score(candidates, [FRENCH * 2, "The library opens at nine."], [FRENCH, PREMISE])
    named = ["contradiction" in {term.name for term in row.terms} for row in result.rows]
    assert named == [False, True]
    assert f"{NOT_ENGLISH}: 1 of 2 rows (index 0)" in result.notices
