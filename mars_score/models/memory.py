"""How much memory a batch may take, and smaller batches where memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")
CPU_CACHE_BYTES = 2**30
SHARE_OF_FREE = 0.3  # of a GPU's free memory; planning needs about as much again as the cache


def cache_bytes(device: torch.device) -> int:
    """Memory for the cached keys and values of a batch, in bytes."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(SHARE_OF_FREE * (free + unused))
    return CPU_CACHE_BYTES


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch or Python could not allocate memory (torch has no exception class for that on the CPU)."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


@dataclass
class BatchSize:
    """A largest number of items that are processed together; halved where memory runs out."""

    size: int

    def run(self, attempt: Callable[[int], T], most: int) -> T:
        """``attempt(size)``, repeated with half the size until memory is sufficient.

        Args:
            attempt: processes at most that many items.
            most: how many items there are.

        Raises:
            MemoryError, RuntimeError: memory does not suffice for a single item, or another error.
        """
        while True:
            size = min(self.size, most)
            try:
                return attempt(size)
            except (RuntimeError, MemoryError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            self.size = size // 2
