"""Describe rows that cannot be checked for contradictions or support, and the options that can check them."""

from collections import Counter

from mars_score.errors import Notice
from mars_score.language import may_be_english
from mars_score.rows import Row, RowScore, Unchecked

# Rows that cannot be checked, in singular and plural, by the reason.
_REASONS: dict[str, tuple[str, str]] = {
    Unchecked.DIALOGUE: ("dialogue", "dialogues"),
    Unchecked.RECORD: ("record", "records"),
    Unchecked.BLANK: ("blank candidate", "blank candidates"),
    Unchecked.NO_REFERENCE: ("row without references", "rows without references"),
    Unchecked.NO_CONTEXT: ("summary without a context", "summaries without a context"),
    Unchecked.NOT_ENGLISH: ("row that is not English", "rows that are not English"),
    Unchecked.FAR: ("row far from its references", "rows far from their references"),
    Unchecked.NOT_BY_CONTEXT: (
        "summary that this preset cannot judge by its context",
        "summaries that this preset cannot judge by their context",
    ),
    Unchecked.NOTHING_STATED: ("row that states nothing", "rows that state nothing"),
}
_TEXT = "whose task is text"
_REMEDIES: dict[str, str] = {  # what can check such rows, by the reason
    Unchecked.NOT_BY_CONTEXT: "--preset medium can judge these summaries",
    Unchecked.NO_REFERENCE: "--preset medium --task summary can judge candidates by their contexts alone",
    Unchecked.BY_MODEL: "the NLI models of --preset mini and medium can judge English rows",
    _TEXT: "--task summary checks candidates that are to follow from their contexts",
}


def why_unsupported_unchecked(row: Row, score: RowScore) -> str:
    """Return why a row cannot be checked for unsupported sentences, "" if it can."""
    if score.unsupported:
        return ""
    if score.unchecked in (Unchecked.BLANK, Unchecked.BY_SETTINGS, Unchecked.NOTHING_STATED):
        return score.unchecked
    if row.task not in ("summary", "data"):
        return Unchecked.DIALOGUE if row.task == "dialogue" else _TEXT
    if not row.context:
        return "without a context"
    is_foreign = Notice.NOT_ENGLISH in score.notices or not may_be_english(row)
    return Unchecked.NOT_ENGLISH if is_foreign else ""


def describe_unchecked(unchecked: Counter[str], rows: int, sought: str = "contradictions") -> str:
    """Say how many of all ``rows`` cannot be checked for something, why, and which options can check them."""
    parts = [
        f"{count} {_REASONS.get(reason, (f'row {reason}', f'rows {reason}'))[count > 1]}"
        for reason, count in unchecked.most_common()
    ]
    who = "no row" if unchecked.total() == rows else f"{unchecked.total()} of {rows} rows"
    can = "can be" if unchecked.total() == rows else "cannot be"
    remedies = [f"; {remedy}" for reason, remedy in _REMEDIES.items() if unchecked[reason]]
    return f"{who} {can} checked for {sought}: {', '.join(parts)}{''.join(remedies)}"


def unchecked_notice(unchecked: Counter[str], rows: int) -> str:
    """Describe unchecked rows if other options can check some, or if no row is checked despite the settings.

    Return "" otherwise.
    """
    has_remedy = any(unchecked[reason] for reason in _REMEDIES)
    has_none = unchecked.total() == rows and Unchecked.BY_SETTINGS not in unchecked
    return describe_unchecked(unchecked, rows) if has_remedy or has_none else ""
