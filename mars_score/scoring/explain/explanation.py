"""What explains a score, as plain data and as text; :mod:`mars_score.scoring.explain.page` has it as HTML."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from mars_score.scoring.result import Term


@dataclass(frozen=True)
class Word:
    """A word of a reference or a sample.

    Attributes:
        text: as written.
        start: its place among the text's characters.
        similarity: mean over its tokens of their largest cosine with a token of the candidate; None for a word
            that the encoder does not read.
        share: of the text's tokens, in [0, 1]: a text's token recall is the sum of share times similarity.
        partner: the word of the candidate that its best token matches; blank for none.
    """

    text: str
    start: int
    similarity: float | None
    share: float
    partner: str


@dataclass(frozen=True)
class Match:
    """A text that the candidate was compared with.

    Attributes:
        kind: ``"reference"``, ``"masked 20%"`` and the like, ``"sample"``, or ``"context"``: one sentence of it.
        text: the text.
        similarity: as it counts in the score; for a sentence of the context the cosine.
        words: of the text; none without token recall.
    """

    kind: str
    text: str
    similarity: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why a candidate has its score; one of a blank candidate has neither terms nor matches.

    Attributes:
        candidate: the candidate.
        score: the sum of the terms' values times weights.
        terms: of the score.
        matches: each reference and, if it is nearer, the nearest of its infills; the nearest sample; the nearest
            sentence of the context.
    """

    candidate: str
    score: float
    terms: tuple[Term, ...] = ()
    matches: tuple[Match, ...] = ()

    @property
    def points(self) -> dict[str, float]:
        """What each term gave; their sum is the score."""
        return {term.name: term.weight * term.value for term in self.terms}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "points": self.points}

    def sums(self) -> list[str]:
        """A line for each term that adds something."""
        return [
            f"{term.name}: {term.weight:.2f} x {term.value:.3f} = {self.points[term.name]:.3f}"
            for term in self.terms
            if term.value
        ]

    def __str__(self) -> str:
        lines = [f"{self.score:.4f}  {self.candidate or '(blank candidate)'}"]
        lines += [f"  {line}" for line in self.sums()]
        for match in self.matches:
            lines.append(f"  {match.kind} {match.similarity:.3f}: {match.text}")
            words = "  ".join(map(_matched, match.words))
            lines += textwrap.wrap(words, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from mars_score.scoring.explain.page import whole_page

        return whole_page([self])


def _matched(word: Word) -> str:
    """A word, its partner and their similarity: ``boat=ferry(.71)``."""
    if word.similarity is None:
        return f"{word.text}=(not read)"
    return f"{word.text}={word.partner}({word.similarity:.2f})" if word.partner else f"{word.text}=(nothing)"
