"""How long ``import mars_score`` and ``mars --help`` take in a new process."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.common import in_turns, median_ratio, medians, parse, report, speed_parser

HELP = "from mars_score.cli import main; main(['--help'])"


def main() -> None:
    """Run the benchmark."""
    args = parse(speed_parser(__doc__, repeats=5), repeats=15)
    codes = {"bare": "pass", "import": "import mars_score", "help": HELP}
    runs = {name: partial(_python, code) for name, code in codes.items()}
    in_turns(runs, 1)  # warm-up
    seconds = in_turns(runs, args.repeats)
    figures = medians(seconds)
    for name, what in (("import", "import mars_score"), ("help", "mars --help")):
        report(args, f"{what} / bare python", median_ratio(seconds[name], seconds["bare"]), None, figures)


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
