"""Rows that were scored before, by ``MarsScorer.score`` and ``mars score``, against reading their file.

A few invented rows are scored with preset mini. Then the store is given the scores of many, each with the parts of
one of these few: what is timed is the look-up. The few are also scored from their kept vectors and samples, as
rows are that have a new setting.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

from benchmarks.common import (
    fresh_store,
    in_turns,
    median_ratio,
    medians,
    parse,
    progress,
    report,
    seconds_of,
    speed_parser,
)
from benchmarks.streaming import MARS, write_rows
from benchmarks.texts import invented
from mars_score import MarsScorer
from mars_score.data.files import read_rows
from mars_score.scoring.kept import KIND, row_key
from mars_score.store.results import ResultStore

SENTENCES = 3  # of a context


def main() -> None:
    """Run the benchmark."""
    options = speed_parser(__doc__, repeats=5)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--scored", type=int, default=16, help="rows that are really scored")
    args = parse(options, repeats=9)
    texts = invented(args.rows, SENTENCES)
    columns = ([one.candidate for one in texts], [one.reference for one in texts], [one.context for one in texts])
    few = tuple(column[: args.scored] for column in columns)
    penalties = (0.3 - number / 1000 for number in count(1))  # a setting that changes no vector
    with fresh_store() as store:
        progress(f"scoring {args.scored} rows")
        scorer = MarsScorer("mini", variant="plus", store=store)
        scored = scorer.score(*few).rows.encoded  # type: ignore[attr-defined]
        key = row_key(scorer.settings)
        assert key is not None
        keys = [key((one.candidate, (one.reference,), one.context)) for one in texts]
        entries = {one: scored[number % len(scored)] for number, one in enumerate(keys)}
        ResultStore(store).put(KIND, entries)
        files = [Path(store) / "rows.jsonl", Path(store) / "one.jsonl"]
        for file, some in zip(files, (texts, texts[:1]), strict=True):
            rows = [
                {"prediction": one.candidate, "reference": one.reference, "context": one.context} for one in some
            ]
            write_rows(file, rows)

        def from_vectors() -> float:
            other = MarsScorer("mini", variant="plus", store=store, repetition_penalty=next(penalties))
            return seconds_of(lambda: other.score(*few))

        runs = {
            "reading": lambda: seconds_of(lambda: read_rows(files[0])),
            "score": lambda: seconds_of(lambda: scorer.score(*columns)),
            "score_with_parts": lambda: seconds_of(lambda: list(scorer.score(*columns).rows)),
            "from_vectors": from_vectors,
            "mars_score": lambda: seconds_of(lambda: _mars_score(files[0], store)),
            "mars_score_of_one_row": lambda: seconds_of(lambda: _mars_score(files[1], store)),
        }
        in_turns(runs, 1)  # warm-up
        seconds = in_turns(runs, args.repeats)
    figures = {"bytes_of_a_row": sum(map(len, entries.values())) / len(entries), **medians(seconds)}
    reading = seconds["reading"]
    report(args, "kept rows, score / reading the file", median_ratio(seconds["score"], reading), 3.0, figures)
    with_parts = median_ratio(seconds["score_with_parts"], reading)
    report(args, "kept rows, score and all its parts / reading the file", with_parts, None, figures)
    command = [
        whole - start for whole, start in zip(seconds["mars_score"], seconds["mars_score_of_one_row"], strict=True)
    ]
    report(
        args,
        "kept rows, mars score without start-up / reading the file",
        median_ratio(command, reading),
        None,
        figures,
    )
    before = [one * args.rows / args.scored for one in seconds["from_vectors"]]
    report(args, "rows from kept vectors / kept rows", median_ratio(before, seconds["score"]), None, figures)


def _mars_score(file: Path, store: Path) -> None:
    out = file.with_suffix(".out.jsonl")
    options = ["--preset", "mini", "--quiet", "--store", str(store)]
    command = [sys.executable, "-c", MARS, "score", str(file), "--out", str(out), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    if json.loads(out.read_text(encoding="utf-8").splitlines()[-1])["mars"] is None:
        raise AssertionError("the last row has no score")
    out.unlink()


if __name__ == "__main__":
    main()
