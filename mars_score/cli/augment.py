"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mars_score.cli import inputs
from mars_score.cli.options import add_input_options, add_scorer_options, scorer_arguments
from mars_score.cli.running import progress_bars, scoring
from mars_score.rowfiles import read_rows, whole_file, write_row


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    parser = commands.add_parser("augment", help=text, description=text)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        metavar="AUGMENTED.jsonl",
        required=True,
        help='write each row with "augmented_references" (its references and what they became, as plain strings) '
        'and "augmentations" (with templates and mask ratios)',
    )
    add_scorer_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    file = read_rows(args.file)
    texts = inputs.references(file, args), inputs.contexts(file, args)
    from mars_score.result import augmented_to_dict
    from mars_score.scorer import MarsScorer

    with progress_bars(quiet=args.quiet) as progress:
        scorer = MarsScorer(**scorer_arguments(args), progress=progress)
        with whole_file(args.out) as out:
            with scoring() as notices:
                augmented = scorer.augment_references(*texts)
            for row, references in zip(file.rows, augmented, strict=True):
                plain = dict.fromkeys(text for reference in references for text in reference.texts)
                details = [augmented_to_dict(reference) for reference in references]
                write_row(out, {**row, "augmented_references": list(plain), "augmentations": details})
    for notice in notices:
        print(f"mars: notice: {notice}", file=sys.stderr)
    print(f"{len(file.rows)} rows with augmented references written to {args.out}", file=sys.stderr)
