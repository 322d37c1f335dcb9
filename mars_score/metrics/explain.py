"""Scores -> explanations: which words match which, what of context and samples is nearest, verdicts on sentences."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mars_score.features import LIKELY, Premises, choose_premises
from mars_score.metrics.explanation import Explanation, Match, Verdict, Word
from mars_score.metrics.plus import PlusConfig
from mars_score.models.encoder import Encoding
from mars_score.models.model_calls import ModelCalls
from mars_score.models.nli import Entailment
from mars_score.rows import Row, RowScore
from mars_score.settings import Settings
from mars_score.text import sentences

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
    scored = [(row, score) for row, score in zip(rows, scores, strict=True) if score.terms]
    texts = [text for row, score in scored for text in (row.candidate, *score.texts)]
    encodings = calls.encode(texts, tokens=config is not None)
    offsets = calls.token_offsets(list(encodings)) if config else {}
    tokenized = {text: _Tokenized.of(text, encodings[text], offsets[text]) for text in offsets}
    of_context = {row.context: sentences(row.context) for row, score in scored if _has_term(score, "context")}
    nearby = calls.encode(sentence for parts in of_context.values() for sentence in parts)
    premises = {
        row: choose_premises(row, config) for row, score in scored if config and _has_term(score, "contradiction")
    }
    entailed = calls.entails([pair for chosen in premises.values() for one in chosen for pair in one.pairs])

    def explain_row(row: Row, score: RowScore) -> Explanation:
        matches = []
        for kind, similarity, text in _nearest_texts(score):
            one, candidate = tokenized.get(text), tokenized.get(row.candidate)
            matches.append(Match(kind, text, similarity, tuple(one.match(candidate)) if one and candidate else ()))
        if of_context.get(row.context) and _has_term(score, "context"):
            own = encodings[row.candidate].vector
            cosines = {text: float(own @ nearby[text].vector) for text in of_context[row.context]}
            nearest = max(cosines, key=cosines.__getitem__)
            matches.append(Match("context", nearest, cosines[nearest]))
        verdicts = tuple(judge(one, entailed) for one in premises.get(row, ()) if one.passages)
        return Explanation(row.candidate, score.score, score.terms, tuple(matches), verdicts)

    return tuple(explain_row(row, score) for row, score in zip(rows, scores, strict=True))


def judge(item: Premises, entailed: Mapping[tuple[str, str], Entailment]) -> Verdict:
    """Return the verdict on a sentence: its strongest support if that is likely, else the strongest contradiction."""
    support, supporting = max((entailed[pair].entailment, pair[0]) for pair in item.pairs)
    contradiction, contradicting = max((entailed[pair].contradiction, pair[0]) for pair in item.pairs)
    if support > LIKELY:
        return Verdict(item.sentence, "supported", support, supporting)
    if contradiction > LIKELY:
        return Verdict(item.sentence, "contradicted", contradiction, contradicting)
    return Verdict(item.sentence, "not found", 1 - max(sum(entailed[pair]) for pair in item.pairs), "")


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


def _has_term(score: RowScore, name: str) -> bool:
    return any(term.name == name for term in score.terms)


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
        """Assign each token to the last word that begins before its end; None where tokens or words are not known."""
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
