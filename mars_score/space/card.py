"""An answer as an image to share."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import matplotlib
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

from mars_score.space.answer import Answer

WIDTH = 1200  # pixels
_MARGIN, _GAP, _TALLEST = 56, 30, 4000
_BAR = 680, 850  # from, to
_RANKS = 985, 1060  # where the ranks by BLEU and ROUGE-L begin
_INK, _MUTED, _PAPER, _TRACK, _ACCENT = "#1c1917", "#57534e", "#faf8f5", "#e7e5e4", "#a84522"


def draw_card(answer: Answer) -> bytes:
    """A PNG image of ``WIDTH`` pixels: context, references, the candidates best first, and the signature.

    Each text is cut to a few lines, with "…" where it goes on.
    """
    card, question = _Card(), answer.question
    card.write("MARS", 40, bold=True, colour=_ACCENT)
    card.write("Language Model Augmented Relevance Score", 18, colour=_MUTED)
    for name, text, lines in (("Context", question.context, 4), ("Reference", "\n".join(question.references), 2)):
        if text.strip():
            card.top += _GAP
            card.write(name, 16, bold=True, colour=_MUTED)
            card.write(text, 24, lines=lines)
    card.top += _GAP
    others = answer.metrics[2:] if len(question.candidates) > 1 else ()
    card.columns({"MARS": _BAR[1] + 24, **dict(zip((one.name for one in others), _RANKS, strict=False))})
    for place, index in enumerate(answer.order, 1):
        ranks = [f"#{metric.ranks[index]}" for metric in others]
        card.candidate(place, question.candidates[index], answer.metrics[0].scores[index], ranks)
    card.top += _GAP
    card.write(answer.signature, 13, lines=4, colour=_MUTED)
    return card.png()


def unknown_characters(answer: Answer) -> str:
    """The characters of an answer that the card's font lacks: they are drawn as boxes."""
    known = FT2Font(_file(bold=False)).get_charmap()
    texts = answer.question.context, *answer.question.references, *answer.question.candidates
    return "".join(
        dict.fromkeys(one for text in texts for one in text if ord(one) not in known and not one.isspace())
    )


class _Card:
    """An image that is written from the top down; ``top`` is where the next line begins, in pixels."""

    def __init__(self) -> None:
        self._image = Image.new("RGB", (WIDTH, _TALLEST), _PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self.top = _MARGIN

    def write(
        self,
        text: str,
        size: int,
        *,
        lines: int = 1,
        bold: bool = False,
        colour: str = _INK,
        left: int = _MARGIN,
        right: int = WIDTH - _MARGIN,
    ) -> None:
        """Write at most ``lines`` lines."""
        font = _font(size, bold)
        for line in _wrapped(text, font, right - left, lines):
            self._draw.text((left, self.top), line, fill=colour, font=font)
            self.top += round(1.4 * size)

    def columns(self, names: Mapping[str, int]) -> None:
        """Write the names of columns, given where each begins."""
        top = self.top
        for name, left in names.items():
            self.top = top
            self.write(name, 16, bold=True, colour=_MUTED, left=left)
        self.top += 6

    def candidate(self, place: int, text: str, score: float, ranks: Sequence[str]) -> None:
        """Write a candidate with its place, bar and score, and its ranks by other metrics."""
        top, first = self.top, place == 1
        self.write(str(place), 24, bold=True, colour=_ACCENT if first else _MUTED)
        self.top = top
        self.write(text, 24, lines=2, bold=first, left=_MARGIN + 46, right=_BAR[0] - 40)
        bottom, self.top = self.top, top
        start, end = _BAR
        for stop, colour in ((end, _TRACK), (start + (end - start) * min(max(score, 0.0), 1.0), _ACCENT)):
            self._draw.rounded_rectangle((start, top + 8, stop, top + 22), radius=7, fill=colour)
        self.write(f"{score:.3f}", 24, bold=first, left=end + 24)
        for rank, left in zip(ranks, _RANKS, strict=False):
            self.top = top
            self.write(rank, 24, left=left, colour=_MUTED)
        self.top = bottom + 12

    def png(self) -> bytes:
        """The image as far as it is written."""
        file = io.BytesIO()
        self._image.crop((0, 0, WIDTH, min(self.top + _MARGIN, _TALLEST))).save(file, "PNG")
        return file.getvalue()


def _wrapped(text: str, font: ImageFont.FreeTypeFont, width: float, lines: int) -> list[str]:
    """The first lines of a text, at most ``width`` wide, the last with "…" if more follow."""
    every = (line for paragraph in text.splitlines() for line in _lines(paragraph, font, width))
    wrapped = list(islice(every, lines + 1))
    if len(wrapped) <= lines:
        return wrapped
    last = wrapped[lines - 1]
    while last and font.getlength(f"{last} …") > width:
        last = last[:-1]
    return [*wrapped[: lines - 1], f"{last} …"]


def _lines(paragraph: str, font: ImageFont.FreeTypeFont, width: float) -> Iterator[str]:
    """A paragraph broken between words, and within those that are longer than a line."""
    line = ""
    for word in paragraph.split():
        if line and font.getlength(f"{line} {word}") > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
        while font.getlength(line) > width:
            fits = bisect_right(range(2, len(line)), width, key=lambda length: font.getlength(line[:length])) + 1
            yield line[:fits]
            line = line[fits:]
    if line:
        yield line


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(_file(bold=bold), size)


def _file(*, bold: bool) -> str:
    """DejaVu Sans, which matplotlib ships: Latin, Greek, Cyrillic, Arabic and more; no Chinese, no emoji."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", name))
