"""Fingerprints: what changes a score changes them, and what has none is not stored."""

import shutil

import pytest
import tiny_models
import torch
from tokenizers import Tokenizer

from mars_score.cache import ResultStore
from mars_score.models.fingerprints import Fingerprint, fingerprint
from mars_score.scorer import MarsScorer


def test_language_models_that_write_other_texts():
    def pair():
        model, tokenizer = tiny_models.tiny_gpt2(seed=7)
        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        return model, type(tokenizer)(tokenizer_object=backend)

    changes = [
        lambda model, tokenizer: setattr(tokenizer, "chat_template", "{{ messages }}"),
        lambda model, tokenizer: setattr(tokenizer, "bos_token", "the"),
        lambda model, tokenizer: setattr(model.generation_config, "top_k", 3),
        lambda model, tokenizer: model.lm_head.weight.data[0, 0].add_(1e-9),
    ]
    for change in changes:
        model, tokenizer = pair()
        assert fingerprint((model, tokenizer)) == fingerprint(pair())
        change(model, tokenizer)
        assert fingerprint((model, tokenizer)) != fingerprint(pair())


@pytest.mark.parametrize(
    ("name", "value"), [("truncate_dim", 8), ("max_seq_length", 9), ("prompts", {"query": "query: "})]
)
def test_encoders_that_give_other_vectors(name, value):
    encoder = tiny_models.tiny_encoder(seed=4)
    before = fingerprint(encoder)
    assert fingerprint(tiny_models.tiny_encoder(seed=4)) == before
    setattr(encoder, name, value)
    assert fingerprint(encoder) != before


def test_all_files_of_a_folder_count_but_hidden_ones(tmp_path):
    for file in ("chat_template.jinja", "vocabulary.bpe", "1_Pooling/config.json", ".cache/lock"):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("one")
        before = fingerprint(tmp_path)
        path.write_text("another")
        assert (fingerprint(tmp_path) == before) == file.startswith(".")
    assert fingerprint(tmp_path) == Fingerprint("folder", fingerprint(str(tmp_path)).revision)
    assert fingerprint(shutil.copytree(tmp_path, tmp_path / ".copy")) == fingerprint(
        tmp_path
    )  # not the name counts


class OwnEncoder:
    """One that shows nothing of what it computes with."""

    max_seq_length = None

    def __init__(self, encoder, factor):
        self.encoder, self.factor, self.tokenizer = encoder, factor, encoder.tokenizer
        self.prompts, self.default_prompt_name = {}, None

    def encode(self, texts, output_value="sentence_embedding", **options):
        outputs = self.encoder.encode(texts, output_value=output_value, **options)
        if output_value:
            return outputs**self.factor
        name = "sentence_embedding"
        return [{**output, name: output[name] ** self.factor} for output in outputs]


def test_what_has_no_fingerprint_is_not_stored(encoder, tmp_path):
    rows = ["She took the bus."], ["She went by bus."], ["The car broke down."]
    scores = [
        MarsScorer("mini", variant="fast", store=tmp_path, encoder=OwnEncoder(encoder, factor)).score(*rows).scores
        for factor in (1, 3)
    ]
    assert scores[0] != scores[1]
    kept = {kind: count for kind, (count, _) in ResultStore(tmp_path).info().items() if count}
    assert kept == {"entailments": 1}  # Of the NLI model, which has a fingerprint.
    assert str(fingerprint(OwnEncoder(encoder, 1))) == "OwnEncoder@unknown"


class OwnLayer(torch.nn.Linear):
    """A layer of a user's own, which may compute anything."""


def add_hook(model):
    model[0].register_forward_hook(lambda *_: None)


def replace_forward(model):
    model[0].forward = lambda features, **_: features


def replace_layer(model):
    size = model[0].auto_model.config.hidden_size
    model[0].auto_model.encoder.layer[0].output.dense = OwnLayer(2 * size, size)


def hide_tensors(model):
    model[1].shifts = [torch.ones(3)]


@pytest.mark.parametrize("change", [add_hook, replace_forward, replace_layer, hide_tensors])
def test_a_model_that_may_compute_anything_has_no_revision(change):
    encoder = tiny_models.tiny_encoder(seed=4)
    assert fingerprint(encoder).revision
    change(encoder)
    assert fingerprint(encoder).revision is None


def change_private_attribute(model):
    model[1]._scale = 2


def change_buffer(model):
    model[1].register_buffer("scale", torch.ones(1), persistent=False)


@pytest.mark.parametrize("change", [change_private_attribute, change_buffer])
def test_private_attributes_and_buffers_that_are_not_saved_count(change):
    encoder = tiny_models.tiny_encoder(seed=4)
    before = fingerprint(encoder)
    change(encoder)
    assert fingerprint(encoder).revision not in (None, before.revision)
