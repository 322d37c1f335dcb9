"""Synthetic pairs to learn from before there are ratings (BLEURT, section 4.1): texts, and what was done to them.

What becomes of a text depends on the text, its context and the seed alone (and on the other texts, where one of
them takes its place).
"""

import math
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mars_score.augment.augmenter import Augmenter
from mars_score.augment.masking.analysis import Analysis, Word
from mars_score.augment.masking.template import Template
from mars_score.data.attacks import ATTACKS, reorder
from mars_score.data.files import read_rows
from mars_score.data.sentences import sentences
from mars_score.data.validation import Row, check_contexts, check_references
from mars_score.data.words import split_words, word_spans

FEWEST_WORDS, MOST_WORDS = 4, 100  # of a text to make pairs from
RANDOM, SPAN = (0.15, 0.4), 0.3  # shares of the words that are masked: at random positions, and in a row
DROPPED = (0.2, 0.5)  # shares of the words that are dropped
DELETED = 0.3  # the same for LS_Score, whose paper does not say how many
SHARE = 0.2  # of the texts that the language model infills and reads, the slowest part by far
_PER_TEXT = 2 + len(DROPPED) + len(ATTACKS) + SHARE * (2 + len(RANDOM))  # pairs made of a text, on average


@dataclass(frozen=True)
class Source:
    """A text that people wrote, and its context; the context may be blank."""

    text: str
    context: str = ""


@dataclass(frozen=True)
class Pair:
    """A text, what was made of it, and how."""

    source: Source
    candidate: str
    method: str


def read_corpus(
    path: str | os.PathLike[str], reference: str = "references", context: str = "context"
) -> list[Source]:
    """The texts of a file: of ``*.txt`` one a line; of any other those of the references, one or several a row.

    Raises:
        OSError, ValueError, TypeError: the file cannot be read, or has no text of 4 to 100 words; names file and
            line.
    """
    if Path(path).suffix == ".txt":
        sources = [Source(line.strip()) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    else:
        file = read_rows(path)
        column = file.column(reference, remedy="write the texts there, or name another column")
        references = check_references(column, where=file.place(reference))
        column = [row.get(context, "") for row in file.rows]
        contexts = check_contexts(column, len(column), use_context=True, where=file.place(context))
        rows = zip(references, contexts, strict=True)
        sources = [Source(text.strip(), before.strip()) for texts, before in rows for text in texts]
    usable = _usable(sources)
    if not usable:
        raise ValueError(
            f"{os.fspath(path)}: no text has {FEWEST_WORDS} to {MOST_WORDS} words; nothing to learn from"
        )
    return usable


def with_sentences(sources: Sequence[Source]) -> list[Source]:
    """The texts, and the sentences of their contexts, each with its whole context."""
    contexts = dict.fromkeys(source.context for source in sources)
    return _usable([*sources, *(Source(text, context) for context in contexts for text in sentences(context))])


def _usable(sources: Iterable[Source]) -> list[Source]:
    different = dict.fromkeys(sources)
    return [source for source in different if FEWEST_WORDS <= len(split_words(source.text)) <= MOST_WORDS]


def generator(*labels: object) -> random.Random:
    """A generator that is the same for the same labels in every process."""
    return random.Random(repr(labels))


def in_share(source: Source, seed: int) -> bool:
    """Whether a text is among those that the language model infills and reads."""
    return generator("share", seed, source).random() < SHARE


def make_pairs(
    sources: Sequence[Source], count: int, seed: int = 0, infiller: Augmenter | None = None
) -> list[Pair]:
    """About ``count`` pairs, half a dozen of each source, and four more where the ``infiller`` fills masked words.

    Sources are drawn without replacement, no more than are needed, so there may be fewer pairs.
    """
    order = sorted(sources, key=lambda source: generator(seed, source).random())
    chosen = order[: math.ceil(count / _PER_TEXT)]
    infilled: dict[Source, list[Pair]] = {source: [] for source in chosen}
    if infiller is not None:
        for pair in _infilled([source for source in chosen if in_share(source, seed)], infiller, seed):
            infilled[pair.source].append(pair)
    return [pair for source in chosen for pair in (*_damaged(source, order, seed), *infilled[source])][:count]


def _damaged(source: Source, sources: Sequence[Source], seed: int) -> list[Pair]:
    """What needs no model: the text itself, words dropped, the known attacks, and another text in its place."""
    random_state = generator("damage", seed, source)
    versions: list[tuple[str, str | None]] = [("intact", source.text)]
    versions += [("drop", drop_words(source.text, share, random_state)) for share in DROPPED]
    row = Row(source.text, (source.text,), source.context)
    versions += [(name, attack(row, random_state)) for name, attack in ATTACKS.items()]
    versions.append(("foreign", foreign_text(source, sources, random_state)))
    return [Pair(source, text, method) for method, text in versions if text]


def drop_words(text: str, share: float, random_state: random.Random) -> str:
    """The text without that share of its words, at least one; at least one is left."""
    words = word_spans(text)
    count = min(len(words) - 1, max(1, round(share * len(words))))
    left = sorted(random_state.sample(range(len(words)), len(words) - count))
    starts = [0, *(end for _, end in words)]  # of each word with the space before it
    return " ".join("".join(text[starts[index] : words[index][1]] for index in left).split())


def foreign_text(source: Source, sources: Sequence[Source], random_state: random.Random) -> str | None:
    """A text of another context; None where ten draws give none."""
    for other in random_state.choices(sources, k=10):
        if other.text != source.text and (other.context != source.context or not source.context):
            return other.text
    return None


def contrasts(source: Source, sources: Sequence[Source], seed: int) -> list[str]:
    """The damaged versions of LS_Score: words deleted, another text added, half of the words in disorder."""
    random_state = generator("contrast", seed, source)
    foreign = foreign_text(source, sources, random_state)
    versions = [
        drop_words(source.text, DELETED, random_state),
        f"{source.text} {foreign}" if foreign else None,
        reorder(Row(source.text, (), ""), random_state),
    ]
    return [text for text in versions if text]


def _infilled(sources: Sequence[Source], infiller: Augmenter, seed: int) -> list[Pair]:
    """Words masked at random positions and in a row, filled again; and of the first of these some dropped."""
    masked: list[tuple[Source, str, Template]] = []
    for source in sources:
        random_state = generator("mask", seed, source)
        spans = word_spans(source.text)
        analysis = Analysis(source.text, tuple(Word(source.text[slice(*span)], *span, "") for span in spans))
        counts = [max(1, round(share * len(spans))) for share in (*RANDOM, SPAN)]
        places = [random_state.sample(range(len(spans)), count) for count in counts[:-1]]
        start = random_state.randrange(len(spans) - counts[-1] + 1)
        places.append(list(range(start, start + counts[-1])))
        methods = ("infill and drop", "infill random", "infill span")
        masked += [
            (source, method, Template.from_mask(analysis, part))
            for method, part in zip(methods, places, strict=True)
        ]
    filled = infiller.infill([(source.context, template) for source, _, template in masked])
    pairs = []
    for source, method, template in masked:
        text = filled[source.context, template][0].strip()
        if text and method == "infill and drop":
            pairs.append(Pair(source, text, "infill random"))
            text = drop_words(text, DROPPED[0], generator("drop", seed, source))
        pairs.append(Pair(source, text, method))
    return [pair for pair in pairs if pair.candidate]
