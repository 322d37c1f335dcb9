"""Two systems over the same references and contexts: which scores higher, how surely, and where they differ."""

from mars_score.compare.result import RowPair, SystemComparison, SystemScore
from mars_score.compare.systems import compare_systems

__all__ = ["RowPair", "SystemComparison", "SystemScore", "compare_systems"]
