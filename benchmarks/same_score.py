"""Scores in other batches, orders, number types and engines against those in batches of 32, and their time.

    python -m benchmarks.same_score FILE.jsonl...

Real rows, nothing stored. Of the texts that the language model wrote the share that differs is reported, too.
"""

import time
from typing import Any

import numpy as np

from benchmarks.common import fresh_store, parser, progress, report
from benchmarks.sampling import sample_rows
from mars_score import MarsScorer
from mars_score.scoring.result import MarsResult
from mars_score.settings.presets import DEFAULT_VARIANT


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
    options.add_argument("--sample-count", type=int, default=0)
    options.add_argument("--batch-sizes", default="8,1", help="besides 32, with commas")
    options.add_argument("--dtypes", default="bfloat16,float16", help="besides float32, with commas")
    options.add_argument("--engine", default="torch", help="in which all but these number types are compared")
    args = options.parse_args()
    generator = np.random.default_rng(args.seed)
    rows = sample_rows(args, args.rows, generator)
    in_order, shuffled = np.arange(len(rows)), generator.permutation(len(rows))
    runs: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
        "shuffled": (shuffled, {}),
        **{f"batch size {size}": (in_order, {"batch_size": int(size)}) for size in args.batch_sizes.split(",")},
        **{dtype: (in_order, {"dtype": dtype, "engine": "torch"}) for dtype in args.dtypes.split(",")},
    }

    def score(order: np.ndarray, **settings: Any) -> tuple[np.ndarray, list[set[str]], float]:
        """Scores and written texts of the rows in their first order, and seconds."""
        progress(f"{len(rows)} rows, {settings or 'in another order'}")
        common = {"variant": args.variant, "sample_count": args.sample_count, "batch_size": 32}
        chosen = [rows[place] for place in order]
        with fresh_store() as store:
            scorer = MarsScorer("mini", **{**common, "engine": args.engine, "store": store, **settings})
            scorer.score(["It is late."], ["The shop is closed."], ["They walk to the shop. It was open before."])
            start = time.perf_counter()
            result = scorer.score(
                *([getattr(row, name) for row in chosen] for name in ("candidate", "reference", "context"))
            )
            seconds = time.perf_counter() - start
        back, texts = np.argsort(order), _written(result)
        return np.array(result.scores)[back], [texts[place] for place in back], seconds

    scores, texts, seconds = score(in_order)
    for name, (order, settings) in runs.items():
        others, other_texts, other_seconds = score(order, **settings)
        differences = np.abs(others - scores)
        figures = {
            "rows": len(rows),
            "largest_difference": float(differences.max()),
            "mean_difference": float(differences.mean()),
            "spread_of_scores": float(scores.std()),
            "texts": sum(map(len, texts)),
            "texts_that_differ": sum(len(one - other) for one, other in zip(texts, other_texts, strict=True)),
        }
        report(args, f"{name}: seconds / {args.engine} in batches of 32", other_seconds / seconds, None, figures)


def _written(result: MarsResult) -> list[set[str]]:
    """The different texts that the language model wrote for each row."""
    return [
        {one.text for one in row.samples}
        | {one.text for reference in row.references for one in reference.augmented.augmentations}
        for row in result.rows
    ]


if __name__ == "__main__":
    main()
