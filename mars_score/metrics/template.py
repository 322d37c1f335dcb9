"""Templates: a reference with its least important words turned into blanks (section 2.1, Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from mars_score.metrics.idf import Idf
from mars_score.metrics.knapsack import knapsack
from mars_score.models.tagger import Analysis
from mars_score.settings.stages import MaskingSettings

PLAIN_COST = 1  # what masking a word takes from the budget
CONTEXT_COST = 10  # the same where the context has the word, too
_PRIORITY_UNIT = 1e-6  # priorities are rounded to it, so that sums of them are exact and ties are ties
# 0.6 / 0.2 is 2.9999999999999996: a quotient or product this close to the next integer is that integer.
_FLOAT_NOISE = 1e-9


@dataclass(frozen=True)
class Piece:
    """A text block or a blank; it owns the whitespace before its first word."""

    text: str  # the reference's own characters, also for a blank
    blank: bool


@dataclass(frozen=True)
class Template:
    """A reference and the spans of it that are masked."""

    reference: str  # the prepared reference (see ``prepare_reference``)
    # Character spans ``(start, end)`` of the masked runs of words, in order, each with the whitespace before it;
    # two blanks never touch, there is at least one kept word between them.
    blanks: tuple[tuple[int, int], ...]

    @classmethod
    def from_mask(cls, analysis: Analysis, masked: Iterable[int]) -> Template:
        """Mask the words with the indices ``masked``; neighbouring masked words become one blank."""
        words = analysis.words
        blanks: list[tuple[int, int]] = []
        previous = -2  # index of the masked word before this one
        for index in sorted(set(masked)):
            start = words[index - 1].end if index else 0
            if index == previous + 1:
                start = blanks.pop()[0]
            blanks.append((start, words[index].end))
            previous = index
        return cls(analysis.text, tuple(blanks))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Text blocks and blanks in order; their texts joined are the reference."""
        pieces: list[Piece] = []
        done = 0
        for start, end in self.blanks:
            if start > done:
                pieces.append(Piece(self.reference[done:start], blank=False))
            pieces.append(Piece(self.reference[start:end], blank=True))
            done = end
        if done < len(self.reference):
            pieces.append(Piece(self.reference[done:], blank=False))
        return tuple(pieces)

    def fill(self, infills: Sequence[str]) -> str:
        """The augmented reference: the i-th blank replaced by the i-th infill; later ones keep their words."""
        remaining = iter(infills)
        return "".join(next(remaining, piece.text) if piece.blank else piece.text for piece in self.pieces)

    def __str__(self) -> str:
        """The template as a person reads it, such as ``She said ____ to get her car fixed.``."""
        return "".join(
            piece.text[: len(piece.text) - len(piece.text.lstrip())] + "____" if piece.blank else piece.text
            for piece in self.pieces
        )


def context_carrying(reference_words: Sequence[str], context_words: Sequence[str]) -> frozenset[int]:
    """Indices of the reference words on a longest common subsequence with the context; both are lower-cased.

    Which of several longest ones is rapidfuzz's choice; its version belongs to a score's signature.
    """
    # Numbered words compare exactly; strings would be compared by their hashes.
    numbers: dict[str, int] = {}
    context = [numbers.setdefault(word, len(numbers)) for word in context_words]
    reference = [numbers.setdefault(word, len(numbers)) for word in reference_words]
    return frozenset(
        index
        for block in LCSseq.opcodes(context, reference)
        if block.tag == "equal"
        for index in range(block.dest_start, block.dest_end)
    )


def mask_ratios(max_ratio: float, step: float) -> tuple[float, ...]:
    """The ratios step, 2 step, ... up to and including ``max_ratio``, rounded to 10 decimals."""
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

    Equal templates, and those without blanks, keep their place, and so their weight in the score.
    """
    words = analysis.lower_words
    ratios = mask_ratios(settings.max_mask_ratio, settings.mask_ratio_step)
    carrying = context_carrying(words, context_words)
    costs = [CONTEXT_COST if index in carrying else PLAIN_COST for index in range(len(words))]
    budgets = [math.floor(ratio * len(words) + _FLOAT_NOISE) for ratio in ratios]
    masks = knapsack(word_priorities(analysis, idf, settings), costs, budgets)
    return [(ratio, Template.from_mask(analysis, mask)) for ratio, mask in zip(ratios, masks, strict=True)]
