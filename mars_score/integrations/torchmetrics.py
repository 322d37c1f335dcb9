"""MARS as a metric of torchmetrics."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mars_score.data.validation import Where, check_candidates, check_rows
from mars_score.integrations.distributed import score_once
from mars_score.scorer import MarsScorer
from mars_score.settings import ARGUMENTS, SETTING_NAMES

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("torchmetrics is not installed; run: pip install 'mars-score[torchmetrics]'") from error


class MarsScore(Metric):
    """Mean MARS score of all rows that were added with ``update``, in all processes.

    The rows are scored at ``compute``, so that IDF is counted over all of them. In distributed runs the first
    process scores the rows of all processes and broadcasts the score (see
    :func:`mars_score.integrations.distributed.score_once`). Call ``update``: ``forward`` also scores each batch
    alone.

    Args:
        preset: which models: ``"mini"``, ``"medium"``, ``"base"``, ``"paper"`` or ``"multilingual"``.
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
        own = {name: options.pop(name) for name in (*ARGUMENTS, *SETTING_NAMES) if name in options}
        super().__init__(**options)
        self.options = {"preset": preset, **own}
        MarsScorer(**self.options)  # checks them; loads nothing
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    def update(
        self, preds: Any, target: Any, contexts: Any = None, samples: Any = None, tasks: Any = None
    ) -> None:
        """Add rows; nothing is added if one of them is bad.

        Args:
            preds: candidates.
            target: a reference or references per row; None: see :meth:`MarsScorer.score`, as for the others.
            contexts: likewise.
            samples: likewise.
            tasks: likewise.

        Raises:
            TypeError, ValueError: bad input, named with its row.
        """

        def where(column: str) -> Where:
            name = "target" if column == "references" else column
            return f"{name}[{{}}]".format

        candidates = check_candidates(preds, where=where("preds"))
        settings = MarsScorer(**self.options).settings
        settings.check_inputs(target, samples)
        checked = check_rows(
            target,
            contexts,
            samples,
            tasks,
            use_context=settings.use_context,
            task=settings.task,
            where=where,
            preds=candidates,
        )
        rows = (row._replace(candidate=text) for row, text in zip(checked, candidates, strict=True))
        lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()  # any process group can gather bytes
        self.rows.append(torch.from_numpy(np.frombuffer(lines, dtype=np.uint8).copy()).to(self.device))

    def compute(self) -> Tensor:
        """Return the score; 0 without rows."""
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
        candidates, references, contexts, samples, tasks = zip(*rows, strict=True)
        result = MarsScorer(**options).score(
            candidates,
            references if any(references) else None,
            contexts,
            samples=samples if any(samples) else None,
            tasks=tasks,
        )
        return result.score
