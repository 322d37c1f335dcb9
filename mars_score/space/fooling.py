"""A candidate beside changed versions of it that no good metric should score as high; texts are escaped here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from html import escape

from mars_score.data.attacks import changes
from mars_score.space.answer import Answer, Metric
from mars_score.space.inputs import Question

# The names of mars_score.data.attacks.CHANGES on the page, and why there is no such version.
NAMES = {
    "shuffled": ("words shuffled", "it needs four words"),
    "negated": ("negated", "it is a question"),
    "wrong_number": ("number changed", "it has no number"),
    "copied": ("copied from the context", "the context has no other sentence"),
}


def versions_of(question: Question, index: int) -> dict[str, str | None]:
    """The changed versions of a candidate, by the names of ``CHANGES``; None where there is none."""
    return changes((question.candidates[index], question.references, question.context))


def with_versions(question: Question, index: int, versions: Mapping[str, str | None]) -> Question:
    """The question with the candidate and its versions in place of its candidates."""
    changed = [text for text in versions.values() if text is not None]
    return replace(question, candidates=(question.candidates[index], *changed), notices=())


def fooled(metric: Metric) -> list[bool]:
    """Whether a metric gives each version no less than the candidate itself, which is first."""
    own, *others = metric.scores
    return [score >= own for score in others]


def fooling_page(answer: Answer, versions: Mapping[str, str | None]) -> str:
    """The candidate and its versions, scored.

    Args:
        answer: to :func:`with_versions`.
        versions: of the candidate.
    """
    own = answer.question.candidates[0]
    metrics = answer.metrics
    changed = [(NAMES[name][0], _marked(own, text, name)) for name, text in versions.items() if text is not None]
    lines = [("your candidate", escape(own)), *changed]
    head = "".join(f'<th scope="col">{metric.name}</th>' for metric in metrics)
    rows = "".join(
        f'<tr><th scope="row"><small>{label}</small>{text}</th>'
        f"{''.join(_cell(metric, index) for metric in metrics)}</tr>"
        for index, (label, text) in enumerate(lines)
    )
    counts = [f"<b>{metric.name} {sum(fooled(metric))}</b>" for metric in metrics]
    missing = [f"{label} ({why})" for name, (label, why) in NAMES.items() if versions[name] is None]
    left_out = f" Left out: {', '.join(missing)}." if missing else ""
    return (
        f'<p class="mars-headline">How many of {len(changed)} versions fool a metric: {", ".join(counts)}.</p>'
        '<div class="mars-scroll" tabindex="0"><table class="mars-matrix"><thead><tr><th scope="col">Text</th>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="mars-hint">A metric is fooled where a changed version gets no less than the candidate; such '
        f"cells are marked with “!”. The versions are made by simple rules and may be clumsy.{left_out}</p>"
    )


def _cell(metric: Metric, index: int) -> str:
    if index == 0:
        return f'<td data-label="{metric.name}"><b>{metric.label(0)}</b></td>'
    caught = fooled(metric)[index - 1]
    mark = ' class="mars-fooled" title="fooled: no less than the candidate"' if caught else ""
    return f'<td data-label="{metric.name}"{mark}>{metric.label(index)}{" !" if caught else ""}</td>'


def _marked(own: str, version: str, name: str) -> str:
    """A version as HTML, its new words underlined; a copied sentence is new as a whole."""
    if name == "copied":
        return escape(version)
    before, after = own.split(), version.split()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    parts = [
        f"<u>{escape(' '.join(after[start:end]))}</u>" if kind != "equal" else escape(" ".join(after[start:end]))
        for kind, _, _, start, end in matcher.get_opcodes()
        if end > start
    ]
    return " ".join(parts)
