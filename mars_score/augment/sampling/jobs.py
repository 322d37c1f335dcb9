"""A text to be drawn, and the text that was drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SampleJob:
    """A text to be drawn.

    Attributes:
        prompt: token ids, at least one.
        key: 16 bytes, the seed of this sample's random numbers.
        most: tokens at most.
    """

    prompt: tuple[int, ...]
    key: bytes
    most: int

    @property
    def uniforms(self) -> NDArray[np.float64]:
        """One number in [0, 1) for each token, (most,)."""
        return np.random.Generator(np.random.Philox(key=int.from_bytes(self.key, "little"))).random(self.most)


@dataclass(frozen=True)
class Sample:
    """A text that was drawn.

    Attributes:
        tokens: token ids, without a stop token.
        ended: whether it ended by itself (a stop token or a line break) and not at ``most`` tokens.
    """

    tokens: tuple[int, ...]
    ended: bool


Done = Callable[[SampleJob, Sample], Sequence[SampleJob] | None]
