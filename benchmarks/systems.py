"""Sixteen systems against one on the same references, each from an empty store, models loaded.

The systems are scored one after the other with one scorer, and all in one call. References are those of
examples/, candidates are invented (see texts.py).
"""

from __future__ import annotations

from benchmarks.common import (
    fresh_store,
    in_turns,
    median_ratio,
    medians,
    parse,
    progress,
    report,
    seconds_of,
    speed_parser,
)
from benchmarks.texts import example_pairs, invented
from mars_score import MarsScorer


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--systems", type=int, default=16)
    options.add_argument("--references", type=int, default=2)
    options.add_argument("--planner", choices=("self", "none"), default="self")
    args = parse(options, references=24, repeats=3)
    contexts, references = map(list, zip(*example_pairs(args.references), strict=True))
    systems = [
        [text.candidate for text in invented(args.references, seed=number)] for number in range(args.systems)
    ]

    def run(calls: list[tuple[list[str], list[str], list[str]]]) -> float:
        with fresh_store() as store:
            scorer = MarsScorer("mini", variant="paper", store=store, planner=args.planner)
            scorer.score(["It rained."], ["It was a wet day."], [""])  # loads the models
            return seconds_of(lambda: [scorer.score(*call) for call in calls])

    calls = [(system, references, contexts) for system in systems]
    together = (
        [text for system in systems for text in system],
        references * len(systems),
        contexts * len(systems),
    )
    progress(f"{len(systems)} systems, {len(references)} references")
    runs = {"one": lambda: run(calls[:1]), "one by one": lambda: run(calls), "one call": lambda: run([together])}
    runs["one"]()  # warm-up
    seconds = in_turns(runs, args.repeats)
    figures = {"systems": len(systems), "references": len(references), **medians(seconds)}
    for name in ("one by one", "one call"):
        ratio = median_ratio(seconds[name], seconds["one"])
        report(args, f"{len(systems)} systems, {name} / one system", ratio, 1.3, figures)


if __name__ == "__main__":
    main()
