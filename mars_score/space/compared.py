"""What the candidates were compared with, as HTML: references, infills and samples; texts are escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mars_score.augment.augmented import Augmentation
from mars_score.space.answer import Answer, infilled_spans

# What the language model is asked to do for a task (mars_score.augment.sampling.prompts), or why nothing.
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
    return f'<td data-label="#{place}" class="{best}" style="--shade:{shade}%">{value:.2f}</td>'
