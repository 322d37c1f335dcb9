"""Ask pip-audit for known vulnerabilities of the pinned versions; exits with 75 if it could not be asked."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PINNED = Path(__file__).parent.parent / "constraints.txt"
# Mirrors of an index may have no advisories, and pip-audit then passes everything: this one it must know.
VULNERABLE = "jinja2==2.4.1\n"
SECONDS = 300
NOT_DONE = 75  # EX_TEMPFAIL of sysexits.h
OPTIONS = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "10"]


def audit(requirements: str) -> list[dict[str, Any]] | None:
    """Return what pip-audit says of each package, see its JSON format; None without an answer (no network)."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        command = [sys.executable, "-m", "pip_audit", "-r", file.name, *OPTIONS]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            return list(json.loads(done.stdout)["dependencies"])
        except (subprocess.TimeoutExpired, ValueError):
            return None


def vulnerable(packages: list[dict[str, Any]] | None) -> list[str]:
    """Write one line for each known vulnerability."""
    return [
        f"{one['name']} {one['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'none'}"
        for one in packages or []
        for known in one.get("vulns", [])
    ]


def main() -> int:
    """Audit and print; the exit status is 0 (none found), 1 (some found) or ``NOT_DONE``."""
    packages = audit(PINNED.read_text(encoding="utf-8")) if vulnerable(audit(VULNERABLE)) else None
    if packages is None:
        print("audit: NOT DONE: no advisory service could be reached", file=sys.stderr)
        return NOT_DONE
    for one in packages:
        if "skip_reason" in one:
            print(f"audit: no advisories for {one['name']} there", file=sys.stderr)
    found = vulnerable(packages)
    print("\n".join(found) or f"audit: no known vulnerability in {len(packages)} packages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
