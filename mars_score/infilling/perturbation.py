"""Gradient steps on cached keys and values, which are never written out (section 2.2)."""

import torch
from torch import Tensor

EPSILON = 1e-15  # added to the gradient's norm, as in PPLM


class LayerPerturbation:
    """Gradient steps on one layer's cached keys and values, kept as low-rank factors; the cache is unchanged.

    A fed token attends to the key of slot s, once for each query head h, through the score q_h . K_s, and adds
    w_hs V_s to the output. So the gradients of any reward with respect to the past are

        dK_s = sum over h of ds_hs q_h        dV_s = sum over h of w_hs do_h

    where ds and do are its gradients with respect to the scores and the attention's output. The rank of these
    matrices is at most the number of query heads that share a key head, so the factors are cheap to use.

    Shapes: factors of the slots (rows, key heads, rank, slots), directions (rows, key heads, rank, head size).
    """

    def __init__(self) -> None:
        self._keys: list[tuple[Tensor, Tensor]] = []  # factor of each slot, direction
        self._values: list[tuple[Tensor, Tensor]] = []

    def add_to_scores(self, scores: Tensor, query: Tensor) -> Tensor:
        """Scores with the changed keys, (rows, key heads, query heads per key head, slots)."""
        if self._keys:
            slots, directions = (torch.cat(factors, dim=2) for factors in zip(*self._keys, strict=True))
            scores = scores + query @ directions.transpose(2, 3) @ slots
        if torch.is_grad_enabled():  # a step follows
            if not scores.requires_grad:  # the graph begins at the first scores
                scores.requires_grad_()
            self._query, self.scores = query.detach(), scores
        return scores

    def add_to_output(self, output: Tensor, weights: Tensor) -> Tensor:
        """Output with the changed values, (rows, key heads, query heads per key head, head size)."""
        if self._values:
            slots, directions = (torch.cat(factors, dim=2) for factors in zip(*self._values, strict=True))
            output = output + weights @ slots.transpose(2, 3) @ directions
        if torch.is_grad_enabled():
            self._weights, self.output = weights.detach(), output
        return output

    def climb(self, scores_gradient: Tensor, output_gradient: Tensor, step: float, exponent: float) -> None:
        """Take one gradient step, per row of length ``step`` / |gradient| ** ``exponent`` (Eq. 6)."""
        square = _square(scores_gradient, self._query) + _square(self._weights, output_gradient)
        length = step / (square.clamp(min=0).sqrt() ** exponent + EPSILON)
        length = length[:, None, None, None]
        self._keys.append((scores_gradient, self._query * length))
        self._values.append((self._weights, output_gradient * length))
        del self.scores, self.output, self._query, self._weights


def _square(slots: Tensor, directions: Tensor) -> Tensor:
    """Per row the squared norm, over all heads, of the products of these factors."""
    gram = (slots @ slots.transpose(2, 3)) * (directions @ directions.transpose(2, 3))
    return gram.sum(dim=(1, 2, 3))
