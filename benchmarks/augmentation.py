"""How fast references are augmented, against a straightforward sequential implementation of the same work.

Only different jobs (a reference at one mask ratio) count, for both sides. The sequential side is timed on some
of them, spread evenly over the jobs sorted by length, and its time extrapolated by the number of drafted
tokens. Also: the share of this machine's arithmetic that goes into the method (see arithmetic.py).
"""

import statistics
import time
from collections.abc import Sequence

from benchmarks.arithmetic import Prices, matrix_rate, operations, planned_tokens
from benchmarks.common import (
    in_turns,
    language_model,
    median_ratio,
    medians,
    parse,
    progress,
    report,
    speed_parser,
)
from benchmarks.sampling import make_jobs
from benchmarks.sequential import Infilled, SequentialInfiller
from benchmarks.texts import example_pairs
from mars_score.infilling.batched import CausalInfiller
from mars_score.infilling.jobs import Infill, Job
from mars_score.models.causal_lm import CausalLanguageModel
from mars_score.settings import resolve_settings


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--references", type=int, default=64, help="of examples/")
    options.add_argument("--sequential-jobs", type=int, default=6, help="jobs timed on the sequential side")
    options.add_argument("--batch-size", type=int, help="default: as the engine chooses")
    options.add_argument("--planner", choices=("self", "none"), default="self")
    args = parse(options, sequential_jobs=16, repeats=3)
    settings = resolve_settings("mini", "paper", planner=args.planner)
    model = CausalLanguageModel(*language_model())
    batched = CausalInfiller(model, settings.planning, settings.infilling, args.batch_size)
    pairs = example_pairs(args.references)
    make_jobs(batched, pairs[:1], settings.masking)  # imports spaCy
    start = time.perf_counter()
    templates = make_jobs(batched, pairs, settings.masking)
    jobs = [*templates]
    masking = time.perf_counter() - start
    drafted = {job: planned_tokens(job, settings.infilling.sigma) for job in jobs}
    timed = _spread(sorted(jobs, key=lambda job: (drafted[job], len(job.prompt))), args.sequential_jobs)
    share = sum(drafted[job] for job in timed) / sum(drafted.values())
    progress(f"{len(pairs)} references, {len(jobs)} jobs, {len(timed)} of them for the sequential side")

    sequential = SequentialInfiller(*language_model(), settings.planning, settings.infilling)
    infills: dict[Job, tuple[Infill, ...]] = {}
    plain: dict[Job, Infilled] = {}

    def in_batches(work: Sequence[Job]) -> None:
        batched.infill(work, infills.__setitem__)

    def one_by_one(work: Sequence[Job]) -> None:
        plain.update((job, sequential.infill(*templates[job])) for job in work)

    for warm_up in (in_batches, one_by_one):
        warm_up(timed[:1])
    rates = [matrix_rate(model.device)]
    runs = {"batched": lambda: in_batches(jobs), "sequential": lambda: one_by_one(timed)}
    seconds = in_turns(runs, args.repeats)
    rates.append(matrix_rate(model.device))

    whole = {
        "batched": [masking + one for one in seconds["batched"]],
        "sequential": [masking + one / share for one in seconds["sequential"]],
    }
    alike = sum(_tokens(infills[job]) == _chosen(plain[job]) for job in timed)
    figures = {
        "references": len(pairs),
        "texts": "references of examples/, then their candidates",
        "jobs": len(jobs),
        "drafted_tokens": sum(drafted.values()),
        "references_a_second": len(pairs) / statistics.median(whole["batched"]),
        "references_a_second_sequential": len(pairs) / statistics.median(whole["sequential"]),
        **medians(seconds),
        "seconds_masking": masking,
        "sequential_jobs": len(timed),
        "share_of_drafted_tokens_in_them": share,
        "sequential_time": "extrapolated by drafted tokens",
        "infills_alike": f"{alike} of {len(timed)}",
    }
    ratio = median_ratio(whole["sequential"], whole["batched"])
    report(args, "augmentation: times faster than sequential (at least)", ratio, 12.0, figures)

    iterations = settings.planning.plan_iterations
    passes = 2 * iterations + 1 if args.planner == "self" else 1
    needed = operations(Prices.of(model), infills, passes)
    rate = needed / statistics.median(seconds["batched"])
    figures = {
        "operations_needed": float(needed),
        "operations_a_second": rate,
        "operations_a_second_in_matrix_products": max(rates),
    }
    report(args, "augmentation: share of the machine's arithmetic (at least)", rate / max(rates), 0.35, figures)


def _spread(jobs: Sequence[Job], count: int) -> list[Job]:
    """``count`` jobs from the middles of as many equal parts."""
    count = min(count, len(jobs))
    return [jobs[(2 * part + 1) * len(jobs) // (2 * count)] for part in range(count)]


def _tokens(infills: Sequence[Infill]) -> list[list[int]]:
    return [list(infill.tokens) for infill in infills]


def _chosen(infilled: Infilled) -> list[list[int]]:
    return [blank.generated[: blank.length] for blank in infilled.blanks]


if __name__ == "__main__":
    main()
