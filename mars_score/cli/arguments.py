"""Options that the commands share. Those of settings are made from the configurations."""

import argparse
import dataclasses
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mars_score.data.columns import NAMES, Columns
from mars_score.errors import ColumnError
from mars_score.meta.sets import RATED_COLUMNS
from mars_score.options import Option, options_of
from mars_score.presets import DEFAULT_PRESETS, PRESETS
from mars_score.settings import GROUPS, SETTING_NAMES

if TYPE_CHECKING:
    from mars_score.runs import RunOptions

OUT = (
    "write each row with {}, as JSONL, .csv, .tsv or .parquet by the ending of the name (.gz: compressed); "
    "- writes JSONL to standard output"
)

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_SAMPLES = "column of texts that other systems wrote for the context, one per row or a list"
_TASK = "column with the task of each row; --task applies to empty cells"
_OF_RATED = {
    "rating": "the ratings",
    "group": "labels of what was rated together",
    "system": "labels of the systems that wrote the candidates",
    "id": "labels of the items",
    "single": "each rater's ratings, in lists",
}


def add_input_options(parser: argparse.ArgumentParser, columns: Iterable[str]) -> None:
    """Add the input file and the names of its columns."""
    text = (
        "JSON (one object per line, or a list), .csv, .tsv (also .gz), .parquet, a folder that datasets saved, "
        "or - for standard input, whose first line tells the format"
    )
    parser.add_argument("file", metavar="FILE", help=text)
    add_column_options(parser, columns)


def add_column_options(parser: argparse.ArgumentParser, columns: Iterable[str]) -> None:
    """Add the names of columns. For candidates, also add samples, tasks and ``--no-references``."""
    group = parser.add_argument_group("columns")
    _add_columns(group, columns)
    if "prediction" in columns:
        text = "score candidates by their contexts alone, as variants plus and fast can; references do not count"
        group.add_argument("--no-references", action="store_true", help=text)


def _add_columns(group: argparse._ArgumentGroup, columns: Iterable[str]) -> None:
    for column in columns:
        _add_column(group, column, f"column of the {column}s (default: {column})")
    if "prediction" in columns:
        _add_column(group, "samples", _SAMPLES)
        _add_column(group, "task", _TASK)


def _add_column(group: argparse._ArgumentGroup, column: str, text: str) -> None:
    group.add_argument(f"--{column}-column", metavar="NAME", help=text)


def input_columns(args: argparse.Namespace) -> Columns:
    """Return the columns that the options name."""
    names: dict[str, str | None] = {**_named(args, NAMES)}
    if not hasattr(args, "prediction_column"):
        names["prediction"] = None
    if getattr(args, "no_references", False):
        names["reference"] = None
    if not getattr(args, "use_context", True):
        names["context"] = None
    return Columns.named(names)


def _named(args: argparse.Namespace, holds: Iterable[str]) -> dict[str, str]:
    """Return the names of columns that options give, by what the columns hold."""
    names = {one: getattr(args, f"{one}_column", None) for one in holds}
    return {one: name for one, name in names.items() if name}


def column_options(error: ColumnError, args: argparse.Namespace) -> str:
    """Return the options that name the columns of an error, or do without them, to append to its message."""
    options = [f"--{one}-column" if hasattr(args, f"{one}_column") else f"--{one}" for one in error.holds]
    text = f" with {', '.join(options)}" if options else ""
    if error.holds == ("reference",) and hasattr(args, "no_references"):
        text += ", or pass --no-references to score all rows without"
    if error.holds == ("context",) and not hasattr(args, "rating_column"):
        text += ", or pass --no-use-context"
    return text


def add_rated_options(parser: argparse.ArgumentParser) -> None:
    """Add the columns of a file of rated candidates, and ``--within-groups``."""
    group = parser.add_argument_group("columns")
    _add_columns(group, ("prediction", "reference", "context"))
    for column, default in RATED_COLUMNS.items():
        _add_column(group, column, f"column of {_OF_RATED[column]} (default: {default})")
    text = "data sets (named after their files) whose ratings can be compared only within a group"
    group.add_argument("--within-groups", type=split_names, default=[], metavar="SET,...", help=text)


def rated_columns(args: argparse.Namespace) -> dict[str, str]:
    """Return the columns that the options name."""
    return _named(args, (*NAMES, *RATED_COLUMNS))


@contextmanager
def readable_again(path: str) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Yield a file that can be read several times: a copy of standard input if ``path`` is "-".

    Also yield a function that replaces the path of the copy in a message by "standard input". Messages of errors
    in the block are replaced too.

    Raises:
        ValueError: standard input is closed.
    """
    if path != "-":
        yield path, str
        return
    if sys.stdin is None:  # closed by the caller, as in: mars score - <&-
        raise ValueError("standard input is closed; send the rows to it, or name a file")
    from mars_score.atomic import naming, temporary_folder

    with temporary_folder("mars-stdin-") as folder:
        copy = str(folder / "rows")  # The first line tells the format.

        def rename(message: str) -> str:
            return message.replace(copy, "standard input")

        with naming(copy), open(copy, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy, rename
        except (ValueError, TypeError) as error:
            error.args = (rename(str(error)),)
            raise


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of long runs: workers and the size of a chunk."""
    group = parser.add_argument_group(
        "large files", "A stopped run goes on when the same command is given again: the store has what was done."
    )
    group.add_argument("--workers", type=count, default=1, metavar="N", help="parallel processes (default: 1)")
    text = "rows scored together (default: %(default)s)"
    group.add_argument("--chunk-size", type=count, default=256, metavar="N", help=text)


def run_options(args: argparse.Namespace) -> "RunOptions":
    """Return the options of a run."""
    from mars_score.runs import RunOptions

    columns, arguments = input_columns(args), scorer_arguments(args)
    return RunOptions(args.file, columns, arguments, args.out, args.chunk_size, args.workers)


def count(text: str) -> int:
    """Convert an option's text to a positive integer."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def split_names(text: str) -> list[str]:
    """Split names at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def add_scorer_options(
    parser: argparse.ArgumentParser, groups: Iterable[str] = tuple(GROUPS), without: Iterable[str] = ()
) -> None:
    """Add the options of the machine (device, batch sizes, store), the preset and the settings.

    Args:
        parser: the parser of a command.
        groups: the groups of settings (:data:`mars_score.settings.GROUPS`) that the command uses.
        without: settings of these groups that the command does not use, or for which it has its own options.
    """
    group = parser.add_argument_group("machine")
    add = partial(group.add_argument, default=argparse.SUPPRESS)  # The defaults are those of MarsScorer.
    add("--batch-size", type=int, metavar="N", help="infills generated together (default: as memory allows)")
    add("--encoder-batch-size", type=int, metavar="N", help="texts encoded together (default: 32)")
    add("--device", metavar="NAME", help="cpu, cuda, ... (default: cuda where available)")
    text = "folder of the store (default: MARS_STORE, else the user's cache folder)"
    add("--store", metavar="FOLDER", help=text)
    add("--no-store", dest="store", action="store_false", help="no store: everything is computed anew")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    for title, options in setting_groups().items():
        if title in groups:
            heading = title if title in ("settings", "models") else f"settings of {title}"
            used = [option for option in options if option.name not in without]
            _add_settings(parser.add_argument_group(heading), used)


def scorer_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of MarsScorer that the user set."""
    names = ("preset", "batch_size", "encoder_batch_size", "device", "store", *SETTING_NAMES)
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def setting_groups() -> dict[str, list[Option]]:
    """Return the settings by group, each once. Settings of several variants are in the group "settings"."""
    groups = {title: list(options_of(config)) for title, config in GROUPS.items()}
    counts = Counter(option.name for options in groups.values() for option in options)
    single = {title: [option for option in group if counts[option.name] == 1] for title, group in groups.items()}
    single["settings"] += [option for option in groups["paper"] if counts[option.name] > 1]
    return single


def _add_settings(group: argparse._ArgumentGroup, options: Iterable[Option]) -> None:
    """Add an option for each setting. The group "models" begins with the preset."""
    if group.title == "models":
        usual = ", ".join(f"{name} for {variant}" for variant, name in DEFAULT_PRESETS.items())
        text = f"all of them: {', '.join(PRESETS)} (default: MARS_PRESET, else {usual})"
        group.add_argument("--preset", metavar="NAME", default=argparse.SUPPRESS, help=text)
    for option in options:
        text = option.text
        if option.default not in (None, dataclasses.MISSING):
            text += f" (default: {option.default})"
        name = f"--{option.name.replace('_', '-')}"
        group.add_argument(name, default=argparse.SUPPRESS, help=text.replace("%", "%%"), **_parsing(option))


def _parsing(option: Option) -> dict[str, Any]:
    """Return the arguments of ``add_argument`` that parse a setting."""
    parsings: dict[Any, dict[str, Any]] = {
        bool: {"action": argparse.BooleanOptionalAction},
        int: {"type": int, "metavar": "N"},
        float: {"type": float, "metavar": "X"},
        dict: {"type": _json, "metavar": "JSON"},
        tuple: {"metavar": "FILE"},
    }
    return parsings.get(option.kind, {"choices": option.choices} if option.choices else {"metavar": "NAME"})


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
