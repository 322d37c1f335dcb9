"""Sentence encoders (section 2.3): vectors of texts and of their tokens, from any SentenceTransformer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.errors import ModelUnavailableError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode, position_limit

# Token vectors are means over two layers: the last one and the one at this share of the depth (research/forms.md).
MIDDLE = 2 / 3
RARE_LETTER = "\U00010380"  # Ugaritic; a tokenizer that knows it writes any text, by bytes
Floats = NDArray[np.floating[Any]]
# Number type, truncated, unknown, dimensions, and number and dimensions of token vectors (-1: none were wanted).
_HEADER = struct.Struct("<c?fiii")
# By number type how a sentence vector and how token vectors are kept.
_TYPES: dict[bytes, tuple[str, str]] = {b"f": ("<f4", "<f2"), b"d": ("<f8", "<f8")}


class Encoding(NamedTuple):
    """A text as an encoder represents it.

    Attributes:
        vector: of the text, (dimensions,), of length 1; zeros for a text of unknown tokens only.
        tokens: unit vectors of its tokens, (tokens, dimensions), means over two layers; None if they were not
            asked for. Special
            tokens and those of the encoder's prompt are left out; those of unknown tokens are zeros. They are
            rounded to float16 (a score changes by 1e-5 at most) unless the encoder is in float64.
        truncated: whether the encoder's window holds only the beginning of the text.
        unknown: share of unknown tokens in the part that is encoded, in [0, 1].
    """

    vector: Floats
    tokens: Floats | None
    truncated: bool
    unknown: float

    def to_bytes(self) -> bytes:
        """Write the encoding for the cache; nothing is rounded."""
        kind = b"d" if self.vector.dtype == np.float64 else b"f"
        shape = (-1, 0) if self.tokens is None else self.tokens.shape
        vectors = [self.vector] if self.tokens is None else [self.vector, self.tokens]
        parts = [part.astype(name).tobytes() for part, name in zip(vectors, _TYPES[kind], strict=False)]
        return b"".join([_HEADER.pack(kind, self.truncated, self.unknown, len(self.vector), *shape), *parts])

    @classmethod
    def from_bytes(cls, stored: bytes) -> Encoding:
        """Decode what :meth:`to_bytes` wrote, into aligned memory: else products differ in their last bits."""
        kind, truncated, unknown, size, count, width = _HEADER.unpack_from(stored)
        vector_type, token_type = map(np.dtype, _TYPES[kind])
        vector = np.frombuffer(stored, vector_type, size, _HEADER.size).copy()
        if count < 0:
            return cls(vector, None, truncated, unknown)
        tokens = np.frombuffer(stored, token_type, count * width, _HEADER.size + vector.nbytes).copy()
        return cls(vector, tokens.reshape(count, width), truncated, unknown)


class SentenceEncoder:
    """Encodes texts.

    All texts of unknown tokens look the same to an encoder, so such tokens, and texts without a known token, get
    vectors of zeros: their cosine with anything is 0.

    Args:
        model: a ``SentenceTransformer``.
        batch_size: the largest one; None: 32.
    """

    def __init__(self, model: Any, batch_size: int | None = None) -> None:
        self.model = model
        self._batch = BatchSize(batch_size or 32)

    def encode(
        self, texts: Sequence[str], done: Callable[[str, Encoding], None] | None = None, *, tokens: bool = False
    ) -> list[Encoding]:
        """Encode texts, with vectors of their tokens if asked for, in one forward pass each.

        Raises:
            ModelUnavailableError: the encoder has no token vectors.
        """
        middle_layer = self._middle_layer() if tokens else nullcontext()
        with exclusive(self.model), ordinary_mode(), self._within_positions(), middle_layer:
            return self._batch.map(lambda batch: self._encode_batch(batch, tokens), texts, len, done)

    @contextmanager
    def _within_positions(self) -> Iterator[None]:
        """Lower the model's window to the positions that it has, where its tokenizer does not know them."""
        usual = getattr(self.model, "max_seq_length", None)
        if self._limit is None or usual == self._limit:
            yield
            return
        self.model.max_seq_length = self._limit
        try:
            yield
        finally:
            self.model.max_seq_length = usual

    @contextmanager
    def _middle_layer(self) -> Iterator[None]:
        """Let the outputs of a transformer hold the hidden states of its middle layer."""
        transformer = self.model[0] if hasattr(self.model, "__getitem__") else None
        layers = _layers_of(getattr(transformer, "auto_model", None))
        if transformer is None or not layers:
            yield
            return
        states: list[torch.Tensor] = []

        def keep(_module: Any, _inputs: Any, output: Any) -> None:
            states[:] = [output[0] if isinstance(output, tuple) else output]

        def hand_on(_module: Any, _inputs: Any, output: dict[str, Any]) -> None:
            output["middle_embeddings"] = states.pop()

        middle = layers[round(MIDDLE * len(layers)) - 1]
        hooks = middle.register_forward_hook(keep), transformer.register_forward_hook(hand_on)
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _encode_batch(self, texts: list[str], tokens: bool) -> list[Encoding]:
        wanted = {"output_value": None} if tokens else {"convert_to_tensor": True}
        outputs = self.model.encode(texts, batch_size=len(texts), show_progress_bar=False, **wanted)
        encodings = []
        for output, (truncated, unknown) in zip(outputs, self._coverage(texts), strict=True):
            vector = _unit(_to_numpy(output["sentence_embedding"] if tokens else output)) * (unknown < 1)
            vectors = self._token_vectors(output) if tokens else None
            if vectors is not None and vectors.dtype != np.float64:
                vectors = vectors.astype(np.float16)
            encodings.append(Encoding(vector, vectors, truncated, float(np.float32(unknown))))
        return encodings

    def _token_vectors(self, output: dict[str, Any]) -> Floats:
        if not {"token_embeddings", "input_ids", "attention_mask"} <= output.keys():
            raise ModelUnavailableError(
                f"{type(self.model).__name__} has no token vectors (static word vectors?); choose another "
                'encoder, or variant="paper", which compares sentence vectors'
            )
        attended = output["attention_mask"].nonzero()[:, 0]
        own = attended[self._own_tokens(output["input_ids"][attended].tolist())]
        layers = [output[name][own] for name in ("middle_embeddings", "token_embeddings") if name in output]
        vectors = np.sum([_unit(_to_numpy(layer)) for layer in layers], axis=0)
        if self._unknown_token is not None:
            vectors *= _to_numpy(output["input_ids"][own] != self._unknown_token)[:, None]
        return _unit(vectors)

    def _own_tokens(self, ids: Sequence[int]) -> slice:
        """Return which of the encoded tokens are the text's own."""
        before, after = self._special_tokens
        # A prompt's last token may have merged with the text's first: that one counts.
        pairs = zip(ids[before:], self._prompt_ids, strict=False)
        before += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return slice(before, len(ids) - after)

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the character span of each token with a vector, for each text; empty where they are not known."""
        if not getattr(self._tokenizer, "is_fast", False):
            return [[] for _ in texts]
        limit = {} if self._limit is None else {"truncation": True, "max_length": self._limit}
        encoded = self._tokenizer([self._prompt + text for text in texts], return_offsets_mapping=True, **limit)
        own = [
            offsets[self._own_tokens(ids)]
            for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]
        shift = len(self._prompt)
        return [[(max(start - shift, 0), max(end - shift, 0)) for start, end in offsets] for offsets in own]

    @cached_property
    def _tokenizer(self) -> Any:
        """The encoder's tokenizer; None where it has none that tells special tokens apart."""
        tokenizer = getattr(self.model, "tokenizer", None)
        return tokenizer if callable(tokenizer) and hasattr(tokenizer, "num_special_tokens_to_add") else None

    @cached_property
    def _special_tokens(self) -> tuple[int, int]:
        """Count the special tokens before a text, and after it."""
        if self._tokenizer is None:
            return 0, 0
        special = list(self._tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"])
        return special.index(0), special[::-1].index(0)

    @cached_property
    def _limit(self) -> int | None:
        """The number of tokens of the window, special ones included; None: it is not known."""
        transformer = getattr(self.model[0], "auto_model", None) if hasattr(self.model, "__getitem__") else None
        limits = [getattr(self.model, "max_seq_length", None), transformer and position_limit(transformer)]
        return min((limit for limit in limits if isinstance(limit, int)), default=None)

    @property
    def _prompt(self) -> str:
        return self.model.prompts.get(self.model.default_prompt_name) or ""

    @cached_property
    def _prompt_ids(self) -> list[int]:
        return self._token_ids([self._prompt])[0] if self._tokenizer else []

    @cached_property
    def _unknown_token(self) -> int | None:
        """The id of unknown tokens; None if the tokenizer has none, as byte-level ones."""
        token = getattr(self._tokenizer, "unk_token_id", None)
        return token if token is not None and token in self._token_ids([RARE_LETTER])[0] else None

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False, truncation=False)
        return [list(ids) for ids in encoded["input_ids"]]

    def _coverage(self, texts: Sequence[str]) -> list[tuple[bool, float]]:
        """Return for each text whether it is truncated, and the share of unknown tokens in what is encoded."""
        if self._tokenizer is None:
            return [(False, 0.0)] * len(texts)
        room = None
        if self._limit is not None:
            room = self._limit - self._tokenizer.num_special_tokens_to_add() - len(self._prompt_ids)
        coverage = []
        for ids in self._token_ids(texts):
            kept = ids[:room]
            unknown = sum(token == self._unknown_token for token in kept)
            coverage.append((len(kept) < len(ids), unknown / max(1, len(kept))))
        return coverage


def _layers_of(transformer: Any) -> Any:
    """Return the list of the layers of a transformer; None where there is none of as many as it says."""
    count = getattr(getattr(transformer, "config", None), "num_hidden_layers", 0)
    lists = (one for one in transformer.modules() if isinstance(one, torch.nn.ModuleList)) if count else ()
    return next((one for one in lists if len(one) == count), None)


def _to_numpy(values: torch.Tensor) -> Floats:
    """Move a tensor to the CPU; half precision is widened."""
    array: Floats = values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy()
    return array


def _unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; those of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = vectors / np.where(lengths == 0, 1.0, lengths).astype(vectors.dtype)
    return unit
