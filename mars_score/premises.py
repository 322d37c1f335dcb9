"""Premises: by which passage of the references and of the context an NLI model judges a sentence.

A text that is short enough is a premise as a whole. Of a longer one, or of several, it is the sentence that is
nearest by the encoder, with its neighbours; in a dialogue turns take the place of sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Row
from mars_score.text import passages_of, sentences, split_words

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls

Passage = list[str]  # its sentences or turns


class Premises(NamedTuple):
    """A sentence of a candidate, and the premises of its references and its context; "" where there is none."""

    sentence: str
    reference: str
    context: str

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return (premise, hypothesis) for each premise."""
        return [(premise, self.sentence) for premise in (self.reference, self.context) if premise]


def choose_premises(rows: Iterable[Row], config: PlusConfig, calls: ModelCalls) -> dict[Row, list[Premises]]:
    """Choose the premises of the first sentences of each candidate that is not blank.

    Raises:
        ModelUnavailableError: the encoder is needed and cannot be loaded.
    """
    candidates = {row: sentences(row.candidate)[: config.max_sentences] or [row.candidate] for row in rows}
    texts = {key for row in candidates for key in _texts_of(row)}
    passages = {key: _passages(*key) for key in texts}
    long_texts = {key for key, parts in passages.items() if not _fits(parts, config.premise_words)}
    wanted = [part for key in long_texts for parts in passages[key] for part in parts]
    wanted += [one for row, own in candidates.items() if long_texts & set(_texts_of(row)) for one in own]
    encodings = calls.encode(wanted)

    def premise(sentence: str, key: tuple[tuple[str, ...], str]) -> str:
        parts = passages[key]
        if key not in long_texts:
            return " ".join(part for passage in parts for part in passage)
        own = encodings[sentence].vector
        cosines = [np.array([own @ encodings[part].vector for part in passage]) for passage in parts]
        best = max(range(len(parts)), key=lambda number: float(cosines[number].max()))
        return neighbourhood(parts[best], int(cosines[best].argmax()), config.premise_words)

    return {
        row: [Premises(one, *(premise(one, key) for key in _texts_of(row))) for one in own]
        for row, own in candidates.items()
    }


def neighbourhood(parts: Sequence[str], centre: int, words: int) -> str:
    """Join a part and the parts around it while they have at most ``words`` words; a longer part stands alone."""
    sizes = [len(split_words(part)) for part in parts]
    first, last, room = centre, centre, words - sizes[centre]
    while True:
        before = sizes[first - 1] if first > 0 else room + 1
        after = sizes[last + 1] if last + 1 < len(parts) else room + 1
        if min(before, after) > room:
            return " ".join(parts[first : last + 1])
        if after <= room and (before > room or last - centre <= centre - first):
            last, room = last + 1, room - after
        else:
            first, room = first - 1, room - before


def _texts_of(row: Row) -> list[tuple[tuple[str, ...], str]]:
    """Return references and context as passages, with the task by which these are split.

    The context counts in a summary, which is to follow from it, and in the place of references.
    """
    judged = row.context and (row.task == "summary" or not row.references)
    return [(row.references, "text"), (tuple(passages_of(row.context)) if judged else (), row.task)]


def _passages(texts: Sequence[str], task: str) -> list[Passage]:
    split = str.splitlines if task == "dialogue" else sentences
    return [parts for text in texts if (parts := [part for part in split(text) if part.strip()])]


def _fits(passages: Sequence[Passage], words: int) -> bool:
    """Tell whether there is no choice: one passage at most, which is short."""
    return len(passages) <= 1 and sum(len(split_words(part)) for parts in passages for part in parts) <= words
