"""Scores -> explanations: token recall's matches by word, and what of context and samples is nearest."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row
from mars_score.metrics.explanation import Explanation, Match, Word
from mars_score.scoring.embeddings import Embedding
from mars_score.scoring.entailment import premises, verdict
from mars_score.scoring.evidence import EMBED, ENTAILMENT, MATCH, Reader, kind_of_texts
from mars_score.scoring.form import Form
from mars_score.scoring.result import RowScore

# Scripts without spaces: each letter is a word.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class _Tokenized:
    """A text as the encoder reads it."""

    text: str
    vectors: NDArray[np.float64]  # of its tokens, (tokens, dimensions); at least one
    words: list[tuple[int, str]]  # first character and text of each; at least one
    of_tokens: NDArray[np.int64]  # the number of the word of each token

    @classmethod
    def of(cls, text: str, embedding: Embedding, offsets: Sequence[tuple[int, int]]) -> _Tokenized | None:
        """Each token belongs to the last word that begins before its end, so that a leading space does no harm.

        None where tokens and words are not known.
        """
        vectors, words = embedding.tokens, list(words_of(text))
        if not (words and len(vectors) == len(offsets) > 0):
            return None
        starts, ends = [start for start, _ in words], [max(start + 1, end) for start, end in offsets]
        return cls(text, vectors, words, np.maximum(np.searchsorted(starts, ends, side="left") - 1, 0))

    def matched(self, candidate: _Tokenized) -> Iterator[Word]:
        """Its words against those of the candidate."""
        cosines = self.vectors @ candidate.vectors.T
        best, partners = cosines.max(axis=1), candidate.of_tokens[cosines.argmax(axis=1)]
        if self.text == candidate.text:  # which counts as 1, whatever the tokenizer leaves of it
            best, partners = np.ones(len(best)), self.of_tokens
        for number, (start, text) in enumerate(self.words):
            tokens = np.flatnonzero(self.of_tokens == number)
            if not len(tokens):
                yield Word(text, start, None, 0.0, "")
                continue
            strongest = tokens[best[tokens].argmax()]
            partner = candidate.words[partners[strongest]][1] if best[strongest] > 0 else ""
            yield Word(text, start, float(best[tokens].mean()), len(tokens) / len(self.of_tokens), partner)


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
    rows: Sequence[Row], scores: Sequence[RowScore], reader: Reader, form: Form
) -> tuple[Explanation, ...]:
    """The explanation of each row's score, by a reader and a form of the settings that it was scored with.

    Raises:
        ModelUnavailableError: the encoder cannot be loaded.
    """
    scored, kind = list(zip(rows, scores, strict=True)), kind_of_texts(form)
    terms = [{term.name for term in score.terms} for score in scores]
    texts = [text for row, score in scored if score.terms for text in (row.candidate, *score.texts)]
    read = reader.read(kind, texts)
    offsets = reader.offsets(list(read)) if kind == MATCH else {}
    tokenized = {text: _Tokenized.of(text, read[text], offsets[text]) for text in offsets}
    contexts = [
        sentences(row.context) if "context" in names else [] for row, names in zip(rows, terms, strict=True)
    ]
    nearby = reader.read(EMBED, [sentence for of_row in contexts for sentence in of_row])
    compared = [
        premises(row.candidate, [reference.augmented.reference for reference in score.references], row.context)
        if "contradiction" in names
        else []
        for (row, score), names in zip(scored, terms, strict=True)
    ]
    entailed = reader.read(ENTAILMENT, [pair for of_row in compared for item in of_row for pair in item.pairs])
    explanations = []
    for (row, score), context, items in zip(scored, contexts, compared, strict=True):
        matches = []
        for name, similarity, text in _nearest(score):
            of_text, of_candidate = tokenized.get(text), tokenized.get(row.candidate)
            words = of_text.matched(of_candidate) if of_text and of_candidate else ()
            matches.append(Match(name, text, similarity, tuple(words)))
        if context:
            own = read[row.candidate].vector
            cosines = [float(own @ nearby[sentence].vector) for sentence in context]
            closest = int(np.argmax(cosines))
            matches.append(Match("context", context[closest], cosines[closest]))
        verdicts = tuple(verdict(item, entailed) for item in items if item.pairs)
        explanations.append(Explanation(row.candidate, score.score, score.terms, tuple(matches), verdicts))
    return tuple(explanations)


def _nearest(score: RowScore) -> Iterator[tuple[str, float, str]]:
    """Each reference and, if it is nearer, the nearest of its infills; and the nearest sample."""
    for reference in score.references:
        first, *infills = reference.compared
        yield first
        best = max(infills, key=lambda infill: infill[1], default=first)
        if best[1] > first[1]:
            yield best
    if score.samples:
        sample = max(score.samples, key=lambda sample: sample.similarity)
        yield "sample", sample.similarity, sample.text
