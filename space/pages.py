"""Write answers as HTML. Texts of visitors and models are escaped."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from mars_score.explanation import LEGEND, Explanation, finding_page, marked_page, match_page
from mars_score.findings import Finding, label_of, listed
from mars_score.metrics.plus import TERMS
from mars_score.results import MarsResult
from mars_score.rows import AugmentedReference, Infill, RowScore
from space.answer import Answer, ShownMetric

WAITING = '<div class="mars-empty">Press “Score” to see the ranking.</div>'
OUTDATED = '<p class="mars-problem">These results are of earlier inputs. Press “Score” to renew them.</p>'
SCORING = '<div class="mars-empty mars-busy" role="status">Scoring …</div>'
_SHOWN = 3  # lines of findings on a card
_QUOTED = 60  # characters of a premise in the headline
_CLOSE = 0.6  # token recall of the reference from which a candidate is called close to it


def hint_page(hint: str) -> str:
    """Show the hint of an example, or nothing for ""."""
    return f"<p>{escape(hint)}</p>" if hint else ""


def problem_page(message: str) -> str:
    """Show why there is no answer."""
    return f'<div class="mars-empty mars-problem" role="alert">{escape(message)}</div>'


def ranking_page(answer: Answer, ticket: int = 0) -> str:
    """Show the candidates as cards, best first. The first card is open.

    By ``ticket``, the number that the browser gave to the inputs, the page sees whether they changed since.
    """
    cards = "".join(_card(answer, index, place) for place, index in enumerate(answer.order, 1))
    meanings = " ".join(f"<b>{name}</b>: {metric.meaning}." for name, metric in answer.metrics.items())
    marked = " Cards are sorted by MARS plus, marked ones too." if any(answer.findings) else ""
    hint = f'<p class="mars-hint">Higher is better. {meanings}{marked}</p>'
    first = f'<p class="mars-headline" data-ticket="{ticket:d}">{headline(answer)}</p>'
    return f'{first}{hint}<ol class="mars-ranking">{cards}</ol>'


def headline(answer: Answer) -> str:
    """Say which candidate each metric puts first, after any findings in the first one of MARS plus."""
    ranks = {name: ranks_of(scores) for name, scores in answer.scores.items()}
    plus, *rivals = ranks
    if len(ranks[plus]) < 2:
        found = f"{_named(answer, 0)}: {_found(answer, 0)}. " if answer.findings[0] else ""
        return f"{found}One candidate. Add more to compare them."
    winner = ranks[plus].index(1)
    others: dict[int, list[str]] = {}
    for rival in rivals:
        first = winner if ranks[rival][winner] == 1 else ranks[rival].index(1)
        others.setdefault(first, []).append(rival)
    agreeing = others.pop(winner, [])
    parts = [f"{listed(agreeing)} agree{'' if len(agreeing) > 1 else 's'}"] if agreeing else []
    for index, names in others.items():
        parts.append(f"{listed(names)} {'put' if len(names) > 1 else 'puts'} {_named(answer, index)} first")
    compared = f"; {'; '.join(parts)}" if parts else ", by the context"
    if findings := _winner_findings(answer, winner):
        return f"{findings}{plus} puts it first{compared}.{_best_without_findings(answer)}"
    return f"{plus} puts {_named(answer, winner)} first{compared}."


def _winner_findings(answer: Answer, index: int) -> str:
    """Say in a sentence what was found in the candidate with the highest score, "" for nothing."""
    if not answer.findings[index]:
        return ""
    near = answer.plus.row_scores[index].aspects.reference or 0.0
    has = "is close to the reference" if near >= _CLOSE else "has the highest score"
    return f"{_named(answer, index)} {has}, but {_found(answer, index)}. "


def _found(answer: Answer, index: int) -> str:
    """Say what the first finding in a candidate is, and count the others."""
    found, *more = answer.findings[index]
    return escape(found.in_words(_QUOTED)) + (f" (and {len(more)} more)" if more else "")


def _best_without_findings(answer: Answer) -> str:
    """Say in a sentence which candidate without findings has the highest score, "" if all have some."""
    sound = [index for index in answer.order if not answer.findings[index]]
    return f" Of those without findings {_named(answer, sound[0])} is first." if sound else ""


def ranks_of(scores: Sequence[float]) -> list[int]:
    """Return the rank of each score, 1 for the highest. Equal scores share a rank."""
    return [1 + sum(other > score for other in scores) for score in scores]


def _named(answer: Answer, index: int) -> str:
    """Name a candidate, with a mark if it has findings."""
    findings = answer.findings[index]
    mark = f" {_mark(findings[0])}" if findings else ""
    return f"<b>{escape(answer.names[index])}</b>{mark}"


def _mark(finding: Finding) -> str:
    return f'<b class="mars-mark mars-{finding.label}">{finding.label.capitalize()}</b>'


def _card(answer: Answer, index: int, place: int) -> str:
    """Show a candidate with its scores and, on the opened card, their explanation."""
    plus, *rivals = (_score(answer, name, index) for name in answer.scores)
    beside = f'<span class="mars-rivals">{"".join(rivals)}</span>' if rivals else ""
    row, explanation = answer.plus.row_scores[index], answer.plus.explanations[index]
    findings = answer.findings[index]
    found = {"": "", "contradicted": " mars-denied", "unsupported": " mars-doubted"}[label_of(row)]
    why = f"{''.join(map(finding_page, findings))}{_sum(row)}{_explained(explanation)}"
    return (
        f'<li><details class="mars-card{found}" name="mars-card"'
        f"{' open' if place == 1 else ''}>"
        f'<summary><span class="mars-place">{place}</span>'
        f'<span class="mars-text">{marked_page(answer.question.candidates[index], findings)}</span>'
        f"{_finding_lines(findings)}{plus}{beside}</summary>"
        f'<div class="mars-why">{why}</div></details></li>'
    )


def _finding_lines(findings: Sequence[Finding]) -> str:
    """Show findings one per line, at most three lines."""
    lines = [f'{_mark(one)}<span class="mars-said">{escape(one.with_number(None))}</span>' for one in findings]
    if len(lines) > _SHOWN:
        more = f'<span class="mars-said">and {len(lines) - _SHOWN + 1} more</span>'
        lines = [*lines[: _SHOWN - 1], more]
    return "".join(f'<span class="mars-accusation">{line}</span>' for line in lines)


def _score(answer: Answer, name: str, index: int) -> str:
    """Show the score of MARS plus, which sorts the cards, with a bar, and other scores with their rank."""
    scores, full = answer.scores[name], answer.metrics[name].full
    number = f'<span class="mars-number">{_minus(f"{scores[index]:.{1 if full > 1 else 3}f}")}</span>'
    label = f'<span class="mars-name">{name}</span>'
    if name == "MARS plus":
        return f'<span class="mars-main">{label}{_bar(scores[index], answer.metrics[name])}{number}</span>'
    rank = ranks_of(scores)[index]
    first = " mars-first" if rank == 1 else ""
    return f'<span class="mars-rival{first}">{label} {number} <span class="mars-rank">#{rank}</span></span>'


def _bar(score: float, metric: ShownMetric) -> str:
    """Show a score as a bar from 0, to the left if it is negative."""
    start, end = sorted((0.0, min(max(score, metric.least), metric.full)))
    left, width = (100 * length / (metric.full - metric.least) for length in (start - metric.least, end - start))
    below = ' class="mars-below"' if score < 0 else ""
    return (
        f'<span class="mars-track"><span{below} style="margin-left:{left:.1f}%;width:{width:.1f}%"></span></span>'
    )


def _sum(row: RowScore) -> str:
    """Show the terms whose sum is the score, with their meanings."""
    lines = "".join(
        f"<tr><td>{_minus(f'{term.weight:.2f} &times; {term.value:.3f}')}</td>"
        f"<td>= {_minus(f'{term.weight * term.value:.3f}')}</td>"
        f'<th scope="row">{term.name}</th><td>{TERMS[term.name].meaning}</td></tr>'
        for term in row.terms
        if term.value
    )
    return f'<table class="mars-terms"><caption>The score is the sum of</caption>{lines}</table>' if lines else ""


def _minus(number: str) -> str:
    return number.replace("-", "&minus;")


def _explained(explanation: Explanation) -> str:
    """Show the words of the references by their matches, and the nearest sentence of the context."""
    legend = LEGEND if any(match.words for match in explanation.matches) else ""
    coloured = [match_page(match) for match in explanation.matches if match.kind != "context"]
    nearest = [match_page(match) for match in explanation.matches if match.kind == "context"]
    return f'<div class="mars-explained">{"".join([*coloured, legend, *nearest])}</div>'


def notices_page(notices: Sequence[str]) -> str:
    """Show notices as a list, or nothing for none."""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in notices)
    return f'<ul class="mars-notices">{items}</ul>' if notices else ""


def compared_page(answer: Answer) -> str:
    """Show the texts of the paper's MARS with the candidates' similarities, or nothing without its result."""
    if not answer.paper:
        return ""
    head = "".join(
        f'<th scope="col" title="{escape(answer.question.candidates[index][:200])}">{place}</th>'
        for place, index in enumerate(answer.order, 1)
    )
    return (
        '<details class="mars-compared"><summary>What the paper\'s MARS compared the candidates with</summary>'
        '<p class="mars-hint">It masks more and more words of a reference and has a language model fill them in '
        "the light of the context. New words are underlined; the model is small, and they may be odd or wrong. "
        "Columns are the candidates by their place above; the largest similarity of each line is bold.</p>"
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f"{head}</tr></thead>{_blocks(answer, answer.paper)}</table></div></details>"
    )


def _blocks(answer: Answer, result: MarsResult) -> str:
    """Show a block of the table for each reference and its infills."""
    rows = [result.row_scores[index].references for index in answer.order]
    blocks = ""
    for scores in zip(*rows, strict=True):
        lines = ""
        for label, index, text in _compared_texts(scores[0].augmented):
            values = [score.similarities[index] for score in scores]
            cells = "".join(_similarity(place, value, max(values)) for place, value in enumerate(values, 1))
            lines += f'<tr><th scope="row"><small>{label}</small>{text}</th>{cells}</tr>'
        blocks += f"<tbody>{lines}</tbody>"
    return blocks


def _compared_texts(augmented: AugmentedReference) -> list[tuple[str, int, str]]:
    """List a reference and its distinct infills as (label, index of the similarity, HTML)."""
    texts = [("reference", 0, escape(augmented.reference))]
    groups: dict[tuple[str, str], list[Infill]] = {}
    for infill in augmented.infills:
        if infill.template != augmented.reference:  # A word is masked.
            groups.setdefault((infill.template, infill.text), []).append(infill)
    for group in groups.values():
        ratios = ", ".join(f"{infill.mask_ratio:.0%}" for infill in group)
        index = 1 + augmented.infills.index(group[0])
        texts.append((f"{ratios} masked", index, _marked(augmented.reference, group[0].text)))
    return texts


def _similarity(place: int, value: float, largest: float) -> str:
    best = "mars-best" if value == largest else ""
    shade = round(55 * min(max(value, 0), 1))
    return f'<td data-label="#{place}" class="{best}" style="--shade:{shade}%">{value:.2f}</td>'


def _marked(before: str, after: str) -> str:
    """Show the text ``after``, and underline the words that ``before`` lacks."""
    old, new = before.split(), after.split()
    parts = []
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        words = escape(" ".join(new[start:end]))
        if words:
            parts.append(words if kind == "equal" else f"<u>{words}</u>")
    return " ".join(parts)
