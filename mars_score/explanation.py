"""Explain scores by matching words, most similar texts and verdicts, as plain data, text and escaped HTML."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mars_score.findings import Finding, findings_of, marked_parts
from mars_score.rows import Row, RowScore
from mars_score.sentences import sentences

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding

CSS = Path(__file__).with_name("explanation.css")
# A single hue from light to dark: people with any kind of colour vision can tell its shades apart.
LEGEND = (
    '<p class="mars-legend">Words by their match with a word of the candidate: '
    + "".join(
        f'<span class="mars-word" style="--match:{step}%">{step / 100:g}</span>' for step in range(0, 101, 25)
    )
    + " The partner is shown when a word is pointed at or focused.</p>"
)
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")  # Each letter counts as a word.
_KINDS = {"context": "nearest sentence of the context", "sample": "nearest sample"}  # kinds of matches in HTML


@dataclass(frozen=True)
class Word:
    """A word of a reference or a sample.

    Attributes:
        text: the word as written.
        start: index of its first character in the text.
        similarity: mean over its tokens of the largest cosine with a token of the candidate, or None.
        share: its share of the text's tokens. The sum of share times similarity is the text's token recall.
        partner: the word of the candidate that its best token matches, or "".
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
        kind: ``"reference"``, ``"masked 20%"`` (an infill), ``"sample"``, or ``"context"`` (a sentence of it).
        text: the text.
        similarity: token recall or cosine, as in the score. For a sentence of the context it is the cosine.
        words: words of the text, if the score compares tokens.
    """

    kind: str
    text: str
    similarity: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The reasons of a candidate's score. A blank candidate has neither terms nor matches.

    Attributes:
        row: the row as it was scored.
        score: its score with terms, aspects and verdicts.
        matches: each reference, its most similar infill if that is more similar, the most similar sample, and the
            most similar sentence of the context.
    """

    row: Row
    score: RowScore
    matches: tuple[Match, ...] = ()

    @property
    def candidate(self) -> str:
        """Return the text of the candidate."""
        return self.row.candidate

    @property
    def points(self) -> dict[str, float]:
        """Return weight times value of each term. Their sum is the score."""
        return {term.name: term.weight * term.value for term in self.score.terms}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the contradicted and unsupported sentences of the candidate."""
        return findings_of(self.row, self.score)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        score = self.score.to_dict()
        kept = ("score", "terms", "aspects", "contradicted", "supported", "unsupported")
        return {
            "candidate": self.candidate,
            **{name: score[name] for name in kept},
            "points": self.points,
            "matches": [asdict(match) for match in self.matches],
        }

    def lines(self) -> list[str]:
        """Return a line for each term with a value other than 0, and a line for the aspects."""
        products = [
            f"{term.name}: {term.weight:.3f} x {term.value:.3f} = {term.weight * term.value:.3f}"
            for term in self.score.terms
            if term.value
        ]
        aspects = str(self.score.aspects)
        return [*products, f"aspects: {aspects}"] if aspects else products

    def __str__(self) -> str:
        lines = [f"{self.score.score:.4f}  {self.candidate or '(blank candidate)'}"]
        lines += [f"  {line}" for line in self.lines()]
        for match in self.matches:
            lines.append(f"  {match.kind} {match.similarity:.3f}: {match.text}")
            words = "  ".join(map(_matched, match.words))
            lines += textwrap.wrap(words, 100, initial_indent=" " * 6, subsequent_indent=" " * 6)
        for finding in self.findings:
            lines.append(f"  {finding.label}: {finding.verdict.sentence}")
            lines += [f"      {line}" for line in finding.reasons]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return page_of([self])


def _matched(word: Word) -> str:
    """Show a word, its partner and their similarity: ``boat=ferry(.71)``."""
    if word.similarity is None:
        return f"{word.text}=(not encoded)"
    return f"{word.text}={word.partner}({word.similarity:.2f})" if word.partner else f"{word.text}=(nothing)"


def match_page(match: Match) -> str:
    """Write a match as HTML with coloured words, which show their partners on hover and focus."""
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


def finding_page(finding: Finding) -> str:
    """Write a finding as HTML: the sentence with its wrong words marked, and the reasons."""
    sentence = marked_page(finding.verdict.sentence, [finding])
    reasons = "".join(f"<small>{escape(line)}</small>" for line in finding.reasons)
    return f'<p class="mars-verdict mars-{finding.label}"><b>{finding.label}</b> {sentence}{reasons}</p>'


def marked_page(text: str, findings: Iterable[Finding]) -> str:
    """Write a text as HTML with the wrong words of the findings marked."""
    parts = [(escape(part), is_wrong) for part, is_wrong in marked_parts(text, findings)]
    return "".join(f"<mark>{part}</mark>" if is_wrong else part for part, is_wrong in parts)


def page_of(explanations: Sequence[Explanation]) -> str:
    """Write explanations as HTML, with styles and a legend."""
    has_words = any(match.words for explanation in explanations for match in explanation.matches)
    legend = LEGEND if has_words else ""
    style = f"<style>{CSS.read_text(encoding='utf-8')}</style>"
    return f'{style}<div class="mars-notebook">{"".join(map(_section, explanations))}{legend}</div>'


def _section(explanation: Explanation) -> str:
    lines = "<br>".join(map(escape, explanation.lines()))
    findings = explanation.findings
    candidate = marked_page(explanation.candidate, findings)
    parts = [*map(finding_page, findings), *map(match_page, explanation.matches)]
    return (
        f"<section><p><b>{explanation.score.score:.3f}</b> {candidate}</p>"
        f'<p class="mars-legend">{lines}</p><div class="mars-explained">{"".join(parts)}</div></section>'
    )


# Making explanations


def explain(
    rows: Sequence[Row], scores: Sequence[RowScore], calls: ModelCalls, *, match_tokens: bool
) -> tuple[Explanation, ...]:
    """Explain the scores of rows.

    Args:
        rows: the rows as they were scored.
        scores: one score per row.
        calls: the models.
        match_tokens: whether the score compares tokens, so that words have partners.

    Raises:
        ModelUnavailableError: a model cannot be loaded.
    """
    shown = [_nearest_texts(score) for score in scores]
    texts = [row.candidate for row, score in zip(rows, scores, strict=True) if score.terms]
    texts += [match.text for matches in shown for match in matches]
    encodings = calls.encode(texts, tokens=match_tokens)
    offsets = calls.token_offsets(list(encodings)) if match_tokens else {}
    tokenized = {text: _Tokenized.of(text, encodings[text], offsets[text]) for text in offsets}
    nearest = _nearest_sentences(rows, scores, encodings, calls)
    return tuple(
        Explanation(row, score, (*_with_words(matches, row.candidate, tokenized), *nearest.get(row, ())))
        for row, score, matches in zip(rows, scores, shown, strict=True)
    )


def _nearest_texts(score: RowScore) -> list[Match]:
    """Return the references, their most similar infills if these are more similar, and the most similar sample."""
    matches = []
    for reference in score.references:
        first, *infills = (Match(kind, text, similarity) for kind, similarity, text in reference.compared)
        best = max(infills, key=lambda infill: infill.similarity, default=first)
        matches += [first, best] if best.similarity > first.similarity else [first]
    if score.samples:
        sample = max(score.samples, key=lambda sample: sample.similarity)
        matches.append(Match("sample", sample.text, sample.similarity))
    return matches


def _with_words(
    matches: Sequence[Match], candidate: str, tokenized: Mapping[str, _Tokenized | None]
) -> Iterator[Match]:
    target = tokenized.get(candidate)
    for match in matches:
        source = tokenized.get(match.text)
        yield replace(match, words=tuple(source.match(target))) if source and target else match


def _nearest_sentences(
    rows: Sequence[Row], scores: Sequence[RowScore], encodings: dict[str, Encoding], calls: ModelCalls
) -> dict[Row, tuple[Match, ...]]:
    """Return the most similar sentence of the context for rows whose score has the term ``"context"``."""
    with_context = [
        row for row, score in zip(rows, scores, strict=True) if any(term.name == "context" for term in score.terms)
    ]
    parts = {context: sentences(context) for context in dict.fromkeys(row.context for row in with_context)}
    encodings = calls.encode(text for texts in parts.values() for text in texts) | encodings
    nearest = {}
    for row in with_context:
        matches = [
            Match("context", text, float(encodings[row.candidate].vector @ encodings[text].vector))
            for text in parts[row.context]
        ]
        nearest[row] = tuple(sorted(matches, key=lambda match: -match.similarity)[:1])
    return nearest


def words_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield start and text of each word: a run of letters, combining marks and digits, or another character."""
    for kind, characters in groupby(enumerate(text), lambda pair: _word_kind(*pair)):
        if kind is not None:
            run = list(characters)
            yield run[0][0], "".join(character for _, character in run)


def _word_kind(index: int, character: str) -> int | None:
    """Return -1 for a character of a run, None for white space, else the index."""
    if character.isspace():
        return None
    is_word = unicodedata.category(character)[0] in "LMN" and character != "_"
    return -1 if is_word and not unicodedata.name(character, "").startswith(_UNSPACED) else index


@dataclass(frozen=True)
class _Tokenized:
    """A text with its token vectors and the word of each token."""

    text: str
    vectors: NDArray[np.floating]  # (tokens, dimensions); at least one token
    words: list[tuple[int, str]]  # start and text of each word; at least one word
    word_ids: NDArray[np.int64]  # (tokens,)

    @classmethod
    def of(cls, text: str, encoding: Encoding, offsets: Sequence[tuple[int, int]]) -> _Tokenized | None:
        """Assign each token to the last word that begins before its end, or None without tokens or words."""
        words = list(words_of(text))
        if encoding.tokens is None or not (words and len(encoding.tokens) == len(offsets) > 0):
            return None
        starts, ends = [start for start, _ in words], [max(start + 1, end) for start, end in offsets]
        word_ids = np.maximum(np.searchsorted(starts, ends, side="left") - 1, 0)
        return cls(text, encoding.tokens.astype(np.float64), words, word_ids)

    def match(self, candidate: _Tokenized) -> Iterator[Word]:
        """Yield the words with their best matches in the candidate."""
        cosines = self.vectors @ candidate.vectors.T
        best, partners = cosines.max(axis=1), candidate.word_ids[cosines.argmax(axis=1)]
        if self.text == candidate.text:  # Their similarity is 1 also for tokens with a vector of zeros.
            best, partners = np.ones(len(best)), self.word_ids
        for number, (start, text) in enumerate(self.words):
            tokens = np.flatnonzero(self.word_ids == number)
            if not len(tokens):
                yield Word(text, start, None, 0.0, "")
                continue
            strongest = tokens[best[tokens].argmax()]
            partner = candidate.words[partners[strongest]][1] if best[strongest] > 0 else ""
            yield Word(text, start, float(best[tokens].mean()), len(tokens) / len(self.word_ids), partner)
