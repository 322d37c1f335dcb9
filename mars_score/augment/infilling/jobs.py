"""A job: one template in token ids, which the language model infills, and the state of this work."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mars_score.augment.masking.template import Template
from mars_score.data.contexts import as_prose
from mars_score.models.engine.tokens import TextCodec, has_line_break

if TYPE_CHECKING:
    pass

RESERVE = 64  # tokens of the window that the context leaves free, besides twice the reference


@dataclass(frozen=True)
class Blank:
    """A masked span."""

    length: int  # b, tokens of the masked text
    begins_word: bool  # whether the masked text begins with whitespace
    after: tuple[int, ...]  # token ids of the text block that follows; empty for a trailing blank


@dataclass(frozen=True)
class Job:
    """All that infills depend on besides the model and the settings; equal jobs are infilled once."""

    prompt: tuple[int, ...]  # token ids of the context, or begin-of-text; at least one
    lead: tuple[int, ...]  # token ids of the text block before the first blank; may be empty
    blanks: tuple[Blank, ...]  # those that fit into the window, in order
    line_breaks: bool  # whether infills may hold line breaks (the reference does)

    def most_tokens(self, sigma: int) -> int:
        """The largest number of tokens that the job can take."""
        blanks = sum(blank.length + sigma + len(blank.after) for blank in self.blanks)
        return len(self.prompt) + len(self.lead) + blanks


@dataclass(frozen=True)
class Infill:
    """A filled blank."""

    tokens: tuple[int, ...]  # the chosen token ids, 1 to b + sigma of them
    # Of the reference so far + prefix + next text block, for each prefix length from 1; empty from a masked
    # language model, which has no drafts.
    perplexities: tuple[float, ...]


@dataclass
class JobState:
    """The state of one job."""

    job: Job  # what is to be infilled
    surprise: float  # total surprisal of the reference tokens written so far, in nats
    count: int  # their number
    infills: list[Infill] = field(default_factory=list)  # the blanks that are filled
    draft: list[int] = field(default_factory=list)  # tokens generated for the current blank
    draft_surprise: list[float] = field(default_factory=list)  # surprisal of each of them
    # Surprisal of the next text block's first token after each of them but the last.
    next_surprise: list[float] = field(default_factory=list)
    complete: Sequence[bool] = ()  # of each prefix of a finished draft, whether it ends with a whole character
    whole: bool = False  # whether the draft may hold tokens of whole characters only

    @property
    def finished(self) -> bool:
        """Whether all blanks are filled."""
        return len(self.infills) == len(self.job.blanks)

    @property
    def blank(self) -> Blank:
        """The current blank."""
        return self.job.blanks[len(self.infills)]

    @property
    def future(self) -> tuple[int, ...]:
        """Distinct tokens of the text blocks after the current blank, sorted (the w of Eq. 5)."""
        return tuple(sorted({token for blank in self.job.blanks[len(self.infills) :] for token in blank.after}))

    @property
    def pending(self) -> int:
        """The last written token, whose keys and values are not in the cache yet."""
        if self.draft:
            return self.draft[-1]
        before = self.job.blanks[len(self.infills) - 1].after if self.infills else self.job.prompt + self.job.lead
        return before[-1]

    def start_draft(self, *, whole: bool = False) -> None:
        """Begin the current blank, or begin it again with tokens of ``whole`` characters only."""
        self.draft, self.draft_surprise, self.next_surprise, self.whole = [], [], [], whole

    def write(self, token: int, surprise: float, surprise_of_block: float) -> None:
        """Add a generated token, its surprisal, and what the next block's first token would have had instead."""
        if self.draft:
            self.next_surprise.append(surprise_of_block)
        self.draft.append(token)
        self.draft_surprise.append(surprise)

    def keep(self, block_surprise: Sequence[float]) -> int:
        """Keep the complete prefix of lowest perplexity, the shortest of equals (Algorithm 2)."""
        block = self.blank.after
        totals, means, total = [], [], self.surprise
        for length, (of_token, of_block) in enumerate(zip(self.draft_surprise, block_surprise, strict=True), 1):
            total += of_token
            totals.append(total + of_block)
            means.append(totals[-1] / (self.count + length + len(block)))
        best = min((index for index in range(len(means)) if self.complete[index]), key=means.__getitem__)
        chosen = self.draft[: best + 1]
        self.surprise, self.count = totals[best], self.count + len(chosen) + len(block)
        self.infills.append(Infill(tuple(chosen), tuple(math.exp(mean) for mean in means)))
        return len(chosen)


OnInfilled = Callable[[Job, tuple[Infill, ...]], None]  # called when all blanks of a job are filled


@dataclass(frozen=True)
class FittedContext:
    """A context, cut so that the language model's window has room for a reference."""

    tokens: tuple[int, ...]  # the first token ids of the context, or all
    cut: bool  # whether some are left out
    window: int  # positions of the language model


def fit_context(
    codec: TextCodec, context: str, reference: str, window: int, max_context_tokens: int | None = None
) -> FittedContext:
    """Keep the first ``window - (2 x reference tokens + 64)`` tokens of the context, whatever the template."""
    ids = codec.encode(as_prose(context.strip())) if context.strip() else []
    reference_tokens = len(codec.encode(" " + reference if ids else reference))
    limit = max(0, window - (2 * reference_tokens + RESERVE))
    if max_context_tokens is not None:
        limit = min(limit, max_context_tokens)
    return FittedContext(tuple(ids[:limit]), len(ids) > limit, window)


def make_job(codec: TextCodec, template: Template, context: FittedContext, sigma: int, shortest_start: int) -> Job:
    """Tokenise a template piece by piece and put it after its context; what is beyond the window is left out."""
    pieces = list(template.pieces)
    prompt = list(context.tokens)
    if codec.adds_begin or not prompt:
        prompt.insert(0, codec.begin)
    joiner = " " if context.tokens else ""
    texts = [joiner + pieces[0].text, *(piece.text for piece in pieces[1:])]
    tokens = [codec.encode(text) for text in texts]
    while len(prompt) + (0 if pieces[0].blank else len(tokens[0])) < shortest_start:
        prompt.insert(0, codec.begin)

    lead: tuple[int, ...] = ()
    blanks: list[Blank] = []
    position = len(prompt)
    for piece, text, ids in zip(pieces, texts, tokens, strict=True):
        space = context.window - position
        if piece.blank:
            length = max(1, len(ids))
            if length + sigma > space:
                break
            blanks.append(Blank(length, text[:1].isspace(), ()))
            position += length + sigma
            continue
        fitting = tuple(ids[:space])
        if blanks:
            blanks[-1] = Blank(blanks[-1].length, blanks[-1].begins_word, fitting)
        else:
            lead = fitting
        position += len(fitting)
        if len(fitting) < len(ids):
            break
    return Job(tuple(prompt), lead, tuple(blanks), has_line_break(template.reference))
