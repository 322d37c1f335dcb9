"""Premises with hypotheses and labels to learn from: people's pairs, and contexts written for this project.

A part of each set is taken, chosen by premise with a seed. A written context is a premise for its eight sentences;
its sentences are premises for each other, too. A classifier that has seen twins only as pairs of short sentences
learns that a sentence contradicts itself, so identical sentences and sentences of two facts stand beside them. One
that has seen few texts in quite other words takes a paraphrase for a contradiction, so references stand with
paraphrases that share few words with them (``reworded.jsonl``). The words of a reference in random order
contradict it: they do not say what it says, and little else in the score sees their order.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the classes
NOT_ENTAILMENT = "not_entailment"  # either of the two other classes
# Sets that a shipped model may learn from, and how many of their pairs ``--public 1`` takes in an epoch, about.
PUBLIC = {
    "lingloop": 7000,
    "infotabs": 2400,
    "cad": 2000,
    "snli": 1500,
    "fm2": 1200,
    "negation": 900,
    "rte": 900,
    "factcheck_gpt": 900,
    "conj": 600,
    "ambient": 600,
    "med": 500,
    "breaking": 400,
    "monli": 400,
}

CONTINUATIONS = ("story", "reply")  # tasks whose texts need not follow from the context


class Group(NamedTuple):
    """A premise and its hypotheses with their labels.

    ``twins`` are pairs of indices of a hypothesis that follows and its twin that contradicts.
    """

    premise: str
    hypotheses: tuple[str, ...]
    labels: tuple[str, ...]
    twins: tuple[tuple[int, int], ...] = ()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def public_groups(folder: Path, seed: int, share: float = 1.0) -> list[Group]:
    """Draw groups of people's pairs; ``share``: of the numbers of :data:`PUBLIC`."""
    groups = []
    for name, number in PUBLIC.items():
        by_premise = defaultdict(list)
        for row in read_rows(folder / f"{name}.jsonl"):
            by_premise[row["premise"]].append((row["hypothesis"], row["label"]))
        premises = list(by_premise)
        random.Random(f"{name} {seed}").shuffle(premises)
        taken = 0
        for premise in premises:
            if taken >= number * share:
                break
            pairs = by_premise[premise][:9]
            taken += len(pairs)
            groups.append(Group(premise, *zip(*pairs, strict=True)))
    return groups


def written_groups(contexts: Iterable[dict[str, Any]], premises: dict[str, str], seed: int) -> Iterator[Group]:
    """Make groups of written contexts.

    Args:
        contexts: rows with ``context``, ``supported``, ``contradicted`` and ``neutral``.
        premises: for contexts that are too long to be read whole: by sentence, the passage to read.
        seed: of the random choices.
    """
    rng = random.Random(seed)
    rows = list(contexts)
    for row in rows:
        yield from _context_groups(row, premises, rng.choice(rows), rng)
        yield from _sentence_groups(row, rng)


def _context_groups(
    row: dict[str, Any], premises: dict[str, str], other: dict[str, Any], rng: random.Random
) -> Iterator[Group]:
    """Pair a context, or the passages of a long one, with its sentences and some that say nothing of it."""
    context = str(row["context"])
    items = [(text, "entailment") for text in row["supported"]]
    items += [(text, "contradiction") for text in row["contradicted"]]
    items += [(text, "neutral") for text in row["neutral"]]
    if rng.random() < 0.3:
        items.append((_shuffled(rng.choice(row["supported"]), rng), "neutral"))
    if rng.random() < 0.3 and other is not row:
        items.append((rng.choice(other["supported"]), "neutral"))
    if rng.random() < 0.3:
        copied = [part.strip() for part in context.replace("\n", ". ").split(". ") if len(part.split()) > 5]
        items += [(f"{rng.choice(copied).rstrip('.')}.", "entailment")] if copied else []
    by_premise = defaultdict(list)
    for text, label in items:
        by_premise[premises.get(text, context)].append((text, label))
    for premise, pairs in by_premise.items():
        texts, labels = zip(*pairs, strict=True)
        twins = tuple(
            (texts.index(first), texts.index(second))
            for first, second in zip(row["supported"], row["contradicted"], strict=True)
            if first in texts and second in texts
        )
        yield Group(premise, texts, labels, twins)


def _sentence_groups(row: dict[str, Any], rng: random.Random) -> Iterator[Group]:
    """Pair the sentences of a context with each other, as a candidate is read by its reference."""
    first, second, third = rng.sample(range(3), 3)
    supported, contradicted, neutral = row["supported"], row["contradicted"], row["neutral"]
    yield Group(
        supported[first],
        (supported[first], contradicted[first], supported[second], rng.choice(neutral)),
        ("entailment", "contradiction", "neutral", "neutral"),
        ((0, 1),),
    )
    two = rng.sample([supported[second], supported[third]], 2)
    yield Group(
        " ".join(two),
        (two[0], contradicted[second], contradicted[third], _shuffled(two[1], rng)),
        ("entailment", "contradiction", "contradiction", "contradiction"),
    )
    yield Group(
        contradicted[third],
        (contradicted[third], supported[third]),
        ("entailment", "contradiction"),
        ((0, 1),),
    )


def reworded_groups(rows: Iterable[dict[str, Any]], seed: int) -> Iterator[Group]:
    """Make groups of references, their paraphrases, and texts that contradict them.

    Args:
        rows: with ``task``, ``context``, ``reference``, two ``paraphrases``, two ``contradicted``, and ``other``,
            of which the reference says nothing. The context supports or refutes the texts, unless the task is one
            of :data:`CONTINUATIONS`.
        seed: of the random choices.
    """
    rng = random.Random(seed)
    for row in rows:
        reference, (first, second), (close, far) = row["reference"], row["paraphrases"], row["contradicted"]
        texts = [first, second, close, far]
        labels = ["entailment", "entailment", "contradiction", "contradiction"]
        twins = ((0, 2), (1, 3))
        shuffled = _shuffled(rng.choice((reference, first)), rng)
        yield Group(reference, (*texts, row["other"], shuffled), (*labels, "neutral", "contradiction"), twins)
        one, two = rng.sample((first, second), 2)
        yield Group(one, (reference, two, close, far, row["other"]), (*labels, "neutral"), twins)
        wrong, right = rng.choice(((close, second), (far, reference)))
        yield Group(wrong, (wrong, right, row["other"]), ("entailment", "contradiction", "neutral"), ((0, 1),))
        if not row["task"].startswith(CONTINUATIONS):
            texts, labels = [*texts, reference, row["other"], shuffled], [*labels, *["entailment"] * 2, "neutral"]
            yield Group(row["context"], tuple(texts), tuple(labels), twins)


def _shuffled(text: str, rng: random.Random) -> str:
    words = text.split()
    return " ".join(rng.sample(words, len(words)))
