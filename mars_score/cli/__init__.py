"""The command ``mars``.

Exit codes: 0 done; 1 a model is not available, or a worker died; 2 bad input or usage; 3 scores below a threshold;
129 hung up; 130 interrupted; 143 terminated.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from mars_score.cli import compare_command, meta_command, score_command, store_command, train_command
from mars_score.cli.arguments import column_options
from mars_score.cli.project import with_project_options
from mars_score.errors import ColumnError, ModelUnavailableError, WorkerError
from mars_score.models.running import set_passive_omp_wait
from mars_score.progress import hide_library_output
from mars_score.text import one_line
from mars_score.version import __version__


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong option in one line, without argparse's usage message."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise a ValueError, which :func:`main` reports."""
        raise ValueError(f"{message} (see: {self.prog} --help)")


def make_parser() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Make the parser of ``mars`` and those of its commands, by name."""
    parser = Parser(
        prog="mars",
        description="MARS: scores generated text by human references and by the context it was written for.",
    )
    parser.add_argument("--version", action="version", version=f"mars {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (score_command, compare_command, meta_command, train_command, store_command):
        module.add_parser(commands)
    return parser, commands.choices


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse arguments together with the project's options.

    Raises:
        ValueError: wrong arguments. The message suggests a command or option, and where to find help.
    """
    parser, commands = make_parser()
    command = next((argument for argument in argv if not argument.startswith("-")), None)
    if command is not None and command not in commands:
        close = get_close_matches(command, commands, n=1)
        remedy = f"did you mean mars {close[0]}?" if close else f"choose one of {', '.join(commands)}"
        raise ValueError(f"unknown command {command!r}; {remedy} (see: mars --help)")
    args, unknown = parser.parse_known_args(with_project_options(argv, commands))
    if unknown:
        options = list(commands[args.command]._option_string_actions)
        words = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        close = [match for word in words for match in get_close_matches(word, options, n=1)]
        remedy = f"; did you mean {close[0]}?" if close else ""
        commands[args.command].error(f"unrecognized arguments: {' '.join(unknown)}{remedy}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mars`` with ``argv``, by default the arguments of the process, and return its exit code."""
    _reserve_closed_streams()
    set_passive_omp_wait()
    hide_library_output()
    _stop_cleanly()
    if sys.stdout is None:  # closed by the caller, as in: mars score ... >&-
        return _fail("standard output is closed; send it to /dev/null if nobody is to read it", 2)
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
        code = args.run(args) or 0
        sys.stdout.flush()
    except SystemExit as stop:  # --help and --version exit.
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # The reader has gone, as in: mars score ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ModelUnavailableError, ImportError, WorkerError) as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except ColumnError as error:
        return _fail(f"{error}{column_options(error, args)}", 2)
    except (ValueError, TypeError) as error:
        return _fail(str(error), 2)
    return int(code)


def _reserve_closed_streams() -> None:
    """Open the null device in place of standard streams that the caller closed, as in ``mars score ... 2>&-``.

    Otherwise a file would get the number of the closed stream, and the output of libraries and workers would go
    into it. ``sys.stdin`` and ``sys.stdout`` stay None, because commands need them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
    if sys.stderr is None:  # print() would write to standard output.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _stop_cleanly() -> None:
    """Make SIGTERM and SIGHUP end the command as Ctrl-C does, so that temporary folders are removed."""
    if threading.current_thread() is not threading.main_thread():
        return
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _send_again
    signal.signal(signal.SIGTERM, _exit)
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:  # nohup ignores it.
        signal.signal(hang_up, _exit)


def _exit(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _send_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Send a signal again if Python ignored its exception, which was raised in a destructor or a callback."""
    stop = ignored.exc_value
    if not isinstance(stop, SystemExit | KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    number = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else int(stop.code or 0) - 128
    again = threading.Timer(0.5, os.kill, (os.getpid(), number))  # An immediate signal would be ignored again.
    again.daemon = True
    again.start()


def _fail(message: str, code: int) -> int:
    print(f"mars: error: {one_line(message)}", file=sys.stderr)
    return code
