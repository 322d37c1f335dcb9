"""Better or more references: how well metrics agree with people under few, picked, all and augmented references.

    python -m research.reference_choice DATA/SET.jsonl... --groups N...

Items with two references or more. A table for each set and level, Pearson's r, and one of the mean gains over all
sets. References that are picked, added or drawn are compared with one human reference at random, and augmentations
of the first reference with the first reference alone; 95 % intervals over groups. Where fewer than half of the
items have samples, "n/a" stands in place of samples; elsewhere only the items with samples are compared. What
models compute is kept in the store; with ``--out FOLDER`` the scores are kept there, too, and the tables can be
printed again without any model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import progress
from mars_score import MarsScorer
from mars_score.data.rated import Item, RatedSet, read_rated_sets
from mars_score.data.validation import Row
from mars_score.meta.metrics import make_metric, parse_names
from mars_score.meta.metrics.base import Metric, Models
from mars_score.meta.metrics.mars import Mars
from mars_score.meta.scoring import scores_of
from mars_score.meta.worth import choose_references
from mars_score.scoring.evidence import EMBED, Reader
from mars_score.settings import resolve_settings
from mars_score.stats.correlation import Level, at_level, correlation
from mars_score.stats.draws import Interval, resample
from mars_score.stats.labels import Floats, codes_of
from mars_score.stats.resampling import pearson_of_sums, resampled_pearson

METRICS = ["bleu", "chrf", "meteor", "rouge_l", "bertscore", "mars[samples=0]"]
FORM: Mapping[str, Any] = {"variant": "fast", "samples": 8}  # of MARS and its samples
CHOICES = 4  # of references at random
RESAMPLES = 1000
FEWEST_SYSTEMS = 3
ONE, FIRST = "one at random", "the first alone"
# Each condition, and what it is compared with.
BASES = {
    ONE: None,
    "nearest to the others": ONE,
    "farthest from the others": ONE,
    "nearest to the samples": ONE,
    "two at random": ONE,
    "all": ONE,
    "all and samples": ONE,
    "samples alone": ONE,
    FIRST: None,
    "the first and its infills": FIRST,
    "the first and samples": FIRST,
}

Texts = tuple[str, ...]


class Agreement(NamedTuple):
    """Pearson's r.

    Attributes:
        values: one for each choice of references.
        drawn: the mean over the choices in each resample of groups, (resamples,).
    """

    values: Sequence[float]
    drawn: Floats

    @property
    def value(self) -> float:
        """The mean over the choices."""
        return float(np.mean(self.values))

    def minus(self, base: Agreement | None) -> Agreement:
        """The gain over another agreement."""
        return Agreement([self.value - base.value], self.drawn - base.drawn) if base else self


Scores = dict[str, dict[str, list[list[float]]]]  # by metric, condition and choice
Table = dict[str, dict[str, Agreement]]  # by metric and condition


class References:
    """Makes the references of every condition with the models of a preset."""

    def __init__(self, preset: str, store: str | None) -> None:
        self.preset, self.store = preset, store
        self.scorer = MarsScorer(preset, store=store, **FORM)
        self.models = Models(resolve_settings(preset), self.scorer.runtime, {"preset": preset, **FORM})

    def scores(self, data: RatedSet, names: Sequence[str], folder: Path | None) -> tuple[list[Item], Scores]:
        """The items that are compared, and their scores by metric, condition and choice, kept in a folder."""
        file = folder / f"{data.name}-{len(data.items)}.json" if folder else None
        kept = json.loads(file.read_text()) if file and file.is_file() else {"items": [], "scores": {}}
        if set(names) - set(kept["scores"]):
            items, texts = self.of(data)
            kept["items"] = [data.items.index(item) for item in items]
            for name in names if items else []:
                if name not in kept["scores"]:
                    metric = make_metric(name, self.models)
                    kept["scores"][name] = scores_by_condition(metric, data, items, texts)
                    progress(f"{data.name}: {metric.title}")
                    if file:
                        file.write_text(json.dumps(kept))
        items = [data.items[index] for index in kept["items"]]
        return items, {name: kept["scores"][name] for name in names if items}

    def of(self, data: RatedSet) -> tuple[list[Item], list[dict[str, list[Texts]]]]:
        """The items that are compared, and the references of each by condition, a list of choices."""
        items = [item for item in data.items if len(item.row[1]) > 1]
        samples = self.scorer.sample([item.row[1] for item in items], [item.row[2] for item in items])
        if 2 * sum(map(bool, samples)) >= len(items):
            items = [item for item, some in zip(items, samples, strict=True) if some]
            samples = [some for some in samples if some]
        else:
            samples = [()] * len(items)
        infiller = MarsScorer(
            self.preset, store=self.store, variant="fast", max_mask_ratio=0.6, idf_corpus=data.corpus
        )
        infilled = infiller.augment([item.row[1][:1] for item in items], [item.row[2] for item in items])
        texts = {text.strip() for item, some in zip(items, samples, strict=True) for text in (*item.row[1], *some)}
        vectors = Reader(self.scorer.settings, self.scorer.runtime).read(EMBED, sorted(texts))
        matrices = {text: one.vector for text, one in vectors.items()}
        rows = zip(items, samples, infilled, strict=True)
        return items, [_texts(item.row, drawn, tuple(filled), matrices) for item, drawn, filled in rows]


def _texts(row: Row, samples: Texts, infilled: Texts, vectors: Mapping[str, Floats]) -> dict[str, list[Texts]]:
    references = row[1]
    matrix = np.stack([vectors[text.strip()] for text in references])
    central = (matrix @ matrix.T).mean(axis=1)
    found: dict[str, list[Texts]] = {
        ONE: [choose_references(row, 1, choice, 0) for choice in range(CHOICES)],
        "two at random": [choose_references(row, 2, choice, 0) for choice in range(CHOICES)],
        "nearest to the others": [(references[int(central.argmax())],)],
        "farthest from the others": [(references[int(central.argmin())],)],
        "all": [references],
        FIRST: [references[:1]],
        "the first and its infills": [infilled],
    }
    if samples:
        near = (matrix @ np.stack([vectors[text] for text in samples]).T).mean(axis=1)
        found |= {
            "nearest to the samples": [(references[int(near.argmax())],)],
            "all and samples": [(*references, *samples)],
            "samples alone": [samples],
            "the first and samples": [(references[0], *samples)],
        }
    return found


def scores_by_condition(
    metric: Metric, data: RatedSet, items: Sequence[Item], texts: Sequence[Mapping[str, list[Texts]]]
) -> dict[str, list[list[float]]]:
    """The scores of the items under each condition, (items,) for each choice of references."""
    found = {}
    for name, choices in texts[0].items():
        some = (
            [(item.row[0], of_item[name][choice], item.row[2]) for item, of_item in zip(items, texts, strict=True)]
            for choice in range(len(choices))
        )
        # MARS itself keeps what its models compute; the store would know its scores by the metric's title alone.
        score = metric.score if isinstance(metric, Mars) else partial(scores_of, metric)
        found[name] = [[float(one) for one in score(rows, data.corpus)] for rows in some]
    return found


def agreement(items: Sequence[Item], choices: Sequence[Sequence[float]], level: Level, seed: int) -> Agreement:
    """The agreement of scores with the ratings; one seed gives the same resamples for all scores of the items."""
    ratings = [item.rating for item in items]
    groups, systems = [item.group for item in items], [item.system for item in items]
    values, drawn = [], []
    for scores in choices:
        values.append(correlation(scores, ratings, level=level, groups=groups, systems=systems).value)
        if level == "systems":
            drawn.append(_resampled_over_systems(scores, ratings, groups, systems, seed))
        else:
            drawn.append(resampled_pearson(at_level(scores, ratings, level, groups=groups), RESAMPLES, seed))
    return Agreement(values, np.mean(drawn, axis=0))


def _resampled_over_systems(
    scores: Sequence[float], ratings: Sequence[float], groups: Sequence[str], systems: Sequence[str], seed: int
) -> Floats:
    """Pearson's r over the systems' means in resamples of groups; NaN in one that lacks a system."""
    (names, group), (system_names, system) = (
        codes_of(name, labels, len(scores)) for name, labels in (("groups", groups), ("systems", systems))
    )
    sums = np.zeros((3, len(names), len(system_names)))
    for of_column, values in zip(sums, np.array([scores, ratings, np.ones(len(scores))]), strict=True):
        np.add.at(of_column, (group, system), values)

    def coefficient(counts: Floats) -> Floats:
        x, y, sizes = counts @ sums
        x, y = (values / np.where(sizes > 0, sizes, np.nan) for values in (x, y))
        columns = (np.ones_like(x), x, y, x * x, x * y, y * y)
        return pearson_of_sums(np.stack([column.sum(axis=1) for column in columns], axis=1))

    return resample(coefficient, len(names), RESAMPLES, seed)


def show(title: str, table: Table) -> None:
    """Print a table: a line for each condition, a column for each metric."""
    print(f"| {title} | {' | '.join(table)} |\n| --- |{' ---: |' * len(table)}")
    for name, base in BASES.items():
        cells = []
        for found in table.values():
            if name not in found:
                cells.append("n/a")
                continue
            gain = found[name].minus(found[base] if base else None)
            ends, sign = Interval.of(gain.drawn, 0.95), "+" if base else ""
            cells.append(f"{found[name].value:.3f} [{ends.low:{sign}.3f}, {ends.high:{sign}.3f}]")
        print(f"| {name} | {' | '.join(cells)} |")
        if name == ONE:
            ranges = [f"{min(found[ONE].values):.3f} to {max(found[ONE].values):.3f}" for found in table.values()]
            print(f"| lowest and highest of {CHOICES} choices | {' | '.join(ranges)} |")
    print(flush=True)


def show_gains(level: Level, tables: Sequence[Table]) -> None:
    """Print the mean gains over the sets that have a condition, in the form of ``show``."""
    names = list(tables[0])
    print(f"| mean gain, {level}, {len(tables)} sets | {' | '.join(names)} | sets |")
    print(f"| --- |{' ---: |' * (len(names) + 1)}")
    for name, base in BASES.items():
        some = [table for table in tables if all(name in found for found in table.values())]
        if not base or not some:
            continue
        cells = []
        for metric in names:
            gains = [table[metric][name].minus(table[metric][base]) for table in some]
            ends = Interval.of(np.mean([one.drawn for one in gains], axis=0), 0.95)
            value = math.fsum(one.value for one in gains) / len(gains)
            cells.append(f"{value:+.3f} [{ends.low:+.3f}, {ends.high:+.3f}]")
        print(f"| {name} | {' | '.join(cells)} | {len(some)} |")
    print(flush=True)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("files", nargs="+", metavar="SET.jsonl", help="rated candidates, as for mars meta")
    options.add_argument("--groups", type=int, nargs="+", help="groups at most: one number, or one for each file")
    options.add_argument("--metrics", type=parse_names, default=METRICS)
    options.add_argument("--preset", default="mini")
    options.add_argument("--store", default=None)
    options.add_argument("--out", type=Path, default=None, metavar="FOLDER", help="where scores are kept")
    args = options.parse_args()
    groups = args.groups or [sys.maxsize]
    if len(groups) not in (1, len(args.files)):
        options.error(f"--groups takes one number or {len(args.files)}, one for each file; got {len(groups)}")
    references = References(args.preset, args.store)
    tables: dict[Level, list[Table]] = {"items": [], "systems": []}
    for seed, (whole, most) in enumerate(zip(read_rated_sets(args.files), itertools.cycle(groups), strict=False)):
        data = whole.sample(most)
        items, scores = references.scores(data, args.metrics, args.out)
        if not items:
            progress(f"{data.name}: no item has several references")
            continue
        systems = len({item.system for item in items})
        progress(f"{data.name}: {len(items)} items of {systems} systems with several references")
        for level, of_level in tables.items():
            if level == "systems" and systems < FEWEST_SYSTEMS:
                continue
            table = {
                make_metric(metric, references.models).title: {
                    name: agreement(items, choices, level, seed) for name, choices in of_metric.items()
                }
                for metric, of_metric in scores.items()
            }
            of_level.append(table)
            show(f"{data.name}, {systems if level == 'systems' else len(items)} {level}", table)
    for level, of_level in tables.items():
        if len(of_level) > 1:
            show_gains(level, of_level)


if __name__ == "__main__":
    main()
