"""Score by `paper`: mask references, infill them and compare them with the candidate (section 2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from mars_score.cache import json_codec
from mars_score.data.cleaning import prepare_row, without_urls_hashtags
from mars_score.errors import Notice, raised
from mars_score.infilling.jobs import FilledTemplate, TemplateInContext
from mars_score.language import Tagger
from mars_score.metrics.paper import Idf, IdfCounter, PaperConfig, Template, make_templates, paper, reference_score
from mars_score.rows import (
    Aspects,
    AugmentedReference,
    Example,
    Infill,
    ReferenceScore,
    Row,
    RowScore,
    Unchecked,
    weighted_sum,
)
from mars_score.variants.variant import Variant, encoding_notices

if TYPE_CHECKING:
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding
    from mars_score.settings import Settings

MIN_DOCUMENTS = 10  # fewest distinct texts for a useful IDF
Pair = tuple[str, str]  # context and reference
Templates = Sequence[tuple[float, Template]]  # mask ratios and templates, by rising ratio


class PaperVariant(Variant):
    """The method of section 2: mask (2.1), infill (2.2), encode and average (2.3, Eq. 7)."""

    needs_references: ClassVar[bool] = True
    matches_tokens: ClassVar[bool] = False
    config: PaperConfig

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._tagger = Tagger(settings.language)

    def prepare(self, row: Row) -> tuple[Row, frozenset[Notice]]:
        """Return a checked row as it is scored, and notices about removed text."""
        return prepare_row(
            row,
            clean=self.settings.clean,
            use_context=self.settings.use_context,
            strip_urls=self.config.strip_urls_hashtags,
        )

    def idf_counter(self) -> IdfCounter | None:
        """Return a counter for the references of a call, or None if nothing is masked or there is a corpus."""
        if not self.config.masks or self.config.idf_corpus is not None:
            return None
        return IdfCounter(self._references_of, self._words)

    def check_masks(self) -> None:
        """Raise ValueError if references cannot be augmented, as no words are masked with these settings."""
        if not self.config.masks:
            super().check_masks()

    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows, with the arguments and errors of :meth:`Variant.score`."""
        pairs = [(row.prompt, reference) for row in rows if row.candidate for reference in row.references]
        corpus = [reference for row in rows for reference in row.references]
        augmented = self._augment(pairs, corpus, calls, idf)
        compared = [
            [augmented[row.prompt, reference] for reference in row.references] if row.candidate else []
            for row in rows
        ]
        encodings = calls.encode(
            text
            for row, references in zip(rows, compared, strict=True)
            for reference in references
            for text in (row.candidate, *reference.texts)
        )
        return [
            self._row_score(row, references, encodings)
            if row.candidate
            else RowScore(0.0, unchecked=Unchecked.BLANK)
            for row, references in zip(rows, compared, strict=True)
        ]

    def augment(
        self, examples: Sequence[Example], calls: ModelCalls, idf: Idf | None = None
    ) -> list[list[AugmentedReference]]:
        """Augment the references of each checked example (sections 2.1 and 2.2)."""
        pairs = [
            [(example.prompt, reference) for reference in self._references_of(example)] for example in examples
        ]
        corpus = [reference for example_pairs in pairs for _, reference in example_pairs]
        augmented = self._augment(chain.from_iterable(pairs), corpus, calls, idf)
        return [[augmented[pair] for pair in example_pairs] for example_pairs in pairs]

    def _references_of(self, row: Row | Example) -> tuple[str, ...]:
        """Return the references that are masked."""
        if not self.config.strip_urls_hashtags:
            return row.references
        return tuple(dict.fromkeys(map(without_urls_hashtags, row.references)))

    def _words(self, texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Split each distinct text into words, for IDF and for the overlap with the context."""
        return self._tagger.words(texts, lower=self.config.lower_words)

    @cached_property
    def _corpus_idf(self) -> Idf | None:
        """Count IDF over ``idf_corpus``, if there is one."""
        corpus = self.config.idf_corpus
        return None if corpus is None else Idf.count(self._words(corpus).values())

    def _augment(
        self, pairs: Iterable[Pair], corpus: Iterable[str], calls: ModelCalls, idf: Idf | None
    ) -> dict[Pair, AugmentedReference]:
        """Augment each distinct reference in its context. Without another IDF, count it over ``corpus``."""
        different = list(dict.fromkeys(pairs))
        if not (self.config.masks and different):
            return {pair: AugmentedReference(pair[1]) for pair in different}
        calls.runtime.report("mask", 0, len(different))
        idf = idf or self._corpus_idf or Idf.count(self._words(corpus).values())
        words = self._tagger.tag(reference for _, reference in different)
        context_words = self._words(context for context, _ in different)
        templates = {
            (context, reference): make_templates(
                reference, words[reference], context_words[context], idf, self.config
            )
            for context, reference in different
        }
        calls.runtime.report("mask", len(different), len(different))
        blanked = [
            (context, template)
            for (context, _), masked in templates.items()
            for _, template in masked
            if template.blanks
        ]
        filled = infill(blanked, self.config, calls)
        few_documents = idf.documents < MIN_DOCUMENTS
        notices = raised({Notice.UNTAGGED: not self._tagger.tags, Notice.FEW_DOCUMENTS: few_documents})
        return {pair: _join_infills(*pair, masked, filled, notices) for pair, masked in templates.items()}

    def _row_score(
        self, row: Row, references: Sequence[AugmentedReference], encodings: Mapping[str, Encoding]
    ) -> RowScore:
        """Average the cosines with each reference and its infills (section 2.3)."""
        candidate = encodings[row.candidate]
        texts = [[encodings[text] for text in reference.texts] for reference in references]
        cosines = [tuple(float(candidate.vector @ text.vector) for text in of_one) for of_one in texts]
        terms = paper(cosines, self.config)
        scores = tuple(
            ReferenceScore(reference, values, reference_score(values, self.config.q))
            for reference, values in zip(references, cosines, strict=True)
        )
        given = [candidate, *(of_one[0] for of_one in texts)]
        notices = encoding_notices(given, [text for of_one in texts for text in of_one[1:]])
        notices = notices.union(*(reference.notices for reference in references))
        return RowScore(
            weighted_sum(terms),
            terms,
            scores,
            notices=notices,
            aspects=Aspects.of(terms),
            unchecked=Unchecked.BY_SETTINGS,
        )


_Key = tuple[str, str, tuple[tuple[int, int], ...]]  # context, and reference and blanks of the template


def infill(
    pairs: Iterable[TemplateInContext], config: PaperConfig, calls: ModelCalls
) -> dict[TemplateInContext, FilledTemplate]:
    """Fill the blanks of each distinct (context, template) by Algorithm 2.

    Raises:
        ModelUnavailableError: the language model cannot be loaded.
        UnsupportedModelError: the language model cannot be used. The message says why.
    """
    # The store hashes texts and numbers, not templates.
    pair_of = {(context, template.reference, template.blanks): (context, template) for context, template in pairs}

    def compute(missing: Sequence[_Key]) -> Iterator[tuple[_Key, FilledTemplate]]:
        from mars_score.infilling.batched import BatchedInfiller

        infiller = BatchedInfiller(calls.language_model(), config, calls.runtime.batch_size)
        for (context, template), filled in infiller.infill(pair_of[item] for item in missing):
            yield (context, template.reference, template.blanks), filled

    names = ["sigma", "max_context_tokens", "planner"]
    if config.planner != "none":
        names += [field.name for field in fields(config) if field.name.startswith("plan_")]
    method = [getattr(config, name) for name in names]
    filled = calls.cached("infills", method, pair_of, compute, json_codec(FilledTemplate))
    return {pair_of[item]: template for item, template in filled.items()}


def _join_infills(
    context: str,
    reference: str,
    templates: Templates,
    filled: Mapping[tuple[str, Template], FilledTemplate],
    notices: frozenset[Notice],
) -> AugmentedReference:
    """Join a reference with its infills. The infill of a template without blanks is the reference."""
    fillings = [filled.get((context, template)) for _, template in templates]
    infills = tuple(
        Infill(ratio, str(template), filling.text if filling else reference)
        for (ratio, template), filling in zip(templates, fillings, strict=True)
    )
    cut = {
        Notice.CONTEXT_CUT: any(filling and filling.context_cut for filling in fillings),
        Notice.REFERENCE_CUT: any(filling and filling.reference_cut for filling in fillings),
    }
    return AugmentedReference(reference, infills, notices | raised(cut))
