"""The formulas of `paper` (Liu, Wei and Vosoughi, ACL 2021): masking (section 2.1) and the score (Eq. 7).

:mod:`mars_score.infilling` has the infilling between the two (section 2.2). This module runs no model.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass
from rapidfuzz.distance import LCSseq

from mars_score.cache import digest
from mars_score.options import STRICT, Corpus, TagWeights, option
from mars_score.rows import Aggregation, Example, Row, Term, aggregate
from mars_score.text import TaggedWord

# Section 2.1 and Appendix A. Words with larger weights are masked first. Other tags have weight 1.
POS_WEIGHTS = {"ADJ": 4.0, "ADV": 3.0, "NOUN": 2.0, "PROPN": 2.0}
PLAIN_COST, CONTEXT_COST = 1, 10  # costs of masking a word, and a word shared with the context
_PRIORITY_UNIT = 1e-6  # Priorities are rounded to it, which makes their sums exact.
_FLOAT_NOISE = 1e-9  # Python's 0.6 / 0.2 is 2.9999999999999996.


@dataclass(frozen=True, config=STRICT)
class PaperConfig:
    """All constants of `paper`."""

    # Masking (section 2.1, Appendix A).
    max_mask_ratio: float = option(0.6, "Largest share of words to mask; 0: no augmentations.", 0, 1)
    mask_ratio_step: float = option(
        0.2, "Mask ratios are multiples of this.", None, 1, gt=0, needs=["max_mask_ratio"]
    )
    pos_weights: TagWeights = option(
        dict(POS_WEIGHTS), "alpha: weight of each part-of-speech tag; others weigh 1.", needs=["max_mask_ratio"]
    )
    idf_corpus: Corpus = option(
        None,
        "Texts to count IDF over, or a file with one text per line; None: the references of the call.",
        needs=["max_mask_ratio"],
    )
    lower_words: bool = option(
        True, "Lower-case words for IDF and for the words shared with the context.", needs=["max_mask_ratio"]
    )
    strip_urls_hashtags: bool = option(
        True, "Remove URLs and hashtags from candidate and references; a text that would have no word left stays."
    )
    # Infilling (section 2.2, Appendix B).
    sigma: int = option(
        3, "A blank of b tokens is filled with 1 to b + sigma tokens.", 0, needs=["max_mask_ratio"]
    )
    max_context_tokens: int | None = option(
        2048,
        "Tokens of the context that the language model reads; None: as many as fit its window.",
        1,
        needs=["use_context", "max_mask_ratio"],
    )
    planner: Literal["none", "self"] = option(
        "self",
        "none: plain decoding; self: the paper's planning (Eq. 3-6), about seven times slower.",
        needs=["max_mask_ratio"],
    )
    plan_step: float = option(0.02, "eta: length of a gradient step.", None, 1000, gt=0, needs=["planner"])
    plan_iterations: int = option(3, "k: gradient steps per generated token.", 1, needs=["planner"])
    plan_temperature: float = option(
        1.3, "xi: divides the logits in reward and planned decoding.", None, 1000, gt=0, needs=["planner"]
    )
    plan_norm_exponent: float = option(
        1.0, "The gradient is divided by its norm to this power (PPLM: 1.5).", 0, 10, needs=["planner"]
    )
    plan_fusion: float = option(
        1.0, "Weight of the planned distribution beside the plain one (PPLM: 0.9).", 0, 1, needs=["planner"]
    )
    # Score (section 2.3).
    q: float = option(
        0.8,
        "The weight of the i-th text (0: the reference) is proportional to q**i.",
        None,
        1,
        gt=0,
        needs=["max_mask_ratio"],
    )
    reference_aggregation: Aggregation = option("max", "Score of a row with several references.")

    @property
    def masks(self) -> bool:
        """Tell whether references are masked and infilled."""
        return self.max_mask_ratio > 0

    @property
    def used_models(self) -> Mapping[str, bool]:
        """Tell which models scores depend on, by the names of their settings."""
        return {"language_model": self.masks, "encoder": True, "entailment_model": False}

    def __post_init__(self) -> None:
        """Raise ValueError for ratios at which nothing would be masked."""
        if 0 < self.max_mask_ratio < self.mask_ratio_step:
            raise ValueError(
                f"nothing would be masked, as max_mask_ratio={self.max_mask_ratio:g} is below mask_ratio_step="
                f"{self.mask_ratio_step:g}; use a smaller step, or max_mask_ratio=0 for no augmentations"
            )


@dataclasses.dataclass(frozen=True)
class Template:
    """A reference with blanks."""

    reference: str
    # Character spans in order, each with the white space before it. Between two blanks is at least one word.
    blanks: tuple[tuple[int, int], ...]

    @property
    def pieces(self) -> tuple[tuple[str, bool], ...]:
        """Return the text blocks and blanks in order, as (text, is_blank). Joined, they are the reference."""
        pieces, done = [], 0
        for start, end in self.blanks:
            pieces += [(self.reference[done:start], False), (self.reference[start:end], True)]
            done = end
        pieces.append((self.reference[done:], False))
        return tuple(piece for piece in pieces if piece[0])

    def fill(self, infills: Sequence[str]) -> str:
        """Replace the i-th blank by the i-th infill. Blanks without an infill keep the words of the reference."""
        remaining = iter(infills)
        return "".join(next(remaining, text) if blank else text for text, blank in self.pieces)

    def __str__(self) -> str:
        """Return the template for display: ``She said ____ to get her car fixed.``."""
        return "".join(
            text[: len(text) - len(text.lstrip())] + "____" if blank else text for text, blank in self.pieces
        )


@dataclasses.dataclass(frozen=True)
class Idf:
    """Inverse document frequency of words, -log(df / M) (Appendix A).

    The formula gives 0 for a word in all texts, and Eq. 1 divides by it. For a word in no text it gives infinity.
    So df is limited to [1/2, M - 1/2], which changes no other word. Among the words of a part of speech, a word in
    all texts is still masked first and a word in no text last. With a single text all words have the same IDF.
    """

    documents: int  # M, the number of distinct texts
    frequencies: Mapping[str, int]  # df, the number of texts with a word

    @classmethod
    def count(cls, documents: Collection[Iterable[str]]) -> "Idf":
        """Count the words of distinct texts."""
        return cls(len(documents), Counter(word for words in documents for word in set(words)))

    def __getitem__(self, word: str) -> float:
        """Return the IDF of a word, a positive finite number."""
        documents = max(self.documents, 1)
        return -math.log(min(max(self.frequencies.get(word, 0), 0.5), documents - 0.5) / documents)


class IdfCounter:
    """Counts IDF over the references of rows that come in parts.

    Args:
        references_of: returns the references of a checked row that are masked.
        words_of: splits each distinct text into words.
    """

    def __init__(
        self,
        references_of: Callable[[Row | Example], Iterable[str]],
        words_of: Callable[[Iterable[str]], Mapping[str, Iterable[str]]],
    ) -> None:
        self._references_of, self._words_of = references_of, words_of
        self._known: set[bytes] = set()  # digests of the texts so far
        self._frequencies: Counter[str] = Counter()

    def add(self, rows: Iterable[Row | Example]) -> None:
        """Add checked rows."""
        texts = (reference for row in rows for reference in self._references_of(row))
        new = {key: text for text in texts if (key := digest(text)) not in self._known}
        self._known.update(new)
        for words in self._words_of(new.values()).values():
            self._frequencies.update(set(words))

    @property
    def idf(self) -> Idf:
        """Return the IDF over the distinct texts so far."""
        return Idf(len(self._known), self._frequencies)


def mask_ratios(max_ratio: float, step: float) -> tuple[float, ...]:
    """Return the ratios step, 2 step, ... up to and including ``max_ratio``."""
    count = math.floor(max_ratio / step + _FLOAT_NOISE)
    return tuple(round(number * step, 10) for number in range(1, count + 1))


def shared_with_context(words: Sequence[str], context_words: Sequence[str]) -> frozenset[int]:
    """Return the indices of the words in a longest common subsequence with the context (section 2.1).

    If there are several, rapidfuzz chooses one. Its version is a part of the signature.
    """
    numbers: dict[str, int] = {}  # rapidfuzz compares strings by their hashes, but numbers exactly
    context = [numbers.setdefault(word, len(numbers)) for word in context_words]
    reference = [numbers.setdefault(word, len(numbers)) for word in words]
    return frozenset(
        index
        for block in LCSseq.opcodes(context, reference)
        if block.tag == "equal"
        for index in range(block.dest_start, block.dest_end)
    )


def make_templates(
    reference: str, words: Sequence[TaggedWord], context_words: Sequence[str], idf: Idf, config: PaperConfig
) -> list[tuple[float, Template]]:
    """Mask the words of a reference with the largest sum of priorities, at each mask ratio (section 2.1).

    The budget for their costs is the mask ratio times the number of words, rounded down, but at least 1.

    Args:
        reference: the text.
        words: words of the reference.
        context_words: words of the context, lower-cased if ``config.lower_words``.
        idf: IDF of words in the same case.
        config: the settings.

    Returns:
        (mask ratio, template) by rising ratio. Equal templates and templates without blanks are kept, since the
        i-th has the weight q**i.
    """
    texts = [reference[word.start : word.end] for word in words]
    if config.lower_words:
        texts = [text.lower() for text in texts]
    # Priority v = alpha(POS) / IDF, in millionths.
    priorities = [
        round(config.pos_weights.get(word.pos, 1.0) / idf[text] / _PRIORITY_UNIT)
        for word, text in zip(words, texts, strict=True)
    ]
    costs = [PLAIN_COST] * len(words)
    for index in shared_with_context(texts, context_words):
        costs[index] = CONTEXT_COST
    ratios = mask_ratios(config.max_mask_ratio, config.mask_ratio_step)
    budgets = [max(1, math.floor(ratio * len(words) + _FLOAT_NOISE)) for ratio in ratios]
    templates = [mask_words(reference, words, mask) for mask in knapsack(priorities, costs, budgets)]
    return list(zip(ratios, templates, strict=True))


def mask_words(reference: str, words: Sequence[TaggedWord], masked: Iterable[int]) -> Template:
    """Mask the words with the indices ``masked``. Adjacent words become one blank."""
    blanks: list[tuple[int, int]] = []
    previous = -2
    for index in sorted(set(masked)):
        start = words[index - 1].end if index else 0
        if index == previous + 1:
            start = blanks.pop()[0]
        blanks.append((start, words[index].end))
        previous = index
    return Template(reference, tuple(blanks))


def knapsack(priorities: Sequence[int], costs: Sequence[int], budgets: Sequence[int]) -> list[tuple[int, ...]]:
    """Solve the 0/1 knapsack exactly for several budgets at once.

    Args:
        priorities: priority of each item. An item of priority 0 is never chosen.
        costs: positive cost of each item.
        budgets: largest total cost of each solution.

    Returns:
        For each budget the indices of the items with the largest total priority. Ties go to the fewest items, then
        to the first in lexicographic order of the sorted indices.
    """
    # To break ties, a unit of priority counts (number of items + 1), and each item subtracts 1.
    scores = [priority * (len(priorities) + 1) - 1 for priority in priorities]
    # best[c] is the largest total score of the current and later items within cost c. It has Python integers if
    # 64 bits might overflow.
    exact_in_int64 = sum(score for score in scores if score > 0) <= np.iinfo(np.int64).max
    best: NDArray[Any] = np.zeros(max(budgets, default=0) + 1, dtype=np.int64 if exact_in_int64 else object)
    taken: list[NDArray[np.uint8]] = []  # for each item, bit c tells whether it is taken with a budget of c
    for score, cost in zip(reversed(scores), reversed(costs), strict=True):
        with_item = best[:-cost] + score
        taken.append(np.packbits(with_item >= best[cost:]))
        np.maximum(best[cost:], with_item, out=best[cost:])
    return [_chosen_items(taken[::-1], costs, budget) for budget in budgets]


def _chosen_items(taken: list[NDArray[np.uint8]], costs: Sequence[int], budget: int) -> tuple[int, ...]:
    chosen = []
    for item, row in enumerate(taken):
        left = budget - costs[item]
        if left >= 0 and row[left >> 3] >> (7 - (left & 7)) & 1:
            chosen.append(item)
            budget = left
    return tuple(chosen)


def reference_score(similarities: Sequence[float], q: float) -> float:
    """Return Eq. 7: the mean similarity with a reference (i = 0) and its infills, weighted by q**i."""
    return float(np.average(similarities, weights=q ** np.arange(len(similarities))))


def paper(similarities: Sequence[Sequence[float]], config: PaperConfig) -> tuple[Term, ...]:
    """Return the only term of the score: the maximum or mean of Eq. 7 over the references.

    ``similarities`` has, for each reference, the similarity with it and with its infills by rising mask ratio.
    """
    scores = [reference_score(values, config.q) for values in similarities]
    return (Term("references", aggregate(scores, config.reference_aggregation), 1.0),)
