"""Where models run."""

from __future__ import annotations


def pick_device(device: str | None) -> str:
    """The given device, else CUDA where there is one, else the CPU.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    import torch

    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    check_device(device)
    return device


def check_device(device: str | None) -> None:
    """Raise unless this machine has the device; CUDA is not initialised, so that processes may be forked.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    if device in (None, "cpu"):
        return
    import torch

    try:
        one = torch.device(device)
        if one.type != "cuda":
            torch.empty(0, device=one)
        elif (one.index or 0) >= torch.cuda.device_count():
            raise RuntimeError(f"number of CUDA devices: {torch.cuda.device_count()}")
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device {device!r} is not available ({str(error).splitlines()[0]})") from error
