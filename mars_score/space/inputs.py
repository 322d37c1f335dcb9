"""The texts that a visitor typed or sent -> a checked context, references and candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mars_score.data import values
from mars_score.space.choices import Choices
from mars_score.space.limits import CANDIDATE_CHARACTERS, CANDIDATES, Refused, check_texts

WITHOUT_REFERENCES = (
    "There is no reference, so the candidates are scored by the context alone. Such scores agree less with people "
    "than scores by references, do not mark down what is copied from the context, and cannot be compared with "
    "scores by references."
)


@dataclass(frozen=True)
class Question:
    """A context with references and candidates.

    Attributes:
        notices: sentences on what was left out.
    """

    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inquiry:
    """What a visitor wants scored: texts and settings.

    Raises:
        Refused: there are no references, and the settings need some.
    """

    question: Question
    choices: Choices

    def __post_init__(self) -> None:
        if self.question.references:
            return
        if not self.choices.use_context:
            raise Refused(
                "Without references the context has to count: please tick “Use the context”, or give some."
            )
        if self.choices.paper:
            raise Refused("The paper's MARS needs references: please give some.")


def read_question(context: Any, references: Any, candidates: Any) -> Question:
    """Check the texts of a question.

    Args:
        context: a text.
        references: one per line, or a list.
        candidates: one per line, or a list.

    Raises:
        Refused: not texts, too many, too long, or nothing to score.
    """
    context = "" if context is None else context
    if not isinstance(context, str):
        raise Refused("The context must be a text.")
    sent = _texts("references", references), _texts("candidates", candidates)
    kept_references, kept_candidates = ([text.strip() for text in texts if text.strip()] for texts in sent)
    check_texts(context, kept_references, kept_candidates)
    notices = []
    blank = sum(map(len, sent)) - len(kept_references) - len(kept_candidates)
    if blank:
        notices.append(f"{blank} blank line{' was' if blank == 1 else 's were'} left out.")
    if not context.strip():
        notices.append("The context is empty, so only the references count.")
    elif not kept_references:
        notices.append(WITHOUT_REFERENCES)
    return Question(
        whole(context), tuple(map(whole, kept_references)), tuple(map(whole, kept_candidates)), tuple(notices)
    )


def whole(text: str) -> str:
    """``text`` with unpaired surrogates, which cannot be encoded, and NUL replaced by U+FFFD."""
    return values.whole(text).replace("\0", "\ufffd")


def _texts(what: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        if len(value) > 2 * CANDIDATES * CANDIDATE_CHARACTERS:  # refused before they are split
            raise Refused(f"These are {len(value):,} characters of {what}; please send fewer or shorter ones.")
        lines = value.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        while lines and not lines[-1].strip():  # blank lines at the end are no texts
            lines.pop()
        return lines
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        raise Refused(f"The {what} must be a list of texts.")
    return list(value)
