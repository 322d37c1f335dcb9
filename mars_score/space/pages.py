"""Answers as HTML; texts of visitors and models are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mars_score.explain.page import LEGEND, match_page
from mars_score.result import Augmentation, RowScore
from mars_score.space.answer import Answer, Metric, infilled_spans

# What the terms of a score are (mars_score.result.Term), in plain words.
TERMS = {
    "references": "how much of the reference (in part: of the nearest sample) the candidate holds",
    "context": "how near it is to the context; less where it is copied from there",
    "samples": "how near it is on average to what the language model wrote",
    "likelihood": "its log probability per token given the context",
    "repetition": "the share of its words that repeat others nearby",
}
TERMS_WITHOUT_REFERENCES = {
    **TERMS,
    "context": "how near it is to the nearest part of the context",
    "samples": "how near it is to what the language model wrote, on average and at best; 0.3 where nothing was",
}
# What the language model is asked to do for a task (mars_score.sampling.prompts), or why nothing.
ASKED = {
    "dialogue": "to reply to the last line of the dialogue",
    "story": "to continue the text",
    "summary": "to summarize the context",
    "simplification": "to say the context in simpler words",
}
NOT_ASKED = {
    "answer": "The context is taken for a question: a small model's answers are wrong too often to compare with.",
    "data": "The context is taken for data, or says too little to be continued.",
}
WAITING = '<div class="mars-empty">Press “Score” to see the ranking.</div>'
_TITLES = {
    "MARS": "Similarity with the reference, the context and what a language model wrote given the context",
    "Recall": "How much of the reference the candidate holds, by token vectors, as in BERTScore's recall",
    "BLEU": "Overlap of word sequences with the reference, 0 to 100 (sacrebleu)",
    "ROUGE-L": "Longest common subsequence of words with the reference (rouge-score)",
}


def ranking_page(answer: Answer) -> str:
    """The candidates, best first, each with a bar for each metric."""
    items = "".join(_candidate(answer, index, place) for place, index in enumerate(answer.order, 1))
    return f'<p class="mars-headline">{headline(answer)}</p><ol class="mars-ranking">{items}</ol>{_legend(answer)}'


def _legend(answer: Answer) -> str:
    """The meaning of each term that some candidate's score has."""
    names = dict.fromkeys(term.name for row in answer.rows if len(row.terms) > 1 for term in row.terms)
    meaning = TERMS if answer.references else TERMS_WITHOUT_REFERENCES
    lines = "".join(f"<dt>{name}</dt><dd>{meaning[name]}</dd>" for name in names)
    words = any(match.words for one in answer.explanations for match in one.matches)
    return (f'<dl class="mars-terms">{lines}</dl>' if lines else "") + (LEGEND if words else "")


def _candidate(answer: Answer, index: int, place: int) -> str:
    bars = "".join(_bar(metric, index) for metric in answer.metrics)
    return (
        f'<li class="mars-card"><span class="mars-place">{place}</span>'
        f'<p class="mars-text">{escape(answer.question.candidates[index])}</p>'
        f'<div class="mars-bars">{bars}{_terms(answer.rows[index])}{_explained(answer, index)}</div></li>'
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


def _terms(row: RowScore) -> str:
    """The terms whose sum is the score; nothing for a single term."""
    if len(row.terms) < 2:
        return ""
    parts = " ".join(
        f"{'&minus;' if term.weight < 0 else '+'} {abs(term.weight):.2f} &times; {term.name} {term.value:.3f}"
        for term in row.terms
    )
    return f'<p class="mars-hint">MARS = {parts.removeprefix("+ ")}</p>'


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
    return [token for token in tokens if token[0]][:-1]


def _distinct(augmentations: Sequence[Augmentation]) -> list[tuple[str, Augmentation]]:
    """Different augmentations, each with all its mask ratios."""
    groups: dict[tuple[str, str], list[Augmentation]] = {}
    for one in augmentations:
        if one.template.blanks:
            groups.setdefault((str(one.template), one.text), []).append(one)
    return [(", ".join(f"{one.mask_ratio:.0%}" for one in group), group[0]) for group in groups.values()]


def compared_page(answer: Answer) -> str:
    """What the candidates were compared with, with its similarity to each: references, infills and samples."""
    if not (answer.references or answer.samples):
        return _asked(answer)
    head = "".join(
        f'<th scope="col" title="{escape(answer.question.candidates[index][:200])}">{place}</th>'
        for place, index in enumerate(answer.order, 1)
    )
    bodies = "".join(_reference(answer, number) for number in range(len(answer.references)))
    infills = any(len(one.augmented.texts) > 1 for one in answer.references)
    hints = ["Columns are the candidates by their place above; the largest similarity of each block is bold."]
    if infills:
        hints.append("New words are underlined.")
    if infills or answer.samples:
        hints.append("The language model is small: what it wrote may be odd, wrong or rude.")
    return (
        f"{_asked(answer)}"
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f"{head}</tr></thead>{bodies}{_samples(answer)}</table></div>"
        f'<p class="mars-hint">{" ".join(hints)}</p>'
    )


def _asked(answer: Answer) -> str:
    """What the language model was asked to write, in plain words, and its prompt."""
    asked = answer.asked
    if asked is None:
        return ""
    if not asked.prompt:
        why = NOT_ASKED[asked.task] if answer.question.context.strip() else "There is no context."
        return f'<p class="mars-asked">No samples were drawn. {why}</p>'
    what = ASKED.get(asked.task, "by your prompt")
    origin = " (as the form of the context suggests; “Task” in the settings changes it)" if asked.by_form else ""
    return (
        f'<p class="mars-asked">The language model was asked <b>{what}</b>{origin}. '
        "It did not see the references.</p>"
        f'<details class="mars-prompt"><summary>Its prompt</summary><pre>{escape(asked.prompt)}</pre></details>'
    )


def _reference(answer: Answer, number: int) -> str:
    """A reference and its infills."""
    augmented = answer.references[number].augmented
    lines = [("reference", 0, escape(augmented.reference))]
    for ratios, one in _distinct(augmented.augmentations):
        pieces = [(piece.text, piece.blank) for piece in one.template.pieces]
        text = "".join(
            f"<u>{escape(part)}</u>" if new else escape(part) for part, new in infilled_spans(pieces, one.text)
        )
        lines.append((f"{ratios} masked", 1 + augmented.augmentations.index(one), text))
    return _block(
        answer, lines, [row.references[number].similarities if row.references else () for row in answer.rows]
    )


def _samples(answer: Answer) -> str:
    lines = [("sample", index, escape(text)) for index, text in enumerate(answer.samples)]
    return _block(answer, lines, [tuple(one.similarity for one in row.samples) for row in answer.rows])


def _block(answer: Answer, lines: Sequence[tuple[str, int, str]], similarities: Sequence[Sequence[float]]) -> str:
    """A part of the table.

    Args:
        answer: what is shown.
        lines: a label, an index into the similarities of a candidate, and a text as HTML.
        similarities: of each candidate; none where it was not compared.
    """
    rows = ""
    for label, index, text in lines:
        cells = "".join(
            _cell(place, similarities[candidate], index) for place, candidate in enumerate(answer.order, 1)
        )
        rows += f'<tr><th scope="row"><small>{label}</small>{text}</th>{cells}</tr>'
    return f"<tbody>{rows}</tbody>" if rows else ""


def _cell(place: int, similarities: Sequence[float], index: int) -> str:
    if not similarities:
        return "<td>-</td>"
    value = similarities[index]
    best = "mars-best" if value == max(similarities) else ""
    shade = round(55 * min(max(value, 0), 1))
    return f'<td data-place="{place}" class="{best}" style="--shade:{shade}%">{value:.2f}</td>'


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
    """A histogram of scores from 0 to 1; lower and higher ones are in the first and last bin."""
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
