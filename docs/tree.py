"""Write the tree of the files in CONTRIBUTING.md, from the first line of each: ``python -m docs.tree``."""

import ast
import re
from pathlib import Path

from mars_score.atomic import write_whole

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
FOLDERS = ("mars_score", "space")
_BLOCK = re.compile(r"(<!-- tree -->\n```\n).*?(```\n<!-- /tree -->)", re.DOTALL)


def tree() -> str:
    """Return a line for each file of code with its first line, and for each folder that of its ``__init__.py``."""
    lines = []
    for folder in FOLDERS:
        for path in sorted(
            (ROOT / folder).rglob("*.py"), key=lambda path: path.with_name(path.name.lower()).parts
        ):
            name = path.relative_to(ROOT)
            depth = len(name.parts) - (2 if name.name == "__init__.py" else 1)
            shown = f"{name.parent.name}/" if name.name == "__init__.py" else name.name
            lines.append(f"{'  ' * depth}{shown:<{26 - 2 * depth}}{_first_line(path)}")
    return "".join(f"{line}\n" for line in lines)


def page() -> str:
    """Return the page with the tree as the files are now."""
    return _BLOCK.sub(lambda match: f"{match[1]}{tree()}{match[2]}", PAGE.read_text(encoding="utf-8"))


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


if __name__ == "__main__":
    write_whole(PAGE, page())
