"""Premises with hypotheses and labels to learn from: people's pairs, texts written for this project, rated texts.

A part of each set is taken, chosen by premise with a seed. A written context is a premise for its eight sentences;
its sentences are premises for each other, too. A classifier that has seen twins only as pairs of short sentences
learns that a sentence contradicts itself, so identical sentences, with a changed surface
(:mod:`research.entailment.surface`), and sentences of two facts stand beside them. One that has seen few texts in
quite other words takes a paraphrase for a contradiction, so references stand with paraphrases that share few words
with them (``reworded.jsonl``) and with other details of the same topic (``details.jsonl``). Of systems' outputs
that people rated (``human_learn``), consistent ones follow from their context and no reference contradicts them.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mars_score.sentences import sentences
from mars_score.variants.judgements.premises import neighbourhood
from research.entailment.surface import LEARNED, changed

LABELS = ("contradiction", "entailment", "neutral")  # in the order of the classes
NOT_ENTAILMENT = "not_entailment"  # either of the two other classes
NOT_CONTRADICTION = "not_contradiction"
# Sets that a shipped model may learn from, and how many of their pairs an epoch takes, about.
PUBLIC = {
    "lingloop": 20000,
    "infotabs": 7900,
    "cad": 6000,
    "snli": 4000,
    "negation": 2900,
    "rte": 2400,
    "ambient": 2100,
    "factcheck_gpt": 1578,
    "med": 1500,
    "fm2": 1200,
    "breaking": 1000,
    "monli": 1000,
    "conj": 623,
}
# Sets of human_learn with ratings of consistency (1 to 5): summaries from the first rating on are consistent, and
# from the second down are not. webnlg20 may not be learned (its licence); the questions of qgeval state nothing.
CONSISTENCY = {"summeval": (4.6, 3.0), "dialsummeval": (4.6, 2.7)}
# Sets whose references were written to their context.
REFERENCES = ("summeval", "dialsummeval", "newsroom", "realsumm", "qa_feedback")
CONTINUATIONS = ("story", "reply")  # tasks whose texts need not follow from the context
PREMISE_WORDS = (80, 150, 280)  # of a passage of a longer context, at most; drawn for each epoch
SURFACE = 0.15  # share of hypotheses, and of premises, whose surface is changed
MISSPELT = 0.25  # share of hypotheses with a misspelt word


class Group(NamedTuple):
    """A premise and its hypotheses with their labels.

    ``twins`` are pairs of indices of a hypothesis that follows and its twin that contradicts.
    """

    premise: str
    hypotheses: tuple[str, ...]
    labels: tuple[str, ...]
    twins: tuple[tuple[int, int], ...] = ()


class Statement(NamedTuple):
    """A hypothesis of a context with its label."""

    text: str
    label: str


class Passages:
    """Choose the passages of long contexts by which their statements are judged.

    Args:
        nearest: by context and statement the index of the context's sentence that is nearest to the statement.
    """

    def __init__(self, nearest: Mapping[str, Mapping[str, int]]) -> None:
        self._nearest = nearest

    def groups(
        self, context: str, items: Iterable[Statement], words: int, twins: Iterable[tuple[str, str]] = ()
    ) -> Iterator[Group]:
        """Make a group of each passage of at most ``words`` words, or of the whole context if it is no longer."""
        by_premise = defaultdict(list)
        parts = sentences(context) if len(context.split()) > words else []
        for item in items:
            premise = context
            if parts and item.text in self._nearest.get(context, {}):
                premise = neighbourhood(parts, self._nearest[context][item.text], words)
            by_premise[premise].append(item)
        for premise, chosen in by_premise.items():
            texts, labels = zip(*chosen, strict=True)
            both = [
                (texts.index(one), texts.index(other)) for one, other in twins if one in texts and other in texts
            ]
            yield Group(premise, texts, labels, tuple(both))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def public_groups(folder: Path, rng: random.Random, share: float = 1.0) -> Iterator[Group]:
    """Draw groups of people's pairs; ``share``: of the numbers of :data:`PUBLIC`."""
    for name, number in PUBLIC.items():
        by_premise = defaultdict(list)
        for row in read_rows(folder / f"{name}.jsonl"):
            by_premise[row["premise"]].append((row["hypothesis"], row["label"]))
        premises = list(by_premise)
        rng.shuffle(premises)
        taken = 0
        for premise in premises:
            if taken >= number * share:
                break
            pairs = by_premise[premise][:9]
            taken += len(pairs)
            yield Group(premise, *zip(*pairs, strict=True))


def written_groups(
    contexts: Iterable[Mapping[str, Any]], passages: Passages, rng: random.Random
) -> Iterator[Group]:
    """Make groups of written contexts: rows with ``context``, ``supported``, ``contradicted`` and ``neutral``."""
    rows = list(contexts)
    for row in rows:
        yield from _context_groups(row, rng.choice(rows), passages, rng)
        yield from _sentence_groups(row, rng)


def _context_groups(
    row: Mapping[str, Any], other: Mapping[str, Any], passages: Passages, rng: random.Random
) -> Iterator[Group]:
    """Pair a context, or the passages of a long one, with its sentences and some that say nothing of it."""
    context = str(row["context"])
    items = [Statement(text, "entailment") for text in row["supported"]]
    items += [Statement(text, "contradiction") for text in row["contradicted"]]
    items += [Statement(text, "neutral") for text in row["neutral"]]
    if rng.random() < 0.2:
        items.append(Statement(_shuffled(rng.choice(row["supported"]), rng), NOT_ENTAILMENT))
    if rng.random() < 0.3 and other is not row:
        items.append(Statement(rng.choice(other["supported"]), "neutral"))
    copied = [part for part in sentences(context) if len(part.split()) > 5]
    if rng.random() < 0.4 and copied:
        items.append(Statement(changed(rng.choice(copied), rng), "entailment"))
    twins = zip(row["supported"], row["contradicted"], strict=True)
    yield from passages.groups(context, items, rng.choice(PREMISE_WORDS), list(twins))


def _sentence_groups(row: Mapping[str, Any], rng: random.Random) -> Iterator[Group]:
    """Pair the sentences of a context with each other, as a candidate is read by its reference."""
    first, second, third = rng.sample(range(3), 3)
    supported, contradicted, neutral = row["supported"], row["contradicted"], row["neutral"]
    yield Group(
        supported[first],
        (changed(supported[first], rng), contradicted[first], supported[second], rng.choice(neutral)),
        ("entailment", "contradiction", "neutral", "neutral"),
        ((0, 1),),
    )
    two = rng.sample([supported[second], supported[third]], 2)
    yield Group(
        " ".join(two),
        (two[0], contradicted[second], contradicted[third], changed(two[1], rng), supported[first]),
        ("entailment", "contradiction", "contradiction", "entailment", "neutral"),
    )
    yield Group(
        contradicted[third],
        (changed(contradicted[third], rng), supported[third], neutral[0]),
        ("entailment", "contradiction", "neutral"),
        ((0, 1),),
    )


def reworded_groups(rows: Iterable[Mapping[str, Any]], rng: random.Random) -> Iterator[Group]:
    """Make groups of references, their paraphrases, texts that contradict them, and others.

    Args:
        rows: with ``task``, ``reference``, two ``paraphrases``, two ``contradicted``, and ``others``, of which the
            reference says nothing. A ``context`` supports or refutes the texts, unless the task is one of
            :data:`CONTINUATIONS`.
        rng: of the random choices.
    """
    for row in rows:
        reference, (first, second), (close, far) = row["reference"], row["paraphrases"], row["contradicted"]
        others = row["others"]
        texts = [first, second, close, far]
        labels = ["entailment", "entailment", "contradiction", "contradiction"]
        twins = ((0, 2), (1, 3))
        same, more = changed(reference, rng), len(others) * ["neutral"]
        yield Group(reference, (*texts, same, *others), (*labels, "entailment", *more), twins)
        one, two = rng.sample((first, second), 2)
        both = (reference, two, changed(close, rng), far, *others, changed(one, rng))
        yield Group(one, both, (*labels, *more, "entailment"), twins)
        wrong, right = rng.choice(((close, second), (far, reference)))
        yield Group(
            wrong,
            (changed(wrong, rng), right, *others),
            ("entailment", "contradiction", *more),
            ((0, 1),),
        )
        yield Group(others[0], (others[0], reference, *others[1:]), ("entailment", *len(others) * ["neutral"]))
        if row.get("context") and not row["task"].startswith(CONTINUATIONS):
            follow = (*texts, same, *others)
            yield Group(row["context"], follow, (*labels, "entailment", *len(others) * ["entailment"]), twins)


def rated_statements(folder: Path) -> dict[str, list[Statement]]:
    """Return by context what its summaries' ratings say of their sentences, and its references, which fit."""
    found: dict[str, list[Statement]] = defaultdict(list)
    for name in REFERENCES:
        for row in read_rows(folder / f"{name}.jsonl"):
            fit = [Statement(text, NOT_CONTRADICTION) for one in row["references"] for text in sentences(one)]
            found[row["context"]] += fit
            if name not in CONSISTENCY:
                continue
            consistent, inconsistent = CONSISTENCY[name]
            rating, candidate = row["ratings"]["consistency"], row["candidate"]
            if rating >= consistent:
                found[row["context"]] += [
                    Statement(text, "entailment") for text in [*sentences(candidate), candidate]
                ]
            elif rating <= inconsistent:
                found[row["context"]].append(Statement(candidate, NOT_ENTAILMENT))
    return {context: list(dict.fromkeys(items)) for context, items in found.items()}


def rated_groups(
    statements: Mapping[str, list[Statement]], folder: Path, passages: Passages, rng: random.Random
) -> Iterator[Group]:
    """Make groups of the rated texts of ``folder``: by their contexts, and consistent ones by a reference."""
    for context, items in statements.items():
        some = rng.sample(items, min(12, len(items)))
        yield from passages.groups(context, some, rng.choice(PREMISE_WORDS))
    for name in CONSISTENCY:
        by_references: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for row in read_rows(folder / f"{name}.jsonl"):
            if row["ratings"]["consistency"] >= CONSISTENCY[name][0]:
                by_references[tuple(row["references"])] += sentences(row["candidate"])
        for references, texts in by_references.items():
            for reference in rng.sample(references, min(3, len(references))):
                others = [text for one in references if one != reference for text in sentences(one)]
                fit = rng.sample(texts, min(6, len(texts))) + rng.sample(others, min(3, len(others)))
                yield Group(reference, tuple(fit), (NOT_CONTRADICTION,) * len(fit))


def with_surfaces(groups: Iterable[Group], rng: random.Random) -> Iterator[Group]:
    """Change the surface of some premises and hypotheses; labels stay."""
    for group in groups:
        premise = changed(group.premise, rng) if rng.random() < SURFACE else group.premise
        texts = tuple(changed(text, rng) if rng.random() < SURFACE else text for text in group.hypotheses)
        misspelt = (LEARNED["misspelt"](text, rng) if rng.random() < MISSPELT else text for text in texts)
        yield group._replace(premise=premise, hypotheses=tuple(misspelt))


def _shuffled(text: str, rng: random.Random) -> str:
    words = text.split()
    return " ".join(rng.sample(words, len(words)))
