"""Synthetic pairs to learn from before there are ratings (BLEURT, section 4): how they are made, and signals.

What becomes of a text depends on the text, its context and the seed alone (and on the other texts, where one of
them takes its place).
"""

import math
import os
import random
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mars_score.data.files import read_rows
from mars_score.data.sentences import sentences
from mars_score.data.validation import Row, check_contexts, check_references
from mars_score.data.words import split_words, word_spans
from mars_score.errors import MarsWarning
from mars_score.infilling.augmenter import Augmenter
from mars_score.learning.ratings import Floats
from mars_score.meta.attacks import ATTACKS, reorder
from mars_score.metrics.template import Template
from mars_score.models.tagger import Analysis, Word
from mars_score.progress import Runtime
from mars_score.scorer import MarsScorer
from mars_score.scoring.evidence import ENTAILMENT, LIKELIHOOD, Reader
from mars_score.settings import Settings

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


def read_corpus(
    path: str | os.PathLike[str], reference: str = "references", context: str = "context"
) -> list[Source]:
    """The texts of a file: of ``*.txt`` one a line; of any other those of the references, one or several a row.

    Raises:
        OSError, ValueError, TypeError: the file cannot be read, or has no text of 4 to 100 words.
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


def make_pairs(sources: Sequence[Source], count: int, infiller: Augmenter, seed: int = 0) -> list[Row]:
    """About ``count`` rows: what was made of a text is the candidate, the text the reference.

    There are half a dozen of each source, and four more of those whose masked words the ``infiller`` fills.
    Sources are drawn without replacement, no more than are needed, so there may be fewer pairs.
    """
    order = sorted(sources, key=lambda source: generator(seed, source).random())
    chosen = order[: math.ceil(count / _PER_TEXT)]
    masked = {source: _masked(source, seed) for source in chosen if in_share(source, seed)}
    filled = infiller.infill([(source.context, template) for source in masked for template in masked[source]])
    pairs = []
    for source in chosen:
        infills = [filled[source.context, template].text.strip() for template in masked.get(source, [])]
        if infills and infills[0]:
            infills.insert(1, drop_words(infills[0], DROPPED[0], generator("drop", seed, source)))
        texts = [*_damaged(source, order, seed), *infills]
        pairs += [Row(text, (source.text,), source.context) for text in texts if text]
    return pairs[:count]


def _damaged(source: Source, sources: Sequence[Source], seed: int) -> list[str | None]:
    """What needs no model: the text itself, words dropped, the known attacks, and another text in its place."""
    random_state = generator("damage", seed, source)
    row = Row(source.text, (source.text,), source.context)
    return [
        source.text,
        *(drop_words(source.text, share, random_state) for share in DROPPED),
        *(attack(row, random_state) for attack in ATTACKS.values()),
        foreign_text(source, sources, random_state),
    ]


def _masked(source: Source, seed: int) -> list[Template]:
    """Words masked at random positions and, last, in a row."""
    random_state = generator("mask", seed, source)
    spans = word_spans(source.text)
    analysis = Analysis(source.text, tuple(Word(source.text[slice(*span)], *span, "") for span in spans))
    *counts, length = (max(1, round(share * len(spans))) for share in (*RANDOM, SPAN))
    places = [random_state.sample(range(len(spans)), count) for count in counts]
    start = random_state.randrange(len(spans) - length + 1)
    return [Template.from_mask(analysis, part) for part in (*places, range(start, start + length))]


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


def read_signals(pairs: Sequence[Row], settings: Settings, runtime: Runtime, seed: int = 0) -> dict[str, Floats]:
    """The signals of pairs that small models can give, by name (pairs, size), in this order.

    They are ``"MARS"``: its own score by variant ``"fast"``, which the head's score learns; ``"BLEU"``;
    ``"likelihood"``: the mean log probability given the context with what the context adds to it, in nats, nan for
    texts that the language model does not read; and, with an entailment model, ``"entailment"``: the probabilities
    that the text entails and that it contradicts what was made of it. ROUGE-L and matched token vectors, which
    BLEURT learns besides, changed nothing (research/learning.md). The seed is that of :func:`make_pairs`.

    Raises:
        ImportError: sacreBLEU is missing; says how to get it.
        ModelUnavailableError: a model cannot be loaded.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ModuleNotFoundError as error:
        raise ImportError("sacrebleu is not installed; run: pip install 'mars-score[meta]'") from error
    bleu = BLEU(effective_order=True)
    overlaps = [bleu.sentence_score(row.candidate, list(row.references)).score / 100 for row in pairs]
    reader = Reader(settings, runtime)
    told = [
        (row.context, row.candidate) if in_share(Source(row.references[0], row.context), seed) else None
        for row in pairs
    ]
    read = reader.read(LIKELIHOOD, list(dict.fromkeys(filter(None, told))))
    likelihoods = [(read[text].given_context, read[text].lift) if text else (np.nan, np.nan) for text in told]
    machine: dict[str, Any] = {"device": runtime.device, "encoder_batch_size": runtime.encoder_batch_size}
    # Without a store: token vectors of all pairs would fill it.
    scorer = MarsScorer(variant="fast", store=False, **machine, **vars(settings.models))
    candidates, references, contexts, _ = map(list, zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarsWarning)  # a blank context is nobody's mistake here
        scores = scorer.score(candidates, references, contexts).scores
    signals = {
        "MARS": np.array(scores)[:, None],
        "BLEU": np.array(overlaps)[:, None],
        "likelihood": np.array(likelihoods),
    }
    if settings.models.entailment_model is not None:
        compared = [(row.references[0], row.candidate) for row in pairs]
        verdicts = reader.read(ENTAILMENT, compared)
        signals["entailment"] = np.array([verdicts[texts] for texts in compared])
    return signals
