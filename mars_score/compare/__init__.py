"""Systems over the same references and contexts: which scores higher, how surely, and where they differ."""

from mars_score.compare.result import ComparedRow, SystemPair, SystemRanking, SystemScore
from mars_score.compare.systems import rank_systems

__all__ = ["ComparedRow", "SystemPair", "SystemRanking", "SystemScore", "rank_systems"]
