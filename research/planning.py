"""Does planning plan? The log-probability of the text after a blank, behind planned and plain infills.

The first blank of each template is filled greedily with exactly b + extra tokens (b were masked), once with
planner "self" and once with "none", after the same prefix; the unperturbed model then reads the real text
block that follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.common import language_model, make_scorer, parser, progress, report
from benchmarks.sampling import Sample, make_jobs, sample_rows
from mars_score.infilling import engine
from mars_score.infilling.engine import CausalInfiller
from mars_score.infilling.job_state import JobState
from mars_score.infilling.jobs import Job
from mars_score.infilling.language_model import CausalLanguageModel
from mars_score.infilling.planning import Step, planned_step
from mars_score.models.torch_modes import ordinary_mode
from mars_score.settings import InfillingSettings, MaskingSettings, PlanningSettings
from mars_score.stats.paired import paired_test

Drafts = dict[Job, tuple[int, ...]]
STRENGTH = ("plan_step", "plan_iterations", "plan_norm_exponent", "plan_fusion")


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument("--references", type=int, default=50, help="how many different references")
    options.add_argument("--page", type=int, default=0, metavar="N", help="print N references augmented both ways")
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--extra", type=int, default=0, help="tokens to write beyond those masked, in both arms")
    for name in STRENGTH:
        usual = getattr(PlanningSettings(), name)
        options.add_argument(f"--{name.replace('_', '-')}", type=type(usual), default=usual)
    args = options.parse_args()
    generator = np.random.default_rng(args.seed)
    rows = sample_rows(args, args.references, generator)
    model = CausalLanguageModel(*language_model())
    all_jobs = make_jobs(model, [(row.context, row.reference) for row in rows], MaskingSettings(), args.extra)
    jobs = {job: reference for job, reference in all_jobs.items() if job.blanks and job.blanks[0].after}
    settings = {name: getattr(args, name) for name in STRENGTH}
    progress(f"{len(rows)} references, {len(jobs)} blanks with a text block after them")
    rewards: list[torch.Tensor] = []  # per written token: before and after each gradient step, (k + 1, rows)
    with ordinary_mode(), mock.patch.object(engine, "planned_step", _recording(rewards)):
        arms = {
            name: _drafts(model, jobs, PlanningSettings(planner=name, **settings), args.extra, args.batch_size)
            for name in ("self", "none")
        }
        planned, plain = ([*_block_log_probability(model, jobs, arms[name])] for name in ("self", "none"))
    totals = np.array(planned) - np.array(plain)
    per_token = totals / [len(job.blanks[0].after) for job in jobs]
    before, after = (torch.cat([reward[step] for reward in rewards]).double().cpu() for step in (0, -1))
    references = list(jobs.values())
    figures: dict[str, Any] = {
        **settings,
        "extra_tokens": args.extra,
        "references_with_a_pair": len(set(references)),
        "pairs": len(jobs),
        "nats_per_token_planned_minus_plain": float(per_token.mean()),
        "nats_per_token_interval_95": _interval(per_token, references),
        "nats_total_planned_minus_plain": float(totals.mean()),
        "nats_total_interval_95": _interval(totals, references),
        "nats_total_planned": float(np.mean(planned)),
        "nats_total_plain": float(np.mean(plain)),
        "share_improved": float((totals > 0).mean()),
        "share_equal": float((totals == 0).mean()),
        "share_worse": float((totals < 0).mean()),
        "share_of_draft_tokens_that_are_future_words_planned": _said_early(arms["self"]),
        "share_of_draft_tokens_that_are_future_words_plain": _said_early(arms["none"]),
        "planned_tokens": len(before),
        "reward_before_steps": float(before.mean()),
        "reward_after_steps": float(after.mean()),
        "share_of_tokens_where_reward_rose": float((after > before).double().mean()),
    }
    _print_page(rows, args.page, args.batch_size)
    report(args, "planning", math.exp(float(per_token.mean())), 1.0, figures)


def _interval(values: np.ndarray[Any, Any], groups: Sequence[str]) -> tuple[float, float]:
    """95 % confidence interval of the mean, from resamples of groups."""
    found = paired_test(values, np.zeros_like(values), groups=groups).first
    return found.low, found.high


def _print_page(rows: Sequence[Sample], count: int, batch_size: int) -> None:
    """The first ``count`` rows augmented with either planner; IDF is counted over all ``rows``."""
    if not count:
        return
    chosen, corpus = rows[:count], [row.reference for row in rows]
    columns = [row.reference for row in chosen], [row.context for row in chosen]
    scorers = (make_scorer(batch_size, planner=planner, idf_corpus=corpus) for planner in ("self", "none"))
    planned, plain = ([row[0].augmentations for row in scorer.augment_references(*columns)] for scorer in scorers)
    for row, *both in zip(chosen, planned, plain, strict=True):
        print(f"\ncontext:   {row.context}\nreference: {row.reference}")
        for with_plan, without in zip(*both, strict=True):
            print(f"  template: {with_plan.template}\n      self: {with_plan.text}\n      none: {without.text}")


def _recording(rewards: list[torch.Tensor]) -> Callable[..., Step]:
    def recorded(*arguments: Any) -> Step:
        step = planned_step(*arguments)
        assert step.rewards is not None
        rewards.append(step.rewards)
        return step

    return recorded


def _drafts(
    model: CausalLanguageModel, jobs: dict[Job, str], planning: PlanningSettings, extra: int, batch_size: int
) -> Drafts:
    """The b + extra tokens written into each job's first blank, before they are judged."""
    infiller = CausalInfiller(model, planning, InfillingSettings(sigma=extra), batch_size)
    drafts: Drafts = {}
    usual = JobState.keep

    def keep(row: JobState, block_surprise: Sequence[float]) -> int:
        drafts.setdefault(row.job, tuple(row.draft))
        return usual(row, block_surprise)

    with mock.patch.object(JobState, "keep", keep):
        infiller.infill(list(jobs), lambda *_: progress(f"planner {planning.planner}: {len(drafts)} blanks begun"))
    return drafts


def _said_early(drafts: Drafts) -> float:
    """Share of the drafts' tokens that the text blocks still to come hold too."""
    early = [token in job.future(0) for job, draft in drafts.items() for token in draft]
    return sum(early) / len(early)


def _block_log_probability(model: CausalLanguageModel, jobs: dict[Job, str], drafts: Drafts) -> list[float]:
    """Log-probability of each job's next text block, in nats, each read alone: equal texts, equal numbers."""
    outcome = []
    for job in jobs:
        block = job.blanks[0].after
        text = (*job.prompt, *job.lead, *drafts[job], *block)
        _, (hidden,) = model.read([text], capacity=len(text))
        targets = torch.tensor(block, device=model.device)
        outcome.append(-float(model.surprisal(hidden[-len(block) - 1 : -1], targets).double().sum()))
    return outcome


if __name__ == "__main__":
    main()
