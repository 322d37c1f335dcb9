"""Better or more references: how well metrics agree with people under one reference, all of them, or samples.

    python -m research.reference_choice DATA/SET.jsonl... --groups N

Items with two references or more, of which one is picked in several ways; Pearson's r with the ratings and 95 %
intervals over groups. All results are kept in the store: a stopped run goes on when it is started again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.common import progress
from mars_score import MarsScorer
from mars_score.data.validation import Row
from mars_score.meta.items import Item, RatedSet, read_rated_sets
from mars_score.meta.metrics import make_metric, parse_names
from mars_score.meta.metrics.base import Metric, Models
from mars_score.meta.scoring import scores_of
from mars_score.meta.worth import choose_references
from mars_score.settings import resolve_settings
from mars_score.similarity.features import EMBED, Reader
from mars_score.stats.correlation import estimate
from mars_score.stats.draws import Interval, draw_groups, resample
from mars_score.stats.levels import statistic_of
from mars_score.stats.rated import Rated
from mars_score.stats.weighted import Floats

METRICS = ["bleu", "chrf", "meteor", "rouge_l", "bertscore", "mars[samples=0]"]
CHOICES = 4  # of one reference at random
RESAMPLES = 1000


def conditions(items: Sequence[Item], scorer: MarsScorer) -> dict[str, list[list[Row]]]:
    """Rows of each item under each choice of references; several lists where the choice is repeated."""
    reader = Reader(scorer.settings, scorer.runtime)
    drawn = scorer.sample([item.row[1] for item in items], [item.row[2] for item in items])
    texts = {text.strip() for item, some in zip(items, drawn, strict=True) for text in (*item.row[1], *some)}
    vectors = {text: one.vector for text, one in reader.read(EMBED, sorted(texts)).items()}
    found: dict[str, list[list[Row]]] = {"one at random": [[] for _ in range(CHOICES)]}
    for item, samples in zip(items, drawn, strict=True):
        candidate, references, context = item.row
        matrix = np.stack([vectors[text.strip()] for text in references])
        central = (matrix @ matrix.T).mean(axis=1)
        chosen = {
            "nearest to the others": (references[int(central.argmax())],),
            "farthest from the others": (references[int(central.argmin())],),
            "all": references,
        }
        if samples:
            near = (matrix @ np.stack([vectors[text] for text in samples]).T).mean(axis=1)
            chosen |= {
                "nearest to the samples": (references[int(near.argmax())],),
                "samples alone": tuple(samples),
                "first and samples": (references[0], *samples),
                "all and samples": (*references, *samples),
            }
        for choice, rows in enumerate(found["one at random"]):
            rows.append((candidate, choose_references(item.row, 1, choice, 0), context))
        for name, some in chosen.items():
            found.setdefault(name, [[]])[0].append((candidate, some, context))
    return {name: lists for name, lists in found.items() if len(lists[0]) == len(items)}


def agreement(data: RatedSet, items: Sequence[Item], metric: Metric, choices: Sequence[list[Row]]) -> str:
    """Pearson's r, the mean over repeated choices, with its interval."""
    ratings, groups = [item.rating for item in items], [item.group for item in items]
    rated = [
        Rated.of(np.array(scores_of(metric, rows, data.corpus)), ratings, "items", "pearson", groups, None)
        for rows in choices
    ]
    statistics = [statistic_of(one) for one in rated]

    def mean(counts: Floats) -> Floats:
        return np.mean([one(counts) for one in statistics], axis=0)  # type: ignore[no-any-return]

    count = rated[0].group_count
    ends = Interval.of(resample([mean], draw_groups(count), count, RESAMPLES, 0)[0], 0.95)
    value = np.mean([estimate(one).value for one in rated])
    return f"{value:.3f} [{ends.low:.3f}, {ends.high:.3f}]"


def main() -> None:
    """Print a table for each set."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("files", nargs="+", metavar="SET.jsonl", help="rated candidates, as for mars meta")
    options.add_argument("--groups", type=int, help="groups per file, at most")
    options.add_argument("--metrics", type=parse_names, default=METRICS)
    options.add_argument("--preset", default="mini")
    options.add_argument("--store", default=None)
    args = options.parse_args()
    scorer = MarsScorer(args.preset, store=args.store)
    models = Models(resolve_settings(args.preset), scorer.runtime, {"preset": args.preset})
    for data in read_rated_sets(args.files, groups=args.groups):
        items = [item for item in data.items if len(item.row[1]) > 1]
        progress(f"{data.name}: {len(items)} items with several references")
        rows = conditions(items, scorer)
        print(f"| {data.name}, {len(items)} items | {' | '.join(rows)} |\n| --- |{' ---: |' * len(rows)}")
        for name in args.metrics:
            metric = make_metric(name, models)
            cells = [agreement(data, items, metric, choices) for choices in rows.values()]
            print(f"| {metric.title} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()
