"""Changed candidates, which a good metric scores below the text that they were made from: the paper's Table 4."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row


@dataclass(frozen=True)
class Attacked:
    """Rows under an attack."""

    indices: tuple[int, ...]  # which of the rows could be attacked
    rows: tuple[Row, ...]  # these rows with the attack in place of the candidate
    skipped: int  # how many could not


def reorder(row: Row, generator: random.Random) -> str | None:
    """The candidate, changed, with half of its tokens shuffled; None below four tokens or where all are equal."""
    tokens = row.candidate.split()
    if len(tokens) < 4 or len(set(tokens)) == 1:
        return None
    count = max(2, round(len(tokens) / 2))
    while True:
        places = generator.sample(range(len(tokens)), count)
        moved = list(tokens)
        for place, source in zip(sorted(places), places, strict=True):
            moved[place] = tokens[source]
        if moved != tokens:
            return " ".join(moved)


def retrieve(row: Row, generator: random.Random) -> str | None:
    """A sentence of the context; None where it has fewer than three. Never the candidate itself."""
    texts = sentences(row.context)
    candidate = _plain(row.candidate)
    others = [text for text in dict.fromkeys(texts) if _plain(text) != candidate]
    return generator.choice(others) if others and len(texts) >= 3 else None


ATTACKS: Mapping[str, Callable[[Row, random.Random], str | None]] = {"reorder": reorder, "retrieve": retrieve}


def attack(name: str, rows: Sequence[Row], seed: int = 0) -> Attacked:
    """Attack each row that can be; what a row becomes depends on the row and the seed alone."""
    indices, attacked = [], []
    for index, row in enumerate(rows):
        digest = hashlib.sha256(repr((name, row, seed)).encode("utf-8", "surrogatepass")).digest()
        generator = random.Random(int.from_bytes(digest[:8], "big"))
        text = ATTACKS[name](row, generator) if row.candidate.strip() else None
        if text is not None:
            indices.append(index)
            attacked.append(row._replace(candidate=text))
    return Attacked(tuple(indices), tuple(attacked), len(rows) - len(indices))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
