"""Functions run in several real processes: those of a gloo group, and workers of a run."""

import json
import os
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, multiprocessing


def in_processes(folder, function, *args, count=2):
    """What ``function(rank, *args)`` returns in each process, by rank; it and its result must be plain."""
    multiprocessing.spawn(_enter, (count, str(folder), function, args), nprocs=count)
    return [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(count)]


def count_rows(device):
    """Begin a worker, which gives a "1" for each row."""
    return lambda rows: [b"1" for _ in rows]


def _enter(rank, count, folder, function, args):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count))
    distributed.init_process_group(
        "gloo", f"file://{folder}/meeting", timedelta(seconds=100), rank=rank, world_size=count
    )
    found = function(rank, *args)
    (Path(folder) / f"{rank}.json").write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()
