"""BLEU, chrF and BERTScore with and without augmented references, in one table.

More and more diverse references help metrics that compare words, too (Freitag et al. 2020, "BLEU might be Guilty
but References are not Innocent"). Of rated rows (files as for "mars meta") the table shows Pearson's r with the
ratings, of others (such as stories.jsonl) the mean score of each kind of candidate.

Usage: python examples/augmented_references.py [--groups N] [FILES...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mars_score import MarsScorer
from mars_score.cli.running import scoring
from mars_score.cli.tables import show_table
from mars_score.data.files import read_rows
from mars_score.data.rated import read_rated_set
from mars_score.data.validation import Row
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import make_metric
from mars_score.meta.metrics.base import Metric, Models
from mars_score.meta.scoring import scores_of
from mars_score.report.contents import Table, number, signed
from mars_score.settings import resolve_settings
from mars_score.stats.correlation import correlation
from mars_score.store.location import store_folder
from mars_score.store.progress import progress_bars
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime


@dataclass(frozen=True)
class Rows:
    """Candidates with what is known of them: ratings, or else kinds."""

    name: str
    rows: list[Row]
    corpus: Sequence[str]
    ratings: list[float] | None
    kinds: list[str]

    def summarised(self, scores: Sequence[float]) -> dict[str, float]:
        """What the table shows of a metric's scores."""
        if self.ratings is not None:
            return {f"{self.name}: Pearson's r (n = {len(self.rows)})": correlation(scores, self.ratings).value}
        by_kind: dict[str, list[float]] = {}
        for kind, score in zip(self.kinds, scores, strict=True):
            by_kind.setdefault(f"{self.name}: mean of {kind!r}", []).append(score)
        return {kind: sum(some) / len(some) for kind, some in by_kind.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and return the exit code."""
    args = _arguments(argv)
    try:
        with progress_bars(quiet=False) as progress, scoring():
            runtime = Runtime(store=ResultStore(store_folder(None)), progress=progress)
            models = Models(resolve_settings("mini"), runtime)
            metrics = [make_metric(name, models) for name in ("bleu", "chrf", "bertscore")]
            found = [_compare(_read(path, args.groups), metrics, progress) for path in args.files]
    except (ModelUnavailableError, ImportError, OSError, ValueError, TypeError) as error:
        print(f"augmented_references: error: {error}", file=sys.stderr)
        return 1
    show_table(
        Table(
            "Human references alone, and with the references that MARS makes of them",
            "preset mini; a larger r is better; of kinds, good ones should stand above wrong ones",
            ("rows", "metric", "human", "augmented", "change"),
            tuple(row for rows in found for row in rows),
        )
    )
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = [Path(__file__).parent / "stories.jsonl"]
    parser.add_argument("files", nargs="*", metavar="FILES", default=own, help="default: stories.jsonl")
    parser.add_argument("--groups", type=int, metavar="N", help="of rated files a sample of N groups")
    return parser.parse_args(argv)


def _read(path: str | Path, groups: int | None) -> Rows:
    file = read_rows(path)
    name = Path(path).stem
    if "candidates" not in file.rows[0]:
        rated = read_rated_set(path)
        some = rated.sample(groups) if groups else rated
        return Rows(name, some.rows, rated.corpus, some.ratings, [])
    columns = [file.column(column, remedy="see README.md") for column in ("context", "references", "candidates")]
    rows, kinds = [], []
    for context, references, candidates in zip(*columns, strict=True):
        rows += [(one["text"], tuple(references), context) for one in candidates]
        kinds += [one["kind"] for one in candidates]
    return Rows(name, rows, [reference for one in columns[1] for reference in one], None, kinds)


def _compare(data: Rows, metrics: Sequence[Metric], progress: Any) -> list[tuple[str, ...]]:
    """Lines of the table."""
    candidates, references, contexts = zip(*data.rows, strict=True)
    scorer = MarsScorer("mini", variant="fast", max_mask_ratio=0.6, idf_corpus=data.corpus, progress=progress)
    augmented = [
        (candidate, tuple(texts), context)
        for candidate, texts, context in zip(
            candidates, scorer.augment(references, contexts), contexts, strict=True
        )
    ]
    lines = []
    for metric in metrics:
        plain, more = (data.summarised(scores_of(metric, rows, data.corpus)) for rows in (data.rows, augmented))
        lines += [_line(what, metric.title, plain, more) for what in plain]
    return sorted(lines, key=lambda line: list(plain).index(line[0]))


def _line(what: str, title: str, plain: Mapping[str, float], more: Mapping[str, float]) -> tuple[str, ...]:
    return what, title, number(plain[what]), number(more[what]), signed(more[what] - plain[what])


if __name__ == "__main__":
    sys.exit(main())
