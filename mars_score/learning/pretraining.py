"""Learning from synthetic pairs and their signals, before there are ratings (BLEURT, section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mars_score.learning.encoder import RATING, EncoderHead
from mars_score.learning.losses import ranking_loss, same
from mars_score.learning.pairs import INTACT, Pair
from mars_score.learning.signals import CLASSIFICATIONS, MARS, Signals
from mars_score.learning.training import Examples, is_held_out
from mars_score.store.results import digest

DAMAGE = "damage"  # the order of degrees of damage, as a signal
# gamma of section 4.3. The paper's were found by a search that it does not print; here no task is preferred.
WEIGHT = 1.0


def pretrain(
    head: EncoderHead, pairs: Sequence[Pair], signals: Signals, weights: Mapping[str, float] | None = None
) -> None:
    """Train a head's encoder on all signals at once (section 4.3), and its score to fall with damage.

    A signal that is a number is standardised, so that all losses are on one scale, and learned by squared error
    over the pairs for which it was read; classes by cross-entropy; the order of degrees of damage by a logistic
    loss. Each has a layer of its own, which is thrown away afterwards, except that of the order, which is the
    score's. A tenth of the texts decides when to stop.

    Args:
        head: its ``training`` says how long.
        pairs: see :func:`mars_score.learning.pairs.make_pairs`.
        signals: of the pairs.
        weights: of the losses by name of the signal, :data:`DAMAGE` for the order; others have :data:`WEIGHT`; 0
            leaves one out.
    """
    weights = {name: (weights or {}).get(name, WEIGHT) for name in (*signals, DAMAGE)}
    targets = {
        name: torch.tensor(values if name in CLASSIFICATIONS else _standardised(values), dtype=torch.float32)
        for name, values in signals.items()
        if weights[name]
    }
    layers = {name: RATING if name == MARS else name for name in targets}
    quality = -torch.tensor([one.damage for one in pairs])
    contexts = head.nearest([(one.candidate.strip(), one.source.context) for one in pairs])
    sources = [f"{one.source.text}\0{one.source.context}" for one in pairs]
    network = head.network
    rows = [(one.source.text, one.candidate, context) for one, context in zip(pairs, contexts, strict=True)]

    def loss(batch: Sequence[int]) -> Tensor:
        found = network([rows[i] for i in batch])
        score, of_source = found[RATING][:, 0], same([sources[i] for i in batch])
        intact = torch.tensor([pairs[i].method == INTACT for i in batch])
        compared = of_source & (same([pairs[i].method for i in batch]) | intact[:, None] | intact[None])
        total = weights[DAMAGE] * ranking_loss(score, quality[list(batch)].to(score.device), compared)
        for name, values in targets.items():
            wanted = values[list(batch)].to(score.device)
            read = ~wanted.isnan().any(1)
            of_task = (
                torch.nn.functional.cross_entropy if name in CLASSIFICATIONS else torch.nn.functional.mse_loss
            )
            if read.any():
                total = total + weights[name] * of_task(found[layers[name]][read], wanted[read])
        return total

    lengths = [sum(map(len, row)) for row in rows]
    examples = Examples.split(sources, lengths, [is_held_out(source) for source in sources])
    key = digest([(one.candidate, one.method) for one in pairs], sources, sorted(weights.items()))
    with network.more_layers({name: one.shape[1] for name, one in targets.items() if layers[name] != RATING}):
        network.centre(rows)
        head.run_training(loss, examples, key.hex())


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers with mean 0 and standard deviation 1, of those that were read."""
    read = values[~np.isnan(values).any(axis=1)]
    if not len(read):
        return values
    spread = read.std(axis=0)
    standardised: NDArray[np.float64] = (values - read.mean(axis=0)) / np.where(spread == 0, 1.0, spread)
    return standardised
