"""The base class of variants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mars_score.errors import Notice

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding
    from mars_score.rows import AugmentedReference, Example, Row, RowScore
    from mars_score.settings import Settings

UNKNOWN_SHARE = 0.1  # of the tokens of a text; above it there is a notice


class Variant(ABC):
    """A formula with its constants.

    Attributes:
        matches_tokens: whether texts are compared token by token, as an explanation then shows.
        config: the constants, and what they need.
    """

    matches_tokens: ClassVar[bool]
    config: Any

    def __init__(self, settings: Settings) -> None:
        """Take the constants of the formula from the settings."""
        self.config = settings.config

    @abstractmethod
    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows; a blank candidate scores 0.0.

        Args:
            rows: see :func:`mars_score.data.cleaning.prepare_row`.
            calls: the models.
            idf: counted over more references than those of these rows; None: over theirs, where it is needed.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: a model lacks something; the message says what.
        """

    def augment(
        self, examples: Sequence[Example], calls: ModelCalls, idf: Idf | None = None
    ) -> list[list[AugmentedReference]]:
        """Augment the references of each example; see :meth:`mars_score.settings.Settings.check_masks`."""
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
