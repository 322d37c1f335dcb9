"""Answers as HTML; texts of visitors and models are escaped here."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from mars_score.explanation import LEGEND, match_page, verdict_page
from mars_score.results import MarsResult
from mars_score.rows import AugmentedReference, Infill, RowScore, Term
from mars_score.space.answer import METRICS, Answer

# What the terms of a score are (mars_score.rows.Term), in plain words.
TERMS = {
    "references": "how much of the reference the candidate holds",
    "sentences": "how near its meaning is to that of a reference, where the context is data",
    "context": "how near it is to the nearest part of the context",
    "samples": "how much nearer it is to a sample than to the references",
    "likelihood": "its log probability per token (half of it), and what the context adds to that",
    "contradiction": "how probable its sentences are to contradict reference and context, times the square of R",
    "repetition": "the share of its words that repeat others nearby; in a dialogue, also of those copied from it",
}
WAITING = '<div class="mars-empty">Press “Score” to see the ranking.</div>'


def ranking_page(answer: Answer) -> str:
    """Show the candidates, best first, each with a bar for each metric."""
    items = "".join(_candidate(answer, index, place) for place, index in enumerate(answer.order, 1))
    return f'<p class="mars-headline">{headline(answer)}</p><ol class="mars-ranking">{items}</ol>{_legend(answer)}'


def headline(answer: Answer) -> str:
    """Say which candidate is first by which metric."""
    ranks = {name: ranks_of(scores) for name, scores in answer.scores.items()}
    plus, *rivals = ranks
    if len(ranks[plus]) < 2:
        return "One candidate. Add more to compare them."
    winner = ranks[plus].index(1)
    text = f"{plus} puts {_quoted(answer, winner)} first"
    if not rivals:
        return f"{text}, by the context."
    others: dict[int, list[str]] = {}
    for rival in rivals:
        first = winner if ranks[rival][winner] == 1 else ranks[rival].index(1)
        others.setdefault(first, []).append(rival)
    agreeing = others.pop(winner, [])
    parts = [f"{_listed(agreeing)} agree{'' if len(agreeing) > 1 else 's'}"] if agreeing else []
    for index, names in others.items():
        parts.append(f"{_listed(names)} {'put' if len(names) > 1 else 'puts'} {_quoted(answer, index)} first")
    return f"{text}; {'; '.join(parts)}."


def ranks_of(scores: Sequence[float]) -> list[int]:
    """Return the rank of each score, 1 for the highest; equal scores share one."""
    return [1 + sum(other > score for other in scores) for score in scores]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _quoted(answer: Answer, index: int) -> str:
    words = answer.question.candidates[index].split()
    text = " ".join(words[:5])[:50]
    more = "" if len(words) <= 5 and len(text) <= 50 else " …"
    return f"<b>“{escape(text.rstrip('.,;'))}{more}”</b>"


def _candidate(answer: Answer, index: int, place: int) -> str:
    bars = "".join(_bar(name, scores, index) for name, scores in answer.scores.items())
    return (
        f'<li class="mars-card"><span class="mars-place">{place}</span>'
        f'<p class="mars-text">{escape(answer.question.candidates[index])}</p>'
        f'<div class="mars-bars">{bars}{_sum(answer.plus.rows[index])}{_explained(answer.plus, index)}</div></li>'
    )


def _bar(name: str, scores: Sequence[float], index: int) -> str:
    metric, score, rank = METRICS[name], scores[index], ranks_of(scores)[index]
    width = 100 * min(max(score / metric.full, 0), 1)
    first = " mars-first" if rank == 1 else ""
    main = " mars-main" if name == "MARS plus" else ""
    return (
        f'<div class="mars-bar{main}" title="{metric.meaning}"><span class="mars-name">{name}</span>'
        f'<span class="mars-track"><span style="width:{width:.1f}%"></span></span>'
        f'<span class="mars-number">{score:.{1 if metric.full > 1 else 3}f}</span>'
        f'<span class="mars-rank{first}" title="rank by {name}">#{rank}</span></div>'
    )


def _sum(row: RowScore) -> str:
    """Show the terms whose sum is the score; nothing for a single term."""
    terms = _effective(row)
    if len(terms) < 2:
        return ""
    parts = " ".join(
        f"{'&minus;' if term.weight < 0 else '+'} {abs(term.weight):.2f} &times; {term.name} {term.value:.3f}"
        for term in terms
    )
    return f'<p class="mars-hint">MARS plus = {parts.removeprefix("+ ")}</p>'


def _effective(row: RowScore) -> list[Term]:
    return [term for term in row.terms if term.value]


def _explained(result: MarsResult, index: int) -> str:
    """Show verdicts, the references' words by their matches and, folded, the nearest sentence of the context."""
    explanation = result.explanations[index]
    shown = [match_page(match) for match in explanation.matches if match.kind != "context"]
    rest = "".join(match_page(match) for match in explanation.matches if match.kind == "context")
    folded = f"<details><summary>Nearest sentence of the context</summary>{rest}</details>" if rest else ""
    parts = [*map(verdict_page, explanation.verdicts), *shown, folded]
    return f'<div class="mars-explained">{"".join(parts)}</div>'


def _legend(answer: Answer) -> str:
    """Say what each number means: metrics, and the terms that some candidate's score has."""
    sums = [_effective(row) for row in answer.plus.rows]
    terms = dict.fromkeys(term.name for row in sums if len(row) > 1 for term in row)
    meanings = {name: METRICS[name].meaning for name in answer.scores} | {name: TERMS[name] for name in terms}
    lines = "".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in meanings.items())
    words = any(match.words for explanation in answer.plus.explanations for match in explanation.matches)
    return f'<dl class="mars-terms">{lines}</dl>{LEGEND if words else ""}'


def notices_page(notices: Sequence[str]) -> str:
    """Show notices as a list; nothing if there are none."""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in notices)
    return f'<ul class="mars-notices">{items}</ul>' if notices else ""


def compared_page(answer: Answer) -> str:
    """Show the references, and the infills of the paper's MARS, with the candidates' similarity to each."""
    if not answer.question.references:
        return ""
    head = "".join(
        f'<th scope="col" title="{escape(answer.question.candidates[index][:200])}">{place}</th>'
        for place, index in enumerate(answer.order, 1)
    )
    blocks = _blocks(answer, answer.plus, "MARS plus")
    hint = "Columns are the candidates by their place above; the largest similarity of each block is bold."
    if answer.paper:
        blocks += _blocks(answer, answer.paper, "MARS paper")
        hint += (
            " The paper's MARS masks more and more words of a reference and has a language model fill them in the "
            "light of the context; new words are underlined. The model is small: they may be odd or wrong."
        )
    return (
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f'{head}</tr></thead>{blocks}</table></div><p class="mars-hint">{hint}</p>'
    )


def _blocks(answer: Answer, result: MarsResult, name: str) -> str:
    """Make a part of the table for each reference, under one variant."""
    rows = [result.rows[index].references for index in answer.order]
    blocks = ""
    for scores in zip(*rows, strict=True):
        lines = ""
        for label, index, text in _texts(scores[0].augmented):
            cells = "".join(_similarity(place, score.similarities, index) for place, score in enumerate(scores, 1))
            lines += f'<tr><th scope="row"><small>{name}: {label}</small>{text}</th>{cells}</tr>'
        blocks += f"<tbody>{lines}</tbody>"
    return blocks


def _texts(augmented: AugmentedReference) -> list[tuple[str, int, str]]:
    """List a reference and its different infills: label, index into the similarities, and HTML."""
    texts = [("reference", 0, escape(augmented.reference))]
    groups: dict[tuple[str, str], list[Infill]] = {}
    for infill in augmented.infills:
        if infill.template != augmented.reference:  # Some words are masked.
            groups.setdefault((infill.template, infill.text), []).append(infill)
    for group in groups.values():
        ratios = ", ".join(f"{infill.mask_ratio:.0%}" for infill in group)
        index = 1 + augmented.infills.index(group[0])
        texts.append((f"{ratios} masked", index, _marked(augmented.reference, group[0].text)))
    return texts


def _similarity(place: int, similarities: Sequence[float], index: int) -> str:
    value = similarities[index]
    best = "mars-best" if value == max(similarities) else ""
    shade = round(55 * min(max(value, 0), 1))
    return f'<td data-label="#{place}" class="{best}" style="--shade:{shade}%">{value:.2f}</td>'


def _marked(before: str, after: str) -> str:
    """Show a text with the words underlined that the one before it does not have."""
    old, new = before.split(), after.split()
    parts = []
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        words = escape(" ".join(new[start:end]))
        if words:
            parts.append(words if kind == "equal" else f"<u>{words}</u>")
    return " ".join(parts)
