"""A job under way: what is written, and the draft of the blank at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mars_score.infilling.jobs import Blank, Infill, Job


@dataclass
class Row:
    """The state of one job.

    Attributes:
        job: what is to be infilled.
        pending: the last written token, whose keys and values are not cached.
        surprise: total surprisal of the reference tokens written so far, in nats.
        count: their number.
        infills: the blanks that are done.
        draft: tokens generated for the blank at hand.
        draft_surprise: surprisal of each of them.
        next_surprise: surprisal of the next text block's first token behind each of them but the last.
    """

    job: Job
    pending: int
    surprise: float
    count: int
    infills: list[Infill] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)
    draft_surprise: list[float] = field(default_factory=list)
    next_surprise: list[float] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether all blanks are done."""
        return len(self.infills) == len(self.job.blanks)

    @property
    def blank(self) -> Blank:
        """The blank at hand."""
        return self.job.blanks[len(self.infills)]

    @property
    def future(self) -> tuple[int, ...]:
        """Distinct tokens of the text blocks after the blank at hand."""
        return self.job.future(len(self.infills))

    def start_draft(self) -> None:
        """Begin the blank at hand."""
        self.draft, self.draft_surprise, self.next_surprise = [], [], []

    def write(self, token: int, surprise: float, surprise_of_block: float) -> None:
        """Add a generated token, its surprisal, and what the next block's first token would have had instead."""
        if self.draft:
            self.next_surprise.append(surprise_of_block)
        self.draft.append(token)
        self.draft_surprise.append(surprise)
        self.pending = token

    def keep(self, block_surprise: Sequence[float]) -> int:
        """Keep the prefix of lowest perplexity, the shortest of equals (Algorithm 2).

        Args:
            block_surprise: total surprisal of the next text block behind each prefix of the draft.

        Returns:
            The number of tokens kept.
        """
        block = self.blank.after
        totals, means, total = [], [], self.surprise
        for length, (of_token, of_block) in enumerate(zip(self.draft_surprise, block_surprise, strict=True), 1):
            total += of_token
            totals.append(total + of_block)
            means.append(totals[-1] / (self.count + length + len(block)))
        best = min(range(len(means)), key=means.__getitem__)
        kept = self.draft[: best + 1]
        self.surprise, self.count = totals[best], self.count + len(kept) + len(block)
        self.pending = (*kept, *block)[-1]
        self.infills.append(Infill(tuple(kept), tuple(math.exp(mean) for mean in means)))
        return len(kept)
