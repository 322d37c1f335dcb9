"""Scores -> explanations: matching words, the nearest texts of context and samples, verdicts on sentences."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mars_score.explanation import Explanation, Match, Word
from mars_score.metrics.plus import PlusConfig
from mars_score.models.calls import ModelCalls
from mars_score.rows import Row, RowScore
from mars_score.settings import Settings
from mars_score.text import sentences
from mars_score.verdicts import judge, verdict_on

if TYPE_CHECKING:
    from mars_score.models.encoder import Encoding

# Scripts without spaces: each letter is a word.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def explain(
    rows: Sequence[Row], scores: Sequence[RowScore], settings: Settings, calls: ModelCalls
) -> tuple[Explanation, ...]:
    """Explain the score of each row, with the settings and models that it was scored with.

    Raises:
        ModelUnavailableError: a model cannot be loaded.
    """
    config = settings.config if isinstance(settings.config, PlusConfig) else None
    explainer = _Explainer([pair for pair in zip(rows, scores, strict=True) if pair[1].terms], config, calls)
    return tuple(explainer.explain(row, score) for row, score in zip(rows, scores, strict=True))


class _Explainer:
    """The model outputs that the explanations of some scored rows need."""

    def __init__(
        self, scored: Sequence[tuple[Row, RowScore]], config: PlusConfig | None, calls: ModelCalls
    ) -> None:
        texts = [text for row, score in scored for text in (row.candidate, *score.texts)]
        self._encodings = calls.encode(texts, tokens=config is not None)
        offsets = calls.token_offsets(list(self._encodings)) if config else {}
        self._tokenized = {text: _Tokenized.of(text, self._encodings[text], offsets[text]) for text in offsets}
        self._sentences = {row.context: sentences(row.context) for row, score in scored if _has_context(score)}
        self._nearby = calls.encode(sentence for parts in self._sentences.values() for sentence in parts)
        judged = [
            row for row, score in scored if {"support", "contradiction"} & {term.name for term in score.terms}
        ]
        self._judgements = judge(judged, config, calls) if config else {}
        self._model = calls.models.entailment_model

    def explain(self, row: Row, score: RowScore) -> Explanation:
        """Explain the score of a row; that of a blank candidate has neither terms nor matches."""
        matches = [self._match(row.candidate, *compared) for compared in _nearest_texts(score)]
        if _has_context(score) and (texts := self._sentences[row.context]):
            own = self._encodings[row.candidate].vector
            cosines = {text: float(own @ self._nearby[text].vector) for text in texts}
            nearest = max(cosines, key=cosines.__getitem__)
            matches.append(Match("context", nearest, cosines[nearest]))
        verdicts = [verdict_on(one, row, self._model) for one in self._judgements.get(row, ())]
        return Explanation(
            row.candidate,
            score.score,
            score.terms,
            tuple(matches),
            tuple(one for one in verdicts if one),
            score.aspects,
        )

    def _match(self, candidate: str, kind: str, similarity: float, text: str) -> Match:
        own, other = self._tokenized.get(candidate), self._tokenized.get(text)
        return Match(kind, text, similarity, tuple(other.match(own)) if own and other else ())


def words_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield first character and text of each word: runs of letters, marks and digits; others by themselves."""
    for kind, characters in groupby(enumerate(text), lambda pair: _word_kind(*pair)):
        if kind is not None:
            run = list(characters)
            yield run[0][0], "".join(character for _, character in run)


def _word_kind(index: int, character: str) -> int | None:
    """Return -1 in a word of several characters, None between words, else a number of its own."""
    if character.isspace():
        return None
    is_word = unicodedata.category(character)[0] in "LMN" and character != "_"
    return -1 if is_word and not unicodedata.name(character, "").startswith(_UNSPACED) else index


def _has_context(score: RowScore) -> bool:
    return any(term.name == "context" for term in score.terms)


def _nearest_texts(score: RowScore) -> Iterator[tuple[str, float, str]]:
    """Yield each reference and, if it is nearer, the nearest of its infills; and the nearest sample."""
    for reference in score.references:
        first, *infills = reference.compared
        yield first
        best = max(infills, key=lambda infill: infill[1], default=first)
        if best[1] > first[1]:
            yield best
    if score.samples:
        sample = max(score.samples, key=lambda sample: sample.similarity)
        yield "sample", sample.similarity, sample.text


@dataclass(frozen=True)
class _Tokenized:
    """A text with the vectors of its tokens, and the word that each token belongs to."""

    text: str
    vectors: NDArray[np.floating]  # (tokens, dimensions); at least one
    words: list[tuple[int, str]]  # first character and text of each; at least one
    word_ids: NDArray[np.int64]  # of each token

    @classmethod
    def of(cls, text: str, encoding: Encoding, offsets: Sequence[tuple[int, int]]) -> _Tokenized | None:
        """Assign each token to the last word that begins before its end; None: tokens or words are not known."""
        words = list(words_of(text))
        if encoding.tokens is None or not (words and len(encoding.tokens) == len(offsets) > 0):
            return None
        starts, ends = [start for start, _ in words], [max(start + 1, end) for start, end in offsets]
        word_ids = np.maximum(np.searchsorted(starts, ends, side="left") - 1, 0)
        return cls(text, encoding.tokens.astype(np.float64), words, word_ids)

    def match(self, candidate: _Tokenized) -> Iterator[Word]:
        """Yield the words with their best matches among those of the candidate."""
        cosines = self.vectors @ candidate.vectors.T
        best, partners = cosines.max(axis=1), candidate.word_ids[cosines.argmax(axis=1)]
        if self.text == candidate.text:  # which counts as 1, whatever the tokenizer leaves of it
            best, partners = np.ones(len(best)), self.word_ids
        for number, (start, text) in enumerate(self.words):
            tokens = np.flatnonzero(self.word_ids == number)
            if not len(tokens):
                yield Word(text, start, None, 0.0, "")
                continue
            strongest = tokens[best[tokens].argmax()]
            partner = candidate.words[partners[strongest]][1] if best[strongest] > 0 else ""
            yield Word(text, start, float(best[tokens].mean()), len(tokens) / len(self.word_ids), partner)
