"""What augmentation gives: references with their infilled templates."""

from collections.abc import Sequence
from dataclasses import dataclass

from mars_score.augment.masking.template import Template
from mars_score.errors import CONTEXT_CUT, REFERENCE_CUT, UNTAGGED


@dataclass(frozen=True)
class Augmentation:
    """One augmented reference: the infilled template of one mask ratio."""

    mask_ratio: float
    template: Template
    text: str


@dataclass(frozen=True)
class AugmentedReference:
    """A human reference with its augmentations, in the order of their mask ratios."""

    reference: str
    augmentations: tuple[Augmentation, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The human reference (index 0) and the augmented references."""
        return (self.reference, *(augmentation.text for augmentation in self.augmentations))


@dataclass(frozen=True)
class Augmented:
    """An augmented reference and what could not be done with it."""

    reference: AugmentedReference  # the reference with its augmentations
    context_cut: bool  # whether the language model did not read the context to its end
    reference_cut: bool  # whether the end of the reference was not augmented
    untagged: bool = False  # whether its words were masked without knowing their parts of speech


def cuts(augmented: Sequence[Sequence[Augmented]]) -> dict[str, list[bool]]:
    """For each notice about augmentation, whether it concerns each row."""
    return {
        CONTEXT_CUT: [any(reference.context_cut for reference in row) for row in augmented],
        REFERENCE_CUT: [any(reference.reference_cut for reference in row) for row in augmented],
        UNTAGGED: [any(reference.untagged for reference in row) for row in augmented],
    }
