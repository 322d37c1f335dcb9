"""Encode templates as jobs, and keep the state of a job while a language model fills its blanks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.codec import TextCodec, has_line_break

CONTEXT_RESERVE = 64  # tokens of the model's window that the context leaves free, besides twice the reference
_SHORTEST_START = 2  # fewest tokens before the first blank: one in the cache to plan with, and one to feed

TemplateInContext = tuple[str, Template]  # The context may be "". The template has at least one blank.


class FilledTemplate(NamedTuple):
    """A template with its blanks filled."""

    text: str  # the augmented reference
    context_cut: bool  # whether the end of the context was left out
    reference_cut: bool  # whether blanks beyond the window were not filled


@dataclass(frozen=True)
class Blank:
    """A masked span."""

    length: int  # b, tokens of the masked text
    begins_word: bool  # whether the masked text begins with white space
    block: tuple[int, ...]  # token ids of the text block that follows; may be empty


@dataclass(frozen=True)
class Job:
    """A template in token ids: all that its infills depend on besides the model and the settings."""

    prompt: tuple[int, ...]  # token ids of the context, or begin-of-text; at least one
    lead: tuple[int, ...]  # token ids of the text block before the first blank; may be empty
    blanks: tuple[Blank, ...]  # blanks that fit into the model's window, in order
    line_breaks: bool  # whether infills may have line breaks, as the reference has

    def most_tokens(self, sigma: int) -> int:
        """Return the largest number of tokens of the finished job."""
        blocks = sum(len(blank.block) for blank in self.blanks)
        return len(self.prompt) + len(self.lead) + blocks + self.drafted_tokens(sigma)

    def drafted_tokens(self, sigma: int) -> int:
        """Return the number of tokens that are generated for all blanks."""
        return sum(blank.length + sigma for blank in self.blanks)


class _Piece(NamedTuple):
    """A blank or a text block of a template, in token ids."""

    ids: tuple[int, ...]
    is_blank: bool
    begins_word: bool

    @property
    def length(self) -> int:
        """Return the number of tokens, for a blank at least 1, as the tokenizer may drop the masked text."""
        return max(len(self.ids), int(self.is_blank))


def make_job(
    context: str, template: Template, codec: TextCodec, window: int, config: PaperConfig
) -> tuple[Job, bool]:
    """Encode a template after its context, without the pieces beyond the window.

    The first ``window - (2 x reference tokens + CONTEXT_RESERVE)`` tokens of the context are kept, but at most
    ``max_context_tokens``.

    Returns:
        The job, and whether the end of the context is left out.
    """
    context_ids = codec.encode_context(context)
    reference_ids = codec.encode(" " + template.reference if context_ids else template.reference)
    limit = max(0, window - (2 * len(reference_ids) + CONTEXT_RESERVE))
    kept = context_ids[:limit][: config.max_context_tokens]
    pieces = _encode_pieces(template, codec, after_context=bool(kept))
    prompt = codec.prompt(kept)
    first_block = 0 if pieces[0].is_blank else len(pieces[0].ids)
    prompt = [codec.begin] * max(0, _SHORTEST_START - len(prompt) - first_block) + prompt
    fitting = _fit(pieces, window - len(prompt), config.sigma)
    lead = fitting[0].ids if fitting and not fitting[0].is_blank else ()
    blanks = tuple(
        Blank(piece.length, piece.begins_word, block.ids if block else ())
        for piece, block in zip(fitting, [*fitting[1:], None], strict=False)  # Perhaps no piece fits.
        if piece.is_blank
    )
    return Job(tuple(prompt), lead, blanks, has_line_break(template.reference)), len(kept) < len(context_ids)


def _encode_pieces(template: Template, codec: TextCodec, *, after_context: bool) -> list[_Piece]:
    """Encode each piece separately. After a context the first one begins with a space."""
    (first, is_blank), *others = template.pieces
    pieces = [(" " + first if after_context else first, is_blank), *others]
    return [_Piece(tuple(codec.encode(text)), is_blank, text[:1].isspace()) for text, is_blank in pieces]


def _fit(pieces: Sequence[_Piece], room: int, sigma: int) -> list[_Piece]:
    """Keep the pieces that fit into ``room`` tokens. A blank needs sigma more tokens. A block may be cut."""
    fitting: list[_Piece] = []
    for piece in pieces:
        size = piece.length + sigma * piece.is_blank
        if size > room:
            return fitting if piece.is_blank else [*fitting, piece._replace(ids=piece.ids[:room])]
        fitting.append(piece)
        room -= size
    return fitting


@dataclass(frozen=True)
class FilledBlank:
    """The infill of a blank."""

    tokens: tuple[int, ...]  # 1 to b + sigma token ids
    perplexities: tuple[float, ...]  # of the reference up to the next text block, for each prefix of the draft


@dataclass
class JobState:
    """The progress of a job, with a draft for the current blank. Log probabilities are in nats."""

    job: Job
    log_probability: float  # of the tokens of the reference so far
    count: int  # number of these tokens
    filled: list[FilledBlank] = field(default_factory=list)  # infills of earlier blanks
    draft: list[int] = field(default_factory=list)  # token ids
    draft_log_probabilities: list[float] = field(default_factory=list)  # one per token of the draft
    # Log probability of the next text block's first token, after each token of the draft except the last.
    block_start_log_probabilities: list[float] = field(default_factory=list)
    whole_prefixes: Sequence[bool] = ()  # whether each prefix of a complete draft ends with a whole character
    whole_characters: bool = False  # whether only tokens of whole characters are allowed

    @property
    def finished(self) -> bool:
        """Tell whether all blanks are filled."""
        return len(self.filled) == len(self.job.blanks)

    @property
    def blank(self) -> Blank:
        """Return the current blank."""
        return self.job.blanks[len(self.filled)]

    @property
    def future(self) -> tuple[int, ...]:
        """Return the distinct tokens of the text blocks after the current blank, sorted (w of Eq. 5)."""
        return tuple(sorted({token for blank in self.job.blanks[len(self.filled) :] for token in blank.block}))

    @property
    def pending(self) -> int:
        """Return the last token, which is not in the cache yet."""
        if self.draft:
            return self.draft[-1]
        if not self.filled:
            return (self.job.prompt + self.job.lead)[-1]
        return (self.filled[-1].tokens + self.job.blanks[len(self.filled) - 1].block)[-1]

    def start_draft(self, *, whole_characters: bool = False) -> None:
        """Begin the current blank, or begin it again with tokens of ``whole_characters`` only."""
        self.draft, self.draft_log_probabilities, self.block_start_log_probabilities = [], [], []
        self.whole_characters = whole_characters

    def write(self, token: int, log_probability: float, block_start_log_probability: float) -> None:
        """Add a token with its log probability and that of the next block's first token in its place."""
        if self.draft:
            self.block_start_log_probabilities.append(block_start_log_probability)
        self.draft.append(token)
        self.draft_log_probabilities.append(log_probability)

    def keep(self, block_log_probabilities: Sequence[float]) -> int:
        """Fill the blank with the prefix of lowest perplexity, the shortest if several are equal (Algorithm 2).

        Args:
            block_log_probabilities: log probability of the next text block after each prefix of the draft.

        Returns:
            The length of the prefix. It ends with a whole character.
        """
        totals, means, total = [], [], self.log_probability
        steps = zip(self.draft_log_probabilities, block_log_probabilities, strict=True)
        for length, (token_log_probability, block_log_probability) in enumerate(steps, 1):
            total += token_log_probability
            totals.append(total + block_log_probability)
            means.append(totals[-1] / (self.count + length + len(self.blank.block)))
        best = max((index for index, whole in enumerate(self.whole_prefixes) if whole), key=means.__getitem__)
        chosen, block = self.draft[: best + 1], self.blank.block
        self.log_probability, self.count = totals[best], self.count + len(chosen) + len(block)
        self.filled.append(FilledBlank(tuple(chosen), tuple(math.exp(-mean) for mean in means)))
        return len(chosen)
