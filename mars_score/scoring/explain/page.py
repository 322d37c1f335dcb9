"""Explanations as HTML, for notebooks and the Space; all texts are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from mars_score.scoring.explain.explanation import Explanation, Match, Word
from mars_score.scoring.result import MarsResult

SHOWN = 10  # rows in a notebook
CSS = Path(__file__).with_name("words.css")
# One hue from light to dark, which every kind of colour vision tells apart.
LEGEND = (
    '<p class="mars-legend">Words by their match with a word of the candidate: '
    + "".join(f'<span class="mars-word" style="--match:{one}%">{one / 100:g}</span>' for one in range(0, 101, 25))
    + " The partner is shown when a word is pointed at or focused.</p>"
)


def match_page(match: Match) -> str:
    """A text with its words coloured; on hover and focus each shows its partner."""
    name = "nearest sentence of the context" if match.kind == "context" else match.kind
    name = "nearest sample" if match.kind == "sample" else name
    return (
        f'<p class="mars-match"><small>{escape(name)} {match.similarity:.2f}</small> '
        f"<span>{_words(match)}</span></p>"
    )


def _words(match: Match) -> str:
    parts, done = [], 0
    for word in match.words:
        parts += [escape(match.text[done : word.start]), _word(word)]
        done = word.start + len(word.text)
    return "".join([*parts, escape(match.text[done:])])


def _word(word: Word) -> str:
    if word.similarity is None:
        return f'<span class="mars-unread">{escape(word.text)}</span>'
    partner = f"{word.partner} {word.similarity:.2f}" if word.partner else "no match"
    shade = round(100 * min(max(word.similarity, 0.0), 1.0))
    return (
        f'<span class="mars-word" tabindex="0" style="--match:{shade}%" '
        f'aria-description="{escape(partner)}">{escape(word.text)}</span>'
    )


def explanation_page(explanation: Explanation) -> str:
    """The matches of an explanation."""
    return f'<div class="mars-explained">{"".join(map(match_page, explanation.matches))}</div>'


def result_page(result: MarsResult) -> str:
    """The mean score of a result, its signature, and its ``SHOWN`` lowest rows, explained if they can be."""
    texts = zip(result.texts, result.rows, strict=True)
    plain = [Explanation(text.candidate, row.score, row.terms) for text, row in texts]
    lowest = sorted(result.explanations or plain, key=lambda one: one.score)[:SHOWN]
    left = len(result.rows) - len(lowest)
    more = f"<p>The lowest {len(lowest)}; {left} more.</p>" if left else ""
    return (
        f"<p><b>MARS {result.score:.3f}</b>, rows: {len(result.rows)}</p>{more}{whole_page(lowest)}"
        f"<p><small>{escape(str(result.signature))}</small></p>"
    )


def whole_page(explanations: Sequence[Explanation]) -> str:
    """Explanations with their scores, terms and styles."""
    parts = [
        f"<section><p><b>{one.score:.3f}</b> {escape(one.candidate)}</p>"
        f'<p class="mars-legend">{"<br>".join(map(escape, one.sums()))}</p>{explanation_page(one)}</section>'
        for one in explanations
    ]
    legend = LEGEND if any(match.words for one in explanations for match in one.matches) else ""
    style = f"<style>{CSS.read_text(encoding='utf-8')}</style>"
    return f'{style}<div class="mars-notebook">{"".join(parts)}{legend}</div>'
