"""Options that the commands share; those of the settings are made from their dataclasses."""

import argparse
import dataclasses
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mars_score.data.files import Columns
from mars_score.meta.rated import RatedColumns
from mars_score.settings import SETTING_NAMES, STAGES, Settings
from mars_score.settings.options import Setting, settings_of
from mars_score.settings.presets import DEFAULT_PRESET, PRESETS

OUT = (
    "write each row with {}; by the name's end as JSONL, .csv, .tsv or .parquet (.gz: compressed), - to standard "
    "output as JSONL"
)
_SCORER_OPTIONS = ("preset", "batch_size", "encoder_batch_size", "device", "store")


def add_input_options(parser: argparse.ArgumentParser, columns: tuple[str, ...]) -> None:
    """The file and the names of its columns."""
    text = (
        "JSON (one object per line, or a list), .csv, .tsv (also .gz), .parquet, a folder that datasets saved, "
        "or - for JSON from standard input"
    )
    parser.add_argument("file", metavar="FILE", help=text)
    add_column_options(parser, columns)


def add_column_options(parser: argparse.ArgumentParser, columns: tuple[str, ...]) -> None:
    """The names of a file's columns; where candidates are among them, references can be left out."""
    group = parser.add_argument_group("columns")
    for column in columns:
        text = f"column of the {column}s (default: {column})"
        group.add_argument(f"--{column}-column", metavar="NAME", default=column, help=text)
    if "prediction" in columns:
        text = "column of texts that others than the scored system wrote for the context: one, or a list"
        group.add_argument("--samples-column", metavar="NAME", help=text)
        text = "score candidates by their contexts alone, as variants plus and fast can; references do not count"
        group.add_argument("--no-references", action="store_true", help=text)


def columns(args: argparse.Namespace) -> Columns:
    """The columns that the options name."""
    reference = None if getattr(args, "no_references", False) else args.reference_column
    context = args.context_column if getattr(args, "use_context", True) else None
    prediction, samples = (getattr(args, f"{name}_column", None) for name in ("prediction", "samples"))
    return Columns(reference, context, prediction, samples)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options for several workers."""
    group = parser.add_argument_group(
        "large files", "A stopped run goes on when the same command is given again: the store has what was done."
    )
    group.add_argument("--workers", type=count, default=1, metavar="N", help="parallel processes (default: 1)")
    text = "rows scored together (default: %(default)s)"
    group.add_argument("--chunk-size", type=count, default=256, metavar="N", help=text)


def count(text: str) -> int:
    """A positive integer from an option's text."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def add_rated_options(parser: argparse.ArgumentParser) -> None:
    """The names of a file's columns if its candidates are rated, and which data sets compare within groups."""
    group = parser.add_argument_group("columns")
    for column in dataclasses.fields(RatedColumns):
        text = f"column of the {column.name} (default: {column.default or 'none'})"
        names = [f"--{column.name}-column", *(["--prediction-column"] if column.name == "candidate" else [])]
        group.add_argument(*names, metavar="NAME", default=column.default, help=text)
    text = "data sets (named after their files) whose ratings compare within a group only"
    group.add_argument("--within-groups", type=set_names, default=[], metavar="SET,...", help=text)


def rated_columns(args: argparse.Namespace) -> RatedColumns:
    """The columns that the options name."""
    names = [column.name for column in dataclasses.fields(RatedColumns)]
    return RatedColumns(**{name: getattr(args, f"{name}_column") for name in names})


def set_names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def add_scorer_options(
    parser: argparse.ArgumentParser, stages: Iterable[str] = tuple(STAGES), without: tuple[str, ...] = ()
) -> None:
    """Preset, device and the like, the general settings, and those of some stages.

    Args:
        parser: of a command.
        stages: of :data:`mars_score.settings.STAGES`, those that the command uses.
        without: settings of these that it does not use, or has options of its own for.
    """
    group = parser.add_argument_group("models and machine")
    add = partial(group.add_argument, default=argparse.SUPPRESS)  # defaults stand in MarsScorer alone
    presets = f"which models: {', '.join(PRESETS)} (default: MARS_PRESET, else {DEFAULT_PRESET})"
    add("--preset", metavar="NAME", help=presets)
    add("--batch-size", type=int, metavar="N", help="infills generated together (default: as memory allows)")
    add("--encoder-batch-size", type=int, metavar="N", help="texts embedded together (default: 32)")
    add("--device", metavar="NAME", help="cpu, cuda, ... (default: cuda where available)")
    add(
        "--store", metavar="FOLDER", help="folder of the store (default: MARS_STORE, else the user's cache folder)"
    )
    add("--no-store", dest="store", action="store_false", help="no store: everything is computed anew")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    _add_settings(parser, stages, without)


def scorer_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of MarsScorer that were given as options."""
    return {name: getattr(args, name) for name in (*_SCORER_OPTIONS, *SETTING_NAMES) if hasattr(args, name)}


def _add_settings(parser: argparse.ArgumentParser, stages: Iterable[str], without: tuple[str, ...]) -> None:
    """One option for each setting, in a group for each stage."""
    groups = {"settings": Settings} | {f"settings: {name}": STAGES[name] for name in stages}
    for title, stage in groups.items():
        group = parser.add_argument_group(title, None if stage is Settings else inspect.getdoc(stage))
        for setting in settings_of(stage):
            if setting.name in without:
                continue
            notes = [setting.text]
            if setting.kind is tuple:
                notes.append("The file has one text per line.")
            if setting.default not in (None, dataclasses.MISSING):
                notes.append(f"(default: {setting.default})")
            option, text = f"--{setting.name.replace('_', '-')}", " ".join(notes).replace("%", "%%")
            group.add_argument(option, default=argparse.SUPPRESS, help=text, **_parsing(setting))


def _parsing(setting: Setting) -> dict[str, Any]:
    """What argparse needs to parse a setting."""
    if setting.kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if setting.choices:
        return {"choices": setting.choices}
    parsings: dict[Any, tuple[Callable[[str], Any], str]] = {
        int: (int, "N"),
        float: (float, "X"),
        Mapping: (_json, "JSON"),
        tuple: (_lines_of, "FILE"),
    }
    parse, metavar = parsings.get(setting.kind, (str, "NAME"))
    return {"type": parse, "metavar": metavar}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None


def _lines_of(path: str) -> tuple[str, ...]:
    """The lines of a file that are not blank."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            return tuple(line.strip() for line in file if line.strip())
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{path}: not UTF-8; convert the file") from None
