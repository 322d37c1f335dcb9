"""Examples to start from: rows of ``examples/``, each with a line on what to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mars_score.data.files import read_rows
from mars_score.space.inputs import Question

_WITHOUT_REFERENCES = {"story-03-tomatoes"}
# Row, text of the button, and what to look at: facts about the texts only, as scores change with the models.
_CHOSEN = (
    (
        "dialogue-01-marathon",
        "The marathon",
        "The second candidate shares no word with the reference, but fits. The third has its words, but is about "
        "a film.",
    ),
    (
        "story-04-piano",
        "The pianist",
        "The last candidate is about a swim, in the reference's words. Which metrics notice?",
    ),
    (
        "story-05-ferry",
        "The last ferry",
        "The second candidate says in other words what the second reference says; the last is about football.",
    ),
    (
        "story-06-letter",
        "The old letter",
        "The last candidate is the reference with its words shuffled. Which metrics notice?",
    ),
    (
        "story-07-interview",
        "The interview",
        "The third candidate is nonsense in the reference's words. Which metrics notice?",
    ),
    (
        "story-03-tomatoes",
        "No reference",
        "Without references the context alone counts. The third candidate is copied from the context, which these "
        "scores do not mark down.",
    ),
)


@dataclass(frozen=True)
class Example:
    """A question to try.

    Attributes:
        title: text of its button.
        lesson: what to look at.
    """

    title: str
    lesson: str
    question: Question


def read_examples(folder: Path) -> list[Example]:
    """The chosen examples; none if the folder does not exist."""
    if not folder.is_dir():
        return []
    files = ("dialogues.jsonl", "stories.jsonl")
    rows = {row["id"]: row for file in files for row in read_rows(folder / file).rows}
    return [
        Example(
            title,
            lesson,
            Question(
                rows[name]["context"],
                () if name in _WITHOUT_REFERENCES else tuple(rows[name]["references"]),
                tuple(candidate["text"] for candidate in rows[name]["candidates"]),
            ),
        )
        for name, title, lesson in _CHOSEN
    ]
