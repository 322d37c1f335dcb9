"""References and contexts -> augmented references: masking and infilling joined."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from mars_score.data.validation import Row
from mars_score.errors import CONTEXT_CUT, REFERENCE_CUT, UNTAGGED
from mars_score.infilling.augmented import Augmentation, AugmentedReference
from mars_score.infilling.jobs import AugmentedText, TemplateInContext
from mars_score.lookup import Results
from mars_score.metrics.idf import Idf
from mars_score.metrics.template import Template, make_templates
from mars_score.models.fingerprints import Current
from mars_score.models.tagger import WordAnalyser, prepare_reference
from mars_score.progress import Runtime
from mars_score.settings import Settings
from mars_score.settings.stages import MaskingSettings

if TYPE_CHECKING:
    from mars_score.infilling.batched import CausalInfiller

Pair = tuple[str, str]  # context and prepared reference: what augmented references depend on
Templates = list[tuple[float, Template]]  # with their mask ratios

_METHOD = 2  # part of the store's keys; raised when the same settings come to give other infills


def prepare_rows(rows: Iterable[Row], masking: MaskingSettings) -> list[Row]:
    """Rows with different prepared references and stripped contexts."""
    strip = masking.strip_urls_hashtags
    return [
        row._replace(
            references=tuple(
                dict.fromkeys(prepare_reference(text, strip_urls_hashtags=strip) for text in row.references)
            ),
            context=row.context.strip(),
        )
        for row in rows
    ]


class Augmenter:
    """Masks references and infills them; spaCy and the language model are loaded when first needed."""

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.settings = settings
        self.runtime = runtime
        self.analyser = WordAnalyser(runtime.store, settings.language)

    def augment(
        self, pairs: Sequence[Pair], others: Sequence[str] = (), idf: Idf | None = None
    ) -> dict[Pair, AugmentedReference]:
        """Augment the references of a call, each different pair of context and reference once.

        IDF: ``idf``, else of the settings' corpus, else counted over the references of ``pairs`` and ``others``.
        """
        if not pairs:
            return {}
        templates = self._templates(list(dict.fromkeys(pairs)), others, idf)
        filled = self.infill(
            (context, template)
            for (context, _), of_pair in templates.items()
            for _, template in of_pair
            if template.blanks
        )
        return {pair: self._join(pair, of_pair, filled) for pair, of_pair in templates.items()}

    def _templates(self, pairs: Sequence[Pair], others: Sequence[str], idf: Idf | None) -> dict[Pair, Templates]:
        """Templates of each pair (section 2.1)."""
        masking = self.settings.masking
        if masking.max_mask_ratio == 0:
            return {pair: [] for pair in pairs}
        self.runtime.report("analyse", 0, len(pairs))
        analyses = self.analyser.analyse([*(reference for _, reference in pairs), *others])
        if idf is None:
            idf = self._corpus_idf or Idf.count([analysis.lower_words for analysis in analyses.values()])
        words = self.analyser.words(context for context, _ in pairs)
        templates = {
            (context, reference): make_templates(analyses[reference], words[context], idf, masking)
            for context, reference in pairs
        }
        self.runtime.report("analyse", len(pairs), len(pairs))
        return templates

    @cached_property
    def _corpus_idf(self) -> Idf | None:
        """IDF counted over the corpus of the settings; None without one."""
        texts = self.settings.masking.idf_corpus
        return None if texts is None else Idf.count(self.analyser.words(texts).values())

    def infill(self, blanked: Iterable[TemplateInContext]) -> dict[TemplateInContext, AugmentedText]:
        """The text of each different (context, template) with a blank (section 2.2), stored or infilled."""
        settings, planning = self.settings, self.settings.planning
        infilling, most = settings.infilling, settings.infilling.max_context_tokens
        # Neither the other rows nor how the masked words were chosen matter.
        method = dataclasses.asdict(infilling)
        if planning.planner != "none":
            method |= dataclasses.asdict(planning)
        results: Results[TemplateInContext, AugmentedText] = self._infiller.results(
            "infills",
            (settings.models.dtype, method, _METHOD),
            lambda infiller, missing, done: infiller.augment(missing, done, most),
            parts=lambda blank: (blank[0], blank[1].reference, blank[1].blanks),
            decode=lambda encoded: AugmentedText(*json.loads(encoded)),
        )
        return results.read(self.runtime.store, blanked, partial(self.runtime.report, "infill"))

    def _join(
        self, pair: Pair, templates: Templates, filled: dict[TemplateInContext, AugmentedText]
    ) -> AugmentedReference:
        """The augmented reference of a pair; a template with nothing masked yields the reference itself."""
        context, reference = pair
        itself = AugmentedText(reference, context_cut=False, reference_cut=False)
        infilled = [filled.get((context, template), itself) for _, template in templates]
        augmentations = tuple(
            Augmentation(ratio, template, augmented.text)
            for (ratio, template), augmented in zip(templates, infilled, strict=True)
        )
        concerns = {
            CONTEXT_CUT: any(augmented.context_cut for augmented in infilled),
            REFERENCE_CUT: any(augmented.reference_cut for augmented in infilled),
            UNTAGGED: bool(templates) and not self.analyser.tags,
        }
        notices = frozenset(notice for notice, holds in concerns.items() if holds)
        return AugmentedReference(reference, augmentations, notices)

    @cached_property
    def _infiller(self) -> Current[CausalInfiller]:
        return Current(self.settings.models.language_model, partial(_load, self.settings, self.runtime))


def _load(settings: Settings, runtime: Runtime) -> CausalInfiller:
    """No method: with the model in a cycle of references, memory would not be free at once."""
    from mars_score.infilling.batched import CausalInfiller
    from mars_score.models.loading import shared_model

    model = shared_model("language_model", settings.models, runtime, in_torch=True)
    return CausalInfiller(model, settings.planning, settings.infilling, runtime.batch_size)
