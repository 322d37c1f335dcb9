"""Sentence Mover's Similarity (Clark, Celikyilmaz and Smith 2019), the variant S+WMS: words and sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Family, Metric
from mars_score.meta.metrics.mover import Bag, movers_distance
from mars_score.meta.metrics.tokens import TokenEncoder, Tokens, parts, texts_of


class SentenceMover(Metric):
    """exp(-d), d the earth mover's distance of two texts' words and sentences.

    A text is a bag of word vectors, each of weight 1, and of sentence vectors, which are the means of their
    words' and weigh as many; all weights are divided by their sum. As in the original, each sentence is read
    on its own, vectors keep their lengths, and words with other than letters and stop words are left out.
    """

    title = "Sentence Mover's"
    family: Family = "reference"
    note = (
        "S+WMS on tokens of the preset's encoder, last layer (the original: on words of GloVe or ELMo); without "
        "spaCy's English stop words (the original: NLTK's); best over the references"
    )
    minimum = 0.0
    packages = (("ot", "POT"), ("spacy", "spacy"))
    model = "encoder"

    @cached_property
    def tokens(self) -> TokenEncoder:
        """Reads texts."""
        return TokenEncoder(self.models.encoder(), self.models.runtime.encoder_batch_size)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        from spacy.lang.en.stop_words import STOP_WORDS

        scores = [self.minimum] * len(rows)
        for part in parts(rows):
            split = {text: sentences(text) for text in texts_of(rows, part)}
            read = self.tokens.encode([sentence for text in split.values() for sentence in text])
            bags = {text: bag([read[one] for one in of_text], STOP_WORDS) for text, of_text in split.items()}
            for index in part:
                candidate, references, _ = rows[index]
                scores[index] = max(_similarity(bags[candidate], bags[one]) for one in references)
        return scores


def _similarity(a: Bag | None, b: Bag | None) -> float:
    return 0.0 if a is None or b is None else math.exp(-movers_distance(a, b))


def bag(text: Sequence[Tokens], stop_words: set[str]) -> Bag | None:
    """Words and sentences of a text; all of its tokens if none would be left, None if it has none at all.

    Args:
        text: the tokens of each sentence.
        stop_words: lower-cased words that are left out.
    """
    words = [one.vectors[_kept(one, stop_words)] for one in text]
    if not any(map(len, words)):
        words = [one.vectors for one in text]
    words = [one.astype(np.float64) for one in words if len(one)]
    if not words:
        return None
    vectors = np.concatenate([*words, np.stack([one.mean(0) for one in words])])
    counts = [len(one) for one in words]
    return Bag.of(np.array([*[1] * sum(counts), *counts], dtype=np.float64), vectors)


def _kept(tokens: Tokens, stop_words: set[str]) -> NDArray[np.bool_]:
    kept = [word.isalpha() and word.lower() not in stop_words for word in tokens.words]
    return np.array(kept, dtype=bool)
