"""Tiny random models, built in memory: real architectures, no files and no network.

The weights are larger than a trained model's at the start, so that the distributions are not flat and
infills depend on what is around them.
"""

import copy
import functools
import io
import re
import string
import tempfile
from contextlib import redirect_stderr

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from mars_score.models.loading import NLI_LABELS as SHIPPED_LABELS
from mars_score.models.nli import PrefixClassifier

# What the tokenizers are trained on; words of it are few tokens, other words are many.
TEXT = """
The old harbour town wakes early in the summer. Before the first ferry leaves, the baker opens her shop and
puts warm bread in the window, and the fishermen come in to talk about the weather. "It will rain before
noon," says one of them, and the others laugh, because he says it every morning. The children walk to school
along the river, past the library and the small museum, and they stop on the bridge to look at the boats.

She said that she waited for an hour to get her car fixed, but the garage was closed and nobody answered the
phone. Her brother thinks the best way to travel is by train: it is cheap, it is quick, and you can read a
book. He was so excited to see the new musical at the theatre that he forgot his ticket at home. What would
you do? I would call a friend, or I would go back and find it. They have never been to the city, so they are
going to stay with their grandmother for three weeks and visit every park.

In 2019 the council decided to build a new road between the station and the market. Most people were against
it; 1,250 of them signed a letter. The mayor didn't change her mind. "We need more houses, and houses need
roads," she told a reporter from the local newspaper. The work began in March, cost about 40 million pounds,
and was finished two years later. Today the road is busy, the shops are full, and the same people who wrote
the letter are asking for a second bridge. Nobody is surprised: that is how things happen in a small place,
where everyone knows everyone and the best stories are told again and again.
"""
HIDDEN, LAYERS, HEADS = 32, 2, 4
NLI_LABELS = {0: "Entailment", 1: "Neutral", 2: "CONTRADICTION"}  # as models of the Hub write them


def _byte_level_bpe(vocabulary: int, special_tokens: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special_tokens,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(keepends=True), trainer)
    return tokenizer


@functools.cache
def causal_tokenizer(adds_bos: bool = False) -> PreTrainedTokenizerFast:
    """As GPT-2's (``<|endoftext|>`` for everything, adds nothing), or one that begins texts with it."""
    end = "<|endoftext|>"
    tokens = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), end)
    return PreTrainedTokenizerFast(tokenizer_object=_byte_level_bpe(512, [end]), **tokens, add_bos_token=adds_bos)


# What a tokenizer does to a text first, by which some characters become no token at all.
DROPPING = {
    "variation selectors": normalizers.Replace(Regex("[\ufe00-\ufe0f]"), ""),
    "marks": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "invisible characters": normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    ),
    "all but ASCII": normalizers.Replace(Regex("[^\\x00-\\x7f]"), ""),
}


def dropping_tokenizer(dropped: str) -> PreTrainedTokenizerFast:
    """As ``causal_tokenizer``, but without the characters of an entry of ``DROPPING``."""
    tokenizer = copy.deepcopy(causal_tokenizer())
    tokenizer.backend_tokenizer.normalizer = DROPPING[dropped]
    return tokenizer


@functools.cache
def roberta_tokenizer() -> PreTrainedTokenizerFast:
    """As RoBERTa's: ``<s>`` text ``</s>``, padded with id 1."""
    tokenizer = _byte_level_bpe(512, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokens = {f"{name}_token": f"<{name}>" for name in ("pad", "unk", "mask")}
    tokens |= {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens)


def _build(cls: type, config, seed: int, dtype: torch.dtype) -> PreTrainedModel:
    """A model with the random weights of ``seed``; the caller's random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = cls(config)
        for name, parameter in model.named_parameters():  # by default all biases are zero
            if name.endswith("bias"):
                torch.nn.init.normal_(parameter, std=0.1)
    return model.to(dtype).eval()


def tiny_gpt2(seed: int = 0, dtype: torch.dtype = torch.float64, n_positions: int = 96, tokenizer=None, **config):
    """``(model, tokenizer)``: learned positions, one key-value head per attention head."""
    tokenizer = tokenizer or causal_tokenizer()
    size = {"n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": n_positions}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    values = {**size, **ids, "vocab_size": len(tokenizer), "initializer_range": 0.3, **config}
    return _build(transformers.GPT2LMHeadModel, transformers.GPT2Config(**values), seed, dtype), tokenizer


class _ExactNorm(LlamaRMSNorm):
    """In the model's own number type; the original computes in float32, also in a float64 model."""

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


SIZE = {"hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN, "num_hidden_layers": LAYERS}
GROUPED = {**SIZE, "num_attention_heads": HEADS, "num_key_value_heads": HEADS // 2, "initializer_range": 0.3}


def tiny_llama(seed: int = 0, dtype: torch.dtype = torch.float64, n_positions: int = 96, **config):
    """``(model, tokenizer)``: rotary positions, grouped-query attention, padded vocabulary; adds a bos."""
    tokenizer = causal_tokenizer(adds_bos=True)
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "vocab_size": len(tokenizer) + 16}
    values = {**GROUPED, **ids, "max_position_embeddings": n_positions, **config}
    model = _build(transformers.LlamaForCausalLM, transformers.LlamaConfig(**values), seed, dtype)
    for module in model.modules():
        if isinstance(module, LlamaRMSNorm):
            module.__class__ = _ExactNorm
    return model, tokenizer


def tiny_qwen3(seed: int = 0, n_positions: int = 96):
    """``(model, tokenizer)`` of the kind of preset "multilingual", float32."""
    tokenizer = causal_tokenizer()
    ids = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0, "vocab_size": len(tokenizer)}
    config = transformers.Qwen3Config(**GROUPED, **ids, head_dim=16, max_position_embeddings=n_positions)
    return _build(transformers.Qwen3ForCausalLM, config, seed, torch.float32), tokenizer


def _roberta_config(n_positions: int, **config) -> transformers.RobertaConfig:
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "type_vocab_size": 1}
    values = {**SIZE, **ids, "num_attention_heads": HEADS, "max_position_embeddings": n_positions + 2}
    vocabulary = {"vocab_size": len(roberta_tokenizer()), "initializer_range": 0.3}
    return transformers.RobertaConfig(**{**values, **vocabulary, **config})


def tiny_roberta_mlm(seed: int = 0, dtype: torch.dtype = torch.float64, n_positions: int = 96, **config):
    """``(model, tokenizer)`` for the naive variant; ``n_positions`` can be used (two more are the padding's)."""
    return _build(
        transformers.RobertaForMaskedLM, _roberta_config(n_positions, **config), seed, dtype
    ), roberta_tokenizer()


@functools.cache
def word_tokenizer() -> PreTrainedTokenizerFast:
    """As ``roberta_tokenizer``, with letters and the words of TEXT for tokens; all others are ``<unk>``."""
    special = roberta_tokenizer().special_tokens_map
    words = ["<s>", "<pad>", "</s>", *special.values(), *string.ascii_lowercase, *re.findall(r"\w+|[^\w\s]", TEXT)]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def tiny_encoder(
    seed: int = 0, dtype: torch.dtype = torch.float64, n_positions: int = 126, tokenizer=None, **config
) -> SentenceTransformer:
    """A mean-pooling sentence encoder (it passes through a temporary folder, which is gone afterwards)."""
    tokenizer = tokenizer or roberta_tokenizer()
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):  # no progress bars
        config = _roberta_config(n_positions, vocab_size=len(tokenizer), **config)
        _build(transformers.RobertaModel, config, seed, dtype).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=n_positions)
    encoder = SentenceTransformer(modules=[transformer, Pooling(config.hidden_size, "mean")], device="cpu")
    return encoder.to(dtype).eval()


@functools.cache
def word_encoder() -> SentenceTransformer:
    """An encoder to which the words of ``word_tokenizer`` are unrelated: their vectors are at right angles."""
    words = len(word_tokenizer())
    size = {"hidden_size": 4 * words, "num_hidden_layers": 0, "num_attention_heads": 1}
    encoder = tiny_encoder(dtype=torch.float32, n_positions=512, tokenizer=word_tokenizer(), **size)
    embeddings = encoder[0].auto_model.embeddings
    for parameter in embeddings.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.ones_(embeddings.LayerNorm.weight)
    unit = torch.eye(words)
    embeddings.word_embeddings.weight.data = torch.cat([unit, -unit, unit, -unit], dim=1)  # Their mean is 0.
    return encoder


def tiny_bart(seed: int = 0, n_positions: int = 300, **config) -> transformers.BartForConditionalGeneration:
    """A sequence-to-sequence model; it talks nonsense, and always the same."""
    tokens = {"vocab_size": len(roberta_tokenizer()), "decoder_start_token_id": 2, "forced_eos_token_id": None}
    heads = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    size = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    sizes = transformers.BartConfig(
        **tokens, **heads, **size, max_position_embeddings=n_positions, init_std=0.5, **config
    )
    return _build(transformers.BartForConditionalGeneration, sizes, seed, torch.float32)


def tiny_classifier(
    classes: int = 3, seed: int = 7, dtype: torch.dtype = torch.float32, n_positions: int = 96, **config
):
    """``(model, tokenizer)`` of a classifier of pairs."""
    sizes = _roberta_config(n_positions, vocab_size=len(roberta_tokenizer()), num_labels=classes, **config)
    tokenizer = copy.deepcopy(roberta_tokenizer())
    tokenizer.model_max_length = n_positions
    return _build(transformers.RobertaForSequenceClassification, sizes, seed, dtype), tokenizer


def tiny_nli(
    bias: float = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    labels: dict[int, str] = NLI_LABELS,
    n_positions: int = 96,
):
    """``(model, tokenizer)`` of an NLI model; its last class is more likely by ``bias``.

    Without a bias no pair is contradictory by more than one half, which there would be notices of.
    """
    model, tokenizer = tiny_classifier(len(labels), seed, dtype, n_positions, id2label=labels)
    with torch.no_grad():
        model.classifier.out_proj.bias[-1] += bias
    return model, tokenizer


@functools.cache
def tiny_prefix_classifier(kind: str) -> PrefixClassifier:
    """A classifier that encodes a premise once, float64; ``kind`` is "bert" or "mpnet"."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    size |= {"max_position_embeddings": 90, "vocab_size": len(roberta_tokenizer()), "initializer_range": 0.5}
    configs = {"bert": transformers.BertConfig, "mpnet": transformers.MPNetConfig}
    models = {"bert": transformers.BertModel, "mpnet": transformers.MPNetModel}
    torch.manual_seed(5)
    model = PrefixClassifier(models[kind](configs[kind](**size), add_pooling_layer=False), SHIPPED_LABELS)
    return model.double().requires_grad_(False).eval()


def tiny_prefix_nli():
    """``(model, tokenizer)`` of an NLI model that encodes a premise once."""
    tokenizer = copy.deepcopy(roberta_tokenizer())
    tokenizer.model_max_length = 90
    return tiny_prefix_classifier("mpnet"), tokenizer
