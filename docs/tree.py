"""Print the tree of the code, with the first line of each docstring: ``python -m docs.tree``.

``python -m docs.tree --write`` writes only the folders into CONTRIBUTING.md.
"""

import argparse
import ast
import re
from pathlib import Path

from mars_score.atomic import write_whole

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
FOLDERS = ("mars_score", "space")
_BLOCK = re.compile(r"(<!-- tree -->\n```\n).*?(```\n<!-- /tree -->)", re.DOTALL)


def main() -> None:
    """Print the tree, or rewrite the page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="write the folders into CONTRIBUTING.md")
    if options.parse_args().write:
        write_whole(PAGE, page())
    else:
        print(tree(), end="")


def tree(pattern: str = "*.py") -> str:
    """Return a line for each matching code file, with its first line. ``__init__.py`` stands for its folder."""
    lines = []
    for folder in FOLDERS:
        for path in sorted(
            (ROOT / folder).rglob(pattern), key=lambda path: path.with_name(path.name.lower()).parts
        ):
            name = path.relative_to(ROOT)
            depth = len(name.parts) - (2 if name.name == "__init__.py" else 1)
            shown = f"{name.parent.name}/" if name.name == "__init__.py" else name.name
            lines.append(f"{'  ' * depth}{shown:<{26 - 2 * depth}}{_first_line(path)}")
    return "".join(f"{line}\n" for line in lines)


def page() -> str:
    """Return the page with the present folders."""
    return _BLOCK.sub(lambda match: f"{match[1]}{tree('__init__.py')}{match[2]}", PAGE.read_text(encoding="utf-8"))


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


if __name__ == "__main__":
    main()
