"""Let scores believe any NLI model as they believe one that ships: tiny random models have no verdicts else."""

import pytest

from mars_score.presets import Reliability
from mars_score.variants.judgements import nli_judge

ALL = Reliability(support=1.0, by_context=True, by_reference=True, max_support=0.05)


def believe(
    patch: pytest.MonkeyPatch, known: Reliability = ALL, certain: float = 0.9, likely: float = 0.2
) -> None:
    """Make ``known`` the reliability of all models, and verdicts need these probabilities."""
    patch.setattr(nli_judge, "reliability_of", lambda model: known._replace(min_refutation=certain))
    patch.setattr(nli_judge, "MIN_SECOND_OPINION", likely)
