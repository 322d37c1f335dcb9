"""A training loop that may be stopped at any moment: continued, it ends with the same weights.

Nothing random has a state that must be saved: the batches of an epoch follow from the seed and the epoch, dropout
from the seed and the step.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from mars_score.models.torch_modes import ordinary_mode
from mars_score.store.runtime import Progress

Loss = Callable[[Sequence[int]], Tensor]  # indices of examples -> their mean loss

CHECKPOINT = "checkpoint.safetensors"
SAVE_SECONDS = 60.0
RATE_OF_TEXTS, RATE_OF_RATINGS = 1e-4, 3e-5  # learning rates; see docs/learning.md
_HELD_OUT = 0.1
_WARM_UP = 0.1  # of all steps
_LONGEST_GRADIENT = 1.0
_SORTED_BATCHES = 8  # so many batches are sorted by length together, for less padding


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained.

    Attributes:
        epochs: at most; fewer where the held-out loss stops to fall.
        batch_size: examples per step.
        learning_rate: of AdamW at its highest; it rises over the first tenth of the steps, and falls to 0. None:
            1e-4 for texts and 3e-5 for ratings, which are few: a faster training forgets what the encoder knew.
        patience: epochs without a lower held-out loss after which training ends.
        seed: of batches, dropout and new layers.
    """

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float | None = None
    patience: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Examples:
    """What is trained on.

    Attributes:
        pools: one label per example; those of a pool are put into the same batches, where they are compared.
        lengths: of each example, in any unit.
        training: indices of examples.
        held_out: indices of those that decide when to stop; may be empty.
    """

    pools: Sequence[str]
    lengths: Sequence[int]
    training: Sequence[int]
    held_out: Sequence[int] = ()

    @classmethod
    def split(cls, pools: Sequence[str], lengths: Sequence[int], held_out: Sequence[bool]) -> Examples:
        """All examples; those held out are trained on where nothing else would be left."""
        training = [index for index, out in enumerate(held_out) if not out]
        if not training:
            return cls(pools, lengths, range(len(pools)))
        return cls(pools, lengths, training, [index for index, out in enumerate(held_out) if out])

    def batches(self, size: int, generator: random.Random) -> list[list[int]]:
        """The examples to train on, shuffled within their pools, in batches in random order."""
        pools: dict[str, list[int]] = {}
        for index in self.training:
            pools.setdefault(self.pools[index], []).append(index)
        names = list(pools)
        generator.shuffle(names)
        order: list[int] = []
        for name in names:
            generator.shuffle(pools[name])
            for part in _cut(pools[name], _SORTED_BATCHES * size):
                order += sorted(part, key=lambda index: self.lengths[index])
        batches = _cut(order, size)
        generator.shuffle(batches)
        return batches


def is_held_out(label: str) -> bool:
    """Whether what has this label is among the tenth that decides when to stop; the same in every run."""
    return hashlib.sha256(label.encode("utf-8", "surrogatepass")).digest()[0] < _HELD_OUT * 256


def _cut(items: Sequence[int], size: int) -> list[list[int]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


@dataclass
class _State:
    """How far the training is, besides tensors."""

    step: int = 0
    best: float = math.inf
    epochs_without_gain: int = 0


class Trainer:
    """Trains those parameters of a network that require gradients.

    Args:
        network: on the device where it is to be trained; it ends with the weights of the lowest held-out loss.
        loss: of some examples, computed with the network.
        examples: see there.
        settings: see there; as an attribute they name the learning rate that is used.
        rate: of learning, where ``settings`` name none.
        folder: where checkpoints are written, every minute and after each epoch; None: none.
        key: what the training depends on besides ``settings``; a checkpoint of another key is refused.
        progress: called as ``progress("train", step, steps)``.

    Raises:
        ValueError: the folder holds a checkpoint of another training, or a damaged one; names the file.
    """

    def __init__(
        self,
        network: torch.nn.Module,
        loss: Loss,
        examples: Examples,
        settings: TrainingSettings,
        rate: float,
        folder: Path | None = None,
        key: str = "",
        progress: Progress | None = None,
    ) -> None:
        self._network, self._loss, self._examples = network, loss, examples
        self._rate = rate if settings.learning_rate is None else settings.learning_rate
        self.settings = replace(settings, learning_rate=self._rate)
        self._file = folder / CHECKPOINT if folder else None
        self._key = f"{self.settings} {key}"
        self._progress = progress
        self._parameters = {name: one for name, one in network.named_parameters() if one.requires_grad}
        self._optimizer = torch.optim.AdamW(self._parameters.values(), lr=self._rate)
        self._best: dict[str, Tensor] = {}
        self._state = _State()
        self._saved_at = time.monotonic()

    def train(self) -> float:
        """Train to the end, from the checkpoint where there is one, and remove it.

        Returns:
            The lowest held-out loss; infinite with nothing held out.
        """
        settings, state = self.settings, self._state
        per_epoch = math.ceil(len(self._examples.training) / settings.batch_size)
        steps = per_epoch * settings.epochs
        devices = [one for one in {p.device for p in self._parameters.values()} if one.type == "cuda"]
        with torch.random.fork_rng(devices), ordinary_mode(grad=True):
            self._load()
            while state.step < steps and state.epochs_without_gain <= settings.patience:
                epoch, done = divmod(state.step, per_epoch)
                batches = self._examples.batches(settings.batch_size, random.Random(f"{settings.seed} {epoch}"))
                for batch in batches[done:]:
                    self._step(batch, steps)
                    if time.monotonic() - self._saved_at > SAVE_SECONDS and state.step % per_epoch:
                        self._save()
                self._end_epoch()
        for name, value in self._best.items():
            self._parameters[name].data.copy_(value)
        if self._file:
            self._file.unlink(missing_ok=True)
        return state.best

    def _step(self, batch: Sequence[int], steps: int) -> None:
        settings, state = self.settings, self._state
        torch.manual_seed(random.Random(f"{settings.seed} {state.step}").getrandbits(63))
        share = (state.step + 1) / steps
        rate = self._rate * min(share / _WARM_UP, (1 - share) / (1 - _WARM_UP) + 1 / steps, 1.0)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._network.train()
        self._optimizer.zero_grad()
        self._loss(batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), _LONGEST_GRADIENT)
        self._optimizer.step()
        state.step += 1
        if self._progress:
            self._progress("train", state.step, steps)

    def _end_epoch(self) -> None:
        """Measure the held-out loss, keep the weights if it is the lowest, and save a checkpoint."""
        held_out, state = self._examples.held_out, self._state
        if held_out:
            self._network.eval()
            with torch.no_grad():
                parts = _cut(held_out, self.settings.batch_size)
                found = sum(float(self._loss(part)) * len(part) for part in parts) / len(held_out)
            state.epochs_without_gain += 1
            if found < state.best:
                state.best, state.epochs_without_gain = found, 0
                self._best = {name: one.detach().clone() for name, one in self._parameters.items()}
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        tensors = {f"now {name}": one.detach() for name, one in self._parameters.items()}
        tensors |= {f"best {name}": one for name, one in self._best.items()}
        for name, parameter in self._parameters.items():
            tensors |= {f"{part} {name}": one for part, one in self._optimizer.state[parameter].items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".unfinished")  # one name: what a killed process left is replaced
        save_file(
            {name: one.contiguous() for name, one in tensors.items()},
            beside,
            {"key": self._key, "state": json.dumps(vars(self._state))},
        )
        os.replace(beside, self._file)
        self._saved_at = time.monotonic()

    def _load(self) -> None:
        if self._file is None or not self._file.is_file():
            return
        try:
            with safe_open(self._file, "pt") as file:
                metadata = file.metadata() or {}
            tensors = load_file(self._file)
            state = _State(**json.loads(metadata["state"]))
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{self._file} is damaged ({error}); remove it to train from the start") from error
        if metadata["key"] != self._key:
            raise ValueError(
                f"{self._file} is the checkpoint of a training on other data or with other settings; "
                "continue that one, remove the file, or choose another folder"
            )
        vars(self._state).update(vars(state))
        for entry, value in tensors.items():
            part, name = entry.split(" ", 1)
            parameter = self._parameters[name]
            if part == "now":
                parameter.data.copy_(value)
            elif part == "best":
                self._best[name] = value.to(parameter.device)
            else:  # AdamW keeps its counts of steps on the CPU
                place = "cpu" if part == "step" else parameter.device
                self._optimizer.state[parameter][part] = value.to(place)
