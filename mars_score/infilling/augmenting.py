"""From templates to augmented references: tokenise, infill, put the text back together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mars_score.infilling.jobs import Infill, Job, fit_context, make_job
from mars_score.infilling.tokens import TextCodec
from mars_score.masking.template import Template

Progress = Callable[[int, int], None]


class Infiller(Protocol):
    """What the causal and the masked infiller have in common.

    Attributes:
        codec: the language model's tokenizer.
        sigma: how many tokens more than the masked text an infill may have.
        shortest_start: how many tokens it needs before the first blank.
    """

    codec: TextCodec
    sigma: int
    shortest_start: int

    @property
    def window(self) -> int:
        """Positions for prompt and reference."""

    def infill(self, jobs: Sequence[Job], progress: Progress | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once."""


@dataclass(frozen=True)
class AugmentedText:
    """An infilled template.

    Attributes:
        text: the augmented reference.
        context_cut: whether the end of the context was not read.
        reference_cut: whether blanks beyond the window kept the reference's own words.
    """

    text: str
    context_cut: bool
    reference_cut: bool


def augment(
    infiller: Infiller,
    pairs: Sequence[tuple[str, Template]],
    max_context_tokens: int | None = None,
    progress: Progress | None = None,
) -> list[AugmentedText]:
    """Infill templates behind their contexts.

    Args:
        infiller: the engine with its language model.
        pairs: contexts (blank for none) and templates with at least one blank; what is equal is done once.
        max_context_tokens: see ``InfillingSettings``.
        progress: called with the number of jobs done and of all jobs.
    """
    codec = infiller.codec
    windows = {
        key: fit_context(codec, *key, infiller.window, max_context_tokens)
        for key in dict.fromkeys((context, template.reference) for context, template in pairs)
    }
    jobs = [
        make_job(codec, template, windows[context, template.reference], infiller.sigma, infiller.shortest_start)
        for context, template in pairs
    ]
    augmented = []
    for (context, template), infills in zip(pairs, infiller.infill(jobs, progress), strict=True):
        # The space between context and reference belongs to a leading blank's infill, but not to the text.
        text = template.fill([codec.decode(infill.tokens) for infill in infills]).strip()
        reference_cut = len(infills) < len(template.blanks)
        augmented.append(AugmentedText(text, windows[context, template.reference].cut, reference_cut))
    return augmented
