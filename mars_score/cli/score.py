"""``mars score``: MARS of the candidates in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mars_score.cli.estimate import show_estimate
from mars_score.cli.options import (
    FORMATS,
    USUAL,
    add_input_options,
    add_no_references_option,
    add_scorer_options,
    add_short_option,
    scorer_arguments,
)
from mars_score.cli.runs import OUT, add_run_options, count, done_run


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Score the candidates of a file by their references and contexts, or by their contexts alone."
    parser = commands.add_parser("score", help=text, description=text)
    add_input_options(parser, ("prediction", "reference", "context"))
    add_no_references_option(parser)
    parser.add_argument("--out", metavar="SCORES.jsonl", help=OUT.format('its score as "mars"'))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_short_option(parser)
    parser.add_argument("--detailed", action="store_true", help="also show the augmented references of every row")
    parser.add_argument(
        "--explain", type=count, metavar="N", help="also explain the N lowest rows: matches by word, nearest texts"
    )
    parser.add_argument(
        "--scale",
        action="store_true",
        help="also say where the mean lies from an unrelated reference (0 %%) to the reference itself (100 %%)",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="only say how long it will take, by scoring a few rows; --out is not used",
    )
    gate = parser.add_argument_group("gates", "Exit status 3, with the rows on standard error, if")
    gate.add_argument("--fail-under", type=float, metavar="X", help="the mean score is below X")
    gate.add_argument("--fail-rows-under", type=float, metavar="Y", help="the score of any row is below Y")
    add_run_options(parser)
    add_scorer_options(parser)
    parser.shorten_help(
        {
            "file": FORMATS,
            **USUAL,
            "out": "write each row with its score, in any of these formats",
            "json": None,
            "detailed": None,
            "explain": "also explain the N lowest rows",
            "estimate": "only say how long it will take",
            "fail_under": "exit status 3 if the mean score is below X",
            "workers": None,
        },
        [
            "mars score rows.jsonl --preset mini",
            "mars score rows.csv --preset mini --out scores.csv --reference-column answer",
        ],
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score, write and print; see :func:`mars_score.cli.main` for errors.

    Returns:
        The exit code: 3 if scores are below their thresholds, else 0.
    """
    if args.out == "-" and args.json:
        raise ValueError("--json and --out - both write to standard output; give one of them")
    if args.estimate:
        return show_estimate(args)
    from mars_score.compare.gates import check_threshold, failures

    check_threshold("--fail-under", args.fail_under)
    check_threshold("--fail-rows-under", args.fail_rows_under)
    from mars_score.cli.results import show_json, show_text
    from mars_score.cli.scale import SCALE, scale_of
    from mars_score.runs.explaining import EXPLANATIONS, explained
    from mars_score.runs.interval import INTERVAL
    from mars_score.runs.tally import Tally
    from mars_score.runs.writing import write_scores
    from mars_score.scorer import MarsScorer

    def work(a_run: Any, workers: Any) -> None:
        a_run.reuse()
        a_run.augment(workers)
        a_run.sample(workers)
        a_run.score(workers)

    def write(a_run: Any, folder: Path) -> Any:
        tally, interval = write_scores(a_run, folder, rows=args.out is not None)
        a_run.records.note(INTERVAL, interval)
        if args.scale:
            a_run.records.note(SCALE, scale_of(a_run, MarsScorer(**scorer_arguments(args)), tally.mean))
        if args.explain:
            a_run.records.note(EXPLANATIONS, explained(a_run, args.explain))
        return tally

    with done_run(args, work, write) as (a_run, told):
        if args.out != "-":
            if args.json:
                show_json(a_run, detailed=args.detailed)
            else:
                show_text(a_run, detailed=args.detailed, short=args.short)
        rows = (
            (number + 1, row.score.score, candidate)
            for part, scored in a_run.scored()
            for number, row, candidate in zip(part.file.numbers, scored, part.candidates, strict=True)
        )
        mean = Tally.from_dict(told).mean
        failed = list(failures(mean, rows, args.fail_under, args.fail_rows_under, row_word="line"))
    for line in failed:
        print(f"mars: {line}", file=sys.stderr)
    return 3 if failed else 0
