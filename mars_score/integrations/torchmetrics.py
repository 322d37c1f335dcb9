"""MARS as a metric of torchmetrics."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mars_score.data.checking import check_candidates
from mars_score.errors import Place
from mars_score.integrations.distributed import score_once
from mars_score.rows import Contexts, Row, Tasks, Texts
from mars_score.scorer import MarsScorer
from mars_score.settings import ARGUMENTS, SETTING_NAMES

try:
    from torchmetrics import Metric
except ImportError as error:
    raise ImportError("torchmetrics is not installed; run: pip install 'mars-score[torchmetrics]'") from error

_PLACE = Place(names={"predictions": "preds", "references": "target"})


class MarsScore(Metric):
    """Mean MARS score of all rows that were added with ``update``, in all processes.

    ``compute`` scores the rows, so that IDF is counted over all of them. In distributed runs the first process
    scores the rows of all processes and broadcasts the score: see
    :func:`mars_score.integrations.distributed.score_once`. Call ``update`` rather than ``forward``, which also
    scores each batch alone.

    Args:
        preset: which models: ``"mini"``, ``"medium"``, ``"base"``, ``"paper"`` or ``"multilingual"``.
        detailed: whether :meth:`compute` returns more than the score.
        options: arguments and settings of :class:`MarsScorer`, and those of ``torchmetrics.Metric``. By default
            the models are on the metric's device. If that is the CPU, the default of :class:`MarsScorer` applies.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """

    is_differentiable: bool = False
    higher_is_better: bool = True
    full_state_update: bool = False
    plot_lower_bound: float = 0.0
    plot_upper_bound: float = 1.0
    rows: list[Tensor]

    def __init__(self, preset: str | None = None, *, detailed: bool = False, **options: Any) -> None:
        of_mars = {name: options.pop(name) for name in (*ARGUMENTS, *SETTING_NAMES) if name in options}
        super().__init__(**options)
        self.detailed = detailed
        self.options = {"preset": preset, **of_mars}
        MarsScorer(**self.options)  # raises for wrong options; loads no model
        self.add_state("rows", default=[], dist_reduce_fx="cat")

    def update(
        self,
        preds: Texts,
        target: Texts | None,
        contexts: Contexts | None = None,
        samples: Texts | None = None,
        tasks: Tasks | None = None,
    ) -> None:
        """Add rows; see :meth:`MarsScorer.score`.

        Args:
            preds: candidates, one per row.
            target: a reference or references per row, or None.
            contexts: what the texts were written for.
            samples: texts of other systems.
            tasks: what the contexts are.

        Raises:
            TypeError, ValueError: bad input, named with its row. No row is added.
        """
        candidates = check_candidates(preds, place=_PLACE)
        scorer = MarsScorer(**self.options)
        examples = scorer.check_examples(target, contexts, samples, tasks, place=_PLACE, preds=candidates)
        rows = [example.with_candidate(text) for example, text in zip(examples, candidates, strict=True)]
        # Process groups of all backends can gather bytes.
        lines = "".join(f"{json.dumps(astuple(row))}\n" for row in rows).encode()
        self.rows.append(torch.from_numpy(np.frombuffer(lines, dtype=np.uint8).copy()).to(self.device))

    def compute(self) -> Tensor | dict[str, Tensor]:
        """Return the score, 0 without rows; with ``detailed`` a dict of scalar tensors.

        The dict has the score as ``"mars"``, the share of rows with a contradicted sentence as ``"contradicted"``,
        and the mean over summaries of the probability that the context entails a sentence as ``"faithfulness"``,
        NaN if there are no summaries.
        """
        values = score_once(self._score, self.process_group) if self._is_synced else self._score()
        tensors = {name: torch.tensor(value, device=self.device).float() for name, value in values.items()}
        return tensors if self.detailed else tensors["mars"]

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Gather the rows of all processes."""
        if isinstance(self.rows, list) and not self.rows:  # torchmetrics would make a tensor of floats.
            self.rows = [torch.empty(0, dtype=torch.uint8, device=self.device)]
        super().sync(*args, **kwargs)

    def _score(self) -> dict[str, float]:
        parts = [self.rows] if isinstance(self.rows, Tensor) else self.rows  # Syncing joins them.
        lines = [line for part in parts for line in part.cpu().numpy().tobytes().splitlines()]
        rows = [Row.from_values(json.loads(line)) for line in lines]
        if not rows:
            return {"mars": 0.0, "contradicted": 0.0, "faithfulness": math.nan}
        options = dict(self.options)
        if options.get("device") is None and self.device.type != "cpu":
            options["device"] = str(self.device)
        result = MarsScorer(**options).score_rows(rows)
        faithfulness = result.faithfulness
        return {
            "mars": result.score,
            "contradicted": sum(bool(score.contradicted) for score in result.row_scores) / len(rows),
            "faithfulness": math.nan if faithfulness is None else faithfulness,
        }
