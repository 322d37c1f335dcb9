"""Scores and samples with other number types against float32: how far they differ, and how long they take.

    python -m benchmarks.number_types FILE.jsonl...

Real rows from an empty store. With ``--samples 0`` scores differ by the number type alone, else by other samples,
too.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.common import files_parser, fresh_store, progress, report
from benchmarks.sampling import Sample, sample_rows
from mars_score import MarsScorer
from mars_score.scoring.result import MarsResult
from mars_score.settings.presets import DEFAULT_VARIANT


def main() -> None:
    """Run the benchmark."""
    options = files_parser(__doc__)
    options.add_argument("--rows", type=int, default=20)
    options.add_argument("--variant", default=DEFAULT_VARIANT, help=f"default: {DEFAULT_VARIANT}")
    options.add_argument("--samples", type=int, default=4)
    options.add_argument("--dtypes", default="bfloat16,float16", help="with commas between them")
    args = options.parse_args()
    rows = sample_rows(args, args.rows, np.random.default_rng(args.seed))
    expected, usual = _score("float32", rows, args.variant, args.samples)
    for dtype in args.dtypes.split(","):
        found, seconds = _score(dtype, rows, args.variant, args.samples)
        difference = np.abs(np.subtract(found.scores, expected.scores))
        texts = [{one.text for one in row.samples} for row in found.rows]
        before = [{one.text for one in row.samples} for row in expected.rows]
        drawn = sum(map(len, before))
        other = sum(len(some - same) for some, same in zip(before, texts, strict=True))
        figures = {
            "rows": len(rows),
            "largest_difference": float(difference.max()),
            "mean_difference": float(difference.mean()),
            "spread_of_scores": float(np.std(expected.scores)),
            "samples": drawn,
            "samples_that_differ": other,
            "seconds": seconds,
            "seconds_float32": usual,
        }
        report(args, f"{dtype}: processor time / float32", seconds / usual, None, figures)


def _score(dtype: str, rows: list[Sample], variant: str, samples: int) -> tuple[MarsResult, float]:
    """Scores, and the seconds of processor time that they took (on a GPU: of time), models loaded before."""
    import torch

    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    progress(f"{len(rows)} rows in {dtype}")
    columns = zip(*((row.candidate, row.reference, row.context) for row in rows), strict=True)
    with fresh_store() as store:
        scorer = MarsScorer("mini", variant=variant, samples=samples, dtype=dtype, store=store)
        scorer.score(["It is late."], ["The shop is closed."], ["They walk to the shop. It was open before."])
        start = clock()
        result = scorer.score(*map(list, columns))
        return result, clock() - start


if __name__ == "__main__":
    main()
