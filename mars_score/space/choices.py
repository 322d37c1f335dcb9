"""The settings that a visitor may choose; no name of a model and no path is among them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mars_score.settings import resolve_settings
from mars_score.space.limits import Refused


@dataclass(frozen=True)
class Choices:
    """Settings of :mod:`mars_score.settings` by the same names, with the same defaults."""

    max_mask_ratio: float = 0.6
    planner: str = "none"
    augmentation_aggregation: str = "best"
    q: float = 0.8
    reference_aggregation: str = "max"
    use_context: bool = True

    @classmethod
    def read(cls, *values: Any) -> Choices:
        """Check the values of the fields, in their order.

        Raises:
            Refused: a value of the wrong kind or out of range.
        """
        ratio, planner, aggregation, q, reference_aggregation, use_context = values
        try:
            choices = cls(
                round(float(ratio), 1),
                planner,
                aggregation,
                round(float(q), 2),
                reference_aggregation,
                use_context,
            )
            resolve_settings("mini", **choices.settings())
        except (TypeError, ValueError, OverflowError) as error:
            raise Refused(f"A setting cannot be used: {str(error)[:200]}") from None
        return choices

    def settings(self) -> dict[str, Any]:
        """As arguments of MarsScorer; ``q`` only where it has an effect."""
        settings = asdict(self)
        if self.augmentation_aggregation != "weighted":
            del settings["q"]
        return settings

    @property
    def planned(self) -> bool:
        """Whether infills are planned, which is slow."""
        return self.planner != "none"
