"""The base class of variants: what each asks of rows, and its score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mars_score.data.cleaning import prepare_row
from mars_score.errors import Notice

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding
    from mars_score.rows import AugmentedReference, Example, Row, RowScore
    from mars_score.settings import Settings
    from mars_score.variants.idf import IdfCounter

UNKNOWN_SHARE = 0.1  # of the tokens of a text; above it there is a notice


class Variant(ABC):
    """A formula with its settings.

    Attributes:
        needs_references: whether it scores no row without references.
        matches_tokens: whether texts are compared token by token, as an explanation then shows.
        settings: all of them.
        config: those of the formula.
    """

    needs_references: ClassVar[bool]
    matches_tokens: ClassVar[bool]
    config: Any

    def __init__(self, settings: Settings) -> None:
        self.settings, self.config = settings, settings.config

    @property
    def takes_samples(self) -> bool:
        """Tell whether samples count."""
        return False

    def prepare(self, row: Row) -> tuple[Row, frozenset[Notice]]:
        """Return a checked row as it is scored, and the notices on what was taken out of its texts."""
        return prepare_row(row, clean=self.settings.clean, use_context=self.settings.use_context)

    def idf_counter(self) -> IdfCounter | None:
        """Return a counter for the references of all rows; None where a score depends on its own row alone."""
        return None

    @abstractmethod
    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows; a blank candidate scores 0.0.

        Args:
            rows: see :meth:`prepare`.
            calls: the models.
            idf: of :meth:`idf_counter`, for more rows than these; None: counted over these.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: a model lacks something; the message says what.
        """

    def check_masks(self) -> None:
        """Raise ValueError if no words are masked with these settings, so that references cannot be augmented."""
        raise ValueError(
            f"variant {self.settings.variant!r} masks nothing with these settings; choose variant='paper' with "
            "max_mask_ratio above 0"
        )

    def augment(
        self, examples: Sequence[Example], calls: ModelCalls, idf: Idf | None = None
    ) -> list[list[AugmentedReference]]:
        """Augment the references of checked examples; see :meth:`check_masks`."""
        raise NotImplementedError


def raised(flags: Mapping[Notice, bool | np.bool_]) -> frozenset[Notice]:
    """Return the notices whose flag is true."""
    return frozenset(notice for notice, flag in flags.items() if flag)


def encoding_notices(encodings: Sequence[Encoding], by_people: int) -> frozenset[Notice]:
    """Return the notices on the encodings of a row's texts.

    Args:
        encodings: of all texts that are compared, those of the candidate and of human references first.
        by_people: number of these.
    """
    return raised(
        {
            Notice.TEXT_CUT: any(encoding.truncated for encoding in encodings),
            Notice.UNKNOWN: any(encoding.unknown > UNKNOWN_SHARE for encoding in encodings[:by_people]),
        }
    )
