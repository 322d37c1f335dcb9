"""Templates as jobs in token ids, which a language model infills, and their texts afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from mars_score.augment.masking.template import Template
from mars_score.models.engine.tokens import TextCodec, has_line_break

RESERVE = 64  # tokens of the window that the context leaves free, besides twice the reference
TemplateInContext = tuple[str, Template]  # the context may be blank; the template has at least one blank


class AugmentedText(NamedTuple):
    """An infilled template."""

    text: str  # the augmented reference
    context_cut: bool  # whether the end of the context was left out
    reference_cut: bool  # whether blanks beyond the window keep the reference's own words


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


class Infiller(Protocol):
    """Fills the blanks of jobs, with a causal or a masked language model."""

    codec: TextCodec
    window: int  # positions of the model
    sigma: int  # tokens that an infill may have beyond those of its blank
    shortest_start: int  # tokens before the first blank, at least

    def infill(self, jobs: Iterable[Job], done: OnInfilled) -> None:
        """Call ``done`` with each different job and the infills of its blanks."""


def augment(
    infiller: Infiller,
    pairs: Sequence[TemplateInContext],
    done: Callable[[TemplateInContext, AugmentedText], None],
    max_context_tokens: int | None = None,
) -> None:
    """Infill templates, given their contexts; ``done`` is called with each different pair and its text."""
    pairs_of: dict[Job, list[tuple[TemplateInContext, bool]]] = {}
    for pair in dict.fromkeys(pairs):
        job, context_cut = make_job(infiller, *pair, max_context_tokens)
        pairs_of.setdefault(job, []).append((pair, context_cut))

    def join(job: Job, infills: tuple[Infill, ...]) -> None:
        texts = [infiller.codec.decode(infill.tokens) for infill in infills]
        for pair, context_cut in pairs_of[job]:
            template = pair[1]
            # The space between context and reference belongs to a leading blank's infill, but not to the text.
            text = template.fill(texts).strip()
            done(pair, AugmentedText(text, context_cut, reference_cut=len(infills) < len(template.blanks)))

    infiller.infill(pairs_of, join)


def make_job(
    infiller: Infiller, context: str, template: Template, max_context_tokens: int | None = None
) -> tuple[Job, bool]:
    """Tokenise a template piece by piece and put it after its context; what is beyond the window is left out.

    Whatever is masked, the first ``window - (2 x reference tokens + RESERVE)`` tokens of the context are kept, and
    at most ``max_context_tokens``. Returns the job and whether some of the context is left out.
    """
    codec, window, sigma = infiller.codec, infiller.window, infiller.sigma
    of_context = codec.encode_context(context)
    of_reference = codec.encode(" " + template.reference if of_context else template.reference)
    limit = max(0, window - (2 * len(of_reference) + RESERVE))
    if max_context_tokens is not None:
        limit = min(limit, max_context_tokens)
    prompt = codec.prompt(of_context[:limit])
    pieces = template.pieces
    texts = [piece.text for piece in pieces]
    if of_context[:limit]:
        texts[0] = " " + texts[0]
    tokens = [codec.encode(text) for text in texts]
    while len(prompt) + (0 if pieces[0].blank else len(tokens[0])) < infiller.shortest_start:
        prompt.insert(0, codec.begin)

    lead: tuple[int, ...] = ()
    blanks: list[Blank] = []
    position = len(prompt)
    for piece, text, ids in zip(pieces, texts, tokens, strict=True):
        space = window - position
        if piece.blank:
            length = max(1, len(ids))
            if length + sigma > space:
                break
            blanks.append(Blank(length, text[:1].isspace(), ()))
            position += length + sigma
            continue
        fitting = tuple(ids[:space])
        if blanks:
            blanks[-1] = replace(blanks[-1], after=fitting)
        else:
            lead = fitting
        position += len(fitting)
        if len(fitting) < len(ids):
            break
    job = Job(tuple(prompt), lead, tuple(blanks), has_line_break(template.reference))
    return job, len(of_context) > limit
