"""Lists and objects that stand as texts in the cells of a table, as in CSV files."""

import ast
import json
from collections.abc import Callable, Sequence
from typing import Any

from mars_score.errors import warn

_LONGEST_LITERAL = 2**20  # characters of a cell that is looked at


def value_of_cell(text: str, column: str) -> Any:
    """Return the list or object that a cell holds in JSON's or Python's notation, or else the text.

    Args:
        text: of the cell.
        column: what it is: a context may be a list of texts or of messages, or an object; others a list of texts.
    """
    start = text.strip()[:1]
    if start not in ("[", "{") or len(text) > _LONGEST_LITERAL or (start == "{" and column != "context"):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
            return value
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return value
        if isinstance(value, list) and value and column == "context" and all(isinstance(x, dict) for x in value):
            return value
    return text


class CellKinds:
    """What each column of a table holds: texts, or lists or objects written as texts; its first cell says it."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, str]] = {}  # by column: its kind, and the cell that said it

    def parse(self, values: Sequence[Any], column: str, where: Callable[[int], str], remedy: str) -> list[Any]:
        """Return the values of some cells of a column; the first of them that are no texts are noticed.

        Args:
            values: what is no text is left as it is.
            column: "prediction", "reference", "context" or "samples".
            where: names a cell in errors.
            remedy: how to say that such cells are texts.

        Raises:
            ValueError: some cells hold lists or objects, and others texts.
        """
        parsed = []
        for row, text in enumerate(values):
            if not isinstance(text, str) or not text.strip():
                parsed.append(text)
                continue
            value = value_of_cell(text, column)
            kind = "a text" if value is text else "a list or an object"
            if column not in self._kinds:
                self._kinds[column] = kind, where(row)
                if value is not text:
                    warn(f"{where(row)} and the others of its column hold lists or objects, and are taken as such")
            before, first = self._kinds[column]
            if kind != before:
                fault = f"{where(row)} holds {kind}, but {first} {before}"
                raise ValueError(f"{fault}; write all cells of a column alike, or {remedy}")
            parsed.append(value)
        return parsed
