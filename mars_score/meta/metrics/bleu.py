"""BLEU-1, the clipped precision of single words with its brevity penalty; and what sacreBLEU's metrics share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from mars_score.data.validation import Row
from mars_score.meta.metrics.base import Metric
from mars_score.meta.metrics.extras import need

_METHOD = 1  # to be raised when the same sacreBLEU comes to give other scores


class Sacrebleu(Metric):
    """A sentence-level score by sacreBLEU (Post 2018) over all references of a row at once, divided by 100."""

    family = "reference"

    @abstractmethod
    def make(self) -> Any:
        """The metric of sacreBLEU.

        Raises:
            ImportError: sacreBLEU is not installed.
        """

    def key(self) -> Sequence[Any]:
        """Title, method and sacreBLEU's signature, which holds its version.

        Raises:
            ImportError: sacreBLEU is not installed.
        """
        made = self.make()
        made.num_refs = -1  # sacreBLEU's mark for a number that varies; unknown, it refuses to sign
        return [self.title, _METHOD, str(made.get_signature())]

    def score(self, rows: Sequence[Row], corpus: Sequence[str]) -> list[float]:
        """In [0, 1] up to rounding.

        Raises:
            ImportError: sacreBLEU is not installed.
        """
        made = self.make()
        return [made.sentence_score(candidate, list(references)).score / 100 for candidate, references, _ in rows]


class Bleu1(Sacrebleu):
    """BLEU with n = 1 (Papineni et al. 2002): counts clipped by the largest of any reference, closest length."""

    title = "BLEU-1"

    def make(self) -> Any:
        """``BLEU(max_ngram_order=1)``; the other settings are sacreBLEU's for sentences."""
        return need("sacrebleu.metrics").BLEU(max_ngram_order=1, effective_order=True)
