"""Changed candidates, which a good metric scores below the text that they were made from: the paper's Table 4."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mars_score.rows import Row
from mars_score.text import sentences


@dataclass(frozen=True)
class Attacked:
    """Rows under an attack.

    Attributes:
        indices: of the rows that could be attacked.
        rows: these rows with the attack in place of the candidate.
        skipped: number of the other rows.
    """

    indices: tuple[int, ...]
    rows: tuple[Row, ...]
    skipped: int


def reorder(row: Row, generator: random.Random) -> str | None:
    """Shuffle half of the candidate's tokens; None below four tokens or where all are equal."""
    tokens = row.candidate.split()
    if len(tokens) < 4 or len(set(tokens)) == 1:
        return None
    count = max(2, round(len(tokens) / 2))
    while True:
        sources = generator.sample(range(len(tokens)), count)
        moved = list(tokens)
        for target, source in zip(sorted(sources), sources, strict=True):
            moved[target] = tokens[source]
        if moved != tokens:
            return " ".join(moved)


def retrieve(row: Row, generator: random.Random) -> str | None:
    """Choose a sentence of the context, not the candidate itself; None where it has fewer than three."""
    texts = sentences(row.context)
    candidate = _plain(row.candidate)
    others = [text for text in dict.fromkeys(texts) if _plain(text) != candidate]
    return generator.choice(others) if others and len(texts) >= 3 else None


ATTACKS: Mapping[str, Callable[[Row, random.Random], str | None]] = {"reorder": reorder, "retrieve": retrieve}


def attack(name: str, rows: Sequence[Row], seed: int = 0) -> Attacked:
    """Attack each row that can be; what a row becomes depends on its texts and the seed alone."""
    indices, attacked = [], []
    for index, row in enumerate(rows):
        texts = repr((name, *row[:3], seed)).encode("utf-8", "surrogatepass")
        generator = random.Random(int.from_bytes(hashlib.sha256(texts).digest()[:8], "big"))
        text = ATTACKS[name](row, generator) if row.candidate.strip() else None
        if text is not None:
            indices.append(index)
            attacked.append(row._replace(candidate=text))
    return Attacked(tuple(indices), tuple(attacked), len(rows) - len(indices))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
