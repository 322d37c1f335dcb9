"""Score in one process of a distributed run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Value = TypeVar("Value")


def distributed(group: ProcessGroup | None = None) -> bool:
    """Tell whether a process group, by default that of all processes, has several processes."""
    from torch import distributed as run

    return run.is_available() and run.is_initialized() and run.get_world_size(group) > 1


def score_once(score: Callable[[], Value], group: ProcessGroup | None = None) -> Value:
    """Call ``score`` in the first process of a group alone, and broadcast its result, which must be picklable.

    All processes of the group must call this function. They wait as long as the timeout of the group allows
    (10 minutes with NCCL). If augmenting takes longer, augment references beforehand (``mars augment``) or pass a
    longer timeout to ``init_process_group``.

    Raises:
        RuntimeError: scoring failed in the first process.
    """
    from torch import distributed as run

    if not distributed(group):
        return score()
    source = run.get_global_rank(group, 0) if group is not None else 0
    shared: list[Any] = [None, None]  # result, error
    try:
        if run.get_rank(group) == 0:
            shared[0] = score()
    except BaseException as error:
        shared[1] = f"{type(error).__name__}: {error}"
        raise
    finally:  # Otherwise the others would wait after a failure.
        run.broadcast_object_list(shared, src=source, group=group)
    if shared[1] is not None:
        raise RuntimeError(f"scoring failed in process {source}: {shared[1]}")
    result: Value = shared[0]
    return result
