"""Answers as HTML; texts of visitors and models are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mars_score.scoring.explain.page import LEGEND, match_page
from mars_score.scoring.result import RowScore, Term
from mars_score.space.answer import Answer, Metric

# What the terms of a score are (mars_score.scoring.result.Term), in plain words.
TERMS = {
    "references": "how much of the reference (in part: of the nearest sample) the candidate holds",
    "sentences": "how near its meaning is to that of a reference, where the context is data",
    "context": "how near it is to the nearest part of the context",
    "samples": "how near it is on average to what the language model wrote",
    "likelihood": "its log probability per token (half of it), and what the context adds to that",
    "repetition": "the share of its words that repeat others nearby; in a dialogue, also of those copied from it",
    "contradiction": "the probability that it contradicts the context or a reference",
    # Features that heads learn from ratings.
    "length": "the logarithm of its length beside the reference's",
    "copied": "the share of its words that are copied from the context",
    "log_probability": "its log probability per token",
    "lift": "what the context adds to its log probability per token",
    "encoder": "what an encoder says that was trained on ratings",
}
TERMS_WITHOUT_REFERENCES = {
    **TERMS,
    "samples": "how near it is to what the language model wrote, on average and at best; 0.3 where nothing was",
}
WAITING = '<div class="mars-empty">Press “Score” to see the ranking.</div>'
SCORING = '<div class="mars-empty">Scoring what the link asks for …</div>'
# What the numbers of a card are.
METRICS = {
    "MARS": "from 0 to 1, higher is better: the sum of its terms; compare within a context, with equal settings",
    "Recall": "how much of the reference the candidate holds, by token vectors, as in BERTScore's recall",
    "BLEU": "overlap of word sequences with the reference, 0 to 100 (sacrebleu)",
    "ROUGE-L": "longest common subsequence of words with the reference, 0 to 1 (rouge-score)",
}


def ranking_page(answer: Answer) -> str:
    """The candidates, best first, each with a bar for each metric."""
    items = "".join(_candidate(answer, index, place) for place, index in enumerate(answer.order, 1))
    return (
        f'<p class="mars-headline">{headline(answer)}{_changed_order(answer)}</p>'
        f'<ol class="mars-ranking">{items}</ol>{_legend(answer)}'
    )


def _legend(answer: Answer) -> str:
    """The meaning of each number: metrics, and the terms that some candidate's score has."""
    names = dict.fromkeys(term.name for row in answer.rows if len(_shown(row)) > 1 for term in _shown(row))
    meaning = TERMS if answer.references else TERMS_WITHOUT_REFERENCES
    shown = {**{one.name: METRICS[one.name] for one in answer.metrics}, **{name: meaning[name] for name in names}}
    lines = "".join(f"<dt>{name}</dt><dd>{what}</dd>" for name, what in shown.items())
    words = any(match.words for one in answer.explanations for match in one.matches)
    return f'<dl class="mars-terms">{lines}</dl>{LEGEND if words else ""}'


def _candidate(answer: Answer, index: int, place: int) -> str:
    bars = "".join(_bar(metric, index) for metric in answer.metrics)
    return (
        f'<li class="mars-card"><span class="mars-place">{place}</span>'
        f'<p class="mars-text">{escape(answer.question.candidates[index])}</p>'
        f'<div class="mars-bars">{bars}{_terms(answer.rows[index])}{_alone(answer, index)}'
        f"{_explained(answer, index)}</div></li>"
    )


def _explained(answer: Answer, index: int) -> str:
    """The words of the references by their matches; what else is near, folded."""
    if not answer.explanations:
        return ""
    one = answer.explanations[index]
    rest = "".join(map(match_page, one.matches[len(one.references) :]))
    folded = (
        f"<details><summary>Nearest sample and sentence of the context</summary>{rest}</details>" if rest else ""
    )
    return f'<div class="mars-explained">{"".join(map(match_page, one.references))}{folded}</div>'


def _shown(row: RowScore) -> list[Term]:
    """The terms that add something."""
    return [term for term in row.terms if term.value]


def _alone(answer: Answer, index: int) -> str:
    """The score and rank without what the language model wrote."""
    if answer.alone is None:
        return ""
    moved = " mars-moved" if answer.alone.ranks[index] != answer.metrics[0].ranks[index] else ""
    return (
        f'<p class="mars-hint">Without what the language model wrote: {answer.alone.label(index)} '
        f'<span class="mars-rank{moved}">#{answer.alone.ranks[index]}</span></p>'
    )


def _changed_order(answer: Answer) -> str:
    """Two candidates that what the language model wrote has put into another order, if there are any."""
    if answer.alone is None:
        return ""
    alone = answer.alone.scores
    for place, better in enumerate(answer.order):
        for worse in answer.order[place + 1 :]:
            if alone[worse] > alone[better]:
                lower, upper = (1 + answer.order.index(index) for index in (worse, better))
                return f" Without what the language model wrote, <b>{lower}</b> would be above <b>{upper}</b>."
    return ""


def _terms(row: RowScore) -> str:
    """The terms whose sum is the score; nothing for a single term."""
    if len(_shown(row)) < 2:
        return ""
    parts = " ".join(
        f"{'&minus;' if term.weight < 0 else '+'} {abs(term.weight):.2f} &times; {term.name} {term.value:.3f}"
        for term in _shown(row)
    )
    return f'<p class="mars-hint">MARS = {parts.removeprefix("+ ")}</p>'


def _bar(metric: Metric, index: int) -> str:
    width = 100 * min(max(metric.scores[index] / metric.full, 0), 1)
    rank = metric.ranks[index]
    first = " mars-first" if rank == 1 else ""
    main = " mars-main" if metric.name == "MARS" else ""
    return (
        f'<div class="mars-bar{main}" title="{METRICS[metric.name]}"><span class="mars-name">{metric.name}</span>'
        f'<span class="mars-track"><span style="width:{width:.1f}%"></span></span>'
        f'<span class="mars-number">{metric.label(index)}</span>'
        f'<span class="mars-rank{first}" title="rank by {metric.name}">#{rank}</span></div>'
    )


def headline(answer: Answer) -> str:
    """A sentence that says which candidate is first by which metric."""
    mars, *others = answer.metrics[:1] + answer.metrics[2:]
    if len(mars.scores) < 2:
        return "One candidate. Add more to compare them."
    winners = {metric.name: metric.ranks.index(1) for metric in (mars, *others)}
    against = [metric for metric in others if metric.ranks[winners["MARS"]] != 1]
    text = f"MARS puts {_quoted(answer, winners['MARS'])} first"
    if not others:
        return f"{text}, by the context."
    if not against:
        return f"{text}, and so do BLEU and ROUGE-L."
    names = " and ".join(metric.name for metric in against)
    if len({winners[metric.name] for metric in against}) > 1:
        return f"{text}; {names} do not."
    verb = "put" if len(against) > 1 else "puts"
    return f"{text}; {names} {verb} {_quoted(answer, winners[against[0].name])} first."


def _quoted(answer: Answer, index: int) -> str:
    words = answer.question.candidates[index].split()
    text = " ".join(words[:5])[:50]
    more = "" if len(words) <= 5 and len(text) <= 50 else " …"
    return f"<b>“{escape(text.rstrip('.,;'))}{more}”</b>"


def notices_page(notices: Sequence[str]) -> str:
    """Notices as a list; nothing if there are none."""
    return (
        f'<ul class="mars-notices">{"".join(f"<li>{escape(one)}</li>" for one in notices)}</ul>' if notices else ""
    )
