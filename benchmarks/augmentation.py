"""Compare augmentation in batches with the plain implementation of the same work.

Only distinct jobs count (a job is a reference at one mask ratio). The plain implementation is timed on some of
them, spread evenly over the jobs sorted by length. Its time for all is extrapolated by the number of drafted
tokens. The share of this machine's arithmetic that the method uses is reported too (see arithmetic.py).
"""

import statistics
import time
from collections.abc import Sequence

from benchmarks.arithmetic import Prices, matrix_rate, operations
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
from benchmarks.texts import example_pairs
from mars_score.infilling.batched import BatchedInfiller
from mars_score.infilling.jobs import FilledBlank, Job
from mars_score.language import Tagger
from mars_score.metrics.paper import Idf, PaperConfig, Template, make_templates
from mars_score.models.causal_lm import CausalLanguageModel
from tests.oracle_infilling import PlainInfiller, PlainResult


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--references", type=int, default=64, help="of examples/")
    options.add_argument("--plain-jobs", type=int, default=6, help="jobs that the plain form is timed on")
    options.add_argument("--batch-size", type=int, help="default: as MARS chooses")
    options.add_argument("--planner", choices=("self", "none"), default="self")
    args = parse(options, plain_jobs=16, repeats=3)
    config = PaperConfig(planner=args.planner)
    model = CausalLanguageModel(*language_model())
    batched = BatchedInfiller(model, config, args.batch_size)
    pairs = example_pairs(args.references)
    _make_jobs(batched, pairs[:1])  # The first call imports spaCy.
    start = time.perf_counter()
    templates = _make_jobs(batched, pairs)
    jobs = [*templates]
    masking = time.perf_counter() - start
    drafted = {job: job.drafted_tokens(config.sigma) for job in jobs}
    timed = _spread(sorted(jobs, key=lambda job: (drafted[job], len(job.prompt))), args.plain_jobs)
    share = sum(drafted[job] for job in timed) / sum(drafted.values())
    progress(f"{len(pairs)} references, {len(jobs)} jobs, {len(timed)} of them for the plain form")

    plain = PlainInfiller(*language_model(), config)
    filled: dict[Job, tuple[FilledBlank, ...]] = {}
    results: dict[Job, PlainResult] = {}

    def in_batches(work: Sequence[Job]) -> None:
        filled.update(batched.infill_jobs(work))

    def one_by_one(work: Sequence[Job]) -> None:
        results.update((job, plain.fill(*templates[job])) for job in work)

    for warm_up in (in_batches, one_by_one):
        warm_up(timed[:1])
    rates = [matrix_rate(model.device)]
    runs = {"batched": lambda: in_batches(jobs), "plain": lambda: one_by_one(timed)}
    seconds = in_turns(runs, args.repeats)
    rates.append(matrix_rate(model.device))

    whole = {
        "batched": [masking + one for one in seconds["batched"]],
        "plain": [masking + one / share for one in seconds["plain"]],
    }
    alike = sum(_tokens(filled[job]) == _chosen(results[job]) for job in timed)
    figures = {
        "references": len(pairs),
        "texts": "references of examples/, then their candidates",
        "jobs": len(jobs),
        "drafted_tokens": sum(drafted.values()),
        "references_a_second": len(pairs) / statistics.median(whole["batched"]),
        "references_a_second_plain": len(pairs) / statistics.median(whole["plain"]),
        **medians(seconds),
        "seconds_masking": masking,
        "plain_jobs": len(timed),
        "share_of_drafted_tokens_in_them": share,
        "plain_time": "extrapolated by drafted tokens",
        "infills_alike": f"{alike} of {len(timed)}",
    }
    ratio = median_ratio(whole["plain"], whole["batched"])
    report(args, "augmentation: times faster than the plain form (at least)", ratio, 12.0, figures)

    passes = 2 * config.plan_iterations + 1 if args.planner == "self" else 1
    needed = operations(Prices.of(model), filled, passes)
    rate = needed / statistics.median(seconds["batched"])
    figures = {
        "operations_needed": float(needed),
        "operations_a_second": rate,
        "operations_a_second_in_matrix_products": max(rates),
    }
    report(args, "augmentation: share of the machine's arithmetic (at least)", rate / max(rates), 0.35, figures)


def _make_jobs(infiller: BatchedInfiller, pairs: Sequence[tuple[str, str]]) -> dict[Job, tuple[str, Template]]:
    """Return the distinct jobs of (context, reference) pairs that have a blank, with contexts and templates."""
    tagger, config = Tagger(), infiller.config
    references = [reference for _, reference in pairs]
    tagged = tagger.tag(references)
    context_words = tagger.words(context for context, _ in pairs)
    idf = Idf.count(tagger.words(references).values())
    jobs = {}
    for (context, _), reference in zip(pairs, references, strict=True):
        for _, template in make_templates(reference, tagged[reference], context_words[context], idf, config):
            if template.blanks:
                job, _ = infiller.make_job(context, template)
                jobs[job] = context, template
    return jobs


def _spread(jobs: Sequence[Job], count: int) -> list[Job]:
    """Return the middle jobs of ``count`` equal parts."""
    count = min(count, len(jobs))
    return [jobs[(2 * part + 1) * len(jobs) // (2 * count)] for part in range(count)]


def _tokens(filled: Sequence[FilledBlank]) -> list[list[int]]:
    return [list(blank.tokens) for blank in filled]


def _chosen(result: PlainResult) -> list[list[int]]:
    return [blank.generated[: blank.length] for blank in result.blanks]


if __name__ == "__main__":
    main()
