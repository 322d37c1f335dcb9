"""Unit vectors of texts, kept or new; the sentence encoder is loaded only for new ones."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.models.fingerprints import Current, model_key
from mars_score.settings import ModelSettings
from mars_score.store.lookup import Results, get_or_compute
from mars_score.store.runtime import Runtime

if TYPE_CHECKING:
    from mars_score.models.engine.encoder import Encoded, SentenceEncoder

# Parts of the keys of what is kept; to be raised when the same encoder comes to give other vectors.
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

    kept: bytes
    with_tokens: bool = False

    @classmethod
    def of(
        cls, vector: NDArray[Any], tokens: NDArray[Any] | None = None, *, shortened: bool, unknown: float = 0.0
    ) -> Embedding:
        """As the encoder gave it, so that what is kept and what is new are equal to the last digit.

        Args:
            vector: of the text, (dimensions,).
            tokens: of its tokens, (tokens, dimensions). Only their directions are kept, in eight bits per
                dimension unless the encoder is in double.
            shortened: whether the encoder read only the text's beginning.
            unknown: share of tokens that the encoder does not know, in [0, 1].
        """
        kind = b"d" if vector.dtype == np.float64 else b"f"
        kept = _HEADER.pack(kind, shortened, unknown) + vector.astype(_VECTORS[kind]).tobytes()
        if tokens is None:
            return cls(kept)
        directions = _unit(tokens.astype(np.float64))
        if kind == b"f":
            largest = np.abs(directions).max(axis=-1, keepdims=True, initial=0.0)
            directions = np.rint(directions * (_LEVELS / np.where(largest == 0, 1.0, largest)))
        kept += directions.astype(_TOKENS[kind]).tobytes()
        return cls(kept + len(tokens).to_bytes(4, "little"), with_tokens=True)

    @property
    def vector(self) -> NDArray[np.float64]:
        """Of length 1, (dimensions,); a vector of zeros stays zero: its cosines are 0."""
        kind = self.kept[:1]
        return _unit(np.frombuffer(self.kept, _VECTORS[kind], self._dimensions, _HEADER.size).astype(np.float64))

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Of length 1 each, (tokens, dimensions); those of no token are none.

        Raises:
            ValueError: the text was embedded without them.
        """
        if not self.with_tokens:
            raise ValueError("embedded without token vectors")
        kind, size = self.kept[:1], self._dimensions
        start = _HEADER.size + _VECTORS[kind].itemsize * size
        flat = np.frombuffer(self.kept, _TOKENS[kind], self._count * size, start)
        return _unit(flat.reshape(self._count, size).astype(np.float64))

    @property
    def shortened(self) -> bool:
        """Whether the encoder read only the text's beginning."""
        return bool(_HEADER.unpack_from(self.kept)[1])

    @property
    def unknown(self) -> float:
        """Share of tokens that the encoder does not know, in half precision."""
        return float(_HEADER.unpack_from(self.kept)[2])

    @property
    def _count(self) -> int:
        return int.from_bytes(self.kept[-4:], "little") if self.with_tokens else 0

    @property
    def _dimensions(self) -> int:
        kind = self.kept[:1]
        bytes_each = _VECTORS[kind].itemsize + self._count * _TOKENS[kind].itemsize
        return (len(self.kept) - _HEADER.size - (4 if self.with_tokens else 0)) // bytes_each


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of length 1; those of zeros stay zero."""
    lengths: NDArray[np.float64] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = vectors / np.where(lengths == 0, 1.0, lengths)
    return unit


class Embedder:
    """Embeds texts.

    Args:
        models: names the encoder and its number type.
        runtime: see :class:`mars_score.store.runtime.Runtime`.
    """

    def __init__(self, models: ModelSettings, runtime: Runtime) -> None:
        self._models, self._runtime = models, runtime
        self._encoder = Current(models.encoder, self._make_encoder)

    def _make_encoder(self) -> SentenceEncoder:
        from mars_score.models.engine.encoder import SentenceEncoder
        from mars_score.models.loading import load_encoder

        return SentenceEncoder(
            load_encoder(self._models.encoder, self._models.dtype, self._runtime),
            self._runtime.encoder_batch_size,
        )

    def embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None, *, tokens: bool = False
    ) -> dict[str, Embedding]:
        """The embedding of each different text (section 2.3), with its tokens' if asked for.

        ``progress`` counts the new ones.

        Raises:
            ModelUnavailableError: the encoder cannot be loaded, or has no token vectors.
        """
        if not texts:
            return {}
        method = [_METHOD, "tokens", _TOKENS_METHOD] if tokens else [_METHOD]
        common = model_key(self._models.encoder, self._encoder.get, self._models.dtype, *method)

        def compute(missing: list[str], done: Callable[[str, Embedding], None]) -> None:
            def encoded(text: str, one: Encoded) -> None:
                done(text, Embedding.of(one.vector, one.tokens, shortened=one.shortened, unknown=one.unknown))

            self._encoder.get().encode(missing, encoded, tokens=tokens)

        results: Results[str, Embedding] = Results(
            "embeddings",
            common,
            encode=lambda embedding: embedding.kept,
            decode=lambda encoded: Embedding(encoded, tokens),
        )
        return get_or_compute(self._runtime.store, results, texts, compute, progress)

    def offsets(self, texts: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """Where the tokens of each text are; see :meth:`SentenceEncoder.offsets`. Loads the encoder."""
        return dict(zip(texts, self._encoder.get().offsets(texts), strict=True)) if texts else {}
