"""Token vectors of texts: what the sentence encoder's transformer makes of them before it pools them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.models.engine.tokens import padded
from mars_score.models.memory import BatchSize
from mars_score.models.torch_modes import exclusive, ordinary_mode
from mars_score.models.windows import position_limit

PART_CHARACTERS = 100_000  # of texts whose vectors are in memory together: about 100 MB with 1024 dimensions
BATCH_TOKENS = 2**14  # of all texts of a pass, padding included


@dataclass(frozen=True)
class Transformer:
    """What is inside a ``SentenceTransformer``.

    Attributes:
        model: gives a ``last_hidden_state``.
        tokenizer: a copy of the encoder's own, which cuts texts at the window.
        window: positions for a text and its special tokens.
    """

    model: Any
    tokenizer: Any
    window: int

    @classmethod
    def of(cls, encoder: Any) -> Transformer:
        """The transformer of a ``SentenceTransformer``.

        Raises:
            ModelUnavailableError: it has none, because it looks words up in a table of vectors.
        """
        try:
            model, tokenizer = encoder[0].auto_model, encoder.tokenizer
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise ModelUnavailableError(
                f"{type(encoder).__name__} has no transformer that gives token vectors (static word vectors?); "
                "choose another encoder"
            ) from error
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.model_max_length = window = _positions(encoder, model)
        return cls(model, tokenizer, window)


def _positions(encoder: Any, model: Any) -> int:
    """How many the model has, which may be more than its sentence vectors were trained with."""
    positions = position_limit(model)
    return int(getattr(encoder, "max_seq_length", None) or 512) if positions is None else positions


@dataclass(frozen=True)
class Tokens:
    """A text's tokens without special ones, up to the encoder's window.

    Attributes:
        ids: in the vocabulary.
        words: the word that each is a piece of, as it is written in the text.
        begins: whether each is its word's first piece.
        vectors: last hidden states, (tokens, dimensions).
    """

    ids: tuple[int, ...]
    words: tuple[str, ...]
    begins: tuple[bool, ...]
    vectors: NDArray[np.floating[Any]]


class TokenEncoder:
    """Reads texts with an encoder's transformer.

    Args:
        encoder: a ``SentenceTransformer``.
        batch_size: texts per forward pass, at most; None: 32.

    Raises:
        ModelUnavailableError: the encoder has no transformer, or its tokenizer does not say where tokens are.
    """

    def __init__(self, encoder: Any, batch_size: int | None = None) -> None:
        self._transformer = Transformer.of(encoder)
        self._batch_size = batch_size or 32
        if not getattr(self._transformer.tokenizer, "is_fast", False):
            name = type(self._transformer.tokenizer).__name__
            raise ModelUnavailableError(f"{name} does not say where tokens are; choose another encoder")

    def _tokenise(self, texts: Sequence[str], **also: bool) -> Any:
        stripped = [text.strip() for text in texts]  # as SentenceTransformer does
        limit = {"truncation": True, "max_length": self._transformer.window}
        return self._transformer.tokenizer(stripped, return_special_tokens_mask=True, **limit, **also)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, without special ones and up to the window."""
        if not texts:
            return []
        encoded = self._tokenise(texts)
        both = zip(encoded["input_ids"], encoded["special_tokens_mask"], strict=True)
        return [[token for token, is_special in zip(*one, strict=True) if not is_special] for one in both]

    def encode(self, texts: Sequence[str]) -> dict[str, Tokens]:
        """The tokens of each different text; those of similar length are read together."""
        texts = list(dict.fromkeys(texts))
        if not texts:
            return {}
        encoded = self._tokenise(texts, return_offsets_mapping=True)
        ids = encoded["input_ids"]

        def read(batch: list[int]) -> list[Tokens]:
            """The longest texts of a batch, as many as are read together; at least one."""
            count = max(1, BATCH_TOKENS // max(1, len(ids[batch[0]])))
            states = self._read([ids[index] for index in batch[:count]])
            return [
                _tokens(texts[index].strip(), encoded, index, of_text)
                for index, of_text in zip(batch, states, strict=False)
            ]

        with ordinary_mode(), exclusive(self._transformer.model):
            tokens = BatchSize(self._batch_size).map(read, range(len(texts)), lambda index: len(ids[index]))
        return dict(zip(texts, tokens, strict=True))

    def _read(self, ids: Sequence[Sequence[int]]) -> NDArray[np.floating[Any]]:
        """Last hidden states, (texts, longest, dimensions)."""
        model, padding = self._transformer.model, self._transformer.tokenizer.pad_token_id or 0
        tokens = torch.tensor(padded(ids, padding), device=model.device)
        attended = torch.tensor(padded([[1] * len(of_text) for of_text in ids], 0), device=model.device)
        states = model(input_ids=tokens, attention_mask=attended).last_hidden_state
        precise: NDArray[np.floating[Any]] = (
            states.to(torch.promote_types(states.dtype, torch.float32)).cpu().numpy()
        )
        return precise


def _tokens(text: str, encoded: Any, index: int, states: NDArray[np.floating[Any]]) -> Tokens:
    """Put together what the tokenizer and the model say of text ``index``."""
    special, spans = encoded["special_tokens_mask"][index], encoded["offset_mapping"][index]
    places = [place for place, is_special in enumerate(special) if not is_special]
    word_of = encoded.word_ids(index)
    first: dict[Any, int] = {}
    ends: dict[Any, int] = {}
    for place in places:
        first.setdefault(word_of[place], place)
        ends[word_of[place]] = spans[place][1]
    words = [text[spans[first[word_of[place]]][0] : ends[word_of[place]]].strip() for place in places]
    return Tokens(
        tuple(encoded["input_ids"][index][place] for place in places),
        tuple(words),
        tuple(first[word_of[place]] == place for place in places),
        states[places].copy(),  # not a view: the batch's padding is to be freed
    )


def parts(rows: Sequence[Row]) -> Iterator[list[int]]:
    """Indices of rows, in parts of at most ``PART_CHARACTERS`` of text.

    Rows with the same references stay together where they fit, so that references are read once.
    """
    part: list[int] = []
    texts: set[str] = set()
    size = 0
    for index in sorted(range(len(rows)), key=lambda index: rows[index][1]):
        candidate, references, _ = rows[index]
        new = {candidate, *references} - texts
        more = sum(map(len, new))
        if part and size + more > PART_CHARACTERS:
            yield part
            part, texts, size, new = [], set(), 0, {candidate, *references}
            more = sum(map(len, new))
        part.append(index)
        texts |= new
        size += more
    if part:
        yield part


def texts_of(rows: Sequence[Row], part: Sequence[int]) -> list[str]:
    """The different candidates and references of a part."""
    return list(dict.fromkeys(text for index in part for text in (rows[index][0], *rows[index][1])))
