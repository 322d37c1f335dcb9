"""The premise that each sentence of a candidate is judged by.

It is a whole text where this is short enough. Of a longer text, or of several, it is a passage: the sentence that
is nearest by the encoder, with its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mars_score.sentences import sentences
from mars_score.text import split_words

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

Passage = list[str]  # its sentences
# A single text of at most this many times the words of a passage is read whole: then a model is more often right
# than by a passage of it. Of longer texts a passage is better (research/entailment/measure.md).
WHOLE_PREMISE_FACTOR = 1.5


def choose_premises(
    judged: Sequence[tuple[Sequence[str], tuple[str, ...]]], words: int, calls: ModelCalls
) -> list[list[str]]:
    """Return the premise of each sentence.

    Args:
        judged: sentences of a candidate, and the texts that they are judged by.
        words: most words of a passage.
        calls: the models, of which the encoder is used.

    Raises:
        ModelUnavailableError: the encoder is needed and cannot be loaded.
    """
    passages = {texts: [sentences(text) for text in texts if text.strip()] for _, texts in judged}
    # Only of these there is a choice: the others are premises as a whole.
    long_passages = {texts: parts for texts, parts in passages.items() if not _fits(parts, words)}
    to_encode = [part for parts in long_passages.values() for passage in parts for part in passage]
    for candidate_sentences, texts in judged:
        to_encode += candidate_sentences if texts in long_passages else []
    encodings = calls.encode(to_encode)

    def premise(sentence: str, texts: tuple[str, ...]) -> str:
        if texts in long_passages:
            return _nearest(sentence, long_passages[texts], encodings, words)
        return " ".join(part for passage in passages[texts] for part in passage)

    return [[premise(sentence, texts) for sentence in of_row] for of_row, texts in judged]


def _nearest(sentence: str, passages: Sequence[Passage], encodings: Mapping[str, Encoding], words: int) -> str:
    """Return the part of the passages that is nearest to a sentence, with its neighbours up to ``words`` words."""
    vector = encodings[sentence].vector
    cosines = [np.array([vector @ encodings[part].vector for part in passage]) for passage in passages]
    best = max(range(len(passages)), key=lambda number: float(cosines[number].max()))
    return neighbourhood(passages[best], int(cosines[best].argmax()), words)


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


def _fits(passages: Sequence[Passage], words: int) -> bool:
    """Tell whether there is no choice: one text at most, and not much longer than a passage may be."""
    return (
        len(passages) <= 1
        and sum(len(split_words(part)) for parts in passages for part in parts) <= WHOLE_PREMISE_FACTOR * words
    )
