"""Keep measured figures in research/results.json, and update the pages that show them.

    python -m research.results    # updates all pages, without models

Commands that measure write their figures with ``--record``. A page shows figures in two ways:

- A figure in a sentence has a mark, ``.513<!--1-->``. A comment at the end of the page, from ``<!-- figures`` to
  ``-->``, lists the marks, on any number of lines: ``1 forms.medium.mean of sets.plus | 2 ...``. The figure keeps
  its number of decimals.
- ``<!-- results: ladders mini means -->`` names the table below it: the table "mini means" that ``tables`` in
  ``research/ladders.py`` makes of the figures "ladders" (``entailment.measure``: of the figures "entailment").
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_suffix(".json")
Figures = Mapping[str, Any]  # an object of a JSON file
DIGITS = 6  # of a recorded figure
FIGURE = re.compile(r"([\w.+#-]+)<!--(\d+)-->")
NAMES = re.compile(r"^<!-- figures\n(.+?)\n-->$", flags=re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(<!-- results: ([\w.]+) (.+?) -->)\n(?:\|.*\n)*")


def main() -> None:
    """Update the pages, and print the names of those that changed."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (changed := page(text)) != text:
            path.write_text(changed, encoding="utf-8")
            print(path.relative_to(ROOT))


def add_record_option(options: argparse.ArgumentParser) -> None:
    """Add ``--record`` to the options of a command that measures."""
    options.add_argument("--record", action="store_true", help="write the figures to research/results.json")


def record(name: str, values: Figures) -> None:
    """Write figures to research/results.json, replacing those of an earlier measurement.

    Args:
        name: the command and, after a dot, the name of its run: ``"ladders.mini"``.
        values: numbers, text, and lists and mappings of them.
    """
    results = read()
    *groups, last = name.split(".")
    place = results
    for group in groups:
        place = place.setdefault(group, {})
    place[last] = rounded(values)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Return data with rounded numbers."""
    if isinstance(value, Mapping):
        return {str(name): rounded(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return value if isinstance(value, str | int) else round(float(value), DIGITS)


def read() -> dict[str, Any]:
    """Read all figures."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def pages() -> list[Path]:
    """Return the pages of the project that show figures."""
    found = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("research/**/*.md"),
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(set(found))}
    return [path for path, text in texts.items() if FIGURE.search(text) or TABLE.search(text)]


def page(text: str) -> str:
    """Return the text of a page with the figures of research/results.json.

    Raises:
        KeyError: a mark is not in the page's list, or a figure or table is missing in the results.
        ValueError: the list has a mark that the page does not have.
    """
    results = read()
    listed = [name.strip() for names in NAMES.findall(text) for name in re.split(r"\||\n", names)]
    names = dict(name.split(" ", 1) for name in listed)
    if unused := names.keys() - {mark for _, mark in FIGURE.findall(text)}:
        raise ValueError(
            f"the page has no figure with the mark {', '.join(sorted(unused))}; take it out of the list"
        )

    def figure(match: re.Match[str]) -> str:
        if match[2] not in names:
            raise KeyError(
                f"{match[0]}: the mark is not in the comment <!-- figures at the end of the page; add it"
            )
        return f"{written(value_of(results, names[match[2]]), match[1])}<!--{match[2]}-->"

    def table(match: re.Match[str]) -> str:
        made = import_module(f"research.{match[2]}").tables(value_of(results, match[2].partition(".")[0]))
        if match[3] not in made:
            raise KeyError(f"{match[1]}: there is no such table, only {', '.join(made)}")
        return f"{match[1]}\n{made[match[3]]}\n"

    return TABLE.sub(table, FIGURE.sub(figure, text))


def value_of(results: Figures, name: str) -> Any:
    """Return a figure by its name, ``GROUP.GROUP.NAME``."""
    value: Any = results
    for part in name.split("."):
        if part not in value:
            raise KeyError(f"research/results.json has no figure {name!r}: no {part!r} among {', '.join(value)}")
        value = value[part]
    return value


def written(value: float | str, before: str) -> str:
    """Format a figure like the old one: decimals, sign, and leading zero."""
    if isinstance(value, str):
        return value
    number = f"{value:{'+' if before.startswith('+') else ''}.{len(before.partition('.')[2])}f}"
    return number if re.match(r"[+-]?\d", before) else re.sub(r"^([+-]?)0\.", r"\1.", number)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table. The first row is its heading, and columns after the first are right-aligned."""
    lines = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
