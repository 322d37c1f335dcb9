"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

import argparse
from typing import Any

from mars_score.cli.arguments import OUT, add_input_options, add_run_options, add_scorer_options
from mars_score.cli.file_run import complete_run
from mars_score.cli.printing import print_error, print_notices

_UNUSED = ("task", "clean", "learned", "encoder", "entailment_model", "q", "reference_aggregation")


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts, as variant paper does."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        required=True,
        metavar="AUGMENTED.jsonl",
        help=OUT.format(
            '"augmented_references" (references and infills, as plain strings) and "augmentations" (infills with '
            "templates and mask ratios)"
        ),
    )
    add_run_options(parser)
    add_scorer_options(parser, ("settings", "models", "paper"), without=_UNUSED)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    from mars_score.data.writing import write

    with complete_run(args, "augment") as (a_run, folder):
        notices = a_run.notices()
        write(a_run.output(), folder, args.out)  # Perhaps in the place of the input.
    print_notices(notices.sentences(lines=True))
    if not args.quiet:
        print_error(f"{notices.rows} rows with augmented references written to {args.out}")
