"""chrF, the F-score of character n-grams."""

from __future__ import annotations

from typing import Any

from mars_score.meta.metrics.bleu import Sacrebleu
from mars_score.meta.metrics.extras import need


class Chrf(Sacrebleu):
    """chrF with n up to 6 and beta = 2 (Popović 2015); the best over references."""

    title = "chrF"

    def make(self) -> Any:
        """``CHRF()`` with sacreBLEU's settings."""
        return need("sacrebleu.metrics").CHRF()
