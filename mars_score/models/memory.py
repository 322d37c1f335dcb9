"""How much memory a batch may take, and what running out of it looks like."""

from __future__ import annotations

import torch

CPU_CACHE_BYTES = 2**30
SHARE_OF_FREE = 0.3  # of an accelerator's free memory; planning needs about as much again as the cache


def cache_bytes(device: torch.device) -> int:
    """Memory for the cached keys and values of the jobs that are under way."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(SHARE_OF_FREE * (free + unused))
    return CPU_CACHE_BYTES


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch or Python could not get memory (torch has no class of its own for the CPU's)."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)
