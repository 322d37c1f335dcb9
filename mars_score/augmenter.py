"""References and contexts -> augmented references: masking and infilling joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from mars_score.errors import ModelUnavailableError
from mars_score.masking.analysis import WordAnalyser
from mars_score.masking.idf import Idf
from mars_score.masking.template import Template
from mars_score.masking.templates import make_templates
from mars_score.result import Augmentation, AugmentedReference
from mars_score.settings import Settings

if TYPE_CHECKING:
    from mars_score.infilling.augmenting import AugmentedText, Infiller

Pair = tuple[str, str]  # context and prepared reference: what augmented references depend on
Templates = list[tuple[float, Template]]  # with their mask ratios
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Augmented:
    """An augmented reference and what the language model's window did to it.

    Attributes:
        reference: the reference with its augmentations.
        context_cut: whether the end of the context was not read.
        reference_cut: whether the end of the reference was not augmented.
    """

    reference: AugmentedReference
    context_cut: bool
    reference_cut: bool


class Augmenter:
    """Masks references and infills them; spaCy and the language model are loaded when first needed.

    Args:
        settings: of all stages.
        batch_size: jobs that the language model infills together.
        device: where it runs.
        store: folder for converted models, or None.
        report: called as ``report(stage, done, total)``.
    """

    def __init__(
        self, settings: Settings, batch_size: int, device: str | None, store: Path | None, report: Progress
    ) -> None:
        self.settings = settings
        self.batch_size = batch_size
        self.device = device
        self.store = store
        self.report = report
        self.analyser = WordAnalyser()

    def augment(self, pairs: Sequence[Pair], others: Sequence[str] = ()) -> dict[Pair, Augmented]:
        """Augment the references of a call, each different pair of context and reference once.

        IDF is counted over the different references among ``pairs`` and ``others`` (prepared references of
        the call that are not to be augmented) unless a corpus is set.
        """
        distinct = list(dict.fromkeys(pairs))
        if not distinct:
            return {}
        templates = self._templates(distinct, others)
        infilled = self._infill(templates)
        return {pair: _join(pair, templates[pair], infilled) for pair in distinct}

    def _templates(self, pairs: Sequence[Pair], others: Sequence[str]) -> dict[Pair, Templates]:
        """Templates of each pair (section 2.1)."""
        masking = self.settings.masking
        if masking.max_mask_ratio == 0:
            return {pair: [] for pair in pairs}
        self.report("analyse", 0, len(pairs))
        references = list(dict.fromkeys([*(reference for _, reference in pairs), *others]))
        analyses = dict(zip(references, self.analyser.analyse(references), strict=True))
        if masking.idf_corpus is None:
            idf = Idf.count({text: analysis.lower_words for text, analysis in analyses.items()})
        else:
            idf = self._corpus_idf
        contexts = list(dict.fromkeys(context for context, _ in pairs))
        words = dict(zip(contexts, self.analyser.words(contexts), strict=True))
        templates = {
            (context, reference): make_templates(analyses[reference], words[context], idf, masking)
            for context, reference in pairs
        }
        self.report("analyse", len(pairs), len(pairs))
        return templates

    @cached_property
    def _corpus_idf(self) -> Idf:
        texts = list(self.settings.masking.idf_corpus or ())
        return Idf.count(dict(zip(texts, self.analyser.words(texts), strict=True)))

    def _infill(self, templates: dict[Pair, Templates]) -> dict[tuple[str, Template], AugmentedText]:
        """Infilled text of each different (context, template) that has a blank (section 2.2)."""
        jobs = dict.fromkeys(
            (context, template)
            for (context, _), of_pair in templates.items()
            for _, template in of_pair
            if template.blanks
        )
        if not jobs:
            return {}
        from mars_score.infilling.augmenting import augment

        limit = self.settings.infilling.max_context_tokens
        texts = augment(self._infiller, list(jobs), limit, partial(self.report, "infill"))
        return dict(zip(jobs, texts, strict=True))

    @cached_property
    def _infiller(self) -> Infiller:
        from mars_score.infilling.engine import CausalInfiller
        from mars_score.infilling.language_model import CausalLanguageModel
        from mars_score.infilling.masked import MaskedInfiller
        from mars_score.models import load_language_model

        settings, models = self.settings, self.settings.models
        if settings.infilling.infiller == "masked":
            if models.masked_language_model is None:
                raise ModelUnavailableError(
                    'infiller="masked" has no model in this preset: no masked language model is known to come in '
                    "a wheel. Name one with masked_language_model=... or use another preset"
                )
            loaded = load_language_model(
                models.masked_language_model, "masked", models.dtype, self.device, self.store
            )
            return MaskedInfiller(*loaded, self.batch_size)
        loaded = load_language_model(models.language_model, "causal", models.dtype, self.device, self.store)
        return CausalInfiller(CausalLanguageModel(*loaded), settings.planning, settings.infilling, self.batch_size)


def _join(pair: Pair, templates: Templates, infilled: dict[tuple[str, Template], AugmentedText]) -> Augmented:
    """The augmented reference of a pair; a template with nothing masked yields the reference itself."""
    context, reference = pair
    augmentations, used = [], []
    for ratio, template in templates:
        text = reference
        if template.blanks:
            used.append(infilled[context, template])
            text = used[-1].text
        augmentations.append(Augmentation(ratio, template, text))
    return Augmented(
        AugmentedReference(reference, tuple(augmentations)),
        any(one.context_cut for one in used),
        any(one.reference_cut for one in used),
    )
