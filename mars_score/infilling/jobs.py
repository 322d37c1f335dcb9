"""Templates as jobs in token ids, which a language model infills, and their texts afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mars_score.metrics.template import Template

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
