"""Unit vectors of texts, stored or new: the sentence encoder is loaded only for new ones."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.lookup import Results
from mars_score.models.fingerprints import Current
from mars_score.models.loading import shared_model
from mars_score.progress import Runtime
from mars_score.settings.stages import ModelSettings

if TYPE_CHECKING:
    from mars_score.models.encoder import Encoded, SentenceEncoder

# Parts of the keys of stored vectors; to be raised when the same encoder comes to give other vectors.
_METHOD = 2
_TOKENS_METHOD = 2
_HEADER = struct.Struct("<c?e")  # number type, shortened, unknown
# By number type how a sentence vector and how token vectors are stored.
_STORED: dict[bytes, tuple[np.dtype[Any], np.dtype[Any]]] = {
    b"f": (np.dtype("<f4"), np.dtype("<i1")),
    b"d": (np.dtype("<f8"), np.dtype("<f8")),
}
_LEVELS = 127  # of eight bits, on either side of zero


@dataclass(frozen=True, eq=False)
class Embedding:
    """A text as the encoder represents it."""

    stored_vector: NDArray[Any]  # of the text, (dimensions,), in the number type and length in which it is stored
    stored_tokens: NDArray[Any] | None  # of its tokens, (tokens, dimensions); None: they were not asked for
    shortened: bool  # whether the encoder read only the text's beginning
    unknown: float  # share of tokens that the encoder does not know, in [0, 1], in half precision

    @property
    def vector(self) -> NDArray[np.float64]:
        """Of length 1, (dimensions,); a vector of zeros stays zero: its cosines are 0."""
        return _unit(self.stored_vector)

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Of length 1 each, (tokens, dimensions); those of no token are none."""
        assert self.stored_tokens is not None, "embedded without token vectors"
        return _unit(self.stored_tokens)


def pack(encoded: Encoded) -> bytes:
    """What an encoder gave, to be stored: a header and the sentence vector, then token vectors and their number.

    Only the directions of token vectors are stored, in eight bits per dimension unless the encoder is in double;
    their number takes four bytes. Both are left out where they were not asked for.
    """
    kind = b"d" if encoded.vector.dtype == np.float64 else b"f"
    of_vector, of_tokens = _STORED[kind]
    packed = _HEADER.pack(kind, encoded.shortened, encoded.unknown) + encoded.vector.astype(of_vector).tobytes()
    if encoded.tokens is None:
        return packed
    directions = _unit(encoded.tokens)
    if kind == b"f":
        largest = np.abs(directions).max(axis=-1, keepdims=True, initial=0.0)
        directions = np.rint(directions * (_LEVELS / np.where(largest == 0, 1.0, largest)))
    return packed + directions.astype(of_tokens).tobytes() + len(directions).to_bytes(4, "little")


def unpack(packed: bytes, *, tokens: bool) -> Embedding:
    """The inverse of :func:`pack`; ``tokens``: whether token vectors are in it."""
    kind, shortened, unknown = _HEADER.unpack_from(packed)
    of_vector, of_tokens = _STORED[kind]
    count = int.from_bytes(packed[-4:], "little") if tokens else 0
    numbers = len(packed) - _HEADER.size - (4 if tokens else 0)
    size = numbers // (of_vector.itemsize + count * of_tokens.itemsize)
    vector = np.frombuffer(packed, of_vector, size, _HEADER.size)
    if not tokens:
        return Embedding(vector, None, shortened, unknown)
    flat = np.frombuffer(packed, of_tokens, count * size, _HEADER.size + vector.nbytes)
    return Embedding(vector, flat.reshape(count, size), shortened, unknown)


def _unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Vectors of length 1; those of zeros stay zero."""
    vectors = vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths == 0, 1.0, lengths)
    return unit


def encoder_of(models: ModelSettings, runtime: Runtime) -> Current[SentenceEncoder]:
    """The encoder that settings name, loaded when it is first needed."""

    def load() -> SentenceEncoder:
        from mars_score.models.encoder import SentenceEncoder

        model = shared_model("encoder", models, runtime)
        return SentenceEncoder(model, runtime.encoder_batch_size)

    return Current(models.encoder, load)


def embeddings(encoder: Current[SentenceEncoder], numbers: str, *, tokens: bool) -> Results[str, Any]:
    """The :class:`Embedding` of each text (section 2.3), with its tokens' if asked for.

    Reading raises ModelUnavailableError where the encoder has no token vectors.
    """
    return encoder.results(
        "embeddings",
        (numbers, _METHOD, "tokens", _TOKENS_METHOD) if tokens else (numbers, _METHOD),
        lambda model, texts, done: model.encode(texts, done, tokens=tokens),
        encode=pack,
        decode=partial(unpack, tokens=tokens),
    )
