"""Texts to score in benchmarks: those of ``examples/``, and any number of invented ones."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from mars_score.data.reading import read_rows

EXAMPLES = Path(__file__).parent.parent / "examples"

NAMES = "Anna|Ben|Carla|David|Emma|Felix|Grace|Hugo|Ines|Jack|Karen|Leo|Maria|Nina|Oscar|Paula|Robert|Sara"
ACTIONS = (
    "bought a {0} {1}|lost a {0} {1}|was looking for a {0} {1}|gave a {0} {1} to {2}|wanted to repair the {1}|"
    "showed {2} a {0} {1}|could not find the {1} anywhere|forgot the {0} {1}|waited for {2}|"
    "decided to sell the {0} {1}|talked with {2} about the {1}"
)
KINDS = "new|red|broken|small|heavy|beautiful|cheap|strange|blue|wooden|costly|dusty"
THINGS = "bicycle|guitar|camera|coat|ticket|cake|phone|map|chair|lamp|letter|umbrella|book|car|jacket|clock"
PLACES = "at the market|in the library|near the old station|at school|in the kitchen|by the river|on the bus"
TIMES = "on Monday|last summer|early in the morning|after lunch|before the storm|for two hours|the whole day"
ENDS = "but nobody helped|and everyone laughed|because it was raining|and {2} was very happy|so they went home"


@dataclass(frozen=True)
class Text:
    """A reference with its context, and a candidate for it."""

    context: str
    reference: str
    candidate: str


def example_pairs(count: int) -> list[tuple[str, str]]:
    """Return distinct (context, reference) pairs of ``examples/``, then (context, candidate) pairs.

    Shuffled candidates are left out.

    Raises:
        ValueError: there are too few.
    """
    examples = [row for path in sorted(EXAMPLES.glob("*.jsonl")) for row in read_rows(path).rows]
    references = [(row["context"], text) for row in examples for text in row["references"]]
    candidates = [
        (row["context"], one["text"])
        for row in examples
        for one in row["candidates"]
        if one["kind"] != "shuffled" and one["text"].strip()
    ]
    pairs = list(dict.fromkeys([*references, *candidates]))
    if len(pairs) < count:
        raise ValueError(f"examples/ hold {len(pairs)} different texts, {count} are wanted")
    return pairs[:count]


def invented(count: int, context_sentences: int = 1, seed: int = 0) -> list[Text]:
    """Make distinct references of 4 to 20 words (mean 11) from a grammar, with contexts and candidates."""
    generator = random.Random(f"{seed} {context_sentences}")
    references = islice(_distinct_sentences(generator), count)
    return [
        Text(" ".join(_sentence(generator) for _ in range(context_sentences)), reference, _sentence(generator))
        for reference in references
    ]


def with_new_candidates(texts: Sequence[Text], seed: int) -> list[Text]:
    """Return the same references and contexts with other candidates."""
    new = invented(len(texts), seed=seed)
    return [replace(text, candidate=other.candidate) for text, other in zip(texts, new, strict=True)]


def columns(texts: Sequence[Text]) -> tuple[list[str], list[str], list[str]]:
    """Return candidates, references and contexts."""
    return (
        [text.candidate for text in texts],
        [text.reference for text in texts],
        [text.context for text in texts],
    )


def rows_of(texts: Iterable[Text]) -> list[dict[str, str]]:
    """Return texts as rows for ``mars score``."""
    return [{"prediction": one.candidate, "reference": one.reference, "context": one.context} for one in texts]


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """Write rows as one JSON object per line, and return the path."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return path


def _distinct_sentences(generator: random.Random) -> Iterator[str]:
    seen = set()
    while True:
        sentence = _sentence(generator)
        if sentence not in seen:
            seen.add(sentence)
            yield sentence


def _sentence(generator: random.Random) -> str:
    def pick(choices: str) -> str:
        return generator.choice(choices.split("|"))

    who, whom = generator.sample(NAMES.split("|"), 2)
    parts = [who, pick(ACTIONS), *(pick(choices) for choices in (PLACES, TIMES) if generator.random() < 0.5)]
    ending = f", {pick(ENDS)}" if generator.random() < 0.4 else ""
    return (" ".join(parts) + ending + ".").format(pick(KINDS), pick(THINGS), whom)
