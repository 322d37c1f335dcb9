"""The parser of ``mars``: faults in one line, and help that fits a screen."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

_TEXT_COLUMN = 24  # where the help of options begins


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage that argparse puts before it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
        self._usual: Mapping[str, str | None] = {}
        self._examples: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Raise what :func:`mars_score.cli.main` reports."""
        raise ValueError(f"{message} (see: {self.prog} --help)")

    def shorten_help(self, usual: Mapping[str, str | None], examples: Sequence[str]) -> None:
        """Let ``--help`` list some options, and ``--help-all`` all.

        Args:
            usual: the names under which argparse stores the options to list, each with a shorter text or None.
            examples: command lines.
        """
        self._usual, self._examples = usual, examples
        self.add_argument("--help-all", action=_FullHelp, help="show all options and exit")

    def format_help(self) -> str:
        """What ``--help`` prints."""
        if not self._usual:
            return self.format_full_help()
        known = {action.dest: action for action in reversed(self._actions)}  # the first of those with one name
        positional = [action for action in self._actions if not action.option_strings]
        formatter = argparse.HelpFormatter(self.prog, max_help_position=_TEXT_COLUMN)
        names = " ".join(str(action.metavar) for action in positional)
        formatter.add_usage(f"%(prog)s {names}{'...' * (positional[0].nargs == '+')} [options]", [], [])
        formatter.add_text(self.description)
        formatter.start_section("the usual options")
        formatter.add_arguments(
            [_with_help(action, self._usual.get(action.dest)) for action in positional]
            + [_with_help(known[name], text) for name, text in self._usual.items() if known[name].option_strings]
        )
        formatter.end_section()
        shown = sum(action.help != argparse.SUPPRESS for action in self._actions if action.option_strings)
        examples = "\n".join(["examples:", *(f"  {example}" for example in self._examples)])
        last = f"{self.prog} --help-all lists all {shown} options."
        return f"{formatter.format_help()}\n{examples}\n\n{last}\n"

    def format_full_help(self) -> str:
        """What ``--help-all`` prints."""
        return super().format_help()


class _FullHelp(argparse.Action):
    """Prints all options and stops."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        print(parser.format_full_help(), end="")
        parser.exit()


def _with_help(action: argparse.Action, text: str | None) -> argparse.Action:
    """``action`` with another help text; None: its own."""
    if text is None:
        return action
    changed = copy.copy(action)
    changed.help = text
    return changed
