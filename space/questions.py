"""Check texts and settings of visitors. No setting can name a model or a path."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mars_score.models.loading import locate
from mars_score.presets import PRESETS
from mars_score.rows import TASKS
from mars_score.settings import resolve_settings
from mars_score.text import is_blank, without_surrogates
from space.limits import ELSEWHERE, Refused

CONTEXT_CHARACTERS = 5_000  # also of question and passages together
PASSAGES = 12
PAPER_CHARACTERS = 400  # of all references; the paper's MARS would infill longer ones for minutes
# The greatest number of texts, and of characters in each.
LIMITS = {"references": (4, 600), "candidates": (12, 1_500), "samples": (4, 600)}
WITHOUT_REFERENCES = (
    "There is no reference, so the candidates are scored by the context alone. Such scores agree less with people "
    "than scores by references, do not mark down what is copied from the context, and cannot be compared with "
    "scores by references."
)
SEPARATOR = "==="  # a line between texts of several lines
_BETWEEN = re.compile(rf"^[^\S\n]*{SEPARATOR}[^\S\n]*$", re.MULTILINE)


def space_presets() -> tuple[str, ...]:
    """Return the presets that visitors can choose, the default first.

    If ``MARS_PRESET`` is set, it is the only one. Else they are "mini" and, on the Hub or if its models are
    installed, "medium".
    """
    if chosen := os.environ.get("MARS_PRESET"):
        return (chosen,)
    has_medium = all(locate(model).is_here(None) for model in PRESETS["medium"].values())
    return ("mini", "medium") if has_medium or "SPACE_ID" in os.environ else ("mini",)


CHOICES = space_presets()
PRESET = CHOICES[0]
VARIANT: Final = "plus"
SCORER_SETTINGS = ("reference_aggregation", "use_context")  # of mars_score.settings
DEFAULTS: dict[str, Any] = {
    "task": TASKS[0],
    "preset": PRESET,
    **{name: value for name, value in resolve_settings(PRESET, VARIANT).items() if name in SCORER_SETTINGS},
    "paper": False,
}


@dataclass(frozen=True)
class Passages:
    """Texts that were retrieved to answer a question, which is "" if it is not known."""

    texts: tuple[str, ...]
    question: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the context in the form of the package."""
        return {"passages": list(self.texts), **({"question": self.question} if self.question else {})}


@dataclass(frozen=True)
class Question:
    """The texts and settings of a visitor.

    Raises:
        Refused: the settings need references and there are none, or the paper's MARS would take minutes.
    """

    context: str | Passages  # the text before the candidates, or passages that were retrieved for their question
    references: tuple[str, ...]  # good texts by people. If empty, the context alone counts.
    candidates: tuple[str, ...]  # texts to score
    samples: tuple[str, ...] = ()  # texts that other systems wrote for the context
    task: str = DEFAULTS["task"]  # one of :data:`mars_score.rows.TASKS`
    preset: str = DEFAULTS["preset"]  # one of :data:`CHOICES`
    reference_aggregation: str = DEFAULTS["reference_aggregation"]
    use_context: bool = DEFAULTS["use_context"]
    paper: bool = DEFAULTS["paper"]  # whether to compute the paper's MARS too
    notices: tuple[str, ...] = ()  # sentences on what was left out

    def __post_init__(self) -> None:
        if not (self.references or self.use_context):
            raise Refused(
                "Without references the context has to count: please tick “Use the context”, or give some."
            )
        if self.paper and not self.references:
            raise Refused("The paper's MARS needs references: please give some.")
        if self.paper:
            subject = "For the paper's MARS: all references together have"
            _check_length(subject, ["".join(self.references)], PAPER_CHARACTERS)

    @property
    def row_context(self) -> str | dict[str, object]:
        """Return the context in the form of the package."""
        return self.context if isinstance(self.context, str) else self.context.to_dict()

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings of MarsScorer."""
        return {name: getattr(self, name) for name in SCORER_SETTINGS}


def read_question(
    context: object,
    references: object,
    candidates: object,
    samples: object = None,
    *,
    settings: Mapping[str, object] | None = None,
) -> Question:
    """Check texts and settings.

    Passages, references, candidates and samples are lists, or one text per line. If there is a line
    :data:`SEPARATOR`, such lines separate the texts.

    Args:
        context: a text, or ``{"passages": [...]}``, optionally with a ``"question"``. None or blank for none.
        references: up to four.
        candidates: up to twelve.
        samples: up to four.
        settings: any of :data:`DEFAULTS`. The default task of passages is "summary".

    Raises:
        Refused: texts are of a wrong type, too many or too long, there is nothing to score, a setting is unknown,
            or a value is bad.
    """
    context = _read_context(context)
    columns = zip(LIMITS, (references, candidates, samples), strict=True)
    sent = {name: _read_texts(name, column) for name, column in columns}
    texts = {name: tuple(text for text in lines if not is_blank(text)) for name, lines in sent.items()}
    _check_texts(context, texts)
    left_out = sum(len(sent[name]) - len(texts[name]) for name in LIMITS)
    notices = (
        f"{left_out} blank line{' was' if left_out == 1 else 's were'} left out." if left_out else "",
        "" if _has_text(context) else "The context is empty, so only the references count.",
        "" if texts["references"] else WITHOUT_REFERENCES,
    )
    task = {"task": "summary"} if isinstance(context, Passages) else {}
    fields: dict[str, Any] = {**texts, **_check_settings({**task, **(settings or {})})}
    return Question(context, **fields, notices=tuple(filter(None, notices)))


def _read_context(value: object) -> str | Passages:
    if isinstance(value, str | None):
        return _encodable(value or "")
    if (
        not isinstance(value, Mapping)
        or value.keys() - {"passages", "question"}
        or not isinstance(question := value.get("question") or "", str)
    ):
        raise Refused("The context must be a text, or passages with or without a question.")
    texts = [text for text in _read_texts("passages", value.get("passages")) if not is_blank(text)]
    if len(texts) > PASSAGES:
        raise Refused(f"{len(texts):,} passages are too many: at most {PASSAGES} are allowed here. {ELSEWHERE}")
    return Passages(tuple(texts), "" if is_blank(question) else _encodable(question.strip()))


def _has_text(context: str | Passages) -> bool:
    return bool(context.texts) if isinstance(context, Passages) else not is_blank(context)


def _check_texts(context: str | Passages, texts: Mapping[str, Sequence[str]]) -> None:
    if not texts["candidates"]:
        raise Refused("Please give at least one candidate: a text to score.")
    if not _has_text(context) and not texts["references"]:
        raise Refused("Please say what the candidates are scored by: give a context, references, or both.")
    whole = "".join((context.question, *context.texts)) if isinstance(context, Passages) else context
    _check_length("The context has", [whole], CONTEXT_CHARACTERS)
    for name, (limit, length) in LIMITS.items():
        if (count := len(texts[name])) > limit:
            raise Refused(f"{count:,} {name} are too many: at most {limit} are allowed here. {ELSEWHERE}")
        _check_length(f"A {name.removesuffix('s')} has", texts[name], length)


def _check_settings(settings: Mapping[str, object]) -> dict[str, Any]:
    try:
        if unknown := [str(name)[:40] for name in settings if name not in DEFAULTS]:
            raise ValueError(f"there is no {', '.join(unknown)} here, but {', '.join(DEFAULTS)}")
        chosen = {**DEFAULTS, **settings}
        if not isinstance(chosen["paper"], bool):
            raise TypeError(f"paper must be true or false, got {chosen['paper']!r:.40}")
        for name, allowed in (("task", TASKS), ("preset", CHOICES)):
            if chosen[name] not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {chosen[name]!r:.40}")
        resolve_settings(chosen["preset"], VARIANT, **{name: chosen[name] for name in SCORER_SETTINGS})
    except (TypeError, ValueError) as error:
        raise Refused(f"A setting cannot be used: {str(error)[:200]}") from None
    return chosen


def _check_length(subject: str, texts: Sequence[str], limit: int) -> None:
    if (length := max(map(len, texts), default=0)) > limit:
        raise Refused(
            f"{subject} {length:,} characters; at most {limit:,} are allowed here. Please shorten it. {ELSEWHERE}"
        )


def _encodable(text: str) -> str:
    """Replace NUL and unpaired surrogates, which cannot be encoded, by U+FFFD."""
    return without_surrogates(text).replace("\0", "\ufffd")


def _read_texts(name: str, value: object) -> list[str]:
    if isinstance(value, str):
        text = value.replace("\r\n", "\n").replace("\r", "\n").rstrip()  # Blank lines at the end do not count.
        value = _split(text) if text else None
    if not isinstance(value, list | tuple | None) or not all(isinstance(text, str) for text in value or ()):
        raise Refused(f"The {name} must be a list of texts.")
    return [_encodable(text.strip()) for text in value or ()]


def _split(text: str) -> list[str]:
    if not _BETWEEN.search(text):
        return text.split("\n")
    parts = _BETWEEN.split(text)
    return parts if parts[-1] else parts[:-1]  # A separator follows a single text of several lines.


def joined(texts: Sequence[str]) -> str:
    """Join texts to a string that :func:`read_question` splits."""
    if not any("\n" in text for text in texts):
        return "\n".join(texts)
    return f"\n{SEPARATOR}\n".join([*texts, *([""] if len(texts) == 1 else [])]).rstrip()


@dataclass(frozen=True)
class PageExample:
    """An example question with its right ranking."""

    title: str  # the text of its button
    hint: str  # what to look at
    question: Question
    ranks: tuple[int, ...]  # of the candidates, 1 for the best; equal ranks may come in any order
    fails: bool = False  # whether MARS plus ranks the candidates wrongly, which the hint then says

    def is_right(self, scores: Sequence[float]) -> bool:
        """Tell whether the scores rank the candidates rightly."""
        pairs = list(zip(self.ranks, scores, strict=True))
        return all(score > other for rank, score in pairs for worse, other in pairs if rank < worse)


def read_examples(path: Path) -> list[PageExample]:
    """Read the examples of the page from a JSON file, which may be missing."""
    examples = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return [
        PageExample(
            example["title"],
            example["hint"],
            read_question(
                example["context"],
                example["references"],
                [candidate["text"] for candidate in example["candidates"]],
                settings={"task": example["task"]} if "task" in example else {},
            ),
            tuple(candidate["rank"] for candidate in example["candidates"]),
            example.get("fails", False),
        )
        for example in examples
    ]
