"""Say what keeps the version in mars_score/version.py from being released; exits with 1 if anything does."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def faults(version: str, changelog: str, citation: str, tags: list[str], changes: str) -> list[str]:
    """Return a line for each fault.

    Args:
        version: to be released.
        changelog: text of CHANGELOG.md.
        citation: text of CITATION.cff.
        tags: of the repository.
        changes: what ``git status --porcelain`` prints.
    """
    found = []
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, flags=re.MULTILINE):
        found.append(f'CHANGELOG.md has no heading "## [{version}] - YYYY-MM-DD"')
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff is not of version {version}")
    if f"v{version}" in tags:
        found.append(f"the tag v{version} exists; raise the version in mars_score/version.py")
    if changes:
        found.append("there are changes that are not committed")
    return found


def main() -> int:
    """Print the faults of this checkout."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    names = ("mars_score/version.py", "CHANGELOG.md", "CITATION.cff")
    code, changelog, citation = ((ROOT / name).read_text(encoding="utf-8") for name in names)
    [version] = re.findall(r'^__version__ = "(.*)"$', code, flags=re.MULTILINE)
    found = faults(version, changelog, citation, git("tag").split(), git("status", "--porcelain"))
    print("\n".join(found) or f"release: nothing keeps {version} from being released")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
