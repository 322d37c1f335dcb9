"""What the candidates were compared with, as HTML; texts are escaped here."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from mars_score.augment.augmented import Augmentation, AugmentedReference
from mars_score.scoring.result import RowScore
from mars_score.space.answer import Answer


def compared_page(answer: Answer) -> str:
    """References, and the infills of the paper's MARS, with the candidates' similarity to each."""
    if not answer.question.references:
        return ""
    head = "".join(
        f'<th scope="col" title="{escape(answer.question.candidates[index][:200])}">{place}</th>'
        for place, index in enumerate(answer.order, 1)
    )
    blocks = _blocks(answer, answer.rows, "MARS plus") + _blocks(answer, answer.paper, "MARS paper")
    hints = ["Columns are the candidates by their place above; the largest similarity of each block is bold."]
    if answer.paper:
        hints.append(
            "The paper's MARS masks more and more words of a reference and has a language model fill them in the "
            "light of the context; new words are underlined. The model is small: they may be odd or wrong."
        )
    return f'{_table(head, blocks)}<p class="mars-hint">{" ".join(hints)}</p>'


def _table(head: str, body: str) -> str:
    return (
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f"{head}</tr></thead>{body}</table></div>"
    )


def _blocks(answer: Answer, rows: Sequence[RowScore], name: str) -> str:
    """A part of the table for each reference, under one variant."""
    references = next((row.references for row in rows if row.references), ())
    blocks = ""
    for number, reference in enumerate(references):
        similarities = [row.references[number].similarities if row.references else () for row in rows]
        lines = ""
        for label, index, text in _texts(reference.augmented):
            cells = "".join(
                _similarity(place, similarities[candidate], index)
                for place, candidate in enumerate(answer.order, 1)
            )
            lines += f'<tr><th scope="row"><small>{name}: {label}</small>{text}</th>{cells}</tr>'
        blocks += f"<tbody>{lines}</tbody>"
    return blocks


def _texts(augmented: AugmentedReference) -> list[tuple[str, int, str]]:
    """A reference and its different infills: label, index into the similarities, and HTML."""
    texts = [("reference", 0, escape(augmented.reference))]
    groups: dict[tuple[str, str], list[Augmentation]] = {}
    for infill in augmented.augmentations:
        if infill.template.blanks:
            groups.setdefault((str(infill.template), infill.text), []).append(infill)
    for group in groups.values():
        ratios = ", ".join(f"{infill.mask_ratio:.0%}" for infill in group)
        index = 1 + augmented.augmentations.index(group[0])
        texts.append((f"{ratios} masked", index, _marked(augmented.reference, group[0].text)))
    return texts


def _similarity(place: int, similarities: Sequence[float], index: int) -> str:
    if not similarities:
        return "<td>-</td>"
    value = similarities[index]
    best = "mars-best" if value == max(similarities) else ""
    shade = round(55 * min(max(value, 0), 1))
    return f'<td data-label="#{place}" class="{best}" style="--shade:{shade}%">{value:.2f}</td>'


def _marked(before: str, after: str) -> str:
    """A text as HTML, the words underlined that the one before it does not have."""
    old, new = before.split(), after.split()
    parts = []
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        words = escape(" ".join(new[start:end]))
        if words:
            parts.append(words if kind == "equal" else f"<u>{words}</u>")
    return " ".join(parts)
