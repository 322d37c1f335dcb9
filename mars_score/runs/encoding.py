"""The results of chunks as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from mars_score.augmentation import Augmented
from mars_score.masking.template import Template
from mars_score.result import Augmentation, AugmentedReference, ReferenceScore, RowScore, SampleScore, Term
from mars_score.sampling.samples import Samples


def encode_augmented(one: Augmented) -> bytes:
    """An augmented reference as bytes."""
    augmentations = [(each.mask_ratio, each.template.blanks, each.text) for each in one.reference.augmentations]
    return json.dumps(
        [one.reference.reference, augmentations, one.context_cut, one.reference_cut, one.untagged]
    ).encode()


def decode_augmented(encoded: bytes) -> Augmented:
    """The inverse of :func:`encode_augmented`."""
    reference, augmentations, *flags = json.loads(encoded)
    made = [
        Augmentation(ratio, Template(reference, tuple((start, end) for start, end in blanks)), text)
        for ratio, blanks, text in augmentations
    ]
    return Augmented(AugmentedReference(reference, tuple(made)), *flags)


@dataclass(frozen=True)
class EncodedScores:
    """The scores of some rows without the texts that they were computed from.

    Attributes:
        scores: one per row.
        terms: of each row: name, value and weight of each term.
        references: of each row: similarities and score of each reference.
        samples: of each row: similarity with each sample.
        flags: of each kind of notice one flag per row.
    """

    scores: Sequence[float]
    terms: Sequence[Sequence[tuple[str, float, float]]]
    references: Sequence[Sequence[tuple[Sequence[float], float]]]
    samples: Sequence[Sequence[float]]
    flags: Mapping[str, Sequence[bool]]

    def rows(self, augmented: Sequence[Sequence[Augmented]], samples: Sequence[Samples]) -> list[RowScore]:
        """The scores in full, given the augmented references and the samples of each row."""
        return [
            RowScore(
                score,
                tuple(
                    ReferenceScore(one.reference, tuple(similarities), value)
                    for one, (similarities, value) in zip(of_row, references, strict=True)
                ),
                tuple(Term(*term) for term in terms),
                tuple(map(SampleScore, drawn.texts, similarities_with_samples)),
            )
            for score, terms, references, similarities_with_samples, of_row, drawn in zip(
                self.scores, self.terms, self.references, self.samples, augmented, samples, strict=True
            )
        ]


def encode_scores(rows: Sequence[RowScore], flags: Mapping[str, Sequence[bool]]) -> bytes:
    """The scores of some rows as bytes."""
    scores = [row.score for row in rows]
    terms = [[astuple(term) for term in row.terms] for row in rows]
    references = [[(one.similarities, one.score) for one in row.references] for row in rows]
    samples = [[one.similarity for one in row.samples] for row in rows]
    return json.dumps([scores, terms, references, samples, dict(flags)]).encode()


def decode_scores(encoded: bytes) -> EncodedScores:
    """The inverse of :func:`encode_scores`, to the last digit."""
    return EncodedScores(*json.loads(encoded))
