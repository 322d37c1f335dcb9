"""Losses over the comparable pairs of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def same(labels: Sequence[str]) -> Tensor:
    """Which labels are equal, (labels, labels)."""
    first: dict[str, int] = {}
    codes = torch.tensor([first.setdefault(label, len(first)) for label in labels])
    return codes[:, None] == codes[None]


def ranking_loss(scores: Tensor, targets: Tensor, comparable: Tensor) -> Tensor:
    """Mean logistic loss over the comparable pairs whose targets differ; 0 without any.

    Args:
        scores: (rows,).
        targets: (rows,); larger is better.
        comparable: (rows, rows).
    """
    better = (targets[:, None] > targets[None]) & comparable.to(scores.device)
    gaps = scores[:, None] - scores[None]
    return torch.nn.functional.softplus(-gaps[better]).mean() if better.any() else scores.sum() * 0.0
