"""What augmentation gives: references with their infilled templates."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    notices: frozenset[str] = field(default=frozenset(), compare=False)  # those below that concern it

    @property
    def texts(self) -> tuple[str, ...]:
        """The human reference (index 0) and the augmented references."""
        return (self.reference, *(augmentation.text for augmentation in self.augmentations))


def cuts(augmented: Sequence[Sequence[AugmentedReference]]) -> dict[str, list[bool]]:
    """For each notice about augmentation, whether it concerns each row."""
    return {
        notice: [any(notice in reference.notices for reference in row) for row in augmented]
        for notice in (CONTEXT_CUT, REFERENCE_CUT, UNTAGGED)
    }
