"""What commands that read rated candidates have in common: their options."""

import argparse
import dataclasses

from mars_score.data.rated import RatedColumns


def add_rated_options(parser: argparse.ArgumentParser) -> None:
    """The names of columns, and which data sets are compared within groups."""
    group = parser.add_argument_group("columns")
    for column in dataclasses.fields(RatedColumns):
        help_text = f"column of the {column.name} (default: {column.default or 'none'})"
        names = [f"--{column.name}-column", *(["--prediction-column"] if column.name == "candidate" else [])]
        group.add_argument(*names, metavar="NAME", default=column.default, help=help_text)
    group.add_argument(
        "--within-groups",
        type=set_names,
        default=[],
        metavar="SET,...",
        help="data sets (named after their files) whose ratings compare within a group only",
    )


def rated_columns(args: argparse.Namespace) -> RatedColumns:
    """The columns that the options name."""
    return RatedColumns(
        **{one.name: getattr(args, f"{one.name}_column") for one in dataclasses.fields(RatedColumns)}
    )


def set_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
