"""Loading Hub models without a connection."""

from __future__ import annotations

import time

import huggingface_hub.constants
import pytest

from mars_score.errors import ModelUnavailableError
from mars_score.models.loading import load_encoder, load_language_model


@pytest.fixture
def unreachable(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "load",
    [
        lambda: load_language_model("no/model", "causal", "float32", "cpu", None),
        lambda: load_encoder("no/model", "float32", "cpu"),
    ],
    ids=["language model", "encoder"],
)
def test_without_a_connection_there_is_one_message_at_once(unreachable, load, capfd, caplog):
    start = time.monotonic()
    with pytest.raises(ModelUnavailableError, match=r"'no/model'.* cannot be reached .*folder.*preset=\"mini\""):
        load()
    assert time.monotonic() - start < 8
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
