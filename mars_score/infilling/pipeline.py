"""From templates to augmented references: tokenise, infill, put the text back together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mars_score.infilling.jobs import Done, Infill, Job, fit_context, make_job
from mars_score.infilling.tokens import TextCodec
from mars_score.masking.template import Template

Pair = tuple[str, Template]  # a context (blank for none) and a template with at least one blank


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

    def infill(self, jobs: Sequence[Job], done: Done | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once, and reported as they are done."""


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
    pairs: Sequence[Pair],
    max_context_tokens: int | None = None,
    done: Callable[[Pair, AugmentedText], None] | None = None,
) -> dict[Pair, AugmentedText]:
    """Infill templates behind their contexts.

    Args:
        infiller: the engine with its language model.
        pairs: contexts and templates; what is equal is done once.
        max_context_tokens: see ``InfillingSettings``.
        done: called with each different pair and its text, in the order in which they are done.
    """
    codec = infiller.codec
    windows = {
        key: fit_context(codec, *key, infiller.window, max_context_tokens)
        for key in dict.fromkeys((context, template.reference) for context, template in pairs)
    }
    pairs_of: dict[Job, list[Pair]] = {}
    for context, template in dict.fromkeys(pairs):
        window = windows[context, template.reference]
        job = make_job(codec, template, window, infiller.sigma, infiller.shortest_start)
        pairs_of.setdefault(job, []).append((context, template))
    augmented: dict[Pair, AugmentedText] = {}

    def join(job: Job, infills: tuple[Infill, ...]) -> None:
        for context, template in pairs_of[job]:
            # The space between context and reference belongs to a leading blank's infill, but not to the text.
            text = template.fill([codec.decode(infill.tokens) for infill in infills]).strip()
            reference_cut = len(infills) < len(template.blanks)
            one = AugmentedText(text, windows[context, template.reference].cut, reference_cut)
            augmented[context, template] = one
            if done:
                done((context, template), one)

    infiller.infill(list(pairs_of), join)
    return augmented
