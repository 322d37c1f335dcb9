"""Examples to start from: rows of ``examples/``, each with a line on what to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mars_score.data.files import read_rows
from mars_score.space.inputs import Question


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
