"""Choose the premise for each sentence of a candidate.

The premise is the whole text if that is short. For a longer text, or several, it is an excerpt: the most similar
sentence by the encoder with its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mars_score.sentences import sentences
from mars_score.text import split_words

if TYPE_CHECKING:
    from mars_score.models.encoder import Encoding

# A single text with up to this many times the words of an excerpt is a premise as a whole, as models then decide
# better than by an excerpt. For longer texts an excerpt is better (research/entailment/measure.md).
WHOLE_PREMISE_FACTOR = 1.5


def choose_premises(
    judged: Sequence[tuple[str, tuple[str, ...]]],
    words: int,
    encode: Callable[[Iterable[str]], Mapping[str, Encoding]],
) -> list[str]:
    """Return the premise of each sentence.

    Args:
        judged: sentences of candidates, with the texts that they are judged by.
        words: most words of an excerpt.
        encode: encodes texts, as :meth:`mars_score.models.calls.ModelCalls.encode` does.

    Raises:
        ModelUnavailableError: the encoder is needed and cannot be loaded.
    """
    split = {texts: [sentences(text) for text in texts if text.strip()] for _, texts in judged}
    # The other premises are whole texts.
    excerpted = {texts for texts, parts in split.items() if not _fits(parts, words)}
    to_encode = [part for texts in split if texts in excerpted for parts in split[texts] for part in parts]
    to_encode += [sentence for sentence, texts in judged if texts in excerpted]
    encodings = encode(to_encode)
    return [
        _excerpt(sentence, split[texts], encodings, words)
        if texts in excerpted
        else " ".join(part for parts in split[texts] for part in parts)
        for sentence, texts in judged
    ]


def _excerpt(sentence: str, texts: Sequence[list[str]], encodings: Mapping[str, Encoding], words: int) -> str:
    """Return the most similar sentence of texts, which are split into sentences, with its neighbours."""
    vector = encodings[sentence].vector
    cosines = [np.array([vector @ encodings[part].vector for part in parts]) for parts in texts]
    best = max(range(len(texts)), key=lambda index: float(cosines[index].max()))
    return neighbourhood(texts[best], int(cosines[best].argmax()), words)


def neighbourhood(parts: Sequence[str], centre: int, words: int) -> str:
    """Join a sentence with the sentences around it, up to ``words`` words."""
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


def _fits(texts: Sequence[list[str]], words: int) -> bool:
    """Tell whether there is one short text at most, which is then the premise as a whole."""
    count = sum(len(split_words(part)) for parts in texts for part in parts)
    return len(texts) <= 1 and count <= WHOLE_PREMISE_FACTOR * words
