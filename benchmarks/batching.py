"""How much faster augmentation is in batches: references a second at batch size 32 against batch size 1."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from common import make_scorer, parser, progress, report

from mars_score import MarsScorer
from mars_score.rowfiles import read_rows

EXAMPLES = Path(__file__).parent.parent / "examples"
LARGE = 32


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__, files=False)
    options.add_argument("--references", type=int, default=8, help="those of examples/ with the shortest contexts")
    options.add_argument("--repeats", type=int, default=1, help="runs, of which the median ratio is reported")
    args = options.parse_args()
    pairs = _pairs()[: args.references]
    for planner in ("self", "none"):
        scorers = {size: make_scorer(size, planner=planner) for size in (LARGE, 1)}
        speeds: dict[int, list[float]] = {size: [] for size in scorers}
        for scorer in scorers.values():
            scorer.augment(["It was a very cold day."], [""])  # loads the models
        for repeat in range(args.repeats):
            for size, scorer in scorers.items():
                speeds[size].append(_speed(scorer, pairs))
                progress(
                    f"planner {planner}, run {repeat + 1}, batch size {size}: {speeds[size][-1]:.3g} references/s"
                )
        ratios = [fast / slow for fast, slow in zip(speeds[LARGE], speeds[1], strict=True)]
        figures = {
            "references": len(pairs),
            f"references_a_second_at_{LARGE}": statistics.median(speeds[LARGE]),
            "references_a_second_at_1": statistics.median(speeds[1]),
        }
        report(args, f"batching, planner {planner}", statistics.median(ratios), None, figures)


def _pairs() -> list[tuple[str, str]]:
    """Different contexts and references of the examples, shortest contexts first."""
    rows = [row for path in sorted(EXAMPLES.glob("*.jsonl")) for row in read_rows(path).rows]
    pairs = {(row["context"], reference): None for row in rows for reference in row["references"]}
    return sorted(pairs, key=lambda pair: (len(pair[0]), pair))


def _speed(scorer: MarsScorer, pairs: list[tuple[str, str]]) -> float:
    """References augmented in a second."""
    start = time.perf_counter()
    scorer.augment([reference for _, reference in pairs], [context for context, _ in pairs])
    return len(pairs) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
