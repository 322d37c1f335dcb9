"""BLEU, of single words and of up to four; and what the metrics by sacreBLEU share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.extras import need


def sentence_bleu(candidate: str, references: Sequence[str], order: int = 4) -> float:
    """Sentence BLEU (Papineni et al. 2002) by sacreBLEU (Post 2018) with its settings for sentences.

    Args:
        candidate: the text to score.
        references: counts are clipped by the largest of any of them; the closest length counts.
        order: of the longest n-grams; effective order, so that shorter texts have a score, too.

    Returns:
        In [0, 100].

    Raises:
        ImportError: sacreBLEU is not installed.
    """
    return float(_bleu(order).sentence_score(candidate, list(references)).score)


def _bleu(order: int) -> Any:
    return need("sacrebleu.metrics").BLEU(max_ngram_order=order, effective_order=True)


class Sacrebleu(Metric):
    """A sentence-level score by sacreBLEU over all references of a row at once, divided by 100."""

    family = "reference"

    @abstractmethod
    def make(self) -> Any:
        """The metric of sacreBLEU.

        Raises:
            ImportError: sacreBLEU is not installed.
        """

    def key(self) -> Sequence[Any]:
        """With sacreBLEU's signature, which holds its version."""
        made = self.make()
        made.num_refs = -1  # sacreBLEU's mark for a number that varies; without one it refuses to sign
        return [*super().key(), str(made.get_signature())]

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [0, 1] up to rounding.

        Raises:
            ImportError: sacreBLEU is not installed.
        """
        made = self.make()
        return [made.sentence_score(candidate, list(references)).score / 100 for candidate, references, _ in rows]


class Bleu(Sacrebleu):
    """BLEU as :func:`sentence_bleu` has it."""

    title = "BLEU"

    def make(self) -> Any:
        """Up to four words."""
        return _bleu(4)


class Bleu1(Sacrebleu):
    """BLEU of single words: clipped precision and brevity penalty."""

    title = "BLEU-1"

    def make(self) -> Any:
        """Single words."""
        return _bleu(1)
