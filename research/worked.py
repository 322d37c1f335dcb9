"""Worked examples under each variant: the story of the paper's Table 1, and the kinds of errors of its Table 6.

The story is the one in ``examples/stories.jsonl``; the texts for the errors (unknown words, right but copied from
the context, right by an inference) were written for this project. The candidate that a reader prefers comes first.
A last table counts, over all of ``examples/``, the pairs of a good candidate and a worse one that are in order.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich import print as rich_print
from rich.table import Table

from mars_score import MarsScorer

EXAMPLES = Path(__file__).parent.parent / "examples"
VARIANTS = ("paper", "v1", "v2", "v2-lm")
ERRORS: list[dict[str, Any]] = [
    {
        "id": "unknown words",
        "context": "The museum shop sells three toys: the Zorbliq for twelve euros, the Brankel for five and the "
        "Quoffer for two. How much do I pay for a Zorbliq?",
        "references": ["A Zorbliq costs twelve euros."],
        "candidates": [
            {"text": "You will pay twelve for the Zorbliq.", "kind": "good"},
            {"text": "You will pay twelve for the Brankel.", "kind": "wrong"},
        ],
    },
    {
        "id": "right and copied",
        "context": "The ferry leaves at nine. In winter it does not run on Sundays. Dogs travel free of charge. "
        "Does it run every day in January?",
        "references": ["No, there is no ferry on Sundays at that time of the year."],
        "candidates": [
            {"text": "In winter it does not run on Sundays.", "kind": "good"},
            {"text": "Dogs travel free of charge.", "kind": "copied from context"},
        ],
    },
    {
        "id": "inference",
        "context": "Tom is taller than Ann, and Ann is taller than Raj. Who is the shortest of them?",
        "references": ["Raj is the shortest."],
        "candidates": [
            {"text": "It must be Raj, since both of the others are taller.", "kind": "good"},
            {"text": "It must be Tom, since both of the others are taller.", "kind": "wrong"},
        ],
    },
]


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("--store", default=None)
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"default: {','.join(VARIANTS)}")
    args = options.parse_args()
    read = [json.loads(line) for file in sorted(EXAMPLES.glob("*.jsonl")) for line in file.open(encoding="utf-8")]
    story = [example for example in read if example["id"] == "story-01-car"]
    examples = [*story, *ERRORS, *(example for example in read if example not in story)]
    rows = [(example, candidate) for example in examples for candidate in example["candidates"]]
    scores = {}
    for variant in args.variants.split(","):
        scorer = MarsScorer("mini", variant=variant, store=args.store)
        scores[variant] = scorer.score(
            [candidate["text"] for _, candidate in rows],
            [example["references"] for example, _ in rows],
            [example["context"] for example, _ in rows],
        ).scores
    _show_texts(rows[: sum(len(example["candidates"]) for example in [*story, *ERRORS])], scores)
    _show_orders(rows, scores)


def _show_texts(rows: list[Any], scores: dict[str, list[float]]) -> None:
    table = Table("example", "kind", "candidate", *scores)
    for index, (example, candidate) in enumerate(rows):
        values = (f"{of_variant[index]:.3f}" for of_variant in scores.values())
        table.add_row(example["id"], candidate["kind"], candidate["text"], *values)
    rich_print(table)


def _show_orders(rows: list[Any], scores: dict[str, list[float]]) -> None:
    """Good candidates against worse ones of their example, by the kind of the worse one."""
    counts: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for better, (example, good) in enumerate(rows):
        for worse, (other, bad) in enumerate(rows):
            if example is other and good["kind"].startswith("good") and not bad["kind"].startswith("good"):
                for variant, values in scores.items():
                    for kind in (bad["kind"], "all"):
                        counts[kind][variant].append(values[better] > values[worse])
    table = Table("good above", "pairs", *scores)
    for kind, of_variants in sorted(counts.items(), key=lambda item: item[0] == "all"):
        shares = (f"{sum(right) / len(right):.2f}" for right in of_variants.values())
        table.add_row(kind, str(len(next(iter(of_variants.values())))), *shares)
    rich_print(table)


if __name__ == "__main__":
    main()
