"""Sentence embeddings (section 2.3): any SentenceTransformer, mean-pooled RoBERTa in the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.memory import is_out_of_memory
from mars_score.torch_modes import ordinary_mode


class SentenceEncoder:
    """Vectors of texts.

    Args:
        model: a ``SentenceTransformer``.
        batch_size: texts a forward pass, at most; halved where memory runs out.
    """

    def __init__(self, model: Any, batch_size: int | None = None) -> None:
        self.model = model
        self.batch_size = batch_size or 32

    def encode(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> list[NDArray[np.floating[Any]]]:
        """The vector of each text, (dimensions,), as the model gives it (half precision widened)."""
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        vectors: list[NDArray[np.floating[Any]]] = [np.empty(0)] * len(texts)
        step = 8 * self.batch_size  # a part, whatever becomes of the batch size
        with ordinary_mode():
            for start in range(0, len(order), step):
                part = order[start : start + step]
                encoded = self._encode([texts[index] for index in part])
                precise = torch.promote_types(encoded.dtype, torch.float32)
                for index, vector in zip(part, encoded.to(precise).cpu().numpy(), strict=True):
                    vectors[index] = vector
                if progress:
                    progress(start + len(part), len(order))
        return vectors

    def _encode(self, texts: list[str]) -> Any:
        """Vectors of some texts, in smaller batches where memory runs out."""
        while True:
            try:
                return self.model.encode(
                    texts, batch_size=self.batch_size, show_progress_bar=False, convert_to_tensor=True
                )
            except (RuntimeError, MemoryError) as error:
                if self.batch_size == 1 or not is_out_of_memory(error):
                    raise
                self.batch_size //= 2

    def shortened(self, texts: Sequence[str]) -> list[bool]:
        """For each text whether the encoder reads only its beginning."""
        limit: Any = getattr(self.model, "max_seq_length", None)
        tokenizer: Any = getattr(self.model, "tokenizer", None)
        if not isinstance(limit, int) or not hasattr(tokenizer, "num_special_tokens_to_add"):
            return [False] * len(texts)  # static word vectors take texts of any length
        room = limit - tokenizer.num_special_tokens_to_add()
        # A token is a character or more (byte-level tokenizers: four tokens a character at most).
        doubtful = [text for text in dict.fromkeys(texts) if 4 * len(text) > room]
        if not doubtful:
            return [False] * len(texts)
        ids = tokenizer(doubtful, add_special_tokens=False, verbose=False, truncation=False)["input_ids"]
        long = {text for text, tokens in zip(doubtful, ids, strict=True) if len(tokens) > room}
        return [text in long for text in texts]
