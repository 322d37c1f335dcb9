"""Encode texts and their tokens as vectors with any SentenceTransformer (section 2.3)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.errors import ModelUnavailableError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit

# Token vectors average the last layer and the one at this share of the depth (chosen in research/forms.md).
MIDDLE = 2 / 3
RARE_LETTER = "\U00010380"  # a Ugaritic letter, which only byte-level tokenizers can encode
Floats = NDArray[np.floating]
# Number type, truncated, unknown, dimensions, and number (-1: none) and dimensions of token vectors.
_HEADER = struct.Struct("<c?fiii")
_TYPES = {b"f": ("<f4", "<f2"), b"d": ("<f8", "<f8")}  # types of the stored sentence and token vectors


class Encoding(NamedTuple):
    """An encoder's output for a text.

    Attributes:
        vector: unit vector of the text, (dimensions,), or zeros if all tokens are unknown.
        tokens: unit vectors of the tokens, (tokens, dimensions), or None if not requested. They exclude special
            tokens and the encoder's prompt, and are zeros for unknown tokens. They are rounded to float16, which
            changes a score by at most 1e-5, unless the encoder is in float64.
        truncated: whether the encoder read only the beginning of the text.
        unknown: share of unknown tokens in the encoded part, in [0, 1].
    """

    vector: Floats
    tokens: Floats | None
    truncated: bool
    unknown: float

    def to_bytes(self) -> bytes:
        """Serialise the encoding for the store, without rounding."""
        kind = b"d" if self.vector.dtype == np.float64 else b"f"
        shape = (-1, 0) if self.tokens is None else self.tokens.shape
        vectors = [self.vector] if self.tokens is None else [self.vector, self.tokens]
        parts = [part.astype(name).tobytes() for part, name in zip(vectors, _TYPES[kind], strict=False)]
        return b"".join([_HEADER.pack(kind, self.truncated, self.unknown, len(self.vector), *shape), *parts])

    @classmethod
    def from_bytes(cls, stored: bytes) -> Encoding:
        """Read the output of :meth:`to_bytes`, copied into aligned memory to keep products bitwise equal."""
        kind, truncated, unknown, size, count, width = _HEADER.unpack_from(stored)
        vector_type, token_type = map(np.dtype, _TYPES[kind])
        vector = np.frombuffer(stored, vector_type, size, _HEADER.size).copy()
        if count < 0:
            return cls(vector, None, truncated, unknown)
        tokens = np.frombuffer(stored, token_type, count * width, _HEADER.size + vector.nbytes).copy()
        return cls(vector, tokens.reshape(count, width), truncated, unknown)


class SentenceEncoder:
    """Encodes texts.

    An encoder cannot tell unknown tokens apart. So they, and texts without a known token, get vectors of zeros,
    which have a cosine of 0 with every vector.

    Args:
        model: a ``SentenceTransformer``.
        batch_size: maximum texts per batch, or None for 32.
    """

    def __init__(self, model: Any, batch_size: int | None = None) -> None:
        self.model = model
        self._batch = BatchSize(batch_size or 32)
        self._transformer = model[0] if hasattr(model, "__getitem__") else None
        network = getattr(self._transformer, "auto_model", None)
        layers = _layers_of(network)
        self._middle_layer = layers[round(MIDDLE * len(layers)) - 1] if layers else None
        limits = [getattr(model, "max_seq_length", None), network and position_limit(network)]
        # The largest number of tokens, including special ones, or None if it is unknown.
        self._max_tokens = min((limit for limit in limits if isinstance(limit, int)), default=None)
        tokenizer = getattr(model, "tokenizer", None)
        has_special = callable(tokenizer) and hasattr(tokenizer, "num_special_tokens_to_add")
        self._tokenizer: Any = tokenizer if has_special else None
        self._prompt, self._special_tokens = "", (0, 0)
        self._prompt_ids: list[int] = []
        self._unknown_token: int | None = None
        if has_special:
            with exclusive(model), self._adjusted(tokens=False):
                self._read_tokenizer()

    def _read_tokenizer(self) -> None:
        """Count the special tokens before and after a text, and find the prompt and the id of unknown tokens."""
        self._prompt = self.model.prompts.get(self.model.default_prompt_name) or ""
        special = list(self._tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"])
        self._special_tokens = special.index(0), special[::-1].index(0)
        self._prompt_ids, rare = self._token_ids([self._prompt, RARE_LETTER])
        unknown = getattr(self._tokenizer, "unk_token_id", None)
        # Byte-level tokenizers may have an unknown token but never use it.
        self._unknown_token = unknown if unknown in rare else None

    def encode(self, texts: Iterable[str], *, tokens: bool = False) -> Iterator[tuple[str, Encoding]]:
        """Yield texts with their encodings, longest first, with token vectors if ``tokens``.

        Raises:
            ModelUnavailableError: the encoder has no token vectors.
        """
        return self._batch.map(partial(self._encode_batch, tokens=tokens), texts, len)

    def _encode_batch(self, texts: list[str], tokens: bool) -> list[Encoding]:
        output_form = {"output_value": None} if tokens else {"convert_to_tensor": True}
        encodings = []
        with exclusive(self.model), ordinary_mode(), self._adjusted(tokens):
            outputs = self.model.encode(texts, batch_size=len(texts), show_progress_bar=False, **output_form)
            for output, (truncated, unknown) in zip(outputs, self._coverage(texts), strict=True):
                vector = _unit(_to_numpy(output["sentence_embedding"] if tokens else output)) * (unknown < 1)
                vectors = self._token_vectors(output) if tokens else None
                encodings.append(Encoding(vector, vectors, truncated, float(np.float32(unknown))))
        return encodings

    @contextmanager
    def _adjusted(self, tokens: bool) -> Iterator[None]:
        """Limit texts to the model's positions, and with ``tokens`` add the middle layer's states to outputs."""
        max_tokens = getattr(self.model, "max_seq_length", None)
        is_limited = self._max_tokens not in (None, max_tokens)
        hooks: list[torch.utils.hooks.RemovableHandle] = []
        states: list[torch.Tensor] = []
        if tokens and self._transformer is not None and self._middle_layer is not None:
            hooks = [
                self._middle_layer.register_forward_hook(
                    lambda _module, _inputs, output: states.append(
                        output[0] if isinstance(output, tuple) else output
                    )
                ),
                self._transformer.register_forward_hook(
                    lambda _module, _inputs, output: output.update(middle_embeddings=states.pop())
                ),
            ]
        try:
            if is_limited:
                self.model.max_seq_length = self._max_tokens
            yield
        finally:
            if is_limited:
                self.model.max_seq_length = max_tokens
            for hook in hooks:
                hook.remove()

    def _token_vectors(self, output: dict[str, torch.Tensor]) -> Floats:
        if not {"token_embeddings", "input_ids", "attention_mask"} <= output.keys():
            raise ModelUnavailableError(
                f"{type(self.model).__name__} has no token vectors (static word vectors?); choose another "
                'encoder, or variant="paper", which compares sentence vectors'
            )
        attended = output["attention_mask"].nonzero()[:, 0]
        of_text = attended[self._text_tokens(output["input_ids"][attended].tolist())]
        layers = [output[name][of_text] for name in ("middle_embeddings", "token_embeddings") if name in output]
        vectors = np.sum([_unit(_to_numpy(layer)) for layer in layers], axis=0)
        if self._unknown_token is not None:
            vectors *= _to_numpy(output["input_ids"][of_text] != self._unknown_token)[:, None]
        vectors = _unit(vectors)
        return vectors if vectors.dtype == np.float64 else vectors.astype(np.float16)

    def _text_tokens(self, ids: Sequence[int]) -> slice:
        """Return the slice of the encoded tokens without special tokens and the prompt."""
        before, after = self._special_tokens
        # If the prompt's last token has merged with the text's first one, the merged token belongs to the text.
        pairs = zip(ids[before:], self._prompt_ids, strict=False)
        before += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return slice(before, len(ids) - after)

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the character spans of each text's tokens that have vectors, or [] if they are unknown."""
        if not getattr(self._tokenizer, "is_fast", False):
            return [[] for _ in texts]
        limit = {} if self._max_tokens is None else {"truncation": True, "max_length": self._max_tokens}
        with exclusive(self.model):  # Truncation changes the tokenizer.
            encoded = self._tokenizer(
                [self._prompt + text for text in texts], return_offsets_mapping=True, **limit
            )
        shift = len(self._prompt)
        return [
            [(max(start - shift, 0), max(end - shift, 0)) for start, end in spans[self._text_tokens(ids)]]
            for ids, spans in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False, truncation=False)
        return [list(ids) for ids in encoded["input_ids"]]

    def _coverage(self, texts: Sequence[str]) -> list[tuple[bool, float]]:
        """Return for each text whether it is truncated, and the share of unknown tokens in its encoded part."""
        if self._tokenizer is None:
            return [(False, 0.0)] * len(texts)
        most = None
        if self._max_tokens is not None:
            most = self._max_tokens - self._tokenizer.num_special_tokens_to_add() - len(self._prompt_ids)
        coverage = []
        for ids in self._token_ids(texts):
            kept = ids[:most]
            unknown = sum(token == self._unknown_token for token in kept)
            coverage.append((len(kept) < len(ids), unknown / max(1, len(kept))))
        return coverage


def _layers_of(network: Any) -> Any:
    """Return a transformer's list of layers, or None if no ModuleList has ``num_hidden_layers`` entries."""
    count = getattr(getattr(network, "config", None), "num_hidden_layers", 0)
    lists = (module for module in network.modules() if isinstance(module, torch.nn.ModuleList)) if count else ()
    return next((layers for layers in lists if len(layers) == count), None)


def _to_numpy(values: torch.Tensor) -> Floats:
    """Return a tensor as an array, half precision as float32."""
    return np.asarray(values.to(torch.promote_types(values.dtype, torch.float32)).cpu())


def _unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1, except zero vectors."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1.0, lengths).astype(vectors.dtype))
