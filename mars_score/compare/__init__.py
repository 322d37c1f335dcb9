"""Systems over the same references and contexts: which scores higher, how surely, and where they differ."""

from mars_score.compare.ranking import SystemPair, SystemRanking
from mars_score.compare.result import ComparedRow, SystemComparison, SystemScore
from mars_score.compare.systems import compare_systems, rank_systems

__all__ = [
    "ComparedRow",
    "SystemComparison",
    "SystemPair",
    "SystemRanking",
    "SystemScore",
    "compare_systems",
    "rank_systems",
]
