"""Is a score the same whatever the batch, and the same as without one? Real rows in float32.

At several batch sizes, shuffled, and with ``--sequential`` by the plain implementation of sequential.py. Where an
infill differs from the one at batch size 32, the job is infilled once more on its own in float64, to see how
close the choice was: the difference of the two tokens' scores, or of the two lengths' mean surprisal.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.common import language_model, make_scorer, parser, progress, report
from benchmarks.sampling import sample_rows
from benchmarks.sequential import SequentialInfiller
from mars_score import MarsScorer
from mars_score.infilling import engine
from mars_score.infilling.engine import CausalInfiller
from mars_score.infilling.job_state import JobState
from mars_score.infilling.jobs import Infill, Job, OnInfilled
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import plain_step, planned_step
from mars_score.settings import InfillingSettings, PlanningSettings

BASE = 32
NEAR_TIE = 1e-4  # nats
Infills = dict[Job, tuple[Infill, ...]]


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=60)
    options.add_argument("--max-mask-ratio", type=float, default=0.6, help="a smaller one is quicker")
    options.add_argument("--planner", choices=("self", "none"), default="self")
    options.add_argument("--sequential", action="store_true", help="compare with sequential.py alone; slow")
    args = options.parse_args()
    generator = np.random.default_rng(args.seed)
    rows = sample_rows(args, args.rows, generator)
    texts = [[row.candidate for row in rows], [row.reference for row in rows], [row.context for row in rows]]
    settings = {"max_mask_ratio": args.max_mask_ratio, "planner": args.planner}
    in_order, shuffled = np.arange(len(rows)), generator.permutation(len(rows))
    runs = {"32": (BASE, in_order)}
    if args.sequential:
        runs |= {"sequential": (1, in_order)}
    else:
        runs |= {"8": (8, in_order), "1": (1, in_order), "shuffled": (BASE, shuffled)}
    outcomes = {}
    for name, (size, order) in runs.items():
        progress(f"batch size {name}")
        columns = [[column[index] for index in order] for column in texts]
        scores, infills = _score(make_scorer(size, **settings), columns, sequential=name == "sequential")
        outcomes[name] = scores[np.argsort(order)], infills
    scores, infills = outcomes.pop("32")
    figures: dict[str, Any] = {"rows": len(rows), "augmentations": len(infills)}
    largest, different = 0.0, set()
    for name, (other_scores, other) in outcomes.items():
        figures[f"largest_score_difference_{name}"] = float(np.abs(other_scores - scores).max())
        largest = max(largest, figures[f"largest_score_difference_{name}"])
        unequal = [job for job in infills if _tokens(infills[job]) != _tokens(other[job])]
        gaps = [_gap(job, args.planner, infills[job], other[job]) for job in unequal]
        figures[f"augmentations_that_differ_{name}"] = len(unequal)
        figures[f"of_them_near_ties_{name}"] = sum(gap < NEAR_TIE for gap in gaps)
        figures[f"gaps_in_nats_{name}"] = [gap if math.isfinite(gap) else None for gap in gaps]
        different.update(unequal)
    figures["largest_score_difference"] = largest
    report(
        args, "same score: share of equal augmentations", 1 - len(different) / max(1, len(infills)), None, figures
    )


def _score(
    scorer: MarsScorer, columns: list[list[str]], *, sequential: bool
) -> tuple[np.ndarray[Any, Any], Infills]:
    """Scores of rows, and the infills of all their jobs."""
    infills: Infills = {}
    usual = CausalInfiller.infill

    def recorded(self: CausalInfiller, jobs: list[Job], done: OnInfilled) -> list[tuple[Infill, ...]]:
        def note(job: Job, of_job: tuple[Infill, ...]) -> None:
            infills[job] = of_job
            done(job, of_job)

        if not sequential:
            return usual(self, jobs, note)
        plain = SequentialInfiller(self.model, self.planning, InfillingSettings(sigma=self.sigma))
        for place, job in enumerate(jobs):
            note(job, plain.infill([job])[0])
            progress(f"{place + 1} of {len(jobs)} jobs")
        return [infills[job] for job in jobs]

    with mock.patch.object(CausalInfiller, "infill", recorded):
        result = scorer.score(*columns)
    return np.array(result.scores), infills


def _tokens(infills: tuple[Infill, ...]) -> list[tuple[int, ...]]:
    return [infill.tokens for infill in infills]


def _gap(job: Job, planner: Any, *outcomes: tuple[Infill, ...]) -> float:
    """How close the choice was at the first blank where two outcomes differ; inf where it cannot be told."""
    model, tokenizer = language_model()
    model = CausalLanguageModel(copy.deepcopy(model).double(), tokenizer)
    infiller = CausalInfiller(model, PlanningSettings(planner=planner), InfillingSettings(), 1)
    scores: list[torch.Tensor] = []

    def recording(step: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any) -> Any:
            outcome = step(*arguments)
            scores.append(outcome.scores[0].log_softmax(-1))
            return outcome

        return recorded

    drafts: list[tuple[tuple[int, ...], list[torch.Tensor]]] = []  # of each blank, with the scores of its tokens
    usual = JobState.keep

    def keep(row: JobState, block_surprise: Sequence[float]) -> int:
        drafts.append((tuple(row.draft), scores.copy()))
        scores.clear()
        return usual(row, block_surprise)

    recorders = {"planned_step": recording(planned_step), "plain_step": recording(plain_step)}
    with mock.patch.dict(vars(engine), recorders), mock.patch.object(JobState, "keep", keep):
        [infills] = infiller.infill([job])
    for ours, pair, (draft, of_draft) in zip(infills, zip(*outcomes, strict=True), drafts, strict=True):
        if pair[0].tokens != pair[1].tokens:
            return max(_distance(one.tokens, draft, ours, of_draft) for one in pair)
        if ours.tokens != pair[0].tokens:
            return math.inf
    return math.inf


def _distance(tokens: tuple[int, ...], draft: tuple[int, ...], kept: Infill, scores: list[torch.Tensor]) -> float:
    """By how much ``tokens`` lost against what was kept of the draft, in nats."""
    for place, (token, drafted) in enumerate(zip(tokens, draft, strict=False)):
        if token != drafted:
            return float(scores[place][drafted] - scores[place][token])
    ours, best = (kept.perplexities[length - 1] for length in (len(tokens), len(kept.tokens)))
    return math.log(ours / best)


if __name__ == "__main__":
    main()
