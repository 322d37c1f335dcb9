"""Synthetic pairs to learn from before there are ratings (BLEURT, section 4), and their signals.

What becomes of a text depends on the text, its context and the seed alone (and on the other texts, where one of
them takes its place).
"""

import math
import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mars_score.data.columns import Columns
from mars_score.data.reading import read_rows
from mars_score.errors import extra_meta
from mars_score.meta.agreement import reorder, retrieve
from mars_score.meta.metrics.lexical import sentence_bleu
from mars_score.metrics.paper import PaperConfig, Template, mask_words
from mars_score.metrics.plus import token_recall
from mars_score.models.calls import ModelCalls
from mars_score.options import read_lines
from mars_score.rows import Row
from mars_score.scorer import MarsScorer
from mars_score.sentences import sentences
from mars_score.stats.resampling import Floats
from mars_score.text import TaggedWord, split_words
from mars_score.variants.paper_variant import infill
from mars_score.variants.plus_variant import widened_tokens

MIN_WORDS, MAX_WORDS = 4, 100  # of a text to make pairs from
RANDOM, SPAN = (0.15, 0.4), 0.3  # shares of the words that are masked: at random positions, and in a row
DROPPED = (0.2, 0.5)  # shares of the words that are dropped
DELETED = 0.3  # the same for LS_Score, whose paper does not say how many
SHARE = 0.2  # of the texts that the language model infills and judges, the slowest part by far
INFILLING = PaperConfig(planner="none")
_PER_TEXT = 4 + len(DROPPED) + SHARE * (2 + len(RANDOM))  # pairs made of a text, on average


class Source(NamedTuple):
    """A text that people wrote, and its context; the context may be blank."""

    text: str
    context: str = ""

    @property
    def row(self) -> Row:
        """Return the text as a candidate."""
        return Row(self.text, context=self.context)


def read_corpus(
    path: str | os.PathLike[str], reference: str = "references", context: str | None = None
) -> list[Source]:
    """Read the texts of a file: of ``*.txt`` one a line, of any other the references of each row.

    Without a column of contexts, unless one is named, texts have none.

    Raises:
        OSError, ValueError, TypeError: the file cannot be read, or has no text of 4 to 100 words.
    """
    if Path(path).suffix == ".txt":
        try:
            sources = [Source(line) for line in read_lines(path)]
        except UnicodeDecodeError:
            raise ValueError(f"{os.fspath(path)}: not UTF-8; convert the file") from None
    else:
        file = read_rows(path)
        if context is None and file.has("context"):
            context = "context"
        rows = Columns(reference, context).examples(file)
        sources = [Source(text, row.context) for row in rows for text in row.references]
    usable = _usable(sources)
    if not usable:
        raise ValueError(f"{os.fspath(path)}: no text has {MIN_WORDS} to {MAX_WORDS} words; nothing to learn from")
    return usable


def with_sentences(sources: Sequence[Source]) -> list[Source]:
    """Return the texts and the sentences of their contexts, each with its whole context."""
    contexts = dict.fromkeys(source.context for source in sources)
    return _usable([*sources, *(Source(text, context) for context in contexts for text in sentences(context))])


def _usable(sources: Iterable[Source]) -> list[Source]:
    different = dict.fromkeys(sources)
    return [source for source in different if MIN_WORDS <= len(split_words(source.text)) <= MAX_WORDS]


def generator(*labels: object) -> random.Random:
    """Make a generator that is the same for the same labels in every process."""
    return random.Random(repr(labels))


def in_share(source: Source, seed: int) -> bool:
    """Tell whether a text is among those that the language model infills and judges."""
    return generator("share", seed, source).random() < SHARE


# Pairs


def make_pairs(sources: Sequence[Source], count: int, calls: ModelCalls, seed: int = 0) -> list[Row]:
    """Make about ``count`` rows: what was made of a text is the candidate, the text the reference.

    There are half a dozen of each source, and four more of those whose masked words the language model fills.
    Sources are drawn without replacement, no more than are needed, so there may be fewer pairs.
    """
    order = sorted(sources, key=lambda source: generator(seed, source).random())
    chosen = order[: math.ceil(count / _PER_TEXT)]
    masked = {source: _mask(source, seed) for source in chosen if in_share(source, seed)}
    blanked = [(source.context, template) for source in masked for template in masked[source]]
    filled = infill(blanked, INFILLING, calls)
    pairs = []
    for source in chosen:
        infills = [filled[source.context, template].text.strip() for template in masked.get(source, [])]
        if infills and infills[0]:
            infills.insert(1, drop_words(infills[0], DROPPED[0], generator("drop", seed, source)))
        texts = [*_damage(source, order, seed), *infills]
        pairs += [Row(text, (source.text,), source.context) for text in texts if text]
    return pairs[:count]


def contrasts(source: Source, sources: Sequence[Source], seed: int) -> list[str]:
    """Make the damaged versions of LS_Score: words deleted, another text added, half of the words in disorder."""
    random_state = generator("contrast", seed, source)
    foreign = foreign_text(source, sources, random_state)
    versions = [
        drop_words(source.text, DELETED, random_state),
        f"{source.text} {foreign}" if foreign else None,
        reorder(source.row, random_state),
    ]
    return [text for text in versions if text]


def _damage(source: Source, sources: Sequence[Source], seed: int) -> list[str | None]:
    """Make what needs no model: the text itself, words dropped or in disorder, and other texts in its place."""
    random_state = generator("damage", seed, source)
    return [
        source.text,
        *(drop_words(source.text, share, random_state) for share in DROPPED),
        reorder(source.row, random_state),
        retrieve(source.row, random_state),
        foreign_text(source, sources, random_state),
    ]


def _mask(source: Source, seed: int) -> list[Template]:
    """Mask words at random positions and, last, in a row."""
    random_state = generator("mask", seed, source)
    words = [TaggedWord(start, end, "") for start, end in word_spans(source.text)]
    *counts, length = (max(1, round(share * len(words))) for share in (*RANDOM, SPAN))
    masks = [random_state.sample(range(len(words)), count) for count in counts]
    start = random_state.randrange(len(words) - length + 1)
    return [mask_words(source.text, words, mask) for mask in (*masks, range(start, start + length))]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the character span of each word of :func:`mars_score.text.split_words`."""
    spans, end = [], 0
    for word in split_words(text):
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    return spans


def drop_words(text: str, share: float, random_state: random.Random) -> str:
    """Drop that share of a text's words, at least one; at least one is left."""
    words = word_spans(text)
    count = min(len(words) - 1, max(1, round(share * len(words))))
    left = sorted(random_state.sample(range(len(words)), len(words) - count))
    starts = [0, *(end for _, end in words)]  # of each word with the space before it
    return " ".join("".join(text[starts[index] : words[index][1]] for index in left).split())


def foreign_text(source: Source, sources: Sequence[Source], random_state: random.Random) -> str | None:
    """Draw a text of another context; None where ten draws give none."""
    for other in random_state.choices(sources, k=10):
        if other.text != source.text and (other.context != source.context or not source.context):
            return other.text
    return None


# Signals


def compute_signals(pairs: Sequence[Row], scorer: MarsScorer, seed: int = 0) -> dict[str, Floats]:
    """Compute the signals of pairs, by name (pairs, size), in this order.

    - ``"MARS"``: its own score by variant ``"fast"``, which the head's score learns; not BLEURT's.
    - ``"BLEU"``; ``"ROUGE"``: precision, recall and F of ROUGE-L; ``"tokens"``: token recall of the candidate and
      of the text, and their F, in the place of BERTScore.
    - ``"likelihood"``: the mean log probability given the context, and what the context adds to it, in nats; nan
      for texts that the language model does not judge. Not BLEURT's.
    - ``"entailment"``, with an NLI model: the probabilities that the text entails and that it contradicts what was
      made of it.

    Of BLEURT's signals the likelihoods of back-translation, and whether a pair comes from it, are missing: they
    need models that translate.

    Args:
        pairs: see :func:`make_pairs`.
        scorer: holds the models.
        seed: that of :func:`make_pairs`.

    Raises:
        ImportError: sacreBLEU or rouge-score is missing; says how to get it.
        ModelUnavailableError: a model cannot be loaded.
    """
    device, batch_size = scorer.runtime.device, scorer.runtime.encoder_batch_size
    models = vars(scorer.settings.models)
    # Without a store, which token vectors of all pairs would fill.
    fast = MarsScorer(variant="fast", store=False, device=device, encoder_batch_size=batch_size, **models)
    signals = {
        "BLEU": np.array([[sentence_bleu(row.candidate, row.references) / 100] for row in pairs]),
        "ROUGE": _rouge(pairs),
        "MARS": np.array([[row.score] for row in fast.row_scores(pairs)]),
        "tokens": _token_recalls(pairs, fast.calls),
        "likelihood": _likelihoods(pairs, scorer, seed),
    }
    if scorer.settings.models.entailment_model is not None:
        compared = [(row.references[0], row.candidate) for row in pairs]
        verdicts = scorer.calls.entails(compared)
        signals["entailment"] = np.array([verdicts[pair][:2] for pair in compared])
    return {"MARS": signals.pop("MARS"), **signals}


def _rouge(pairs: Sequence[Row]) -> Floats:
    with extra_meta():
        from rouge_score.rouge_scorer import RougeScorer

    rouge = RougeScorer(["rougeL"], use_stemmer=True)
    return np.array([rouge.score(row.references[0], row.candidate)["rougeL"] for row in pairs])


def _token_recalls(pairs: Sequence[Row], calls: ModelCalls) -> Floats:
    """Compute token recall of the candidates and of the texts, and their harmonic mean."""
    compared = [(row.candidate, row.references[0]) for row in pairs]
    encodings = calls.encode((text for pair in compared for text in pair), tokens=True)
    tokens = {text: widened_tokens(encoding) for text, encoding in encodings.items()}
    scores = []
    for candidate, reference in compared:
        precision = token_recall(tokens[reference], tokens[candidate])
        recall = token_recall(tokens[candidate], tokens[reference])
        total = precision + recall
        scores.append((precision, recall, 2 * precision * recall / total if total else 0.0))
    return np.array(scores)


def _likelihoods(pairs: Sequence[Row], scorer: MarsScorer, seed: int) -> Floats:
    """Compute log probabilities and PMI of the pairs of a share of the texts; nan for others."""
    judged = [in_share(Source(row.references[0], row.context), seed) for row in pairs]
    texts = [(row.context, row.candidate) for row in pairs]
    wanted = [text for text, is_judged in zip(texts, judged, strict=True) if is_judged]
    log_p = scorer.calls.log_probability(wanted, scorer.settings.config.max_context_tokens)
    unknown = (np.nan, np.nan)
    return np.array(
        [
            (log_p[text].given_context, log_p[text].pmi) if is_judged else unknown
            for text, is_judged in zip(texts, judged, strict=True)
        ]
    )
