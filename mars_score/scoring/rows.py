"""Scores of whole rows, stored or new: what is in the store needs neither models nor vectors."""

from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any

from mars_score.data.validation import Row
from mars_score.errors import NOTICES
from mars_score.infilling.augmented import Augmentation, AugmentedReference
from mars_score.lookup import Done, Results, from_json, to_json
from mars_score.metrics.template import Template
from mars_score.models.fingerprints import fingerprint
from mars_score.models.signature import make_signature, used_models
from mars_score.scoring.result import ReferenceScore, RowScore, SampleScore
from mars_score.scoring.row import Term
from mars_score.settings import Settings

KIND = "rows"  # of results in the store
_METHOD = 8  # part of the keys; to be raised when the same texts and settings come to give other scores


def row_results(
    settings: Settings, compute: Callable[[list[Row], Done[Row, RowScore]], None]
) -> Results[Row, RowScore]:
    """The scores of rows with prepared references, stored or computed."""
    return Results(KIND, partial(_common_key, settings), compute, _parts, encode, decode)


def _parts(row: Row) -> tuple[str, ...]:
    """All of a row as texts, of which keys are made the fastest; the number tells references from samples."""
    return row.candidate, row.context, str(len(row.references)), *row.references, *row.samples


def _common_key(settings: Settings) -> tuple[Any, ...] | None:
    """What the scores of all rows depend on besides their texts.

    None where that is more: the other rows, by the IDF of words to be masked, or a model whose revision is not
    known, as it was never downloaded.
    """
    if settings.masking.max_mask_ratio > 0 and settings.masking.idf_corpus is None:
        return None
    if any(fingerprint(getattr(settings.models, name)).revision is None for name in used_models(settings)):
        return None
    return _METHOD, make_signature(settings, ()).entries


def encode(row: RowScore) -> bytes:
    """A row as JSON."""
    references = []
    for reference in row.references:
        text, augmentations = reference.augmented.reference, reference.augmented.augmentations
        infills = [(infill.mask_ratio, infill.template.blanks, infill.text) for infill in augmentations]
        references.append(((text, infills), reference.similarities, reference.score))
    terms = [(term.name, term.value, term.weight) for term in row.terms]
    samples = [(sample.text, sample.similarity) for sample in row.samples]
    flags = [notice in row.notices for notice in NOTICES]
    return to_json([row.score, flags, terms, references, samples])


def decode(encoded: bytes) -> RowScore:
    """The row that :func:`encode` was given, to the last digit."""
    score, flags, terms, references, samples = from_json(encoded)
    reference_scores = []
    for (text, infills), similarities, reference_score in references:
        augmentations = tuple(
            Augmentation(ratio, Template(text, tuple(map(tuple, blanks))), infill)
            for ratio, blanks, infill in infills
        )
        augmented = AugmentedReference(text, augmentations)
        reference_scores.append(ReferenceScore(augmented, tuple(similarities), reference_score))
    return RowScore(
        score,
        tuple(reference_scores),
        tuple(Term(*term) for term in terms),
        tuple(SampleScore(*sample) for sample in samples),
        frozenset(compress(NOTICES, flags)),
    )
