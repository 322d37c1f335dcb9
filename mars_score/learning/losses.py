"""The two losses of trained encoders, in the form that sentence-transformers' trainer wants.

A row of the data is a text with several candidates, which are compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from mars_score.learning.pairs import INTACT
from mars_score.scoring.head_encoder import LsEncoder, TextEncoder

MARGIN = 1.0  # of the hinge loss: the paper's


def _scores(model: TextEncoder, rows: Sequence[tuple[str, str, str]]) -> Tensor:
    features = {name: value.to(model.device) for name, value in model.preprocess(rows).items()}
    scores: Tensor = model(features)["scores"]
    return scores


class SignalLoss(torch.nn.Module):
    """Squared error of all targets, and a logistic loss of the order of candidates by their damage.

    The columns of the data are ``references`` (in training each row shows one, drawn anew each time),
    ``candidates``, ``contexts`` (one per candidate), ``methods``, ``damages`` and ``label``: the targets of each
    candidate, nan where unknown. Candidates of a row are ordered if they have the same method, or one is intact.

    Args:
        model: whose outputs are as many as the targets; the first is the score.
        weights: of the targets.
    """

    def __init__(self, model: TextEncoder, weights: Sequence[float] = (1.0,)) -> None:
        super().__init__()
        self.model, self._weights = model, weights

    def forward(self, inputs: Sequence[Any], labels: Sequence[Tensor], **_: Any) -> Tensor:
        """The mean loss of a batch."""
        rows = []
        for references, candidates, contexts in zip(*inputs[:3], strict=True):
            place = int(torch.randint(len(references), ())) if self.model.training else 0
            rows += [(references[place], *texts) for texts in zip(candidates, contexts, strict=True)]
        scores = _scores(self.model, rows)
        targets = torch.cat([row.reshape(-1, scores.shape[1]) for row in labels]).to(scores)
        known = ~targets.isnan()
        errors = torch.where(known, scores - targets.nan_to_num(), 0.0).square().sum(0) / known.sum(0).clamp(min=1)
        return errors @ torch.tensor(self._weights).to(scores) + self._order(scores[:, 0], *inputs[3:])

    @staticmethod
    def _order(scores: Tensor, methods: Sequence[Sequence[str]], damages: Sequence[Sequence[float]]) -> Tensor:
        better, worse, start = [], [], 0
        for of_row, damage in zip(methods, damages, strict=True):
            for i, method in enumerate(of_row):
                others = [
                    j for j, other in enumerate(of_row) if method in (other, INTACT) and damage[i] < damage[j]
                ]
                better += [start + i] * len(others)
                worse += [start + j for j in others]
            start += len(of_row)
        return softplus(scores[worse] - scores[better]).mean() if better else scores.sum() * 0.0


class ContrastLoss(torch.nn.Module):
    """Hinge loss: each text is to be better than its damaged versions by :data:`MARGIN` (LS_Score).

    The columns of the data are ``candidates``, the first of which is the text, and ``context``.
    """

    def __init__(self, model: LsEncoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Any], labels: None = None, **_: Any) -> Tensor:
        """The mean over the texts of a batch."""
        versions, contexts = inputs
        rows = [("", text, context) for texts, context in zip(versions, contexts, strict=True) for text in texts]
        sizes = [len(texts) for texts in versions]
        of_texts = torch.split(self.model.quality(_scores(self.model, rows)), sizes)
        return torch.stack([torch.relu(MARGIN - (scores[0] - scores[1:])).sum() for scores in of_texts]).mean()
