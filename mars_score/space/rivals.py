"""BLEU, ROUGE-L and plain token recall, to show beside MARS."""

from __future__ import annotations

from mars_score.meta.metrics.bleu import sentence_bleu as bleu
from mars_score.meta.metrics.rouge import rouge_l
from mars_score.result import RowScore

__all__ = ["bleu", "plain_recall", "rouge_l"]


def plain_recall(row: RowScore) -> float:
    """Token recall of the nearest human reference: MARS without augmentations and context; 0.0 if blank."""
    return max((reference.similarities[0] for reference in row.references), default=0.0)
