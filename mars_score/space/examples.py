"""Examples to start from: rows of ``examples/`` with a line on what they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mars_score.data.files import read_rows
from mars_score.space.inputs import Question

# Its row, what the button says, what to look at. Seen with preset "mini"; another preset may differ.
_CHOSEN = (
    (
        "story-04-piano",
        "The pianist",
        "BLEU and ROUGE-L put the swim in a lake first, as it repeats the reference's words.",
    ),
    (
        "story-05-ferry",
        "The last ferry",
        "BLEU ranks the football sentence above a fair paraphrase of the second reference.",
    ),
    (
        "story-06-letter",
        "The old letter",
        "MARS can be fooled: the reference with its words shuffled scores highest.",
    ),
    (
        "story-07-interview",
        "The interview",
        "All metrics fall for nonsense in the reference's words.",
    ),
)


@dataclass(frozen=True)
class Example:
    """A question to try.

    Attributes:
        title: a few words for a button.
        lesson: what it shows.
    """

    title: str
    lesson: str
    question: Question


def read_examples(folder: Path) -> list[Example]:
    """The chosen examples; none if the folder is not there."""
    if not folder.is_dir():
        return []
    rows = {row["id"]: row for row in read_rows(folder / "stories.jsonl").rows}
    return [
        Example(
            title,
            lesson,
            Question(
                rows[name]["context"],
                tuple(rows[name]["references"]),
                tuple(one["text"] for one in rows[name]["candidates"]),
            ),
        )
        for name, title, lesson in _CHOSEN
    ]
