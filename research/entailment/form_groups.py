"""Groups to learn from of the forms that people's texts have: bindings, limits, answers, summaries, single words.

The files are those of ``shared/data/nli/forms``, and those of the folder ``forms`` here. A tenth of the groups of
each is kept (:func:`is_kept`): it measures, and nothing learns it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from mars_score.sentences import sentences
from research.entailment.pairs import NOT_ENTAILMENT, PREMISE_WORDS, Group, Passages, Statement, read_rows

Row = Mapping[str, Any]
LEAST_WORDS = 4  # A shorter answer states nothing without its question.


def is_kept(row: Row) -> bool:
    """Tell whether a group is kept to measure on."""
    return int(sha256(row["id"].encode()).hexdigest(), 16) % 10 == 0


def read_forms(folders: Iterable[Path], *, kept: bool) -> list[dict[str, Any]]:
    """Read the groups of the files in some folders that are kept, or those that are not."""
    paths = sorted(chain.from_iterable(folder.glob("*.jsonl") for folder in folders))
    return [row for path in paths for row in read_rows(path) if is_kept(row) == kept]


def context_of(row: Row) -> str:
    """Return the text by which a group's statements are judged."""
    return " ".join(row["passages"]) if "passages" in row else str(row.get("context") or row["text"])


def form_groups(rows: Iterable[Row], passages: Passages, rng: random.Random) -> Iterator[Group]:
    """Make groups of the statements by passages of their context, and of single words by their statement."""
    for row in rows:
        items = statements_of_form(row)
        rng.shuffle(items)
        yield from passages.groups(context_of(row), items, rng.choice(PREMISE_WORDS))
        if row["form"] == "words":
            yield Group(row["statement"], *zip(*items, strict=True))


def statements_of_form(row: Row) -> list[Statement]:
    """Return the statements of a group with their labels."""
    return list(_FORMS[row["form"]](row))


def lines_of(text: str) -> list[str]:
    """Return the lines of a list or a table, without blank ones and a table's heading."""
    lines = [line for line in text.splitlines() if line.strip()]
    rules = [number for number, line in enumerate(lines) if set(line.strip()) <= set("|-: ")]
    return [line for number, line in enumerate(lines) if number not in rules and number + 1 not in rules]


def _twins(row: Row) -> Iterator[Statement]:
    for label, key in (("entailment", "supported"), ("contradiction", "contradicted"), ("neutral", "neutral")):
        yield from (Statement(text, label) for text in row[key])


def _answers(row: Row) -> Iterator[Statement]:
    labels = {"supported": "entailment", "contradicted": "contradiction", "neutral": "neutral"}
    for item in row["items"]:
        if item["label"] in labels and len(item["text"].split()) >= LEAST_WORDS:
            yield Statement(item["text"], labels[item["label"]])


def _quantities(row: Row) -> Iterator[Statement]:
    yield from (Statement(text, "entailment") for text in (*row["same"], *row["harmless"]))
    yield from (Statement(text, "contradiction") for text in row["different"])


def _lists(row: Row) -> Iterator[Statement]:
    right = [line for text in row["right"] for line in lines_of(text)]
    wrong = list[str]()
    for one in row["wrong"]:
        for number, line in enumerate(lines_of(one["text"])):
            (wrong if number in one["wrong_lines"] else right).append(line)
    yield from (Statement(line, "entailment") for line in dict.fromkeys(right))
    yield from (Statement(line, NOT_ENTAILMENT) for line in dict.fromkeys(wrong))
    yield from (Statement(line, "neutral") for line in row["neutral_lines"])


def _summaries(row: Row) -> Iterator[Statement]:
    right = [part for text in (*row["right"], *row["harmless"]) for part in sentences(text)]
    wrong = list[str]()
    for one in row["wrong"]:
        for number, part in enumerate(sentences(one["text"])):
            (wrong if number == one["sentence"] else right).append(part)
    yield from (Statement(part, "entailment") for part in dict.fromkeys(right))
    yield from (Statement(part, NOT_ENTAILMENT) for part in dict.fromkeys(wrong) if part not in right)


def _words(row: Row) -> Iterator[Statement]:
    yield Statement(row["statement"], "entailment")
    for key, label in (("harmless", "entailment"), ("errors", "contradiction"), ("absent", "neutral")):
        yield from (Statement(one["text"], label) for one in row[key])


_FORMS: dict[str, Callable[[Row], Iterable[Statement]]] = {
    "answers": _answers,
    "bindings": _twins,
    "limits": _twins,
    "lists": _lists,
    "quantities": _quantities,
    "summaries": _summaries,
    "words": _words,
}
