"""A template: the reference with its least important words turned into blanks (section 2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mars_score.augment.masking.analysis import Analysis


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
        """The augmented reference: text blocks verbatim, the i-th blank replaced by the i-th infill.

        Blanks beyond the last infill keep the reference's own words (a reference too long for the
        language model's window is infilled as far as it fits).
        """
        remaining = iter(infills)
        return "".join(next(remaining, piece.text) if piece.blank else piece.text for piece in self.pieces)

    def __str__(self) -> str:
        """The template as a person reads it, such as ``She said ____ to get her car fixed.``."""
        return "".join(
            piece.text[: len(piece.text) - len(piece.text.lstrip())] + "____" if piece.blank else piece.text
            for piece in self.pieces
        )
