"""Explanations of scores: as plain data, as text, and as HTML, in which all texts are escaped."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from mars_score.rows import Aspects, Term

CSS = Path(__file__).with_name("explanation.css")
# One hue from light to dark, which every kind of colour vision tells apart.
LEGEND = (
    '<p class="mars-legend">Words by their match with a word of the candidate: '
    + "".join(f'<span class="mars-word" style="--match:{one}%">{one / 100:g}</span>' for one in range(0, 101, 25))
    + " The partner is shown when a word is pointed at or focused.</p>"
)
_KINDS = {"context": "nearest sentence of the context", "sample": "nearest sample"}  # of matches, as shown


@dataclass(frozen=True)
class Word:
    """A word of a reference or a sample.

    Attributes:
        text: as written.
        start: index of its first character.
        similarity: mean over its tokens of their largest cosine with a token of the candidate; None for a word
            without a token.
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
class Verdict:
    """What the NLI model says of a sentence, where that can be believed.

    Attributes:
        sentence: of the candidate.
        verdict: ``"supported"`` or ``"contradicted"``.
        probability: of the verdict.
        premise: the reference, or the passage of the context, that says so.
    """

    sentence: str
    verdict: str
    probability: float
    premise: str


@dataclass(frozen=True)
class Explanation:
    """Why a candidate has its score; one of a blank candidate has neither terms nor matches.

    Attributes:
        candidate: the candidate.
        score: the sum of the terms' values times weights.
        terms: of the score.
        matches: each reference and, if it is nearer, the nearest of its infills; the nearest sample; the nearest
            sentence of the context.
        verdicts: on sentences of the candidate, where there are some (:func:`mars_score.verdicts.verdict_on`).
        aspects: single sides of the candidate.
    """

    candidate: str
    score: float
    terms: tuple[Term, ...] = ()
    matches: tuple[Match, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    aspects: Aspects = field(default_factory=Aspects)

    @property
    def points(self) -> dict[str, float]:
        """Return what each term gave; their sum is the score."""
        return {term.name: term.weight * term.value for term in self.terms}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {**asdict(self), "points": self.points, "aspects": self.aspects._asdict()}

    def lines(self) -> list[str]:
        """Return a line for each term that adds something, and one of the aspects."""
        sums = [
            f"{term.name}: {term.weight:.3f} x {term.value:.3f} = {self.points[term.name]:.3f}"
            for term in self.terms
            if term.value
        ]
        return [*sums, f"aspects: {self.aspects}"] if str(self.aspects) else sums

    def __str__(self) -> str:
        lines = [
            f"{self.score:.4f}  {self.candidate or '(blank candidate)'}",
            *(f"  {line}" for line in self.lines()),
        ]
        for match in self.matches:
            lines.append(f"  {match.kind} {match.similarity:.3f}: {match.text}")
            words = "  ".join(map(_matched, match.words))
            lines += textwrap.wrap(words, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
        for verdict in self.verdicts:
            lines.append(f"  {verdict.verdict} {verdict.probability:.2f}: {verdict.sentence}")
            lines.append(f"      by: {verdict.premise}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return page_of([self])


def _matched(word: Word) -> str:
    """Show a word, its partner and their similarity: ``boat=ferry(.71)``."""
    if word.similarity is None:
        return f"{word.text}=(not encoded)"
    return f"{word.text}={word.partner}({word.similarity:.2f})" if word.partner else f"{word.text}=(nothing)"


def match_page(match: Match) -> str:
    """Show a text with its words coloured; on hover and focus each shows its partner."""
    parts, done = [], 0
    for word in match.words:
        parts += [escape(match.text[done : word.start]), _word(word)]
        done = word.start + len(word.text)
    text = "".join([*parts, escape(match.text[done:])])
    kind = escape(_KINDS.get(match.kind, match.kind))
    return f'<p class="mars-match"><small>{kind} {match.similarity:.2f}</small> <span>{text}</span></p>'


def _word(word: Word) -> str:
    if word.similarity is None:
        return f'<span class="mars-unencoded">{escape(word.text)}</span>'
    partner = f"{word.partner} {word.similarity:.2f}" if word.partner else "no match"
    shade = round(100 * min(max(word.similarity, 0.0), 1.0))
    return (
        f'<span class="mars-word" tabindex="0" style="--match:{shade}%" '
        f'aria-description="{escape(partner)}">{escape(word.text)}</span>'
    )


def verdict_page(verdict: Verdict) -> str:
    """Show a sentence of the candidate with its verdict, and what says so."""
    label = f"{verdict.verdict} {verdict.probability:.2f}"
    premise = f"<small>by: {escape(verdict.premise)}</small>"
    return f'<p class="mars-verdict mars-{verdict.verdict}"><b>{label}</b> {escape(verdict.sentence)}{premise}</p>'


def page_of(explanations: Sequence[Explanation]) -> str:
    """Show explanations with their scores, terms and styles."""
    legend = LEGEND if any(match.words for one in explanations for match in one.matches) else ""
    style = f"<style>{CSS.read_text(encoding='utf-8')}</style>"
    return f'{style}<div class="mars-notebook">{"".join(map(_section, explanations))}{legend}</div>'


def _section(explanation: Explanation) -> str:
    lines = "<br>".join(map(escape, explanation.lines()))
    parts = [*map(verdict_page, explanation.verdicts), *map(match_page, explanation.matches)]
    return (
        f"<section><p><b>{explanation.score:.3f}</b> {escape(explanation.candidate)}</p>"
        f'<p class="mars-legend">{lines}</p><div class="mars-explained">{"".join(parts)}</div></section>'
    )
