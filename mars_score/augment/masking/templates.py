"""Templates of a reference, one per mask ratio (section 2.1, Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mars_score.augment.masking.analysis import Analysis
from mars_score.augment.masking.context import context_carrying
from mars_score.augment.masking.idf import Idf
from mars_score.augment.masking.knapsack import knapsack
from mars_score.augment.masking.template import Template
from mars_score.settings import MaskingSettings

# What masking a word takes from the budget: more where the context has the word too.
PLAIN_COST = 1
CONTEXT_COST = 10
# Priorities are rounded to this fraction, so that sums of them are exact and ties are ties.
_PRIORITY_UNIT = 1e-6
# 0.6 / 0.2 is 2.9999999999999996: a quotient or product this close to the next integer is that integer.
_FLOAT_NOISE = 1e-9


def mask_ratios(max_ratio: float, step: float) -> tuple[float, ...]:
    """The ratios step, 2 step, ... up to and including ``max_ratio``, rounded to 10 decimals.

    Empty where ``max_ratio`` is less than ``step``.
    """
    count = math.floor(max_ratio / step + _FLOAT_NOISE)
    return tuple(round(number * step, 10) for number in range(1, count + 1))


def word_priorities(analysis: Analysis, idf: Idf, settings: MaskingSettings) -> list[int]:
    """Priority v = alpha(POS) / IDF of each word, in millionths; words of high priority are masked first."""
    weights = settings.pos_weights
    return [
        round(weights.get(word.pos, 1.0) / idf[lower] / _PRIORITY_UNIT)
        for word, lower in zip(analysis.words, analysis.lower_words, strict=True)
    ]


def make_templates(
    analysis: Analysis, context_words: Sequence[str], idf: Idf, settings: MaskingSettings
) -> list[tuple[float, Template]]:
    """One (mask ratio, template) per ratio, by rising ratio.

    Templates of different ratios may be equal, and a template without blanks is the reference itself: both
    keep their place (and so their weight in the score).
    """
    words = analysis.lower_words
    ratios = mask_ratios(settings.max_mask_ratio, settings.mask_ratio_step)
    if not ratios:
        return []
    carrying = context_carrying(words, context_words)
    costs = [CONTEXT_COST if index in carrying else PLAIN_COST for index in range(len(words))]
    budgets = [math.floor(ratio * len(words) + _FLOAT_NOISE) for ratio in ratios]
    masks = knapsack(word_priorities(analysis, idf, settings), costs, budgets)
    return [(ratio, Template.from_mask(analysis, mask)) for ratio, mask in zip(ratios, masks, strict=True)]
