"""Models with random weights and the shapes of known ones: their speed without their files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from mars_score.models.loading import pick_device

# Width, layers and heads of the language model and of the sentence encoder, and their vocabularies.
SHAPES = {
    "gpt2-large": ((1280, 36, 20, 50257), (1024, 24, 16, 50265)),
    "tiny": ((64, 2, 4, 2000), (64, 2, 4, 2000)),
}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def random_language_model(shape: str, texts: Sequence[str], dtype: str) -> tuple[Any, PreTrainedTokenizerFast]:
    """A GPT-2, and a tokenizer to which words of ``texts`` are single tokens, as common ones are to GPT-2's."""
    width, layers, heads, vocabulary = SHAPES[shape][0]
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=vocabulary, n_embd=width, n_layer=layers, n_head=heads, bos_token_id=0, eos_token_id=2
    )
    model = GPT2LMHeadModel(config).requires_grad_(False).eval()
    return model.to(pick_device(None), getattr(torch, dtype)), _tokenizer(texts, vocabulary)


def random_encoder(shape: str, texts: Sequence[str], dtype: str) -> SentenceTransformer:
    """A RoBERTa with mean pooling; it passes through a temporary folder."""
    width, layers, heads, vocabulary = SHAPES[shape][1]
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=514,
    )
    with tempfile.TemporaryDirectory() as folder:
        RobertaModel(config).save_pretrained(folder)
        _tokenizer(texts, vocabulary).save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=512)
    encoder = SentenceTransformer(modules=[transformer, Pooling(width, "mean")], device=pick_device(None))
    return encoder.to(getattr(torch, dtype)).eval()


def _tokenizer(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE trained on ``texts``."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    names = ("bos_token", "pad_token", "eos_token", "unk_token")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, SPECIAL, strict=True)))
