"""Unit vectors of texts, stored or new: the sentence encoder is loaded only for new ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.models.fingerprints import Current
from mars_score.models.stored import Readings
from mars_score.settings import ModelSettings
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.models.engine.encoder import Encoded, SentenceEncoder

# Parts of the keys of stored vectors; to be raised when the same encoder comes to give other vectors.
_METHOD = 2
_TOKENS_METHOD = 2
_HEADER = struct.Struct("<c?e")  # number type, shortened, unknown
_VECTORS: dict[bytes, np.dtype[Any]] = {b"f": np.dtype("<f4"), b"d": np.dtype("<f8")}
_TOKENS: dict[bytes, np.dtype[Any]] = {b"f": np.dtype("<i1"), b"d": np.dtype("<f8")}
_LEVELS = 127  # of eight bits, on either side of zero


@dataclass(frozen=True)
class Embedding:
    """A text as the encoder represents it, in the form in which it is stored.

    That is a header (number type, ``shortened`` and ``unknown``) and the sentence vector; if they were asked for,
    the token vectors and their number in four bytes follow.
    """

    packed: bytes
    with_tokens: bool = False

    @classmethod
    def of(
        cls, vector: NDArray[Any], tokens: NDArray[Any] | None = None, *, shortened: bool, unknown: float = 0.0
    ) -> Embedding:
        """As the encoder gave it, so that stored and new ones are equal to the last digit.

        Args:
            vector: of the text, (dimensions,).
            tokens: of its tokens, (tokens, dimensions). Only their directions are stored, in eight bits per
                dimension unless the encoder is in double.
            shortened: whether the encoder read only the text's beginning.
            unknown: share of tokens that the encoder does not know, in [0, 1].
        """
        kind = b"d" if vector.dtype == np.float64 else b"f"
        packed = _HEADER.pack(kind, shortened, unknown) + vector.astype(_VECTORS[kind]).tobytes()
        if tokens is None:
            return cls(packed)
        directions = _unit(tokens.astype(np.float64))
        if kind == b"f":
            largest = np.abs(directions).max(axis=-1, keepdims=True, initial=0.0)
            directions = np.rint(directions * (_LEVELS / np.where(largest == 0, 1.0, largest)))
        packed += directions.astype(_TOKENS[kind]).tobytes()
        return cls(packed + len(tokens).to_bytes(4, "little"), with_tokens=True)

    @property
    def vector(self) -> NDArray[np.float64]:
        """Of length 1, (dimensions,); a vector of zeros stays zero: its cosines are 0."""
        kind = self.packed[:1]
        return _unit(np.frombuffer(self.packed, _VECTORS[kind], self._dimensions, _HEADER.size).astype(np.float64))

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Of length 1 each, (tokens, dimensions); those of no token are none.

        Raises:
            ValueError: the text was embedded without them.
        """
        if not self.with_tokens:
            raise ValueError("embedded without token vectors")
        kind, size = self.packed[:1], self._dimensions
        start = _HEADER.size + _VECTORS[kind].itemsize * size
        flat = np.frombuffer(self.packed, _TOKENS[kind], self._count * size, start)
        return _unit(flat.reshape(self._count, size).astype(np.float64))

    @property
    def shortened(self) -> bool:
        """Whether the encoder read only the text's beginning."""
        return bool(_HEADER.unpack_from(self.packed)[1])

    @property
    def unknown(self) -> float:
        """Share of tokens that the encoder does not know, in half precision."""
        return float(_HEADER.unpack_from(self.packed)[2])

    @property
    def _count(self) -> int:
        return int.from_bytes(self.packed[-4:], "little") if self.with_tokens else 0

    @property
    def _dimensions(self) -> int:
        kind = self.packed[:1]
        bytes_each = _VECTORS[kind].itemsize + self._count * _TOKENS[kind].itemsize
        return (len(self.packed) - _HEADER.size - (4 if self.with_tokens else 0)) // bytes_each


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of length 1; those of zeros stay zero."""
    lengths: NDArray[np.float64] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths == 0, 1.0, lengths)
    return unit


def encoder_of(models: ModelSettings, runtime: Runtime) -> Current[SentenceEncoder]:
    """The encoder that settings name, loaded when it is first needed."""
    return Current(models.encoder, partial(_load, models, runtime))


def embeddings(
    encoder: Current[SentenceEncoder], numbers: str, *, tokens: bool
) -> Readings[SentenceEncoder, str, Embedding]:
    """The embedding of each text (section 2.3), with its tokens' if asked for.

    Reading raises ModelUnavailableError where the encoder has no token vectors.
    """
    return Readings(
        "embeddings",
        encoder,
        (numbers, _METHOD, "tokens", _TOKENS_METHOD) if tokens else (numbers, _METHOD),
        partial(_compute, tokens=tokens),
        encode=lambda embedding: embedding.packed,
        decode=lambda packed: Embedding(packed, tokens),
    )


def _load(models: ModelSettings, runtime: Runtime) -> SentenceEncoder:
    from mars_score.models.engine.encoder import SentenceEncoder
    from mars_score.models.loading import shared_model

    return SentenceEncoder(shared_model("encoder", models.encoder, models, runtime), runtime.encoder_batch_size)


def _compute(
    encoder: SentenceEncoder, texts: list[str], done: Callable[[str, Embedding], None], tokens: bool
) -> None:
    def encoded(text: str, one: Encoded) -> None:
        done(text, Embedding.of(one.vector, one.tokens, shortened=one.shortened, unknown=one.unknown))

    encoder.encode(texts, encoded, tokens=tokens)
