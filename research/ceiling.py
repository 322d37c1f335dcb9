"""How well one rater agrees with the mean of the others: what a metric can hope for on a set.

Takes files of rated candidates whose rows have ``individual``: by aspect the ratings of each rater, in one order.
A rater's rating of an item is the mean over aspects. Items count whose raters all rated all aspects.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich import print as rich_print
from rich.table import Table

from mars_score.data.files import read_rows


def main() -> None:
    """Print Pearson's r over pairs of a rating and the mean of the item's other ratings."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("files", nargs="+", metavar="FILE.jsonl")
    table = Table("set", "items", "one rater against the others")
    for name in options.parse_args().files:
        pairs = []
        items = 0
        for row in read_rows(name).rows:
            aspects = list((row.get("individual") or {}).values())
            if not aspects or len({len(one) for one in aspects}) > 1 or len(aspects[0]) < 2:
                continue
            items += 1
            ratings = np.mean(np.array(aspects, dtype=float), axis=0)
            others = (ratings.sum() - ratings) / (len(ratings) - 1)
            pairs += list(zip(ratings, others, strict=True))
        r = f"{np.corrcoef(np.array(pairs).T)[0, 1]:.3f}" if pairs else "n/a: no individual ratings"
        table.add_row(Path(name).stem, str(items), r)
    rich_print(table)


if __name__ == "__main__":
    main()
