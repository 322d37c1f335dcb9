"""Metrics by the preset's models: BERTScore, MoverScore, Sentence Mover's, cosine and perplexity."""

import math
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mars_score.errors import ModelUnavailableError, extra_meta
from mars_score.meta.metrics import Metric
from mars_score.metrics.plus import PlusConfig
from mars_score.models.running import BatchSize, exclusive, ordinary_mode
from mars_score.rows import Row
from mars_score.sentences import sentences
from mars_score.text import as_prose

CHUNK_SIZE = 128  # rows whose token vectors are in memory together
_STEPS = 10_000_000  # of the solver, at most; texts of 500 tokens may take more than its default of 100,000
Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Bag = tuple[Floats, Floats]  # positive weights that sum to 1, (points,), and vectors, (points, dimensions)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text, special ones included, up to the encoder's window.

    Attributes:
        ids: in the vocabulary.
        special: whether each is a special token, (tokens,).
        words: the word of each, as in the text; "" for special tokens.
        starts_word: whether each is the first piece of its word, (tokens,).
        vectors: last hidden states, (tokens, dimensions).
    """

    ids: Sequence[int]
    special: Mask
    words: Sequence[str]
    starts_word: Mask
    vectors: Floats


class TokenEncoder:
    """Encodes texts by a ``SentenceTransformer``, at most ``batch_size`` (by default 32) per forward pass."""

    def __init__(self, encoder: Any, batch_size: int | None = None) -> None:
        if not (hasattr(encoder[0], "auto_model") and getattr(encoder.tokenizer, "is_fast", False)):
            raise ModelUnavailableError(
                f"{type(encoder).__name__} has no transformer with a fast tokenizer, which token vectors need "
                "(static word vectors?); choose another encoder"
            )
        self._encoder, self._batch = encoder, BatchSize(batch_size or 32)

    def tokenize(self, texts: Sequence[str]) -> Any:
        """Tokenize texts, without white space around them."""
        limit = {"truncation": True, "max_length": self._encoder.max_seq_length}
        return self._encoder.tokenizer([text.strip() for text in texts], **limit)

    def encode(self, texts: Collection[str]) -> dict[str, Tokens]:
        """Encode each different text; those of similar length share a forward pass."""
        texts = list(dict.fromkeys(texts))
        with ordinary_mode(), exclusive(self._encoder):
            vectors = dict(self._batch.map(self._vectors, dict.fromkeys(text.strip() for text in texts), len))
        tokenized = self.tokenize(texts).encodings
        return {
            text: _tokens(text.strip(), encoding, vectors[text.strip()])
            for text, encoding in zip(texts, tokenized, strict=True)
        }

    def _vectors(self, texts: list[str]) -> list[Floats]:
        options = {"prompt": "", "output_value": None, "show_progress_bar": False}
        outputs = self._encoder.encode(texts, batch_size=len(texts), **options)
        states = [output["token_embeddings"][output["attention_mask"].bool()] for output in outputs]
        return [state.to("cpu", torch.promote_types(state.dtype, torch.float32)).numpy() for state in states]


def _tokens(text: str, tokenized: Any, vectors: Floats) -> Tokens:
    numbers = tokenized.word_ids  # None for special tokens
    return Tokens(
        tokenized.ids,
        np.array(tokenized.special_tokens_mask, dtype=bool),
        ["" if word is None else text[slice(*tokenized.word_to_chars(word))].strip() for word in numbers],
        np.array([word not in (None, before) for before, word in pairwise([None, *numbers])], dtype=bool),
        vectors,
    )


def _unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; zero vectors stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.where(lengths > 0, lengths, 1)
    return unit


class TokenMetric(Metric):
    """The best similarity of the candidate with a reference, by token vectors."""

    @cached_property
    def encoder(self) -> TokenEncoder:
        """Load the preset's encoder."""
        return TokenEncoder(self.models.calls.encoder(), self.models.runtime.encoder_batch_size)

    @abstractmethod
    def represent(self, texts: Collection[str]) -> dict[str, Any]:
        """Return a representation of each text."""

    @abstractmethod
    def similarity(self, candidate: Any, reference: Any) -> float:
        """Compare the representations of two texts."""

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the similarity of each candidate to the nearest of its references."""
        scores: list[float] = []
        for start in range(0, len(rows), CHUNK_SIZE):
            self.models.runtime.report(self.title, start, len(rows))
            chunk = rows[start : start + CHUNK_SIZE]
            different = dict.fromkeys(text for row in chunk for text in (row.candidate, *row.references))
            texts = self.represent(different)
            scores += [
                max(self.similarity(texts[row.candidate], texts[reference]) for reference in row.references)
                for row in chunk
            ]
        self.models.runtime.report(self.title, len(rows), len(rows))
        return scores


class BertScore(TokenMetric):
    """BERTScore's F1 (Zhang et al. 2020) of greedily matched tokens, without IDF or rescaling.

    As in the package ``bert-score``, tokens may match special tokens, which do not count themselves. That package
    is not used, as it takes padding for tokens with a cosine of 0, so that a row's score depends on its neighbours
    (by up to 8e-5 on 300 rows of QGEval), and as it needs a folder, but the encoder may be an object.
    """

    title = "BERTScore"
    note = (
        "F1 on the preset's encoder, no IDF, not rescaled; last layer (bert-score has a tuned layer for models of "
        "its own list only); texts cut at the encoder's window; best over the references"
    )

    def represent(self, texts: Collection[str]) -> dict[str, tuple[Floats, Mask]]:
        """Return the unit vectors of tokens, and a mask of those that are not special."""
        encoded = self.encoder.encode(texts)
        return {text: (_unit(tokens.vectors), ~tokens.special) for text, tokens in encoded.items()}

    def similarity(self, candidate: tuple[Floats, Mask], reference: tuple[Floats, Mask]) -> float:
        """Compute F1."""
        (vectors, counted), (reference_vectors, reference_counted) = candidate, reference
        if not (counted.any() and reference_counted.any()):
            return 0.0
        cosines = vectors @ reference_vectors.T
        precision = cosines.max(axis=1)[counted].mean()
        recall = cosines.max(axis=0)[reference_counted].mean()
        return float(2 * precision * recall / ((precision + recall) or 1.0))


def bag(weights: Floats, vectors: Floats) -> Bag:
    """Make a bag of the points with positive weight, of which there must be one."""
    used = weights > 0
    return weights[used] / weights.sum(), vectors[used]


def movers_distance(first: Bag, second: Bag) -> float:
    """Compute the earth mover's distance of two bags over Euclidean distances."""
    with extra_meta():
        from ot import emd2

    distances = cdist(first[1], second[1])
    return float(emd2(first[0], second[0], distances, numItermax=_STEPS, check_marginals=False))


class MoverScore(TokenMetric):
    """1 - the earth mover's distance of two texts' tokens (Zhao et al. 2019), as in ``moverscore_v2.py``.

    A text is the bag of its tokens' unit vectors, weighted by IDF. Only first pieces of words count, and no
    punctuation, unless the text has nothing else. Unit vectors are at most 2 apart.
    """

    title = "MoverScore"
    note = (
        "unigrams on the preset's encoder, last layer (as moverscore_v2; the paper pools the last five); IDF of "
        "the data set's references for candidates too (the original: of the candidates, so that other rows would "
        "count); stop words count, as by the original's default; best over the references"
    )
    minimum = -1.0

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Count document frequencies of tokens in the corpus, and return the similarities."""
        texts = self.encoder.tokenize(corpus)["input_ids"] if corpus else []
        self._size, self._frequencies = len(texts), Counter(token for ids in texts for token in set(ids))
        return super().score(rows, corpus)

    def represent(self, texts: Collection[str]) -> dict[str, Bag | None]:
        """Return bags; None for a text without tokens."""
        return {text: self._bag(tokens) for text, tokens in self.encoder.encode(texts).items()}

    def similarity(self, candidate: Bag | None, reference: Bag | None) -> float:
        """Return a number in [-1, 1]."""
        return -1.0 if candidate is None or reference is None else 1 - movers_distance(candidate, reference)

    def _bag(self, tokens: Tokens) -> Bag | None:
        in_words = (~tokens.special).astype(np.float64)
        counted = in_words * tokens.starts_word * [word not in string.punctuation for word in tokens.words]
        by_idf = counted * [math.log((self._size + 1) / (self._frequencies[token] + 1)) for token in tokens.ids]
        weights = next((weights for weights in (by_idf, counted, in_words) if weights.any()), None)
        return None if weights is None else bag(weights, _unit(tokens.vectors))


class SentenceMover(TokenMetric):
    """Sentence Mover's Similarity (Clark et al. 2019), S+WMS, which is exp(-d) of the distance d of two texts.

    A text is a bag of word vectors, each of weight 1, and of sentence vectors, which are means of word vectors
    with the number of words as weight. As in the original, each sentence is encoded alone, vectors keep their
    lengths, and only words of letters that are no stop words count, unless the text has none.
    """

    title = "Sentence Mover's"
    note = (
        "S+WMS on tokens of the preset's encoder, last layer (the original: on words of GloVe or ELMo); without "
        "spaCy's English stop words (the original: NLTK's); best over the references"
    )

    def represent(self, texts: Collection[str]) -> dict[str, Bag | None]:
        """Return bags; None for a text without tokens."""
        split = {text: sentences(text) for text in texts}
        tokens = self.encoder.encode([sentence for parts in split.values() for sentence in parts])
        return {text: self._bag([tokens[sentence] for sentence in parts]) for text, parts in split.items()}

    def similarity(self, candidate: Bag | None, reference: Bag | None) -> float:
        """Return a number in [0, 1]."""
        return 0.0 if candidate is None or reference is None else math.exp(-movers_distance(candidate, reference))

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


# Baselines


class ContextCosine(Metric):
    """Cosine of the candidate with its context; 0 if the context is blank."""

    title = "cosine with context (cut)"
    note = "the context is one text; the encoder is given the beginning that fits its window"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the cosines of sentence vectors."""
        pairs = [(row.candidate, as_prose(row.prompt)) for row in rows]
        encodings = self.models.calls.encode([text for pair in pairs if pair[1].strip() for text in pair])
        return [
            float(encodings[candidate].vector @ encodings[context].vector) if context.strip() else 0.0
            for candidate, context in pairs
        ]


class Perplexity(Metric):
    """Minus the perplexity of a candidate's tokens after begin-of-text, -exp(-mean log probability)."""

    title = "-perplexity"
    note = "under the preset's language model after begin-of-text alone; at least minus the size of the vocabulary"
    kind: ClassVar[str] = "alone"  # field of the log probability

    @cached_property
    def minimum(self) -> float:  # type: ignore[override]
        """Return minus the perplexity of a uniform guess."""
        return -float(self.models.calls.language_model().vocabulary)

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """Return the perplexities."""
        pairs = [(row.prompt, row.candidate) for row in rows]
        # The limit is that of variant "plus", so that its log probabilities come from the cache.
        log_p = self.models.calls.log_probability(pairs, PlusConfig().max_context_tokens)
        return [-math.exp(-getattr(log_p[pair], self.kind)) for pair in pairs]


class ContextPerplexity(Perplexity):
    """Minus the perplexity of a candidate's tokens after the context and a space."""

    title = "-perplexity given context"
    note = (
        "under the preset's language model given the context and a space; the context is cut from its end to "
        f"{PlusConfig().max_context_tokens} tokens, or to what the window leaves; at least minus the size of the "
        "vocabulary"
    )
    kind = "given_context"
