"""Compare scores and time with other batch sizes, orders and dtypes with those in batches of 32.

    python -m benchmarks.same_score FILE.jsonl...

Rows are real, and nothing is stored. The number of infills that differ is reported too.
"""

import argparse
import time
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from benchmarks.common import fresh_store, parser, progress, report
from mars_score import MarsResult, MarsScorer
from mars_score.data.reading import read_rows
from mars_score.settings import DEFAULT_VARIANT


def main() -> None:
    """Run the benchmark."""
    options = parser(__doc__)
    options.add_argument(
        "files", nargs="+", metavar="FILE.jsonl", help="keys context, references, candidate, group"
    )
    options.add_argument("--max-context-words", type=int, default=150, help="leave out rows with longer contexts")
    options.add_argument("--min-reference-words", type=int, default=5, help="leave out rows with shorter ones")
    options.add_argument("--seed", type=int, default=0, help="of the sample")
    options.add_argument("--rows", type=int, default=60)
    options.add_argument("--variant", default=DEFAULT_VARIANT)
    options.add_argument("--batch-sizes", default="8,1", help="besides 32, with commas")
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32", help="of the scores to compare with; default: float32")
    options.add_argument("--dtypes", default="bfloat16,float16", help="besides it, with commas")
    args = options.parse_args()
    generator = np.random.default_rng(args.seed)
    rows = sample_rows(args, args.rows, generator)
    in_order, shuffled = np.arange(len(rows)), generator.permutation(len(rows))
    runs: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
        "shuffled": (shuffled, {}),
        **{f"batch size {size}": (in_order, {"batch_size": int(size)}) for size in args.batch_sizes.split(",")},
        **{dtype: (in_order, {"dtype": dtype}) for dtype in args.dtypes.split(",")},
    }

    def score(order: np.ndarray, **settings: Any) -> tuple[np.ndarray, list[set[str]], float]:
        """Return scores and infills of the rows in their original order, and seconds."""
        progress(f"{len(rows)} rows, {settings or 'in another order'}")
        chosen = [rows[index] for index in order]
        with fresh_store() as store:
            usual = {"variant": args.variant, "dtype": args.dtype, "batch_size": 32, "store": store}
            scorer = MarsScorer(args.preset, **usual | settings)
            scorer.score(["It is late."], ["The shop is closed."], ["They walk to the shop. It was open before."])
            start = time.perf_counter()
            result = scorer.score(
                *([getattr(row, name) for row in chosen] for name in ("candidate", "reference", "context"))
            )
            seconds = time.perf_counter() - start
        back, infills = np.argsort(order), _infills(result)
        return np.array(result.scores)[back], [infills[index] for index in back], seconds

    scores, infills, seconds = score(in_order)
    for name, (order, settings) in runs.items():
        others, other_infills, other_seconds = score(order, **settings)
        differences = np.abs(others - scores)
        figures = {
            "rows": len(rows),
            "largest_difference": float(differences.max()),
            "mean_difference": float(differences.mean()),
            "spread_of_scores": float(scores.std()),
            "infills": sum(map(len, infills)),
            "infills_that_differ": sum(
                len(one - other) for one, other in zip(infills, other_infills, strict=True)
            ),
        }
        report(args, f"{name}: seconds / batches of 32", other_seconds / seconds, None, figures)


def _infills(result: MarsResult) -> list[set[str]]:
    """Return the distinct infills of each row."""
    return [
        {infill.text for reference in row.references for infill in reference.augmented.infills}
        for row in result.row_scores
    ]


@dataclass(frozen=True)
class Sample:
    """A row of a file of rated candidates, with the first of its references."""

    context: str
    reference: str
    candidate: str
    group: str


def sample_rows(args: argparse.Namespace, count: int, generator: np.random.Generator) -> list[Sample]:
    """Draw random rows from ``args.files`` in turn, with each group and reference at most once.

    Raises:
        ValueError: the files have too few suitable rows.
    """
    pools = [_fitting(path, args.max_context_words, args.min_reference_words) for path in args.files]
    orders = [[pool[index] for index in generator.permutation(len(pool))] for pool in pools]
    in_turn = filter(None, chain.from_iterable(zip_longest(*orders)))
    by_reference = {row.reference: row for row in {row.group: row for row in in_turn}.values()}
    if len(by_reference) < count:
        raise ValueError(
            f"the files hold {len(by_reference)} suitable rows of distinct groups, {count} are wanted"
        )
    return list(by_reference.values())[:count]


def _fitting(path: str, max_context_words: int, min_reference_words: int) -> list[Sample]:
    rows = [
        Sample(row["context"].strip(), row["references"][0].strip(), row["candidate"], f"{path}:{row['group']}")
        for row in read_rows(path).rows
        if isinstance(row["context"], str) and row["references"]
    ]
    return [
        row
        for row in rows
        if 0 < len(row.context.split()) <= max_context_words and len(row.reference.split()) >= min_reference_words
    ]


if __name__ == "__main__":
    main()
