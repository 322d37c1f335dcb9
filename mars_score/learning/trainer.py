"""Training of a head by sentence-transformers: batches, schedule, mixed precision, checkpoints and resuming."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import PrinterCallback

from mars_score.models.loading import no_bars
from mars_score.models.running import ordinary_mode
from mars_score.scoring.head_encoder import TextHead
from mars_score.store.runtime import Progress

Rows = list[dict[str, Any]]
_HELD_OUT = 0.1


def run_trainer(
    head: TextHead, loss: torch.nn.Module, rows: Rows, folder: Path, arguments: Mapping[str, Any], report: Progress
) -> None:
    """Train a head, from the last checkpoint of the same training where there is one.

    A checkpoint is written after each epoch, to ``checkpoints`` in the folder, which is removed at the end. A
    tenth of the groups is held out: training ends after an epoch that does not lower the loss there, with the
    weights that have the lowest. The rows have the columns that the loss reads, and ``group``, which says what is
    held out together; the arguments are those of ``CrossEncoderTrainingArguments``; steps are reported as
    ``report("train", step, steps)``.
    """
    parts: tuple[Rows, Rows] = [], []
    for row in rows:
        columns = {name: value for name, value in row.items() if name != "group"}
        digest = hashlib.sha256(row["group"].encode("utf-8", "surrogatepass")).digest()
        parts[digest[0] < _HELD_OUT * 256].append(columns)
    training, test = parts if parts[0] else parts[::-1]
    usual = {
        "warmup_steps": 0.1,
        "eval_strategy": "epoch" if test else "no",
        "save_strategy": "epoch",
        "load_best_model_at_end": bool(test),
        "metric_for_best_model": "loss",
        "save_total_limit": 2,
        "logging_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": head.device.type == "cpu",
    }
    # Named after all that the training depends on: checkpoints of another are not continued.
    key = hashlib.blake2b(json.dumps([rows, dict(arguments)], default=str).encode(), digest_size=8)
    for array in head.trained().values():
        key.update(array.tobytes())
    checkpoints = folder / "checkpoints" / key.hexdigest()
    # Those that were written to their end, where the trainer's state comes last.
    finished = [path.parent for path in checkpoints.glob("checkpoint-*/trainer_state.json")]
    last = max(finished, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    with ordinary_mode(grad=True), no_bars():
        used = CrossEncoderTrainingArguments(str(checkpoints), **{**usual, **arguments})
        trainer = _Trainer(
            model=head,
            args=used,
            train_dataset=Dataset.from_list(training),
            eval_dataset=Dataset.from_list(test) if test else None,
            loss=loss,
            callbacks=[_Report(report), *([EarlyStoppingCallback(1)] if used.load_best_model_at_end else [])],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last and str(last))
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


class _Trainer(CrossEncoderTrainer):  # type: ignore[misc]
    """Without a card of the model, which would describe checkpoints that are soon removed."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Add none."""


class _Report(TrainerCallback):  # type: ignore[misc]
    def __init__(self, report: Progress) -> None:
        self._report = report

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Report the step as one of the stage "train"."""
        self._report("train", state.global_step, state.max_steps)
