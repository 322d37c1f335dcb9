"""Metrics that match the token vectors of the preset's encoder: BERTScore, MoverScore and sentence mover's."""

import math
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.base import Metric
from mars_score.models.running import BatchSize, exclusive, ordinary_mode
from mars_score.stats.labels import Floats

AT_ONCE = 32  # rows whose token vectors are in memory together
_STEPS = 10_000_000  # of the solver, at most; some texts of 500 tokens take more than its own limit
Weight = Callable[[int], float]  # of a token id
Bag = tuple[Floats, Floats]  # positive weights that sum to 1, (points,), and vectors, (points, dimensions)


@dataclass(frozen=True)
class Tokens:
    """A text's tokens, special ones included, up to the encoder's window."""

    ids: Sequence[int]  # in the vocabulary
    special: NDArray[np.bool_]  # whether each belongs to no word
    words: Sequence[str]  # the word that each is a piece of, as it is written in the text; "" for special tokens
    begins: NDArray[np.bool_]  # whether each is its word's first piece
    vectors: Floats  # last hidden states, (tokens, dimensions)


class TokenReader:
    """Reads texts with a ``SentenceTransformer``, at most ``batch_size`` (None: 32) per forward pass.

    Raises:
        ModelUnavailableError: the encoder has no transformer, or its tokenizer does not say where tokens are.
    """

    def __init__(self, encoder: Any, batch_size: int | None = None) -> None:
        if not (hasattr(encoder[0], "auto_model") and getattr(encoder.tokenizer, "is_fast", False)):
            raise ModelUnavailableError(
                f"{type(encoder).__name__} has no transformer with a fast tokenizer, which token vectors need "
                "(static word vectors?); choose another encoder"
            )
        self._encoder, self._batch = encoder, BatchSize(batch_size or 32)

    def encode(self, texts: Sequence[str]) -> Any:
        """What the tokenizer gives for texts without whitespace around them."""
        limit = {"truncation": True, "max_length": self._encoder.max_seq_length}
        return self._encoder.tokenizer([text.strip() for text in texts], return_special_tokens_mask=True, **limit)

    def read(self, texts: Collection[str]) -> dict[str, Tokens]:
        """The tokens of each different text; those of similar length are read together."""
        texts = list(dict.fromkeys(texts))
        with ordinary_mode(), exclusive(self._encoder):
            vectors = self._batch.map(self._vectors, [text.strip() for text in texts], len)
        encoded = self.encode(texts)
        return {text: _tokens(text.strip(), encoded, index, vectors[index]) for index, text in enumerate(texts)}

    def _vectors(self, texts: list[str]) -> list[Floats]:
        outputs = self._encoder.encode(
            texts, batch_size=len(texts), prompt="", output_value=None, show_progress_bar=False
        )
        return [
            output["token_embeddings"][output["attention_mask"].bool()].to("cpu", torch.float64).numpy()
            for output in outputs
        ]


def _tokens(text: str, encoded: Any, index: int, vectors: Floats) -> Tokens:
    special = np.array(encoded["special_tokens_mask"][index], dtype=bool)
    words, begins = [""] * len(special), np.zeros(len(special), dtype=bool)
    for place in np.flatnonzero(~special):
        word = encoded.token_to_word(index, place)
        words[place] = text[slice(*encoded.word_to_chars(index, word))].strip()
        begins[place] = encoded.word_to_tokens(index, word).start == place
    return Tokens(encoded["input_ids"][index], special, words, begins, vectors)


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0))


class TokenMetric(Metric):
    """The best similarity over a row's references, of texts as token vectors represent them."""

    model = "encoder"

    @cached_property
    def tokens(self) -> TokenReader:
        """Reads texts."""
        return TokenReader(self.models.encoder(), self.models.runtime.encoder_batch_size)

    @abstractmethod
    def represent(self, texts: Collection[str], weight: Weight) -> dict[str, Any]:
        """What is compared of each text; ``weight`` is the IDF of a token."""

    @abstractmethod
    def similarity(self, candidate: Any, reference: Any) -> float:
        """Of two texts as they are represented."""

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """See the base class."""
        weight = self._weights(corpus if self.uses_corpus else ())
        scores = []
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            texts = dict.fromkeys(text for candidate, references, *_ in part for text in (candidate, *references))
            read = self.represent(texts, weight)
            scores += [
                max(self.similarity(read[candidate], read[reference]) for reference in references)
                for candidate, references, *_ in part
            ]
        return scores

    def _weights(self, corpus: Sequence[str]) -> Weight:
        """MoverScore's IDF of a token: log((N + 1) / (df + 1)), df of N texts holding it."""
        texts = self.tokens.encode(corpus)["input_ids"] if corpus else []
        counts = Counter(token for ids in texts for token in set(ids))
        return lambda token: math.log((len(texts) + 1) / (counts[token] + 1))


class BertScore(TokenMetric):
    """BERTScore's F1 (Zhang et al. 2020) of greedily matched tokens, without IDF or rescaling.

    As in the package ``bert-score``, tokens may match special tokens, which do not count themselves, and a text
    with none but special tokens scores 0.
    """

    title = "BERTScore"
    method = 2
    note = (
        "F1 on the preset's encoder, no IDF, not rescaled; last layer (bert-score has a tuned layer for models of "
        "its own list only); texts cut at the encoder's window; best over the references"
    )

    def represent(self, texts: Collection[str], weight: Weight) -> dict[str, Tokens]:
        """Tokens."""
        return self.tokens.read(texts)

    def similarity(self, candidate: Tokens, reference: Tokens) -> float:
        """F1."""
        if candidate.special.all() or reference.special.all():
            return 0.0
        cosines = _unit(candidate.vectors) @ _unit(reference.vectors).T
        precision = cosines.max(axis=1)[~candidate.special].mean()
        recall = cosines.max(axis=0)[~reference.special].mean()
        return float(2 * precision * recall / ((precision + recall) or 1.0))


def bag(weights: Floats, vectors: Floats) -> Bag:
    """Without points of weight 0; at least one must weigh more."""
    used = weights > 0
    return weights[used] / weights.sum(), vectors[used]


def movers_distance(a: Bag, b: Bag) -> float:
    """The earth mover's distance of two bags over Euclidean distances."""
    from ot import emd2

    return float(emd2(a[0], b[0], cdist(a[1], b[1]), numItermax=_STEPS, check_marginals=False))


class MoverScore(TokenMetric):
    """1 - the earth mover's distance of two texts' tokens (Zhao et al. 2019), as in ``moverscore_v2.py``.

    A text is the bag of its tokens' unit vectors, weighted by IDF; of the pieces of a word only the first
    counts, and punctuation not at all; a text with nothing else weighs its tokens equally. Unit vectors are at
    most 2 apart: scores are in [-1, 1].
    """

    title = "MoverScore"
    method = 2
    note = (
        "unigrams on the preset's encoder, last layer (as moverscore_v2; the paper pools the last five); IDF of "
        "the data set's references for candidates too (the original: of the candidates, so that other rows would "
        "count); stop words count, as by the original's default; best over the references"
    )
    minimum = -1.0
    uses_corpus = True
    packages = ("POT",)

    def represent(self, texts: Collection[str], weight: Weight) -> dict[str, Bag | None]:
        """Bags; None for a text without tokens."""
        return {text: self._bag(tokens, weight) for text, tokens in self.tokens.read(texts).items()}

    def _bag(self, tokens: Tokens, weight: Weight) -> Bag | None:
        own = (~tokens.special).astype(np.float64)
        counted = own * tokens.begins * [word not in string.punctuation for word in tokens.words]
        rare = counted * [weight(token) for token in tokens.ids]
        weights = next((weights for weights in (rare, counted, own) if weights.any()), None)
        return None if weights is None else bag(weights, _unit(tokens.vectors))

    def similarity(self, candidate: Bag | None, reference: Bag | None) -> float:
        """In [-1, 1]."""
        return -1.0 if candidate is None or reference is None else 1 - movers_distance(candidate, reference)


class SentenceMover(TokenMetric):
    """Sentence Mover's Similarity (Clark et al. 2019), S+WMS: exp(-d), d the distance of words and sentences.

    A text is a bag of word vectors, each of weight 1, and of sentence vectors, which are the means of their
    words' and weigh as many. As in the original, each sentence is read on its own, vectors keep their lengths,
    and words with other than letters and stop words are left out, unless nothing else is there.
    """

    title = "Sentence Mover's"
    method = 2
    note = (
        "S+WMS on tokens of the preset's encoder, last layer (the original: on words of GloVe or ELMo); without "
        "spaCy's English stop words (the original: NLTK's); best over the references"
    )
    packages = ("POT", "spacy")

    def represent(self, texts: Collection[str], weight: Weight) -> dict[str, Bag | None]:
        """Bags; None for a text without tokens."""
        split = {text: sentences(text) for text in texts}
        read = self.tokens.read([sentence for parts in split.values() for sentence in parts])
        return {text: self._bag([read[sentence] for sentence in parts]) for text, parts in split.items()}

    def _bag(self, parts: Sequence[Tokens]) -> Bag | None:
        from spacy.lang.en.stop_words import STOP_WORDS

        content = [[word.isalpha() and word.lower() not in STOP_WORDS for word in part.words] for part in parts]
        if not any(map(any, content)):
            content = [list(~part.special) for part in parts]
        words = [part.vectors[kept] for part, kept in zip(parts, content, strict=True) if any(kept)]
        if not words:
            return None
        counts = list(map(len, words))
        weights = np.array([*[1] * sum(counts), *counts], dtype=np.float64)
        return bag(weights, np.concatenate([*words, [vectors.mean(axis=0) for vectors in words]]))

    def similarity(self, candidate: Bag | None, reference: Bag | None) -> float:
        """In [0, 1]."""
        return 0.0 if candidate is None or reference is None else math.exp(-movers_distance(candidate, reference))
