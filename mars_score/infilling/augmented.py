"""What augmentation gives: references with their infilled templates."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mars_score.metrics.template import Template


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
    notices: frozenset[str] = field(default=frozenset(), compare=False)  # of mars_score.errors.NOTICES

    @property
    def texts(self) -> tuple[str, ...]:
        """The human reference (index 0) and the augmented references."""
        return (self.reference, *(augmentation.text for augmentation in self.augmentations))


def notices_of(references: Iterable[AugmentedReference]) -> frozenset[str]:
    """Those that concern a row with these references."""
    return frozenset().union(*(reference.notices for reference in references))
