"""Scores of whole rows, kept or new: what is in the store needs neither models nor vectors."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from mars_score.augment.augmented import Augmentation, AugmentedReference
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.masking.template import Template
from mars_score.data.validation import Row
from mars_score.errors import NOTICES
from mars_score.models.fingerprints import is_here
from mars_score.models.signature import make_signature, used_models
from mars_score.scoring.result import LazyRows, ReferenceScore, RowScore, SampleScore, Term
from mars_score.settings import Settings
from mars_score.store.lookup import Results, Storage, get_or_compute

KIND = "rows"  # of results in the store
_METHOD = 1  # part of the keys; to be raised when the same texts and settings come to give other scores
_HEADER = struct.Struct("<dH")  # the score, and a bit for each of NOTICES; the parts of the score follow as JSON


def common_key(settings: Settings) -> tuple[Any, ...] | None:
    """What the scores of all rows depend on besides their texts.

    None where that is more: the other rows, by the IDF of words to be masked, or a model whose revision is not
    known, as it was never downloaded.
    """
    masking = settings.masking
    if masking.max_mask_ratio != 0 and masking.idf_corpus is None:
        return None
    if not all(is_here(getattr(settings.models, name)) for name in used_models(settings)):
        return None
    pipeline = WordAnalyser(language=settings.language).pipeline
    return _METHOD, make_signature(settings, pipeline, ()).entries


def row_results(settings: Settings) -> Results[Row, bytes]:
    """How the scores of rows with prepared references are stored."""
    return Results(
        KIND,
        common_key(settings),
        parts=lambda row: (row[0], row[2], *row[1]),
        encode=bytes,
        decode=bytes,
    )


def row_key(settings: Settings) -> Callable[[Row], bytes] | None:
    """What makes the key of a row; None without a :func:`common_key`."""
    results = row_results(settings)
    return None if results.common is None else results.key


def look_up(
    store: Storage,
    settings: Settings,
    rows: Iterable[Row],
    compute: Callable[[list[Row], Callable[[Row, bytes], None]], None],
) -> dict[Row, bytes]:
    """The encoded score of each different row, from the store or computed.

    For ``compute`` see :func:`mars_score.store.lookup.get_or_compute`. Without a :func:`common_key` all are
    computed, and none is saved.
    """
    return get_or_compute(store, row_results(settings), rows, compute)


def encode(row: RowScore, notices: Sequence[bool]) -> bytes:
    """A score with its parts, and whether each of :data:`mars_score.errors.NOTICES` concerns its row."""
    terms = [(term.name, term.value, term.weight) for term in row.terms]
    references = [(plain_reference(one.augmented), one.similarities, one.score) for one in row.references]
    drawn = [(one.text, one.similarity) for one in row.samples]
    bits = sum(noticed << place for place, noticed in enumerate(notices))
    return _HEADER.pack(row.score, bits) + json.dumps([terms, references, drawn], ensure_ascii=False).encode()


def decode(encoded: bytes) -> RowScore:
    """The score that :func:`encode` was given, to the last digit."""
    terms, references, drawn = json.loads(encoded[_HEADER.size :])
    return RowScore(
        _HEADER.unpack_from(encoded)[0],
        tuple(ReferenceScore(reference_of(one), tuple(found), score) for one, found, score in references),
        tuple(Term(*term) for term in terms),
        tuple(SampleScore(*one) for one in drawn),
    )


def rows_of(encoded: Sequence[bytes]) -> LazyRows:
    """The scores of rows from :func:`encode`."""
    return LazyRows([_HEADER.unpack_from(one)[0] for one in encoded], encoded, decode)


def flags_of(encoded: Sequence[bytes]) -> Mapping[str, Sequence[bool]]:
    """For each kind of notice one flag per row, from :func:`encode`."""
    of_rows = [_flags(_HEADER.unpack_from(one)[1]) for one in encoded]
    return dict(zip(NOTICES, zip(*of_rows, strict=True), strict=True))


@cache
def _flags(bits: int) -> tuple[bool, ...]:
    """One for each of NOTICES."""
    return tuple(bool(bits >> place & 1) for place in range(len(NOTICES)))


def plain_reference(one: AugmentedReference) -> tuple[str, list[Any]]:
    """An augmented reference as plain data."""
    return one.reference, [(each.mask_ratio, each.template.blanks, each.text) for each in one.augmentations]


def reference_of(plain: Sequence[Any]) -> AugmentedReference:
    """The inverse of :func:`plain_reference`."""
    reference, augmentations = plain
    made = [
        Augmentation(ratio, Template(reference, tuple((start, end) for start, end in blanks)), text)
        for ratio, blanks, text in augmentations
    ]
    return AugmentedReference(reference, tuple(made))
