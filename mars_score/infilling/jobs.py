"""Templates as jobs in token ids, and the state of a job while a language model fills its blanks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mars_score.metrics.paper import PaperConfig, Template
from mars_score.models.codec import TextCodec, has_line_break

CONTEXT_RESERVE = 64  # Tokens of the window that the context leaves free, besides twice the reference.
_SHORTEST_START = 2  # Tokens before the first blank: one in the cache to plan with, and one to feed.

TemplateInContext = tuple[str, Template]  # The context may be blank; the template has at least one blank.


class FilledTemplate(NamedTuple):
    """A template with its blanks filled."""

    text: str  # the augmented reference
    context_cut: bool  # whether the end of the context was left out
    reference_cut: bool  # whether blanks beyond the window keep the words of the reference


@dataclass(frozen=True)
class Blank:
    """A masked span."""

    length: int  # b, tokens of the masked text
    begins_word: bool  # whether the masked text begins with white space
    # Token ids of the text block that follows; empty for a trailing blank and a block that the tokenizer drops.
    block: tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """Everything that infills depend on besides the model and the settings; equal jobs are done once."""

    prompt: tuple[int, ...]  # token ids of the context, or begin-of-text; at least one
    lead: tuple[int, ...]  # token ids of the text block before the first blank; may be empty
    blanks: tuple[Blank, ...]  # those that fit into the window, in order
    line_breaks: bool  # whether the reference has line breaks, and infills may have some

    def most_tokens(self, sigma: int) -> int:
        """Return the largest number of tokens that the job can take."""
        blanks = sum(blank.length + sigma + len(blank.block) for blank in self.blanks)
        return len(self.prompt) + len(self.lead) + blanks

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
        """Number of tokens; at least 1 for a blank, even if the tokenizer drops the masked text."""
        return max(len(self.ids), int(self.is_blank))


def make_job(
    context: str, template: Template, codec: TextCodec, window: int, config: PaperConfig
) -> tuple[Job, bool]:
    """Encode a template piece by piece after its context; pieces beyond the window are left out.

    Whatever is masked, the first ``window - (2 x reference tokens + CONTEXT_RESERVE)`` tokens of the context are
    kept, and at most ``max_context_tokens``.

    Returns:
        The job, and whether some of the context is left out.
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
    """Encode each piece by itself; after a context the first one begins with the space between the two."""
    (first, is_blank), *others = template.pieces
    pieces = [(" " + first if after_context else first, is_blank), *others]
    return [_Piece(tuple(codec.encode(text)), is_blank, text[:1].isspace()) for text, is_blank in pieces]


def _fit(pieces: Sequence[_Piece], room: int, sigma: int) -> list[_Piece]:
    """Keep the pieces that fit into ``room`` tokens; a blank needs sigma more tokens, a text block may be cut."""
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

    tokens: tuple[int, ...]  # the 1 to b + sigma chosen token ids
    # For each prefix of the draft: perplexity of the reference so far, the prefix and the next text block.
    perplexities: tuple[float, ...]


@dataclass
class JobState:
    """The progress of a job; the draft is generated for the current blank. Log probabilities are in nats."""

    job: Job
    log_probability: float  # of the reference tokens written so far
    count: int  # their number
    filled: list[FilledBlank] = field(default_factory=list)  # the blanks before the current one
    draft: list[int] = field(default_factory=list)  # token ids
    draft_log_probabilities: list[float] = field(default_factory=list)  # of each token of the draft
    # Log probabilities of the next text block's first token, after each token of the draft but the last.
    block_start_log_probabilities: list[float] = field(default_factory=list)
    whole_prefixes: Sequence[bool] = ()  # whether each prefix of a finished draft ends with a whole character
    whole_characters: bool = False  # whether the draft may hold tokens of whole characters only

    @property
    def finished(self) -> bool:
        """Whether all blanks are filled."""
        return len(self.filled) == len(self.job.blanks)

    @property
    def blank(self) -> Blank:
        """The current blank."""
        return self.job.blanks[len(self.filled)]

    @property
    def future(self) -> tuple[int, ...]:
        """Distinct tokens of the text blocks after the current blank, sorted (the w of Eq. 5)."""
        return tuple(sorted({token for blank in self.job.blanks[len(self.filled) :] for token in blank.block}))

    @property
    def pending(self) -> int:
        """The last written token, whose keys and values are not in the cache yet."""
        if self.draft:
            return self.draft[-1]
        if not self.filled:
            return (self.job.prompt + self.job.lead)[-1]
        return (self.filled[-1].tokens + self.job.blanks[len(self.filled) - 1].block)[-1]

    def start_draft(self, *, whole_characters: bool = False) -> None:
        """Begin the current blank, perhaps again, now with tokens of ``whole_characters`` only."""
        self.draft, self.draft_log_probabilities, self.block_start_log_probabilities = [], [], []
        self.whole_characters = whole_characters

    def write(self, token: int, log_probability: float, block_start_log_probability: float) -> None:
        """Add a generated token, with the log probability that the next block's first token had in its place."""
        if self.draft:
            self.block_start_log_probabilities.append(block_start_log_probability)
        self.draft.append(token)
        self.draft_log_probabilities.append(log_probability)

    def keep(self, block_log_probabilities: Sequence[float]) -> int:
        """Fill the blank with the prefix of lowest perplexity, the shortest of equals (Algorithm 2).

        Args:
            block_log_probabilities: of the next text block after each prefix of the draft.

        Returns:
            The length of the chosen prefix, which ends with a whole character.
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
