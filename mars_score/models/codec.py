"""Encode and decode parts of a text, and tell which tokens of the vocabulary an infill may contain."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.errors import UnsupportedModelError
from mars_score.text import as_prose

LINE_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_ANCHOR = "\n"
_REPLACEMENT = "\ufffd"  # what bytes that are not a whole character decode to


def has_line_break(text: str) -> bool:
    """Tell whether ``text`` contains a character at which ``str.splitlines`` splits."""
    return not LINE_BREAKS.isdisjoint(text)


def token_kind(*, first: bool, begins_word: bool, line_breaks: bool, whole_characters: bool = False) -> int:
    """Return the row of :meth:`TextCodec.allowed_tokens` for a token of an infill.

    Args:
        first: whether the token is the first of its infill.
        begins_word: whether the masked text begins with white space. Its infill must then, too.
        line_breaks: whether the infill may contain line breaks.
        whole_characters: whether the token must decode to whole characters by itself.
    """
    opening = 0 if not first else 1 if begins_word else 2
    return 6 * whole_characters + 3 * line_breaks + opening


class TextCodec:
    """Encodes and decodes parts of a longer text.

    If the tokenizer adds a space before every text (SentencePiece), the part is encoded after a line break, whose
    tokens are then dropped.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        first, second, both = (self._encode(text) for text in ("a", "b", "a b"))
        self._anchor = self._encode(_ANCHOR) if both[len(first) :] == second else []
        self._anchor_text = self._decode(self._anchor)

    def _encode(self, text: str) -> list[int]:
        # With split_special_tokens, "<|endoftext|>" in a user's text is plain text.
        encoding = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return list(encoding["input_ids"])

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)) if len(ids) else ""

    def encode(self, part: str) -> list[int]:
        """Return the token ids of a part with its leading white space, without special tokens."""
        if not self._anchor:
            return self._encode(part)
        ids = self._encode(_ANCHOR + part)
        return ids[len(self._anchor) :] if ids[: len(self._anchor)] == self._anchor else self._encode(part)

    def encode_context(self, context: str) -> list[int]:
        """Return the token ids of a context, with its passages as paragraphs, or [] if it is blank."""
        return self.encode(as_prose(context.strip())) if context.strip() else []

    def prompt(self, context: Sequence[int]) -> list[int]:
        """Prepend the begin-of-text token if the tokenizer does so or the context is empty."""
        return [self.begin, *context] if self.adds_begin or not context else list(context)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids with its leading white space."""
        return self._decode([*self._anchor, *ids])[len(self._anchor_text) :]

    @cached_property
    def begin(self) -> int:
        """Return the begin-of-text token, or the token that takes its place.

        Raises:
            UnsupportedModelError: the tokenizer has no such token.
        """
        for name in ("bos_token_id", "cls_token_id", "eos_token_id"):
            token = getattr(self.tokenizer, name, None)
            if token is not None:
                return int(token)
        raise UnsupportedModelError(
            f"{type(self.tokenizer).__name__} has neither a begin-of-text nor an end-of-text token; "
            "choose another language_model"
        )

    @cached_property
    def adds_begin(self) -> bool:
        """Tell whether the tokenizer puts the begin-of-text token before every text."""
        return list(self.tokenizer("a")["input_ids"])[:1] == [self.begin]

    def whole_prefixes(self, ids: Sequence[int]) -> list[bool]:
        """Tell for 1, 2, ... whether that many first tokens decode to whole characters."""
        if all(_REPLACEMENT not in self._texts[token] for token in ids):
            return [True] * len(ids)
        return [_REPLACEMENT not in self.decode(ids[:count]) for count in range(1, len(ids) + 1)]

    @cached_property
    def _texts(self) -> list[str]:
        """Decode each id."""
        rows = [[*self._anchor, token] for token in range(len(self.tokenizer))]
        decoded = self.tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False)
        return [text[len(self._anchor_text) :] for text in decoded]

    def allowed_tokens(self, vocabulary: int) -> NDArray[np.bool_]:
        """Tell which tokens an infill may contain, (12, vocabulary), with a row for each :func:`token_kind`.

        Special tokens and ids beyond the tokenizer's are never allowed.
        """
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        special = {*self.tokenizer.all_special_ids, *(token for token, entry in added.items() if entry.special)}
        texts = [*self._texts, *[""] * (vocabulary - len(self._texts))][:vocabulary]
        written = np.array([token < len(self._texts) and token not in special for token in range(vocabulary)])
        one_line = np.array([not has_line_break(text) for text in texts])
        begins_word = np.array([text[:1].isspace() and bool(text.strip()) for text in texts])
        continues = np.array([not text[:1].isspace() for text in texts])
        whole = np.array([_REPLACEMENT not in text for text in texts])
        every = np.ones(vocabulary, dtype=bool)
        return np.stack(
            [
                written & characters & lines & opening
                for characters in (every, whole)
                for lines in (one_line, every)
                for opening in (every, begins_word, continues)
            ]
        )
