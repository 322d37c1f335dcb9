"""Answers as HTML; every text of a visitor is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mars_score.result import Augmentation, ReferenceScore, RowScore
from mars_score.space.answer import Answer, Metric, infilled_spans

WAITING = '<div class="mars-empty">Press “Score” to see the ranking.</div>'
_TITLES = {
    "MARS": "Similarity with the reference, its rewritten versions and the context",
    "Recall": "How much of the reference alone is there, by token vectors, as other embedding metrics do it",
    "BLEU": "Overlap of word sequences with the reference, 0 to 100 (sacrebleu)",
    "ROUGE-L": "Longest common subsequence of words with the reference (rouge-score)",
}


def ranking_page(answer: Answer) -> str:
    """The candidates, best first, each with a bar for each metric."""
    items = "".join(_candidate(answer, index, place) for place, index in enumerate(answer.order, 1))
    return f'<p class="mars-headline">{headline(answer)}</p><ol class="mars-ranking">{items}</ol>'


def _candidate(answer: Answer, index: int, place: int) -> str:
    bars = "".join(_bar(metric, index) for metric in answer.metrics)
    return (
        f'<li class="mars-card"><span class="mars-place">{place}</span>'
        f'<p class="mars-text">{escape(answer.question.candidates[index])}</p>'
        f'<div class="mars-bars">{bars}{_terms(answer.rows[index])}</div></li>'
    )


def _terms(row: RowScore) -> str:
    """What the score of MARS is the sum of; nothing where that is one thing."""
    if len(row.terms) < 2:
        return ""
    parts = " + ".join(f"{term.weight:.2f} &times; {escape(term.name)} {term.value:.3f}" for term in row.terms)
    return f'<p class="mars-hint">MARS = {parts}</p>'


def _bar(metric: Metric, index: int) -> str:
    width = 100 * min(max(metric.scores[index] / metric.full, 0), 1)
    rank = metric.ranks[index]
    first = " mars-first" if rank == 1 else ""
    main = " mars-main" if metric.name == "MARS" else ""
    return (
        f'<div class="mars-bar{main}" title="{_TITLES[metric.name]}"><span class="mars-name">{metric.name}</span>'
        f'<span class="mars-track"><span style="width:{width:.1f}%"></span></span>'
        f'<span class="mars-number">{metric.label(index)}</span>'
        f'<span class="mars-rank{first}" title="rank by {metric.name}">#{rank}</span></div>'
    )


def headline(answer: Answer) -> str:
    """Who is first by which metric, in a sentence."""
    mars, _, *others = answer.metrics
    if len(mars.scores) < 2:
        return "One candidate. Add more to compare them."
    winners = {metric.name: metric.ranks.index(1) for metric in (mars, *others)}
    against = [metric for metric in others if metric.ranks[winners["MARS"]] != 1]
    text = f"MARS puts {_quoted(answer, winners['MARS'])} first"
    if not against:
        return f"{text}, and so do BLEU and ROUGE-L."
    names = " and ".join(metric.name for metric in against)
    if len({winners[metric.name] for metric in against}) > 1:
        return f"{text}; {names} do not."
    verb = "put" if len(against) > 1 else "puts"
    return f"{text}; {names} {verb} {_quoted(answer, winners[against[0].name])} first."


def _quoted(answer: Answer, index: int) -> str:
    words = answer.question.candidates[index].split()
    text = " ".join(words[:6])[:60]
    more = "" if len(words) <= 6 and len(text) <= 60 else " …"
    return f"<b>“{escape(text.rstrip('.,;'))}{more}”</b>"


def notices_page(notices: Sequence[str]) -> str:
    """Notices as a list; nothing if there are none."""
    return (
        f'<ul class="mars-notices">{"".join(f"<li>{escape(one)}</li>" for one in notices)}</ul>' if notices else ""
    )


def masked_words(answer: Answer) -> list[tuple[str, str | None]]:
    """For ``gr.HighlightedText``: a line for each reference and mask ratio, masked words marked."""
    tokens: list[tuple[str, str | None]] = []
    for reference in answer.references:
        for ratios, one in _distinct(reference.augmented.augmentations):
            tokens.append((f"{ratios}  ", None))
            for piece in one.template.pieces:
                word = piece.text.lstrip()
                tokens += [
                    (piece.text[: len(piece.text) - len(word)], None),
                    (word, "masked" if piece.blank else None),
                ]
            tokens.append(("\n", None))
    tokens = [token for token in tokens if token[0]]
    return tokens[:-1] or [("Nothing is masked with these settings.", None)]


def _distinct(augmentations: Sequence[Augmentation]) -> list[tuple[str, Augmentation]]:
    """Equal augmentations once, with all their mask ratios."""
    groups: dict[tuple[str, str], list[Augmentation]] = {}
    for one in augmentations:
        if one.template.blanks:
            groups.setdefault((str(one.template), one.text), []).append(one)
    return [(", ".join(f"{one.mask_ratio:.0%}" for one in group), group[0]) for group in groups.values()]


def augmented_page(answer: Answer) -> str:
    """Each reference and what it became, with its similarity to each candidate."""
    if not answer.references:
        return ""
    head = "".join(
        f'<th scope="col" title="{escape(answer.question.candidates[index][:200])}">{place}</th>'
        for place, index in enumerate(answer.order, 1)
    )
    bodies = "".join(_reference(answer, number, one) for number, one in enumerate(answer.references))
    return (
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f"{head}</tr></thead>{bodies}</table></div>"
        '<p class="mars-hint">Columns are the candidates by their place above. New words are underlined; '
        "the largest similarity of a column is bold. "
        "A small language model wrote the new words: they may be odd, wrong or rude.</p>"
    )


def _reference(answer: Answer, number: int, reference: ReferenceScore) -> str:
    similarities = [row.references[number].similarities if row.references else None for row in answer.rows]
    lines = [("reference", 0, escape(reference.augmented.reference))]
    augmentations = reference.augmented.augmentations
    for ratios, one in _distinct(augmentations):
        pieces = [(piece.text, piece.blank) for piece in one.template.pieces]
        text = "".join(
            f"<u>{escape(part)}</u>" if new else escape(part) for part, new in infilled_spans(pieces, one.text)
        )
        lines.append((f"{ratios} masked", 1 + augmentations.index(one), text))
    rows = ""
    for label, index, text in lines:
        cells = ""
        for place, candidate in enumerate(answer.order, 1):
            own = similarities[candidate]
            if own is None:
                cells += "<td>-</td>"
                continue
            best = "mars-best" if own[index] == max(own) else ""
            shade = round(55 * min(max(own[index], 0), 1))
            cells += f'<td data-place="{place}" class="{best}" style="--shade:{shade}%">{own[index]:.2f}</td>'
        rows += f'<tr><th scope="row"><small>{label}</small>{text}</th>{cells}</tr>'
    return f"<tbody>{rows}</tbody>"


def table_page(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A small table of texts."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_short(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<p class="mars-hint">{escape(caption)}</p><div class="mars-scroll" tabindex="0">'
        f'<table class="mars-table">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:120]} …"


def histogram_page(scores: Sequence[float], bins: int = 10) -> str:
    """Bars for the numbers of scores between 0 and 1; negative ones are in the first."""
    counts = [0] * bins
    for score in scores:
        counts[min(max(int(score * bins), 0), bins - 1)] += 1
    tallest = max(counts) or 1
    bars = "".join(
        f'<div class="mars-column" title="{number / bins:.1f} to {(number + 1) / bins:.1f}: {count}">'
        f'<i>{count or ""}</i><b style="height:{100 * count / tallest:.0f}%"></b>'
        f"<span>{number / bins:.1f}</span></div>"
        for number, count in enumerate(counts)
    )
    mean = sum(scores) / len(scores) if scores else 0.0
    return (
        f'<div class="mars-summary"><div><strong>{mean:.3f}</strong><span>mean MARS score</span></div>'
        f"<div><strong>{len(scores)}</strong><span>row{'' if len(scores) == 1 else 's'}</span></div></div>"
        f'<div class="mars-histogram" role="img" aria-label="Histogram of scores">{bars}</div>'
    )
