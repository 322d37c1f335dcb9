"""The base class of the variants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from mars_score.data.cleaning import prepare_row
from mars_score.errors import Notice, raised

if TYPE_CHECKING:
    from mars_score.metrics.paper import Idf, IdfCounter, PaperConfig
    from mars_score.metrics.plus import PlusConfig
    from mars_score.models.calls import ModelCalls
    from mars_score.models.encoder import Encoding
    from mars_score.rows import AugmentedReference, Example, Row, RowScore
    from mars_score.settings import Settings

UNKNOWN_SHARE = 0.1  # share of unknown tokens of a text above which there is a notice


class Variant(ABC):
    """A formula with its settings.

    Attributes:
        needs_references: whether rows without references cannot be scored.
        matches_tokens: whether it compares texts token by token.
        settings: all settings.
        config: the settings of the formula.
    """

    needs_references: ClassVar[bool]
    matches_tokens: ClassVar[bool]
    config: PaperConfig | PlusConfig

    def __init__(self, settings: Settings) -> None:
        self.settings, self.config = settings, settings.config

    @property
    def takes_samples(self) -> bool:
        """Tell whether samples change the score."""
        return False

    def prepare(self, row: Row) -> tuple[Row, frozenset[Notice]]:
        """Return a checked row as it is scored, and notices about removed text."""
        return prepare_row(row, clean=self.settings.clean, use_context=self.settings.use_context)

    def idf_counter(self) -> IdfCounter | None:
        """Return a counter for the references of a call, or None if a score depends on its own row only."""
        return None

    @abstractmethod
    def score(self, rows: Sequence[Row], calls: ModelCalls, idf: Idf | None = None) -> list[RowScore]:
        """Score prepared rows. A blank candidate scores 0.0.

        Args:
            rows: rows of :meth:`prepare`.
            calls: the models.
            idf: IDF of :meth:`idf_counter` over the whole call. None: count it over these rows.

        Raises:
            ModelUnavailableError: a model cannot be loaded.
            UnsupportedModelError: a model cannot be used. The message says why.
        """

    def check_masks(self) -> None:
        """Raise ValueError if references cannot be augmented, as no words are masked with these settings."""
        raise ValueError(
            f"variant {self.settings.variant!r} masks nothing with these settings; choose variant='paper' with "
            "max_mask_ratio above 0"
        )

    def augment(
        self, examples: Sequence[Example], calls: ModelCalls, idf: Idf | None = None
    ) -> list[list[AugmentedReference]]:
        """Augment the references of checked examples, if :meth:`check_masks` allows it."""
        raise NotImplementedError


def encoding_notices(given: Sequence[Encoding], others: Sequence[Encoding]) -> frozenset[Notice]:
    """Return the notices about the encoded texts of a row.

    Args:
        given: encodings of the candidate and of human references.
        others: encodings of samples or infills, whose unknown tokens do not matter.
    """
    return raised(
        {
            Notice.TEXT_CUT: any(encoding.truncated for encoding in (*given, *others)),
            Notice.UNKNOWN: any(encoding.unknown > UNKNOWN_SHARE for encoding in given),
        }
    )
