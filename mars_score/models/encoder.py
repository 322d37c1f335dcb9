"""Sentence embeddings (section 2.3): any SentenceTransformer, mean-pooled RoBERTa in the paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.errors import ModelUnavailableError
from mars_score.models.running import BatchSize, exclusive, ordinary_mode

RARE_LETTER = "\U00010380"  # Ugaritic; a tokenizer that knows it writes any text, by bytes


@dataclass(frozen=True)
class Encoded:
    """A text as the encoder represents it; half precision is widened."""

    vector: NDArray[np.floating[Any]]  # (dimensions,); zeros for a text with unknown tokens only
    # Vectors of its tokens, (tokens, dimensions), or None. Special tokens and those of the encoder's prompt are
    # left out; those of unknown tokens are zeros.
    tokens: NDArray[np.floating[Any]] | None = None
    shortened: bool = False  # whether the encoder reads only the beginning of the text
    unknown: float = 0.0  # share of unknown tokens in the part that it reads, in [0, 1]


class SentenceEncoder:
    """Vectors of texts.

    All texts that consist of unknown tokens look the same to an encoder, so such tokens, and texts without a known
    token, get vectors of zeros: their cosine with anything is 0.
    """

    def __init__(self, model: Any, batch_size: int | None = None) -> None:
        self.model = model
        self._batch = BatchSize(batch_size or 32)

    def encode(
        self, texts: Sequence[str], done: Callable[[str, Encoded], None] | None = None, *, tokens: bool = False
    ) -> list[Encoded]:
        """Each text's vector and, if asked for, its tokens' (or ModelUnavailableError), from one forward pass."""
        with exclusive(self.model), ordinary_mode():
            return self._batch.map(lambda batch: self._encode(batch, tokens), texts, len, done)

    def _encode(self, texts: list[str], tokens: bool) -> list[Encoded]:
        """One forward pass."""
        wanted = {"output_value": None} if tokens else {"convert_to_tensor": True}
        outputs = self.model.encode(texts, batch_size=len(texts), show_progress_bar=False, **wanted)
        encoded = []
        for output, (shortened, unknown) in zip(outputs, self._coverage(texts), strict=True):
            vector = _array(output["sentence_embedding"] if tokens else output) * (unknown < 1)
            encoded.append(Encoded(vector, self._token_vectors(output) if tokens else None, shortened, unknown))
        return encoded

    def _token_vectors(self, output: dict[str, Any]) -> NDArray[np.floating[Any]]:
        """Vectors of a text's own tokens."""
        if not {"token_embeddings", "input_ids", "attention_mask"} <= output.keys():
            raise ModelUnavailableError(
                f"{type(self.model).__name__} has no token vectors (static word vectors?); choose another "
                'encoder, or matching="sentences"'
            )
        attended = output["attention_mask"].nonzero()[:, 0]
        own = attended[self._own_tokens(output["input_ids"][attended].tolist())]
        vectors = output["token_embeddings"][own]
        if self._unknown_token is not None:
            vectors = vectors * (output["input_ids"][own] != self._unknown_token)[:, None]
        return _array(vectors)

    def _own_tokens(self, ids: Sequence[int]) -> slice:
        """Where a text's own tokens are among those that the encoder reads."""
        before, after = self._special_tokens
        # A prompt's last token may have merged with the text's first: that one counts.
        pairs = zip(ids[before:], self._prompt_ids, strict=False)
        before += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return slice(before, len(ids) - after)

    def offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """For each text the first character of each token with a vector, and the one after its last, if known."""
        if not getattr(self._tokenizer, "is_fast", False):
            return [[] for _ in texts]
        cut = {} if self._limit is None else {"truncation": True, "max_length": self._limit}
        read = self._tokenizer([self._prompt + text for text in texts], return_offsets_mapping=True, **cut)
        own = [
            offsets[self._own_tokens(ids)]
            for ids, offsets in zip(read["input_ids"], read["offset_mapping"], strict=True)
        ]
        before = len(self._prompt)
        return [[(max(start - before, 0), max(end - before, 0)) for start, end in offsets] for offsets in own]

    @cached_property
    def _tokenizer(self) -> Any:
        """The encoder's tokenizer; None where it has none that tells special tokens apart."""
        tokenizer = getattr(self.model, "tokenizer", None)
        return tokenizer if hasattr(tokenizer, "num_special_tokens_to_add") else None

    @cached_property
    def _special_tokens(self) -> tuple[int, int]:
        """How many special tokens the tokenizer puts before a text, and after it."""
        special = list(self._tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"])
        return special.index(0), special[::-1].index(0)

    @property
    def _limit(self) -> int | None:
        """How many tokens the encoder reads, where that is known."""
        limit = getattr(self.model, "max_seq_length", None)
        return limit if isinstance(limit, int) else None

    @property
    def _prompt(self) -> str:
        """What the encoder puts before every text."""
        return self.model.prompts.get(self.model.default_prompt_name) or ""

    @cached_property
    def _prompt_ids(self) -> list[int]:
        return self._ids([self._prompt])[0]

    @cached_property
    def _unknown_token(self) -> int | None:
        """The id of unknown tokens; None if the tokenizer has none, as byte-level ones."""
        token = getattr(self._tokenizer, "unk_token_id", None)
        return token if token is not None and token in self._ids([RARE_LETTER])[0] else None

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of whole texts, without special tokens."""
        encoded = self._tokenizer(list(texts), add_special_tokens=False, verbose=False, truncation=False)
        return [list(ids) for ids in encoded["input_ids"]]

    def _coverage(self, texts: Sequence[str]) -> list[tuple[bool, float]]:
        """For each text whether only its beginning is read, and the share of unknown tokens in what is read."""
        if self._tokenizer is None:
            return [(False, 0.0)] * len(texts)
        room = None
        if self._limit is not None:
            room = self._limit - self._tokenizer.num_special_tokens_to_add() - len(self._prompt_ids)
        coverage = []
        for ids in self._ids(texts):
            read = ids[:room]
            unknown = sum(token == self._unknown_token for token in read)
            coverage.append((len(read) < len(ids), unknown / max(1, len(read))))
        return coverage


def _array(values: torch.Tensor) -> NDArray[np.floating[Any]]:
    """On the CPU; half precision widened."""
    precise: NDArray[np.floating[Any]] = values.to(torch.promote_types(values.dtype, torch.float32)).cpu().numpy()
    return precise
