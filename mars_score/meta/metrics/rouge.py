"""ROUGE-L, the F-score of the longest common subsequence of words."""

from __future__ import annotations

from collections.abc import Sequence

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.extras import need


def rouge_l(candidate: str, references: Sequence[str]) -> float:
    """ROUGE-L F1 (Lin 2004) by the package rouge-score, with its stemmer; the best over references.

    The stemmer is nltk's. rouge-score's words are runs of a-z and 0-9: a candidate without any scores 0.

    Returns:
        In [0, 1].

    Raises:
        ImportError: rouge-score is not installed.
    """
    scorer = need("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=True)
    return float(scorer.score_multi(list(references), candidate)["rougeL"].fmeasure)


class RougeL(Metric):
    """ROUGE-L as :func:`rouge_l` has it."""

    title = "ROUGE-L"
    family = "reference"
    packages = (("rouge_score.rouge_scorer", "rouge-score"), ("nltk", "nltk"))
    note = "reads the letters a-z and digits only"

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [0, 1].

        Raises:
            ImportError: rouge-score is not installed.
        """
        return [rouge_l(candidate, references) for candidate, references, _ in rows]
