"""The state of a job: what is written, and the draft of the current blank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mars_score.augment.infilling.jobs import Blank, Infill, Job


@dataclass
class JobState:
    """The state of one job.

    Attributes:
        job: what is to be infilled.
        surprise: total surprisal of the reference tokens written so far, in nats.
        count: their number.
        infills: the blanks that are filled.
        draft: tokens generated for the current blank.
        draft_surprise: surprisal of each of them.
        next_surprise: surprisal of the next text block's first token after each of them but the last.
        complete: of each prefix of a finished draft, whether it ends with a whole character.
        whole: whether the draft may hold tokens of whole characters only.
    """

    job: Job
    surprise: float
    count: int
    infills: list[Infill] = field(default_factory=list)
    draft: list[int] = field(default_factory=list)
    draft_surprise: list[float] = field(default_factory=list)
    next_surprise: list[float] = field(default_factory=list)
    complete: Sequence[bool] = ()
    whole: bool = False

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
        """Distinct tokens of the text blocks after the current blank."""
        return self.job.future(len(self.infills))

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
        """Keep the complete prefix of lowest perplexity, the shortest of equals (Algorithm 2).

        Args:
            block_surprise: total surprisal of the next text block after each prefix of the draft.

        Returns:
            The number of tokens kept.
        """
        block = self.blank.after
        totals, means, total = [], [], self.surprise
        for length, (of_token, of_block) in enumerate(zip(self.draft_surprise, block_surprise, strict=True), 1):
            total += of_token
            totals.append(total + of_block)
            means.append(totals[-1] / (self.count + length + len(block)))
        best = min((index for index in range(len(means)) if self.complete[index]), key=means.__getitem__)
        kept = self.draft[: best + 1]
        self.surprise, self.count = totals[best], self.count + len(kept) + len(block)
        self.infills.append(Infill(tuple(kept), tuple(math.exp(mean) for mean in means)))
        return len(kept)
