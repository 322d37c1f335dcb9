"""Read a project's options, the table ``[tool.mars]`` of pyproject.toml. The command line overrides them."""

import argparse
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mars_score.settings import ARGUMENTS, SETTING_NAMES

FILE = "pyproject.toml"


def project_file() -> Path | None:
    """Return the nearest pyproject.toml in the working folder or above, or None if it has no ``[tool.mars]``."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        path = folder / FILE
        if path.is_file():
            return path if _table(path) else None
    return None


def with_project_options(argv: Sequence[str], parsers: Mapping[str, argparse.ArgumentParser]) -> list[str]:
    """Insert the project's options before those of the command line, which override them, and print them.

    Raises:
        ValueError: no command has an option, or it does not take the value.
    """
    path = project_file()
    if path is None or not argv or argv[0] not in parsers:
        return list(argv)
    given = []
    for key, value in _table(path).items():
        name = f"--{key.replace('_', '-')}"
        if not any(name in _options(parser) for parser in parsers.values()):
            raise ValueError(f"{path}: [tool.mars] has {key!r}, which is an option of no command; see mars --help")
        if action := _options(parsers[argv[0]]).get(name):
            given += _as_argument(f"{path}: {key}", name, value, action)
    if given:
        print(f"mars: options of {path}: {shlex.join(given)}", file=sys.stderr)
    return [argv[0], *given, *argv[1:]]


def project_settings() -> dict[str, Any]:
    """Return the arguments and settings of :class:`mars_score.MarsScorer` in ``[tool.mars]``.

    Other options of the command line, such as gates, are left out.

    Raises:
        ValueError: the file cannot be read.
    """
    path = project_file()
    options = {key.replace("-", "_"): value for key, value in (_table(path) if path else {}).items()}
    switched_off = {key.removeprefix("no_"): not value for key, value in options.items() if key.startswith("no_")}
    return {
        key: value for key, value in {**options, **switched_off}.items() if key in (*ARGUMENTS, *SETTING_NAMES)
    }


def _table(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    table = document.get("tool", {}).get("mars", {})
    if not isinstance(table, dict):
        raise ValueError(f"{path}: [tool.mars] must be a table of options")
    return table


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return parser._option_string_actions


def _as_argument(where: str, name: str, value: object, action: argparse.Action) -> list[str]:
    """Return the command-line arguments that give a value to an option."""
    if isinstance(value, bool):
        if not value and isinstance(action, argparse.BooleanOptionalAction):
            return [name.replace("--", "--no-", 1)]
        if action.nargs in (0, "?") or isinstance(action, argparse.BooleanOptionalAction):
            return [name] if value else []
    elif isinstance(value, (str, int, float)) and action.nargs != 0:
        return [f"{name}={value}"]
    raise ValueError(f"{where} = {value!r} is no value of the option {name}")
