"""Unit vectors of texts, kept or new; the sentence encoder is loaded only for new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.fingerprints import Current, fingerprint, is_here
from mars_score.kept import Kept, digest
from mars_score.settings import ModelSettings

if TYPE_CHECKING:
    from mars_score.similarity.encoder import SentenceEncoder

# Part of the keys of what is kept; to be raised when the same encoder comes to give other vectors.
_METHOD = 1
_KINDS: dict[bytes, np.dtype[Any]] = {b"f": np.dtype("<f4"), b"d": np.dtype("<f8")}


@dataclass(frozen=True)
class Embedding:
    """A text as the encoder sees it, in the form in which it is kept."""

    kept: bytes

    @classmethod
    def of(cls, vector: NDArray[Any], *, shortened: bool) -> Embedding:
        """As the encoder gave it, so that what is kept and what is new are equal to the last digit."""
        kind = b"d" if vector.dtype == np.float64 else b"f"
        return cls(kind + bytes([shortened]) + vector.astype(_KINDS[kind]).tobytes())

    @property
    def vector(self) -> NDArray[np.float64]:
        """Of length 1, (dimensions,); a vector of zeros stays zero: its cosines are 0."""
        vector = np.frombuffer(self.kept, _KINDS[self.kept[:1]], offset=2).astype(np.float64)
        return vector / (np.linalg.norm(vector) or 1.0)

    @property
    def shortened(self) -> bool:
        """Whether the encoder read only the text's beginning."""
        return bool(self.kept[1])


class Embedder:
    """Embeds texts.

    Args:
        models: names the encoder and its number type.
        batch_size: texts a forward pass; None: 32.
        device: where it runs.
        kept: the store of results.
    """

    def __init__(self, models: ModelSettings, batch_size: int | None, device: str | None, kept: Kept) -> None:
        self._models, self._batch_size, self._device, self._kept = models, batch_size, device, kept
        self._encoder = Current(models.encoder, self._make_encoder)

    def _make_encoder(self) -> SentenceEncoder:
        from mars_score.models import load_encoder
        from mars_score.similarity.encoder import SentenceEncoder

        return SentenceEncoder(
            load_encoder(self._models.encoder, self._models.dtype, self._device), self._batch_size
        )

    def embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> dict[str, Embedding]:
        """The embedding of each different text (section 2.3); ``progress`` counts the new ones."""
        if not texts:
            return {}
        if not is_here(self._models.encoder):  # its revision is known once it has been fetched
            self._encoder.get()
        common = digest(_METHOD, fingerprint(self._models.encoder), self._models.dtype).hex()
        keys = {text: digest(common, text) for text in dict.fromkeys(texts)}
        kept = self._kept.get("embeddings", list(keys.values()))
        missing = [text for text, key in keys.items() if key not in kept]
        if missing:
            vectors = self._encoder.get().encode(missing, progress)
            shortened = self._encoder.get().shortened(missing)
            new = {
                keys[text]: Embedding.of(vector, shortened=cut).kept
                for text, vector, cut in zip(missing, vectors, shortened, strict=True)
            }
            self._kept.put("embeddings", new)
            kept |= new
        return {text: Embedding(kept[key]) for text, key in keys.items()}
