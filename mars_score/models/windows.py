"""How many tokens a model reads at once."""

from __future__ import annotations

from typing import Any


def position_limit(model: Any) -> int | None:
    """The number of positions that tokens can take, special ones included; None: the model has no such limit.

    RoBERTa and its relatives count positions from the id of the padding token on: the first ones are never used.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:  # relative positions
        return None
    tables = [module for name, module in model.named_modules() if name.endswith("position_embeddings")]
    paddings = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
    return positions - max((padding + 1 for padding in paddings), default=0)
