"""Ladders: candidates that a newcomer types first, in the order in which a reader prefers them.

``ladders.jsonl`` was written for this project. It has ten notices as contexts, each with a reference of one
sentence and candidates of nine other kinds. Prints by variant the mean score of each kind, and the share of
ladders in which a better kind scores above a worse one.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from mars_score import MarsScorer
from research.results import Figures, add_record_option, markdown, record

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
    add_record_option(options)
    args = options.parse_args()
    scores = {
        variant: score_ladders(MarsScorer(args.preset, variant=variant, store=args.store))
        for variant in args.variants.split(",")
    }
    if args.record:
        record(f"ladders.{args.preset}", figures(scores))
    print(to_markdown(scores))


def score_ladders(scorer: MarsScorer) -> list[dict[str, float]]:
    """Score each kind of candidate, by ladder."""
    ladders = [json.loads(line) for line in LADDERS.read_text(encoding="utf-8").splitlines()]
    rows = [(ladder[kind], ladder["reference"], ladder["context"]) for ladder in ladders for kind in KINDS]
    scores = iter(scorer.score(*zip(*rows, strict=True)).scores)
    return [{kind: next(scores) for kind in KINDS} for _ in ladders]


def in_order(scores: Scores, better: str, worse: str) -> float:
    """Return the share of ladders in which a kind scores above another."""
    return fmean(ladder[better] > ladder[worse] for ladder in scores)


def figures(scores: Mapping[str, Scores]) -> dict[str, dict[str, dict[str, float]]]:
    """Return by variant the mean score of each kind, and the percentage of ladders in each order."""
    return {
        variant: {
            "means": {kind: fmean(ladder[kind] for ladder in ladders) for kind in KINDS},
            "orders": {f"{better} > {worse}": 100 * in_order(ladders, better, worse) for better, worse in ORDERS},
        }
        for variant, ladders in scores.items()
    }


def to_markdown(scores: Mapping[str, Scores]) -> str:
    """Write both tables, with a column for each variant."""
    return "\n\n".join(tables({"": figures(scores)}).values())


def tables(recorded: Mapping[str, Figures]) -> dict[str, str]:
    """Write the tables of each preset."""
    made = {}
    for preset, variants in recorded.items():
        for name, corner, form in (("means", "mean score", "{:.3f}"), ("orders", "ladders in order", "{:.0f}%")):
            rows = [[corner, *variants]]
            for kind in next(iter(variants.values()))[name]:
                rows.append([kind, *(form.format(of_variant[name][kind]) for of_variant in variants.values())])
            made[f"{preset} {name}"] = markdown(rows)
    return made


if __name__ == "__main__":
    main()
