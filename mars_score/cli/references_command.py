"""``mars references``: describe the references of a data set, before anyone scores with them."""

import argparse
import json
from typing import Any

from mars_score.cli.arguments import add_input_options, add_scorer_options, input_columns, scorer_arguments
from mars_score.cli.file_run import readable_again
from mars_score.cli.printing import print_line, print_notices, scoring, show_table
from mars_score.progress import progress_bars

_UNUSED = (
    *("variant", "task", "clean", "language", "learned", "max_context_tokens", "reference_aggregation"),
    *("language_model", "entailment_model"),
)


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Describe the references of a file: number, length, diversity, overlap with the context, odd ones."
    example = "example: mars references rows.jsonl --preset mini"
    parser = commands.add_parser("references", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    rated = parser.add_argument_group("ratings of references")
    text = "column of people's ratings of the references: of each row a list as long as theirs, null where none"
    rated.add_argument("--ratings", metavar="NAME", help=text)
    text = "write each row with the reference of the highest rating alone (the first of equals), as JSONL"
    rated.add_argument("--best", metavar="BEST.jsonl", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the figures of every row")
    add_scorer_options(parser, ("settings", "models"), without=_UNUSED)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Survey and print; see :func:`mars_score.cli.main` for errors."""
    from mars_score.atomic import write_whole
    from mars_score.data.reading import read_rows
    from mars_score.data.writing import row_line
    from mars_score.meta.reference_survey import survey_references
    from mars_score.scorer import MarsScorer

    if args.best and not args.ratings:
        raise ValueError("--best needs the ratings that decide: name their column with --ratings")
    with readable_again(args) as shown, progress_bars(quiet=args.quiet) as progress, scoring() as notices:
        columns = input_columns(args)
        file = columns.parse_cells(read_rows(args.file))
        names = columns.found_in(file)
        names.rows(file)  # its errors name the line
        scorer = MarsScorer(**{"variant": "plus", **scorer_arguments(args)}, progress=progress)
        found = survey_references(
            scorer,
            file.column(names.reference, remedy="") if names.reference else None,
            file.column(names.context, remedy="") if names.context else None,
            file.column(args.ratings, remedy="add the ratings or leave --ratings out") if args.ratings else None,
            file.where(args.ratings),
        )
    if args.best and names.reference:
        best = zip(file.rows, found.rows, found.best, strict=True)
        lines = [row_line({**row, names.reference: one.references[index]}) for row, one, index in best]
        write_whole(args.best, "".join(lines))
    print_notices(map(shown, notices))
    if args.json:
        print(json.dumps(found.to_dict()))
        return
    for table in found.tables():
        show_table(table)
    print_line(f"encoder {found.encoder}")
