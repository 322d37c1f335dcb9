"""Sentence embeddings (section 2.3): any SentenceTransformer, mean-pooled RoBERTa in the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.errors import ModelUnavailableError
from mars_score.models.memory import is_out_of_memory
from mars_score.models.torch_modes import ordinary_mode


@dataclass(frozen=True)
class Encoded:
    """What the encoder makes of a text, half precision widened.

    Attributes:
        vector: (dimensions,).
        tokens: of its tokens without those that the tokenizer adds, (tokens, dimensions), or None.
    """

    vector: NDArray[np.floating[Any]]
    tokens: NDArray[np.floating[Any]] | None = None


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
        self,
        texts: Sequence[str],
        progress: Callable[[int, int], None] | None = None,
        *,
        tokens: bool = False,
    ) -> list[Encoded]:
        """Each text's vector and, if asked for, its tokens', from one forward pass.

        Raises:
            ModelUnavailableError: the encoder has no token vectors.
        """
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        encoded: list[Any] = [None] * len(texts)
        step = 8 * self.batch_size  # a part, whatever becomes of the batch size
        with ordinary_mode():
            for start in range(0, len(order), step):
                part = order[start : start + step]
                batch = self._encode([texts[index] for index in part], tokens=tokens)
                for index, one in zip(part, self._with_tokens(batch) if tokens else _plain(batch), strict=True):
                    encoded[index] = one
                if progress:
                    progress(start + len(part), len(order))
        return encoded

    def _encode(self, texts: list[str], *, tokens: bool) -> Any:
        """Vectors of some texts, or all that the model says of each; in smaller batches where memory runs out."""
        output = {"output_value": None} if tokens else {"convert_to_tensor": True}
        while True:
            try:
                return self.model.encode(texts, batch_size=self.batch_size, show_progress_bar=False, **output)
            except (RuntimeError, MemoryError) as error:
                if self.batch_size == 1 or not is_out_of_memory(error):
                    raise
                self.batch_size //= 2

    def _with_tokens(self, outputs: Sequence[dict[str, Any]]) -> Iterator[Encoded]:
        for output in outputs:
            if not {"token_embeddings", "input_ids", "attention_mask"} <= output.keys():
                raise ModelUnavailableError(
                    f"{type(self.model).__name__} has no token vectors (static word vectors?); choose another "
                    'encoder, or matching="sentences"'
                )
            ids = output["input_ids"]
            own = output["attention_mask"].bool() & ~torch.isin(ids, self._added_tokens.to(ids.device))
            yield Encoded(_array(output["sentence_embedding"]), _array(output["token_embeddings"][own]))

    @cached_property
    def _added_tokens(self) -> torch.Tensor:
        """Ids of the tokens that the tokenizer puts around a text; "unknown" is none of them."""
        tokenizer = self.model.tokenizer
        names = ("cls", "sep", "bos", "eos", "pad")
        ids = [getattr(tokenizer, f"{name}_token_id", None) for name in names]
        return torch.tensor([one for one in ids if one is not None], dtype=torch.long)

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


def _plain(vectors: torch.Tensor) -> Iterator[Encoded]:
    return (Encoded(vector) for vector in _array(vectors))


def _array(values: torch.Tensor) -> NDArray[np.floating[Any]]:
    """On the CPU; half precision widened."""
    precise: NDArray[np.floating[Any]] = values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy()
    return precise
