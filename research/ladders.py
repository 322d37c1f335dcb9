"""Ladders: texts that a newcomer types first, in the order in which a reader prefers them, under each variant.

``ladders.jsonl`` was written for this project: ten notices as contexts, each with a reference of one sentence and
candidates of nine other kinds. Prints a Markdown table of the mean score of each kind, and one of the share of
ladders in which a better kind scores above a worse one.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mars_score import MarsScorer

LADDERS = Path(__file__).parent / "ladders.jsonl"
VARIANTS = ("fast", "plus", "paper")
FAITHFUL = ("reference", "paraphrase", "other_words", "off_topic")
FLAWED = ("shuffled", "keywords", "negated", "wrong_number", "copied", "junk")
KINDS = (*FAITHFUL[:-1], *FLAWED, FAITHFUL[-1])
ORDERS = (*pairwise(FAITHFUL), ("reference", "off_topic"), *(("paraphrase", kind) for kind in FLAWED))
Scores = Sequence[Mapping[str, float]]  # by ladder and kind


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("--preset", default="mini")
    options.add_argument("--store", default=None)
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"default: {','.join(VARIANTS)}")
    args = options.parse_args()
    scores = {
        variant: score_ladders(MarsScorer(args.preset, variant=variant, store=args.store))
        for variant in args.variants.split(",")
    }
    print(to_markdown(scores))


def score_ladders(scorer: Any) -> list[dict[str, float]]:
    """Score each kind of candidate, by ladder."""
    ladders = [json.loads(line) for line in LADDERS.read_text(encoding="utf-8").splitlines()]
    rows = [(ladder[kind], ladder["reference"], ladder["context"]) for ladder in ladders for kind in KINDS]
    scores = iter(scorer.score(*zip(*rows, strict=True)).scores)
    return [{kind: next(scores) for kind in KINDS} for _ in ladders]


def in_order(scores: Scores, better: str, worse: str) -> float:
    """Return the share of ladders in which a kind scores above another."""
    return sum(one[better] > one[worse] for one in scores) / len(scores)


def to_markdown(scores: Mapping[str, Scores]) -> str:
    """Both tables, a column for each variant."""
    means = {
        kind: [f"{sum(one[kind] for one in ladders) / len(ladders):.3f}" for ladders in scores.values()]
        for kind in KINDS
    }
    shares = {
        f"{better} > {worse}": [f"{in_order(ladders, better, worse):.0%}" for ladders in scores.values()]
        for better, worse in ORDERS
    }
    return f"{_table('mean score', scores, means)}\n\n{_table('ladders in order', scores, shares)}"


def _table(corner: str, columns: Mapping[str, Any], rows: Mapping[str, Sequence[str]]) -> str:
    lines = [
        [corner, *columns],
        ["---", *["--:"] * len(columns)],
        *([name, *cells] for name, cells in rows.items()),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
