"""MARS as a metric of torchmetrics."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mars_score.data.validation import (
    check_candidates,
    check_contexts,
    check_lengths,
    check_references,
    check_samples,
)
from mars_score.integrations.distributed import score_once
from mars_score.scorer import MarsScorer
from mars_score.settings import ARGUMENTS, SETTINGS

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("torchmetrics is not installed; run: pip install 'mars-score[torchmetrics]'") from error


class MarsScore(Metric):
    """Mean MARS score of all rows that were added with ``update``, in all processes.

    The rows are scored at ``compute``, so that IDF is counted over all of them. In distributed runs the first
    process scores the rows of all processes and broadcasts the score (see
    :func:`mars_score.integrations.distributed.score_once`). Call ``update``: ``forward`` also scores each batch alone.

    Args:
        preset: which models: ``"mini"``, ``"base"``, ``"paper"`` or ``"multilingual"``.
        options: arguments and settings of :class:`MarsScorer`, and those of ``torchmetrics.Metric``.
            Without ``device`` the models are on the metric's device, unless that is the CPU: then on the default
            device of :class:`MarsScorer`.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """

    is_differentiable: bool = False
    higher_is_better: bool = True
    full_state_update: bool = False
    plot_lower_bound: float = 0.0
    plot_upper_bound: float = 1.0
    rows: list[Tensor]

    def __init__(self, preset: str | None = None, **options: Any) -> None:
        own = {name: options.pop(name) for name in (*ARGUMENTS, *SETTINGS) if name in options}
        super().__init__(**options)
        self.options = {"preset": preset, **own}
        MarsScorer(**self.options)  # checks them; loads nothing
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any, contexts: Any = None, samples: Any = None) -> None:
        """Add a candidate, its reference or references, its context and, if there are any, its samples per row.

        Raises TypeError or ValueError for bad input, named with its row; nothing is added.
        """
        candidates = check_candidates(preds, where="preds[{}]".format)
        references = check_references(target, where="target[{}]".format)
        texts = check_contexts(contexts, len(candidates), use_context=self.options.get("use_context", True))
        others = check_samples(samples, len(candidates))
        check_lengths(preds=candidates, target=references, contexts=texts, samples=others)
        rows = zip(candidates, references, texts, others, strict=True)
        lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()  # any process group can gather bytes
        self.rows.append(torch.from_numpy(np.frombuffer(lines, dtype=np.uint8).copy()).to(self.device))

    def compute(self) -> Tensor:
        """The score; 0 without rows."""
        score = score_once(self._score, self.process_group) if self._is_synced else self._score()
        return torch.tensor(score, dtype=torch.float32, device=self.device)

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Gather the rows of all processes; torchmetrics would make a tensor of floats where there are none."""
        if isinstance(self.rows, list) and not self.rows:
            self.rows = [torch.empty(0, dtype=torch.uint8, device=self.device)]
        super().sync(*args, **kwargs)

    def _score(self) -> float:
        parts = [self.rows] if isinstance(self.rows, Tensor) else self.rows  # syncing makes one tensor of them
        rows = [json.loads(line) for part in parts for line in part.cpu().numpy().tobytes().splitlines()]
        if not rows:
            return 0.0
        options = dict(self.options)
        if options.get("device") is None and self.device.type != "cpu":
            options["device"] = str(self.device)
        *columns, samples = zip(*rows, strict=True)
        return MarsScorer(**options).score(*columns, samples=samples if any(samples) else None).score
