"""How models are run, where results are saved and progress is reported; scores do not depend on it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from mars_score.settings.fields import is_number
from mars_score.store.results import ResultStore

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Runtime:
    """What all parts of a scorer have in common besides its settings; batch sizes are positive integers."""

    # Jobs or texts per forward pass of the language model, at most; None: chosen from device and free memory.
    batch_size: int | None = None
    encoder_batch_size: int | None = None  # texts per forward pass of the sentence encoder, at most; None: 32
    device: str | None = None  # where models run; None: CUDA if there is one, else the CPU
    # Where results are saved; its folder also holds converted models.
    store: ResultStore = field(default_factory=lambda: ResultStore(None))
    # Called as ``progress(stage, done, total)``, also with 0 done as a stage begins; None: no reports.
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "encoder_batch_size"):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_number(value, int, 1):
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))  # NumPy's integers cannot be written as JSON

    def report(self, stage: str, done: int, total: int) -> None:
        """Call ``progress``, if there is one."""
        if self.progress:
            self.progress(stage, done, total)
