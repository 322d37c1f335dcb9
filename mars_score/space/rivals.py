"""BLEU, ROUGE-L and plain token recall, to show beside MARS."""

from __future__ import annotations

from collections.abc import Sequence

from mars_score.result import RowScore


def bleu(candidate: str, references: Sequence[str]) -> float:
    """Sentence BLEU over all references, in [0, 100], by sacrebleu's defaults."""
    from sacrebleu import sentence_bleu

    return float(sentence_bleu(candidate, list(references)).score)


def rouge_l(candidate: str, references: Sequence[str]) -> float:
    """F-measure of ROUGE-L with the best of the references, in [0, 1], words stemmed."""
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    return float(scorer.score_multi(list(references), candidate)["rougeL"].fmeasure)


def plain_recall(row: RowScore) -> float:
    """Token recall of the nearest human reference: MARS without rewriting and context; 0.0 if blank."""
    return max((reference.similarities[0] for reference in row.references), default=0.0)
