"""Scores -> explanations: token recall's matches by word, and what of context and samples is nearest."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mars_score.data.contexts import passages_of
from mars_score.data.sentences import sentences
from mars_score.scoring.embeddings import Embedding
from mars_score.scoring.entailment import Premises, premises, verdict
from mars_score.scoring.evidence import EMBED, ENTAILMENT, MATCH, Reader
from mars_score.scoring.explain.explanation import Explanation, Match, Word
from mars_score.scoring.form import Form
from mars_score.scoring.result import RowScore

# Scripts without spaces: each letter is a word.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
Offsets = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class _Text:
    """A text as the encoder reads it.

    Attributes:
        text: the text.
        vectors: of its tokens, (tokens, dimensions).
        words: first character and text of each word.
        of_tokens: the number of the word of each token.
    """

    text: str
    vectors: NDArray[np.float64]
    words: list[tuple[int, str]]
    of_tokens: NDArray[np.int64]

    @classmethod
    def of(cls, text: str, embedding: Embedding, offsets: Offsets) -> _Text:
        """Each token belongs to the last word that begins before its end, so that a leading space does no harm."""
        words = list(words_of(text))
        starts = [start for start, _ in words]
        ends = [max(start + 1, end) for start, end in offsets]
        of_tokens = np.maximum(np.searchsorted(starts, ends, side="left") - 1, 0)
        return cls(text, embedding.tokens, words, of_tokens)

    def matched(self, candidate: _Text) -> tuple[Word, ...]:
        """Its words against those of the candidate; none where tokens and words are not known."""
        known = self.words and len(self.vectors) == len(self.of_tokens) > 0
        if not (known and len(candidate.vectors) == len(candidate.of_tokens) > 0):
            return ()
        cosines = self.vectors @ candidate.vectors.T
        best, partners = cosines.max(axis=1), candidate.of_tokens[cosines.argmax(axis=1)]
        if self.text == candidate.text:  # which counts as 1, whatever the tokenizer leaves of it
            best, partners = np.ones(len(best)), self.of_tokens
        return tuple(
            self._word(number, np.flatnonzero(self.of_tokens == number), best, partners, candidate)
            for number in range(len(self.words))
        )

    def _word(
        self,
        number: int,
        tokens: NDArray[np.int64],
        best: NDArray[np.float64],
        partners: NDArray[np.int64],
        candidate: _Text,
    ) -> Word:
        start, text = self.words[number]
        if not len(tokens):
            return Word(text, start, None, 0.0, "")
        strongest = tokens[best[tokens].argmax()]
        partner = candidate.words[partners[strongest]][1] if best[strongest] > 0 else ""
        return Word(text, start, float(best[tokens].mean()), len(tokens) / len(self.of_tokens), partner)


def words_of(text: str) -> Iterator[tuple[int, str]]:
    """First character and text of each word: runs of letters, marks and digits; any other character by itself."""
    for kind, characters in groupby(enumerate(text), lambda pair: _kind(*pair)):
        if kind is not None:
            run = list(characters)
            yield run[0][0], "".join(character for _, character in run)


def _kind(place: int, character: str) -> int | None:
    """-1 in a word of several characters, None between words, else a number of its own."""
    if character.isspace():
        return None
    is_word = unicodedata.category(character)[0] in "LMN" and character != "_"
    return -1 if is_word and not unicodedata.name(character, "").startswith(_UNSPACED) else place


def explain(
    candidates: Sequence[str], contexts: Sequence[str], rows: Sequence[RowScore], reader: Reader, form: Form
) -> list[Explanation]:
    """The explanation of each score.

    Args:
        candidates: without outer whitespace.
        contexts: blank for none.
        rows: their scores.
        reader: of the settings that the rows were scored with; loads the encoder.
        form: likewise.

    Raises:
        ModelUnavailableError: the encoder cannot be loaded.
    """
    texts = _Texts(candidates, rows, reader, form)
    of_contexts = [
        [sentence for passage in passages_of(context) for sentence in sentences(passage)]
        if any(term.name == "context" for term in row.terms)
        else []
        for context, row in zip(contexts, rows, strict=True)
    ]
    nearby = reader.read(EMBED, [sentence for of_context in of_contexts for sentence in of_context])
    judged = [_premises(*one) for one in zip(candidates, rows, contexts, strict=True)]
    read = reader.read(ENTAILMENT, [pair for of_row in judged for one in of_row for pair in one.pairs])
    explanations = []
    for candidate, row, of_context, of_row in zip(candidates, rows, of_contexts, judged, strict=True):
        matches = texts.matches(candidate, row)
        if of_context:
            own = texts.read[candidate].vector
            cosines = [float(own @ nearby[sentence].vector) for sentence in of_context]
            closest = int(np.argmax(cosines))
            matches.append(Match("context", of_context[closest], cosines[closest]))
        verdicts = tuple(verdict(one, read) for one in of_row if one.pairs)
        explanations.append(Explanation(candidate, row.score, row.terms, tuple(matches), verdicts))
    return explanations


def _premises(candidate: str, row: RowScore, context: str) -> list[Premises]:
    """What the sentences of a candidate are compared with; none where the score has no term of that."""
    if not any(term.name == "contradiction" for term in row.terms):
        return []
    return premises(candidate, [one.augmented.reference for one in row.references], context)


class _Texts:
    """What candidates were compared with, as the encoder reads it."""

    def __init__(self, candidates: Sequence[str], rows: Sequence[RowScore], reader: Reader, form: Form) -> None:
        compared = [
            text
            for candidate, row in zip(candidates, rows, strict=True)
            if row.terms
            for text in (
                candidate,
                *(text for reference in row.references for text in reference.augmented.texts),
                *(sample.text for sample in row.samples),
            )
        ]
        by_tokens = form.matching == "tokens"
        self.read = reader.read(MATCH if by_tokens else EMBED, compared)
        offsets = reader.offsets(list(self.read)) if by_tokens else {}
        self._texts = {text: _Text.of(text, self.read[text], offsets[text]) for text in offsets}

    def matches(self, candidate: str, row: RowScore) -> list[Match]:
        """Each reference and, if it is nearer, the nearest of its infills; and the nearest sample."""
        nearest = []
        for reference in row.references:
            first, *infills = reference.compared
            best = max(infills, key=lambda infill: infill[1], default=first)
            nearest += [first, best] if best[1] > first[1] else [first]
        if row.samples:
            sample = max(row.samples, key=lambda sample: sample.similarity)
            nearest.append(("sample", sample.similarity, sample.text))
        return [Match(kind, text, value, self._words(text, candidate)) for kind, value, text in nearest]

    def _words(self, text: str, candidate: str) -> tuple[Word, ...]:
        return self._texts[text].matched(self._texts[candidate]) if self._texts else ()
