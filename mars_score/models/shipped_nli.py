"""How far NLI models can be believed: temperatures, and from which probability there is a verdict."""

from typing import NamedTuple

from mars_score.rows import Entailment


class Calibration(NamedTuple):
    """Temperature and verdict thresholds of a model for one kind of premise.

    Attributes:
        temperature: the logits are divided by it.
        supported: least probability of entailment at which a sentence is called supported; None: never.
        contradicted: least probability of contradiction at which it is called contradicted; None: never.
    """

    temperature: float = 1.0
    supported: float | None = None
    contradicted: float | None = None

    def apply(self, entailment: Entailment) -> Entailment:
        """Divide the logits by the temperature."""
        neutral = max(0.0, 1 - entailment.entailment - entailment.contradiction)
        powers = [share ** (1 / self.temperature) for share in (*entailment, neutral)]
        return Entailment(powers[0] / sum(powers), powers[1] / sum(powers))


class Calibrations(NamedTuple):
    """A model's calibrations by kind of premise."""

    by_reference: Calibration = Calibration()
    by_context: Calibration = Calibration()


# NLI models that ship. Thresholds of verdicts, with their precision and recall: research/entailment/measure.md.
SHIPPED = {
    "mini-nli": Calibrations(by_reference=Calibration(contradicted=0.94)),
    "medium-nli": Calibrations(by_reference=Calibration(contradicted=0.94)),
}


def calibration_of(model: object) -> Calibrations:
    """Return the calibrations of a model; those that do not ship have none."""
    return SHIPPED.get(model, Calibrations()) if isinstance(model, str) else Calibrations()
