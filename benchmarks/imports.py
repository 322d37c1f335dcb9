"""How long ``import mars_score`` and ``mars --help`` take in a new process."""

import subprocess
import sys
from functools import partial

from benchmarks.common import Ratio, parse, report_ratios, speed_parser

CODES = {
    "bare": "pass",
    "import": "import mars_score",
    "help": "from mars_score.cli import main; main(['--help'])",
}


def main() -> None:
    """Run the benchmark."""
    args = parse(speed_parser(__doc__, repeats=5), repeats=15)
    ratios = [
        Ratio("import mars_score / bare python", "import", "bare"),
        Ratio("mars --help / bare python", "help", "bare"),
    ]
    report_ratios(args, {name: partial(_python, code) for name, code in CODES.items()}, ratios)


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
