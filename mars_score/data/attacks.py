"""Changed candidates, which a good metric scores below the text that they were made from.

``ATTACKS`` are those of the paper's Table 4, for ``mars meta``; ``CHANGES`` are what a newcomer tries first.
"""

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mars_score.data.sentences import sentences
from mars_score.data.validation import Row

_AUXILIARY = re.compile(r"\b(am|is|are|was|were|will|would|can|could|shall|should|may|might|must)\b(?!')")
_CONTRACTED = re.compile(r"\b(?:I'm|(?:you|we|they)'re|(?:he|she|it|that|there)'s|\w+'ll)(?= )", re.IGNORECASE)
_NOT = re.compile(r" (?:not|never)\b", re.IGNORECASE)
_IRREGULAR = {"won't": "will", "can't": "can", "cannot": "can", "shan't": "shall"}
_CONTRACTED_NOT = re.compile(r"\b(?:(won't|can't|cannot|shan't)|(\w+)n't)\b", re.IGNORECASE)
# What begins a clause that says less than the statement, in which a "not" would change little.
_CLAUSE = re.compile(
    r"[,;:]|(?<=\s)(?:who|which|that|as|because|since|while|when|where|until|if|after|before|and|but)\b",
    re.IGNORECASE,
)
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = re.compile(rf"\d+(?:[.,:]\d+)*|\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)


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
    return copy(row, generator) if len(sentences(row.context)) >= 3 else None


def copy(row: Row, generator: random.Random) -> str | None:
    """A sentence of the context; None where it has none but the candidate itself."""
    candidate = _plain(row.candidate)
    others = [one for one in dict.fromkeys(sentences(row.context)) if _plain(one) != candidate]
    return generator.choice(others) if others else None


def negate(row: Row, generator: random.Random) -> str | None:
    """The candidate with its first statement (in English, by rules) turned into the opposite; None without one."""
    statement = next((one for one in sentences(row.candidate) if not one.endswith("?")), None)
    if statement is None:
        return None
    clause = _CLAUSE.split(statement, maxsplit=1)[0]
    opposite = _opposite(clause) + statement[len(clause) :]
    if opposite == statement:
        end = len(statement.rstrip(".!"))
        opposite = f"{statement[:end]}, which is not true{statement[end:] or '.'}"
    return row.candidate.replace(statement, opposite, 1)


def _opposite(clause: str) -> str:
    """The clause with a "not" more or less, if it has a place for one."""
    for pattern, replacement in (
        (_CONTRACTED_NOT, lambda found: _IRREGULAR.get(found[0].lower(), found[2])),
        (_NOT, ""),
        (_AUXILIARY, r"\g<0> not"),
        (_CONTRACTED, r"\g<0> not"),
    ):
        changed, count = pattern.subn(replacement, clause, count=1)
        if count:
            return changed
    return clause


def change_number(row: Row, generator: random.Random) -> str | None:
    """The candidate with another first number (in digits, or from two to twelve in words); None without one."""
    found = _NUMBER.search(row.candidate)
    if found is None:
        return None
    number = found[0]
    if number[-1].isdigit():
        changed = number[:-1] + generator.choice([one for one in "123456789" if one != number[-1]])
    else:
        word = generator.choice([one for one in _NUMBER_WORDS if one != number.lower()])
        changed = word.capitalize() if number[0].isupper() else word
    return row.candidate[: found.start()] + changed + row.candidate[found.end() :]


Change = Callable[[Row, random.Random], str | None]
ATTACKS: Mapping[str, Change] = {"reorder": reorder, "retrieve": retrieve}
CHANGES: Mapping[str, Change] = {
    "shuffled": reorder,
    "negated": negate,
    "wrong_number": change_number,
    "copied": copy,
}


def attack(name: str, rows: Sequence[Row], seed: int = 0) -> Attacked:
    """Attack each row that can be; what a row becomes depends on the row and the seed alone."""
    indices, attacked = [], []
    for index, row in enumerate(rows):
        text = ATTACKS[name](row, _generator(name, row, seed)) if row.candidate.strip() else None
        if text is not None:
            indices.append(index)
            attacked.append(row._replace(candidate=text))
    return Attacked(tuple(indices), tuple(attacked), len(rows) - len(indices))


def changes(row: Row, seed: int = 0) -> dict[str, str | None]:
    """A row's candidate under each of :data:`CHANGES`; None where it cannot be changed like that."""
    return {name: change(row, _generator(name, row, seed)) for name, change in CHANGES.items()}


def _generator(name: str, row: Row, seed: int) -> random.Random:
    text = repr((name, row, seed)).encode("utf-8", "surrogatepass")
    return random.Random(int.from_bytes(hashlib.sha256(text).digest()[:8], "big"))


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
