"""Variants: what each formula asks of the models, and the scores and notices of rows that follow."""

from mars_score.settings import Settings
from mars_score.variants.paper_variant import PaperVariant
from mars_score.variants.plus_variant import PlusVariant
from mars_score.variants.variant import Variant

_VARIANTS: dict[str, type[Variant]] = {"paper": PaperVariant, "plus": PlusVariant, "fast": PlusVariant}


def make_variant(settings: Settings) -> Variant:
    """Make the variant that the settings name, with its constants."""
    return _VARIANTS[settings.variant](settings)
