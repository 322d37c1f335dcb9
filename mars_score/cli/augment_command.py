"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

import argparse
import sys
from typing import Any

from mars_score.cli.arguments import OUT, add_input_options, add_run_options, add_scorer_options
from mars_score.cli.printing import complete_run, print_notices

STAGES = ("masking", "planning", "infilling", "sampling", "models")


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        metavar="AUGMENTED.jsonl",
        help=OUT.format(
            '"augmented_references" (references, infills and samples, as plain strings), "augmentations" (infills '
            'with templates and mask ratios) and "samples"'
        ),
    )
    batch = parser.add_argument_group(
        "samples of another model",
        "Nothing is infilled. Its engine reads one file and writes the other (docs/writers.md).",
    )
    batch.add_argument("--requests", metavar="FILE", help="write what a chat model is to be asked, for --writer")
    batch.add_argument("--writer", metavar="MODEL", help="the name of the chat model in its engine")
    batch.add_argument(
        "--responses", metavar="FILE", help='read its answers, and write the rows with "samples" to --out'
    )
    add_run_options(parser)
    add_scorer_options(parser, STAGES, without=("encoder", "entailment_model"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    if args.requests and args.responses:
        raise ValueError("--requests and --responses exclude each other; give one of them")
    if not (args.out or args.requests):
        raise ValueError("--out is missing; say where the rows are to be written")
    if args.requests and not args.writer:
        raise ValueError("--writer is missing; name the model as its engine calls it")
    if args.requests or args.responses:
        from mars_score.cli.batches import join_responses, write_requests

        (write_requests if args.requests else join_responses)(args)
        return

    from mars_score.data.writers import write

    with complete_run(args, "augment") as (a_run, folder):
        write(a_run.output(), folder, args.out)
        notices = a_run.augment_notices()
    print_notices(notices.sentences(lines=True))
    if not args.quiet:
        print(f"{notices.rows} rows with augmented references written to {args.out}", file=sys.stderr)
