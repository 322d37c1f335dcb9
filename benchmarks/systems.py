"""Compare the scoring of sixteen systems with that of one on the same references, from an empty store.

One scorer, with its models loaded, scores the systems one after the other, and all in one call. References are
those of examples/. Candidates are invented (see texts.py).
"""

from functools import partial
from typing import Literal

from benchmarks.common import Ratio, fresh_store, parse, report_ratios, seconds_of, speed_parser
from benchmarks.texts import columns, example_pairs, invented
from mars_score import MarsScorer

SYSTEMS = 16
Call = tuple[list[str], list[str], list[str]]


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=1)
    options.add_argument("--references", type=int, default=2)
    options.add_argument("--planner", choices=("self", "none"), default="none")
    args = parse(options, references=24, planner="self", repeats=3)
    contexts, references = map(list, zip(*example_pairs(args.references), strict=True))
    systems = [columns(invented(args.references, seed=number))[0] for number in range(SYSTEMS)]
    calls = [(system, references, contexts) for system in systems]
    together = [text for system in systems for text in system], references * SYSTEMS, contexts * SYSTEMS
    runs = {
        "one": partial(_score, calls[:1], args.planner),
        "one by one": partial(_score, calls, args.planner),
        "one call": partial(_score, [together], args.planner),
    }
    names = ("one by one", "one call")
    report_ratios(
        args, runs, [Ratio(f"{SYSTEMS} systems, {name} / one system", name, "one", 1.3) for name in names]
    )


def _score(calls: list[Call], planner: Literal["none", "self"]) -> float:
    """Measure the seconds of calls from an empty store."""
    with fresh_store() as store:
        scorer = MarsScorer("mini", variant="paper", store=store, planner=planner)
        scorer.score(["It rained."], ["It was a wet day."], [""])  # loads the models
        return seconds_of(lambda: [scorer.score(*call) for call in calls])


if __name__ == "__main__":
    main()
