"""Read the quantities of texts as values, and compare them across notations."""

from mars_score.variants.judgements.quantities.comparison import (
    conflicts,
    differ_in_place,
    equal,
    in_notation_of,
    is_said,
)
from mars_score.variants.judgements.quantities.quantity import Quantity
from mars_score.variants.judgements.quantities.recognition import read_quantities

__all__ = ["Quantity", "conflicts", "differ_in_place", "equal", "in_notation_of", "is_said", "read_quantities"]
