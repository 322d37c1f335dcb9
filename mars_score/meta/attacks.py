"""Adversarial candidates (the paper's Table 4): a good metric scores them below the text they were made from."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mars_score.data.validation import Row
from mars_score.meta.sentences import sentences

_FEWEST_TOKENS = 4  # to be reordered
_FEWEST_SENTENCES = 3  # of a context, to retrieve one
REORDERED = 0.5


@dataclass(frozen=True)
class Attacked:
    """Rows under an attack.

    Attributes:
        indices: which of the rows could be attacked.
        rows: these rows with the attack in place of the candidate.
        skipped: how many could not.
    """

    indices: tuple[int, ...]
    rows: tuple[Row, ...]
    skipped: int


def reorder(row: Row, generator: random.Random) -> str | None:
    """The candidate with half of its tokens (whitespace-separated) shuffled among their places.

    None below four tokens, and where all tokens that could move are equal. Never the candidate itself.
    """
    tokens = row[0].split()
    if len(tokens) < _FEWEST_TOKENS or len(set(tokens)) == 1:
        return None
    count = max(2, round(REORDERED * len(tokens)))
    while True:
        places = generator.sample(range(len(tokens)), count)
        moved = list(tokens)
        for place, source in zip(sorted(places), places, strict=True):
            moved[place] = tokens[source]
        if moved != tokens:
            return " ".join(moved)


def retrieve(row: Row, generator: random.Random) -> str | None:
    """A sentence of the context; None where it has fewer than three. Never the candidate itself."""
    candidate, _, context = row
    found = sentences(context)
    others = [sentence for sentence in dict.fromkeys(found) if _plain(sentence) != _plain(candidate)]
    if len(found) < _FEWEST_SENTENCES or not others:
        return None
    return generator.choice(others)


ATTACKS: Mapping[str, Callable[[Row, random.Random], str | None]] = {"reorder": reorder, "retrieve": retrieve}


def attack(name: str, rows: Sequence[Row], seed: int = 0) -> Attacked:
    """Attack each row that can be; what a row becomes depends on the row and the seed alone.

    Args:
        name: "reorder" or "retrieve".
        rows: candidate, references and context of each; blank candidates are skipped.
        seed: of the generator that each row gets.
    """
    indices, attacked = [], []
    for index, row in enumerate(rows):
        text = ATTACKS[name](row, _generator(name, row, seed)) if row[0].strip() else None
        if text is not None:
            indices.append(index)
            attacked.append((text, row[1], row[2]))
    return Attacked(tuple(indices), tuple(attacked), len(rows) - len(indices))


def _generator(name: str, row: Row, seed: int) -> random.Random:
    text = repr((name, row, seed)).encode("utf-8", "surrogatepass")
    return random.Random(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
