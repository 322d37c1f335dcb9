"""From templates to augmented references: tokenise, infill, join the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from mars_score.augment.infilling.jobs import Infill, Job, OnInfilled, fit_context, make_job
from mars_score.augment.masking.template import Template
from mars_score.models.engine.tokens import TextCodec

TemplateInContext = tuple[str, Template]  # the context may be blank; the template has at least one blank


class Infiller(Protocol):
    """A causal or a masked infiller.

    Attributes:
        codec: the language model's tokenizer.
        sigma: how many tokens more than the masked text an infill may have.
        shortest_start: least number of tokens before the first blank.
    """

    codec: TextCodec
    sigma: int
    shortest_start: int

    @property
    def window(self) -> int:
        """Number of positions for prompt and reference."""

    def infill(self, jobs: Sequence[Job], done: OnInfilled | None = None) -> list[tuple[Infill, ...]]:
        """The infills of each job's blanks; equal jobs are infilled once.

        ``done`` is called with each different job and its infills when they are finished.
        """


class AugmentedText(NamedTuple):
    """An infilled template.

    Attributes:
        text: the augmented reference.
        context_cut: whether the end of the context was left out.
        reference_cut: whether blanks beyond the window keep the reference's own words.
    """

    text: str
    context_cut: bool
    reference_cut: bool


def augment(
    infiller: Infiller,
    pairs: Sequence[TemplateInContext],
    max_context_tokens: int | None = None,
    done: Callable[[TemplateInContext, AugmentedText], None] | None = None,
) -> dict[TemplateInContext, AugmentedText]:
    """Infill templates, given their contexts.

    Args:
        infiller: with its language model.
        pairs: contexts and templates; equal ones are infilled once.
        max_context_tokens: see ``InfillingSettings``.
        done: called with each different pair and its text when it is finished.
    """
    codec = infiller.codec
    fitted = {
        key: fit_context(codec, *key, infiller.window, max_context_tokens)
        for key in dict.fromkeys((context, template.reference) for context, template in pairs)
    }
    pairs_of: dict[Job, list[TemplateInContext]] = {}
    for context, template in dict.fromkeys(pairs):
        job = make_job(
            codec, template, fitted[context, template.reference], infiller.sigma, infiller.shortest_start
        )
        pairs_of.setdefault(job, []).append((context, template))
    augmented: dict[TemplateInContext, AugmentedText] = {}

    def join(job: Job, infills: tuple[Infill, ...]) -> None:
        for context, template in pairs_of[job]:
            # The space between context and reference belongs to a leading blank's infill, but not to the text.
            text = template.fill([codec.decode(infill.tokens) for infill in infills]).strip()
            reference_cut = len(infills) < len(template.blanks)
            one = AugmentedText(text, fitted[context, template.reference].cut, reference_cut)
            augmented[context, template] = one
            if done:
                done((context, template), one)

    infiller.infill(list(pairs_of), join)
    return augmented
