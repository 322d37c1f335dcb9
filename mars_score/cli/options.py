"""Options that the commands share; those of the settings are made from their dataclasses."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import types
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Union, get_args, get_origin, get_type_hints

from mars_score.data.columns import Columns
from mars_score.presets import DEFAULT_PRESET, PRESETS
from mars_score.settings import SETTING_NAMES, VARIANTS, Settings

_SCORER_OPTIONS = ("preset", "batch_size", "device", "store")


def add_input_options(parser: argparse.ArgumentParser, columns: tuple[str, ...]) -> None:
    """The file and the names of its columns."""
    text = "JSONL (one JSON object a line; also .jsonl.gz), .parquet, or a folder that datasets saved"
    parser.add_argument("file", metavar="FILE", help=text)
    add_column_options(parser, columns)


def add_column_options(parser: argparse.ArgumentParser, columns: tuple[str, ...]) -> None:
    """The names of a file's columns."""
    for column in columns:
        text = f"column of the {column}s (default: {column})"
        parser.add_argument(f"--{column}-column", metavar="NAME", default=column, help=text)


def columns(args: argparse.Namespace) -> Columns:
    """The columns that the options name."""
    context = args.context_column if getattr(args, "use_context", True) else None
    return Columns(args.reference_column, context, getattr(args, "prediction_column", None))


def add_scorer_options(parser: argparse.ArgumentParser) -> None:
    """Preset, device and the like, and all settings."""
    group = parser.add_argument_group("models and machine")
    given = argparse.SUPPRESS  # what is not given stays out, so that defaults live in one place
    group.add_argument(
        "--preset",
        default=given,
        metavar="NAME",
        help=f"which models: {', '.join(PRESETS)} (default: MARS_PRESET, else {DEFAULT_PRESET})",
    )
    group.add_argument("--batch-size", type=int, default=given, metavar="N", help="infills written together")
    group.add_argument(
        "--device", default=given, metavar="NAME", help="cpu, cuda, ... (default: cuda if there is one)"
    )
    group.add_argument(
        "--store",
        default=given,
        metavar="FOLDER",
        help="keep augmentations here (default: MARS_STORE, else the cache)",
    )
    group.add_argument("--no-store", dest="store", action="store_false", default=given, help="keep nothing")
    group.add_argument("--quiet", action="store_true", help="no progress bars")
    _add_settings(parser, Settings, parser.add_argument_group("settings"))


def scorer_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of MarsScorer that were given as options."""
    return {name: getattr(args, name) for name in (*_SCORER_OPTIONS, *SETTING_NAMES) if hasattr(args, name)}


def _add_settings(parser: argparse.ArgumentParser, settings: type, group: argparse._ArgumentGroup) -> None:
    """One option for each field of a settings dataclass; a group for each dataclass within it."""
    hints, texts = get_type_hints(settings), _field_texts(settings)
    for one in dataclasses.fields(settings):
        hint = hints[one.name]
        if dataclasses.is_dataclass(hint):
            title = f"settings: {one.name}"
            _add_settings(parser, hint, parser.add_argument_group(title, inspect.getdoc(hint)))  # type: ignore[arg-type]
            continue
        text = f"Form of the score: {', '.join(VARIANTS)}." if one.name == "variant" else texts.get(one.name, "")
        if one.default not in (None, dataclasses.MISSING):
            text += f" (default: {one.default})"
        option = f"--{one.name.replace('_', '-')}"
        parsing = _parsing(hint)
        if parsing.get("type") is _lines_of:
            text += " The file holds one text a line."
        group.add_argument(option, default=argparse.SUPPRESS, help=text.replace("%", "%%"), **parsing)


def _field_texts(settings: type) -> dict[str, str]:
    """What stands as a string below each field of a dataclass."""
    try:
        body = ast.parse(inspect.getsource(settings)).body[0].body  # type: ignore[attr-defined]
    except OSError:  # installed without sources
        return {}
    texts = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(field.target, ast.Name):
            texts[field.target.id] = " ".join(str(ast.literal_eval(text.value)).replace("``", "").split())
    return texts


def _parsing(hint: Any) -> dict[str, Any]:
    """What argparse needs to know to parse a value of this type."""
    if get_origin(hint) in (Union, types.UnionType):
        hints = [one for one in get_args(hint) if one is not type(None)]
        return _parsing(hints[0]) if len(hints) == 1 else {"type": _number_or_text, "metavar": "X"}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    kind = get_origin(hint) or hint
    parsings: dict[Any, tuple[Callable[[str], Any], str]] = {
        int: (int, "N"),
        float: (float, "X"),
        Mapping: (_json, "JSON"),
        tuple: (_lines_of, "FILE"),
    }
    parse, metavar = parsings.get(kind, (str, "NAME"))
    return {"type": parse, "metavar": metavar}


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    except RecursionError:
        raise argparse.ArgumentTypeError("not JSON that can be read: nested too deeply") from None


def _lines_of(path: str) -> tuple[str, ...]:
    """The lines of a file that are not blank, one document each."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            return tuple(line.strip() for line in file if line.strip())
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"{path}: not UTF-8; convert the file") from None
