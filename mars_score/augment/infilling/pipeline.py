"""From templates to augmented references: tokenise, infill, join the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mars_score.augment.masking.template import Template

if TYPE_CHECKING:
    from mars_score.augment.infilling.engine import CausalInfiller
    from mars_score.augment.infilling.masked import MaskedInfiller
from mars_score.augment.infilling.jobs import Infill, Job, fit_context, make_job

TemplateInContext = tuple[str, Template]  # the context may be blank; the template has at least one blank


class AugmentedText(NamedTuple):
    """An infilled template."""

    text: str  # the augmented reference
    context_cut: bool  # whether the end of the context was left out
    reference_cut: bool  # whether blanks beyond the window keep the reference's own words


def augment(
    infiller: CausalInfiller | MaskedInfiller,
    pairs: Sequence[TemplateInContext],
    done: Callable[[TemplateInContext, AugmentedText], None],
    max_context_tokens: int | None = None,
) -> None:
    """Infill templates, given their contexts; ``done`` is called with each different pair and its text."""
    codec = infiller.codec
    fitted = {
        key: fit_context(codec, *key, infiller.window, max_context_tokens)
        for key in dict.fromkeys((context, template.reference) for context, template in pairs)
    }
    pairs_of: dict[Job, list[TemplateInContext]] = {}
    for context, template in dict.fromkeys(pairs):
        fitting = fitted[context, template.reference]
        job = make_job(codec, template, fitting, infiller.sigma, infiller.shortest_start)
        pairs_of.setdefault(job, []).append((context, template))

    def join(job: Job, infills: tuple[Infill, ...]) -> None:
        for context, template in pairs_of[job]:
            # The space between context and reference belongs to a leading blank's infill, but not to the text.
            text = template.fill([codec.decode(infill.tokens) for infill in infills]).strip()
            reference_cut = len(infills) < len(template.blanks)
            context_cut = fitted[context, template.reference].cut
            done((context, template), AugmentedText(text, context_cut, reference_cut))

    infiller.infill(list(pairs_of), join)
