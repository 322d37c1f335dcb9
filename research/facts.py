"""Measure how right added facts are: numbers and names of hypotheses that their premises do not have.

    python -m research.facts FILE... [--show] [--pairs 100000]

FILE is as for :mod:`research.entailment.measure`. For pairs, prints precision ("right"), recall ("found") and
false-alarm rate of added facts as a sign that the hypothesis does not follow from its premise. For rated
candidates, prints how many of the best and the worst third have an added fact.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import chain, compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mars_score.language import Tagger
from mars_score.sentences import sentences
from mars_score.variants.judgements.facts import missing_facts
from research.entailment.measure import FOLLOWS, is_rated, read
from research.results import markdown


def main() -> None:
    """Find the added facts of each file and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--pairs", type=int, default=100_000, help="of a file, the first of them")
    options.add_argument("--show", action="store_true", help="print the facts")
    args = options.parse_args()
    tagger = Tagger()
    pairs_table = [["set", "right", "found", "false alarms"]]
    rated_table = [["set", "best", "worst"]]
    for path in args.files:
        if is_rated(path):
            texts, is_wrong = rated(path)
        else:
            pairs = list(read(path))[: args.pairs]
            texts = [(pair.premise, pair.hypothesis) for pair in pairs]
            is_wrong = np.array([pair.label not in FOLLOWS for pair in pairs])
        facts = added(texts, tagger)
        found = np.array([bool(of_text) for of_text in facts])
        right, false = int((found & is_wrong).sum()), int((found & ~is_wrong).sum())
        wrong, others = int(is_wrong.sum()), int((~is_wrong).sum())
        if is_rated(path):
            rated_table.append([path.stem, f"{false}/{others}", f"{right}/{wrong}"])
        else:
            shares = (f"{right / wrong:.2f}", f"{false / others:.3f}")
            pairs_table.append([path.stem, f"{right}/{right + false}", *shares])
        if args.show:
            for (_, text), of_text, wrongly in zip(texts, facts, is_wrong, strict=True):
                if of_text:
                    print(path.stem, "wrong" if wrongly else "RIGHT", of_text, text[:300], sep=" | ")
    for table in (pairs_table, rated_table):
        if len(table) > 1:
            print(markdown(table), end="\n\n")


def rated(path: Path) -> tuple[list[tuple[str, str]], NDArray[np.bool_]]:
    """Return contexts and candidates of the best and the worst third, and which are the worst."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ratings = np.array([row["human"] for row in rows])
    best, worst = ratings >= np.quantile(ratings, 2 / 3), ratings <= np.quantile(ratings, 1 / 3)
    chosen = best | worst
    return [(row["context"], row["candidate"]) for row in compress(rows, chosen)], worst[chosen]


def added(texts: Sequence[tuple[str, str]], tagger: Tagger) -> list[list[str]]:
    """Return the facts that each hypothesis adds to its premise."""
    by_text = [[(sentence, (premise,)) for sentence in sentences(hypothesis)] for premise, hypothesis in texts]
    found = missing_facts(chain.from_iterable(by_text), tagger)
    return [[fact for sentence in of_text for fact in found[sentence]] for of_text in by_text]


if __name__ == "__main__":
    main()
