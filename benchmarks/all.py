"""Run all benchmarks of speed one after the other, each in its own process."""

import subprocess
import sys

from benchmarks.common import progress, speed_parser

SCRIPTS = (
    *("imports", "planned_step", "augmentation", "first_score", "scoring", "stored", "systems", "growth"),
    "two_processes",
)


def main() -> int:
    """Run the benchmarks, and return 1 if one failed."""
    args = speed_parser(__doc__).parse_args()
    passed_on = [f"--{name}" for name in ("json", "full") if getattr(args, name)]
    failed = []
    for name in SCRIPTS:
        progress(f"== {name}")
        command = [sys.executable, "-m", f"benchmarks.{name}", *passed_on]
        if subprocess.run(command).returncode:
            failed.append(name)
    if failed:
        progress(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
