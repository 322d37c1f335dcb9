"""Kinds of augmentations of one human reference: how different they are from it, and what they add beside it.

    python -m research.infills DATA/SET.jsonl... --groups N --out FEATURES.jsonl     reads; needs the models
    python -m research.infills FEATURES.jsonl...                                     the table; needs none

Three augmentations of each kind, all given the context:

- ratios: the paper's templates, in which the 20, 40 and 60 % of the words that matter least are masked;
- random: 60 % of the words are masked, chosen at random three times;
- spans: a run of 60 % of the words is masked at the beginning, in the middle and at the end;
- endings: the first 40 % of the words are kept and continued by drawing, three times;
- samples: nothing is kept, drawn three times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import progress
from mars_score import MarsScorer
from mars_score.augmentation import Augmenter
from mars_score.data.files import row_line
from mars_score.data.validation import Row
from mars_score.masking.analysis import Analysis
from mars_score.masking.template import Template
from mars_score.meta.items import RatedSet, read_rated_sets
from mars_score.models.loading import causal_model
from mars_score.result import Augmentation, AugmentedReference
from mars_score.sampling.jobs import SampleJob
from mars_score.sampling.prompts import make_prompt
from mars_score.sampling.sampler import Sampler
from mars_score.sampling.samples import make_request
from mars_score.similarity.features import Reader
from mars_score.stats.draws import Interval
from mars_score.store.results import digest
from research.features import features_of
from research.forms import NONE, V3, FeatureSet
from research.forms import read as read_features

COUNT = 3  # augmentations of each kind
MASKED = 0.6  # share of the words that the kinds with one ratio mask
PLAIN = replace(V3, samples=NONE, best=NONE)

Key = tuple[str, str]  # context and reference


class Maker:
    """Makes the augmentations of every kind with the models of a preset."""

    def __init__(self, preset: str, store: str | None) -> None:
        self.scorer = MarsScorer(preset, store=store, variant="v3", max_mask_ratio=MASKED, samples=0)
        self.settings, runtime = self.scorer.settings, self.scorer.runtime
        self.reader = Reader(self.settings, runtime)
        self.model = causal_model(self.settings.models, runtime)
        sampling = self.settings.sampling
        self.sampler = Sampler(self.model, sampling.sample_temperature, sampling.sample_top_p)
        self.augmenter = Augmenter(self.settings, runtime)

    def kinds(self, keys: Sequence[Key]) -> dict[str, dict[Key, list[str]]]:
        """The texts of each kind, by context and reference."""
        ratios = self.scorer.augment_references([[reference] for _, reference in keys], [key[0] for key in keys])
        analyses = dict(
            zip(keys, self.augmenter.analyser.analyse([reference for _, reference in keys]), strict=True)
        )
        return {
            "ratios": {key: list(of_row[0].texts[1:]) for key, of_row in zip(keys, ratios, strict=True)},
            "random": self._infilled(analyses, _random),
            "spans": self._infilled(analyses, _span),
            "endings": self._drawn(keys, 1 - MASKED),
            "samples": self._drawn(keys, 0.0),
        }

    def _infilled(
        self, analyses: dict[Key, Analysis], mask: Callable[[Analysis, int], list[int]]
    ) -> dict[Key, list[str]]:
        pairs = {
            (key, number): (key[0], Template.from_mask(analysis, mask(analysis, number)))
            for key, analysis in analyses.items()
            for number in range(COUNT)
        }
        filled = self.augmenter.infill(pair for pair in pairs.values() if pair[1].blanks)
        return {
            key: [
                filled[pair][0] if pair[1].blanks else key[1]
                for pair in (pairs[key, number] for number in range(COUNT))
            ]
            for key in analyses
        }

    def _drawn(self, keys: Sequence[Key], kept: float) -> dict[Key, list[str]]:
        codec = self.model.codec
        jobs: dict[Key, list[SampleJob]] = {}
        beginnings = {key: " ".join(key[1].split()[: round(kept * len(key[1].split()))]) for key in keys}
        for key in keys:
            request = make_request(key[0], [key[1]], self.settings.sampling)
            room = self.model.window - 2 * request.token_limit
            prompt = make_prompt(codec, key[0], request.task, room).tokens + tuple(codec.encode(beginnings[key]))
            jobs[key] = [
                SampleJob(prompt, digest("endings", *key, number), request.token_limit) for number in range(COUNT)
            ]
        every = [job for of_key in jobs.values() for job in of_key]
        drawn = dict(zip(every, self.sampler.sample(every), strict=True))
        return {
            key: [(beginnings[key] + codec.decode(drawn[job].tokens)).strip() or key[1] for job in of_key]
            for key, of_key in jobs.items()
        }

    def features(self, data: RatedSet) -> Iterator[dict[str, Any]]:
        """A line for every item with a context and kind of augmentation."""
        items = [item for item in data.items if item.row[2].strip()]
        rows: list[Row] = [(row[0], (row[1][0].strip(),), row[2]) for row in (item.row for item in items)]
        keys = [(context.strip(), reference) for _, (reference,), context in rows]
        for kind, texts in self.kinds(list(dict.fromkeys(keys))).items():
            progress(f"{data.name}: {kind}")
            augmented = {row[1:]: _augmented(key[1], texts[key]) for row, key in zip(rows, keys, strict=True)}
            found = features_of(self.reader, rows, augmented, [()] * len(rows), {})
            for item, row, key, values in zip(items, rows, keys, found, strict=True):
                yield {
                    "set": data.name,
                    "kind": kind,
                    "attack": None,
                    "group": item.group,
                    "rating": item.rating,
                    "task": make_request(key[0], row[1], self.settings.sampling).task,
                    "texts": [key[1], *texts[key]],
                    **values,
                }


def _augmented(reference: str, texts: Sequence[str]) -> tuple[AugmentedReference, ...]:
    nothing = Template(reference, ())
    return (AugmentedReference(reference, tuple(Augmentation(MASKED, nothing, text) for text in texts)),)


def _masked_count(analysis: Analysis) -> int:
    return round(MASKED * len(analysis.words))


def _random(analysis: Analysis, number: int) -> list[int]:
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest(analysis.text, number), "little")))
    return [int(index) for index in generator.permutation(len(analysis.words))[: _masked_count(analysis)]]


def _span(analysis: Analysis, number: int) -> list[int]:
    count = _masked_count(analysis)
    first = (len(analysis.words) - count) * number // (COUNT - 1)
    return list(range(first, first + count))


def table(files: Sequence[str]) -> None:
    """What each kind changes and adds, as Markdown: Pearson's r of v3 without samples, by set."""
    by_kind: dict[str, list[FeatureSet]] = {}
    for one in read_features(files, ()):
        for kind in dict.fromkeys(row["kind"] for row in one.rows):
            rows = [row for row in one.rows if row["kind"] == kind]
            by_kind.setdefault(kind, []).append(FeatureSet(one.name, one.level, rows, {}))
    names = [one.name for one in by_kind["ratios"]]
    print(f"| augmentations | words changed | {' | '.join(names)} | mean | adds [95 %] |")
    print(f"| --- |{' ---: |' * (len(names) + 3)}")
    for kind, sets in by_kind.items():
        changed = np.mean([_changed(row["texts"]) for one in sets for row in one.rows])
        without = np.mean([one.resampled(PLAIN(one.items)) for one in sets], axis=0)
        if kind == "ratios":
            _line("none", "", [one.pearson(PLAIN(one.items)) for one in sets], "")
        for how in ("best", "largest"):
            form = replace(PLAIN, infills=how)
            drawn = np.mean([one.resampled(form(one.items)) for one in sets], axis=0) - without
            added = np.mean([one.pearson(form(one.items)) - one.pearson(PLAIN(one.items)) for one in sets])
            interval = Interval.of(drawn, 0.95)
            interval_text = f"{added:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
            _line(
                f"{kind}, {how}", f"{changed:.0%}", [one.pearson(form(one.items)) for one in sets], interval_text
            )


def _line(name: str, changed: str, values: Sequence[float], added: str) -> None:
    numbers = " | ".join(f"{value:.3f}" for value in (*values, float(np.mean(values))))
    print(f"| {name} | {changed} | {numbers} | {added} |")


def _changed(texts: Sequence[str]) -> float:
    """The mean share of an augmentation's words that the reference does not have."""
    reference = set(texts[0].lower().split())
    words = [text.lower().split() for text in texts[1:]]
    return float(np.mean([np.mean([word not in reference for word in some]) for some in words]))


def main() -> None:
    """Write the features, or print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    options.add_argument("files", nargs="+", metavar="FILE.jsonl")
    options.add_argument("--out", type=Path, metavar="FEATURES.jsonl")
    options.add_argument("--groups", type=int, help="groups per file, at most")
    options.add_argument("--preset", default="mini")
    options.add_argument("--store")
    args = options.parse_args()
    if args.out is None:
        table(args.files)
        return
    maker = Maker(args.preset, args.store)
    with args.out.open("w", encoding="utf-8") as file:
        for data in read_rated_sets(args.files, groups=args.groups):
            for line in maker.features(data):
                file.write(row_line(line))


if __name__ == "__main__":
    main()
