"""Measure the facts that hypotheses add: numbers and names that their premises do not have.

    python -m research.facts FILE... [--show] [--pairs 100000]

FILE: as for :mod:`research.entailment.measure`. Of pairs it prints how many hypotheses with an added fact do not
follow from their premise, the share of those that do not follow that has one (found), and the share of the others
that has one (false alarms). Of rated candidates: how many of the best and of the worst third by context have one.
`--show` prints the facts.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mars_score.models.tagger import Tagger
from mars_score.sentences import sentences
from mars_score.variants.judgements.facts import missing_facts
from research.entailment.measure import FOLLOWS, is_rated, read
from research.results import markdown


def main() -> None:
    """Read the files, look for facts and print a table."""
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
        named = np.array([bool(one) for one in facts])
        right, false = int((named & is_wrong).sum()), int((named & ~is_wrong).sum())
        wrong, others = int(is_wrong.sum()), int((~is_wrong).sum())
        if is_rated(path):
            rated_table.append([path.stem, f"{false}/{others}", f"{right}/{wrong}"])
        else:
            shares = (f"{right / wrong:.2f}", f"{false / others:.3f}")
            pairs_table.append([path.stem, f"{right}/{right + false}", *shares])
        if args.show:
            for (_, text), one, wrongly in zip(texts, facts, is_wrong, strict=True):
                if one:
                    print(path.stem, "wrong" if wrongly else "RIGHT", one, text[:300], sep=" | ")
    for table in (pairs_table, rated_table):
        if len(table) > 1:
            print(markdown(table), end="\n\n")


def rated(path: Path) -> tuple[list[tuple[str, str]], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the candidates of the best and the worst third with their contexts, and which are the worst."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ratings = np.array([row["human"] for row in rows])
    best, worst = ratings >= np.quantile(ratings, 2 / 3), ratings <= np.quantile(ratings, 1 / 3)
    chosen = [index for index in range(len(rows)) if best[index] or worst[index]]
    return [(rows[index]["context"], rows[index]["candidate"]) for index in chosen], worst[chosen]


def added(texts: Sequence[tuple[str, str]], tagger: Tagger) -> list[list[str]]:
    """Return the facts that each hypothesis adds to its premise."""
    asked = [[(sentence, (premise,)) for sentence in sentences(hypothesis)] for premise, hypothesis in texts]
    found = missing_facts((one for of_text in asked for one in of_text), tagger)
    return [[fact for one in of_text for fact in found[one]] for of_text in asked]


if __name__ == "__main__":
    main()
