"""Synthetic pairs to learn from before there are ratings (BLEURT, section 4.1): texts, and what was done to them.

What becomes of a text depends on the text, its context and the seed alone (and on the other texts, where one of
them takes its place).
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mars_score.augment.augmenter import Augmenter
from mars_score.augment.masking.analysis import Analysis, Word
from mars_score.augment.masking.template import Template
from mars_score.data.files import read_rows
from mars_score.data.sentences import sentences
from mars_score.data.validation import check_contexts, check_references
from mars_score.data.words import split_words, word_spans
from mars_score.learning.ratings import TrainingSet
from mars_score.meta.attacks import ATTACKS
from mars_score.settings import Settings
from mars_score.store.runtime import Runtime

FEWEST_WORDS, MOST_WORDS = 4, 100  # of a text to make pairs from
MASKED = {"random": (0.15, 0.4), "span": (0.3,)}  # shares of the words that are masked together
DROPPED = (0.2, 0.5)  # shares of the words that are dropped
INTACT, FOREIGN, BACK_TRANSLATED = "intact", "foreign", "back-translation"


@dataclass(frozen=True)
class Source:
    """A text that people wrote, and its context; the context may be blank."""

    text: str
    context: str = ""


@dataclass(frozen=True)
class Pair:
    """A text and what was made of it.

    Attributes:
        source: the text, with its context.
        candidate: what was made of it.
        method: how.
        damage: share of the words that were changed, in [0, 1]; of two pairs of one source and method, the larger
            is the worse candidate, and the intact text is better than both.
    """

    source: Source
    candidate: str
    method: str
    damage: float


def references_of(sets: Iterable[TrainingSet]) -> list[Source]:
    """References with their contexts; never candidates or ratings."""
    rows = [row for one in sets for row in one.rows]
    return _usable(Source(text.strip(), context.strip()) for _, texts, context in rows for text in texts)


def with_sentences(sources: Iterable[Source]) -> list[Source]:
    """The texts, and the sentences of their contexts, given these."""
    found = list(sources)
    for context in dict.fromkeys(one.context for one in found):
        found += [Source(sentence, context) for sentence in sentences(context)]
    return _usable(found)


def read_corpus(
    path: str | os.PathLike[str], reference: str = "references", context: str = "context"
) -> list[Source]:
    """The texts of a file.

    Args:
        path: ``*.txt``: one text a line, without contexts. Any other: rows in the formats of
            :func:`mars_score.data.readers.stream_rows`.
        reference: column of the texts, one or several a row.
        context: column of the contexts; may be missing.

    Raises:
        OSError, ValueError, TypeError: the file cannot be read, or has no text of four words; names file and line.
    """
    if Path(path).suffix == ".txt":
        found = [Source(line.strip()) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    else:
        file = read_rows(path)
        given = file.column(reference, remedy="write the texts there, or name another column")
        references = check_references(given, where=file.place(reference))
        given = [row.get(context, "") for row in file.rows]
        contexts = check_contexts(given, len(given), use_context=True, where=file.place(context))
        rows = zip(references, contexts, strict=True)
        found = [Source(text.strip(), one.strip()) for texts, one in rows for text in texts]
    usable = _usable(found)
    if not usable:
        raise ValueError(
            f"{os.fspath(path)}: no text has {FEWEST_WORDS} to {MOST_WORDS} words; nothing to learn from"
        )
    return usable


def _usable(sources: Iterable[Source]) -> list[Source]:
    return [one for one in dict.fromkeys(sources) if FEWEST_WORDS <= len(split_words(one.text)) <= MOST_WORDS]


def generator(*labels: object) -> random.Random:
    """A generator that is the same for the same labels in every process."""
    return random.Random(repr(labels))


def in_share(source: Source, share: float, seed: int) -> bool:
    """Whether a text is among those that the language model infills and reads, the slowest part by far."""
    return generator("share", seed, source).random() < share


def infillers(settings: Settings, runtime: Runtime) -> dict[str, Augmenter]:
    """The project's own infilling engine, and a masked language model where the settings name one."""
    found = {"infill": Augmenter(settings, runtime)}
    if settings.models.masked_language_model is not None:
        masked = replace(settings, infilling=replace(settings.infilling, infiller="masked"))
        found["masked"] = Augmenter(masked, runtime)
    return found


def make_pairs(
    sources: Sequence[Source],
    count: int,
    seed: int = 0,
    infillers: Mapping[str, Augmenter] | None = None,
    back_translate: Callable[[Sequence[str]], list[str]] | None = None,
    share: float = 1.0,
) -> list[Pair]:
    """About ``count`` pairs, half a dozen of each source, and another four where it is infilled.

    Args:
        sources: drawn from without replacement, so there may be fewer pairs.
        count: pairs wanted; no more sources are used than are needed for it.
        seed: of what is drawn.
        infillers: fill masked words, by a name that is made part of the method.
        back_translate: texts to another language and back.
        share: of the sources, in [0, 1], that are infilled.
    """
    sources = sorted(sources, key=lambda one: generator(seed, one).random())
    per_source = 1 + len(DROPPED) + len(ATTACKS) + 1 + bool(back_translate)
    of_infiller = 1 + sum(map(len, MASKED.values()))
    chosen = sources[: math.ceil(count / (per_source + share * len(infillers or {}) * of_infiller))]
    pairs = [pair for one in chosen for pair in _damaged(one, sources, seed)]
    for name, infiller in (infillers or {}).items():
        pairs += _infilled([one for one in chosen if in_share(one, share, seed)], name, infiller, seed)
    if back_translate:
        texts = back_translate([one.text for one in chosen])
        both = zip(chosen, texts, strict=True)
        pairs += [Pair(one, text, BACK_TRANSLATED, 0.5) for one, text in both if text.strip()]
    of_source = {one: index for index, one in enumerate(chosen)}
    return sorted(pairs, key=lambda pair: of_source[pair.source])[:count]


def _damaged(source: Source, sources: Sequence[Source], seed: int) -> list[Pair]:
    """What needs no model: the text itself, words dropped, the known attacks, and another text in its place."""
    drawn = generator("damage", seed, source)
    pairs = [Pair(source, source.text, INTACT, 0.0)]
    pairs += [Pair(source, drop_words(source.text, share, drawn), "drop", share) for share in DROPPED]
    row = (source.text, (source.text,), source.context)
    attacked = {name: attack(row, drawn) for name, attack in ATTACKS.items()}
    pairs += [Pair(source, text, name, 1.0) for name, text in attacked.items() if text]
    if foreign := foreign_text(source, sources, drawn):
        pairs.append(Pair(source, foreign, FOREIGN, 1.0))
    return pairs


def drop_words(text: str, share: float, drawn: random.Random) -> str:
    """The text without that share of its words, at least one; at least one is left."""
    words = word_spans(text)
    count = min(len(words) - 1, max(1, round(share * len(words))))
    left = sorted(drawn.sample(range(len(words)), len(words) - count))
    before = [end for _, end in [(0, 0), *words]]  # of each word the end of the one before
    return " ".join("".join(text[before[index] : words[index][1]] for index in left).split())


def foreign_text(source: Source, sources: Sequence[Source], drawn: random.Random) -> str | None:
    """A text of another context; None where a few draws find none."""
    for other in drawn.choices(sources, k=10):
        if other.text != source.text and (other.context != source.context or not source.context):
            return other.text
    return None


def _infilled(sources: Sequence[Source], name: str, infiller: Augmenter, seed: int) -> list[Pair]:
    """Words masked at random positions and in a row, filled again; and of the first of these some dropped."""
    planned: list[tuple[Source, str, float, Template]] = []
    for source in sources:
        drawn = generator("mask", name, seed, source)
        words = [Word(source.text[start:end], start, end, "") for start, end in word_spans(source.text)]
        analysis = Analysis(source.text, tuple(words))
        for kind, shares in MASKED.items():
            for share in shares:
                count = max(1, round(share * len(words)))
                start = drawn.randrange(len(words) - count + 1)
                masked = (
                    drawn.sample(range(len(words)), count) if kind == "random" else range(start, start + count)
                )
                planned.append((source, f"{name} {kind}", share, Template.from_mask(analysis, masked)))
    filled = infiller.infill([(source.context, template) for source, _, _, template in planned])
    pairs = [
        Pair(source, filled[source.context, template][0], method, share)
        for source, method, share, template in planned
    ]
    first = {pair.source: pair for pair in reversed(pairs)}.values()
    for pair in reversed(first):
        candidate = drop_words(pair.candidate, DROPPED[0], generator("drop", seed, pair))
        pairs.append(replace(pair, candidate=candidate, method=f"{name} and drop"))
    return [pair for pair in pairs if pair.candidate.strip()]
