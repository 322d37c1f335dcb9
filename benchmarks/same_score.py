"""Is a score the same whatever the batch? Real rows in float32, at other batch sizes and shuffled, against 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import files_parser, language_model, progress, report
from benchmarks.sampling import sample_rows
from mars_score import MarsScorer


def main() -> None:
    """Run the benchmark."""
    options = files_parser(__doc__)
    options.add_argument("--rows", type=int, default=60)
    options.add_argument("--max-mask-ratio", type=float, default=0.6, help="a smaller one is faster")
    options.add_argument("--planner", choices=("self", "none"), default="self")
    args = options.parse_args()
    generator = np.random.default_rng(args.seed)
    rows = sample_rows(args, args.rows, generator)
    in_order, shuffled = np.arange(len(rows)), generator.permutation(len(rows))
    runs = {"32": (32, in_order), "8": (8, in_order), "1": (1, in_order), "shuffled": (32, shuffled)}
    outcomes = {}
    for name, (size, order) in runs.items():
        progress(f"batch size {name}")
        chosen = [rows[index] for index in order]
        columns = ([getattr(row, column) for row in chosen] for column in ("candidate", "reference", "context"))
        settings = {"max_mask_ratio": args.max_mask_ratio, "planner": args.planner}
        scorer = MarsScorer("mini", batch_size=size, store=False, language_model=language_model(), **settings)
        result = scorer.score(*columns)
        texts = [
            [one.text for reference in row.references for one in reference.augmented.augmentations]
            for row in result.rows
        ]
        back = np.argsort(order)
        outcomes[name] = np.array(result.scores)[back], [texts[index] for index in back]
    scores, texts = outcomes.pop("32")
    total = sum(map(len, texts))
    figures: dict[str, Any] = {"rows": len(rows), "augmentations": total}
    equal = np.ones(total, dtype=bool)
    for name, (other_scores, others) in outcomes.items():
        same = np.array(
            [one == other for pair in zip(texts, others, strict=True) for one, other in zip(*pair, strict=True)]
        )
        figures[f"largest_score_difference_{name}"] = float(np.abs(other_scores - scores).max())
        figures[f"augmentations_that_differ_{name}"] = int((~same).sum())
        equal &= same
    report(args, "same score: share of equal augmentations", float(equal.mean()), None, figures)


if __name__ == "__main__":
    main()
