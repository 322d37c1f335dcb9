"""One file of results: the figures that commands measured, and the pages that show them.

    python -m research.results    # writes all figures of the pages anew; needs no models

Commands that measure write to research/results.json with ``--record``. A page shows what is there in two ways:

- A figure in a sentence has a mark, ``.513<!--1-->``. A comment at the end of the page, from ``<!-- figures`` to
  ``-->``, says what the marks mean: ``1 forms.medium.mean of sets.plus | 2 ...``, on any number of lines. The
  figure is written anew with as many decimals as it has.
- ``<!-- results: ladders mini means -->`` names the table below it: "mini means" of what ``tables`` in
  ``research/ladders.py`` makes of the figures of "ladders" (``entailment.measure``: of those of "entailment").
"""

import argparse
import json
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_suffix(".json")
DIGITS = 6  # that are kept
FIGURE = re.compile(r"([\w.+#-]+)<!--(\d+)-->")
NAMES = re.compile(r"^<!-- figures\n(.+?)\n-->$", flags=re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(<!-- results: ([\w.]+) (.+?) -->)\n(?:\|.*\n)*")


def main() -> None:
    """Write the pages anew and print the names of those that changed."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (changed := page(text)) != text:
            path.write_text(changed, encoding="utf-8")
            print(path.relative_to(ROOT))


def add_record_option(options: argparse.ArgumentParser) -> None:
    """Add ``--record`` to the options of a command that measures."""
    options.add_argument("--record", action="store_true", help="write the figures to research/results.json")


def record(name: str, values: Mapping[str, Any]) -> None:
    """Keep figures in place of those of an earlier measurement.

    Args:
        name: the command and, behind a dot, what tells its runs apart: ``"ladders.mini"``.
        values: numbers, text, and lists and dicts of them.
    """
    results = read()
    *groups, last = name.split(".")
    place = results
    for group in groups:
        place = place.setdefault(group, {})
    place[last] = rounded(values)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Round the numbers of plain data."""
    if isinstance(value, Mapping):
        return {str(name): rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
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
    """Return the text of a page with its figures as they are in the file of results.

    Raises:
        KeyError: a mark is not in the page's list, or a figure or a table not among the results.
        ValueError: the list has marks that the page has not.
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


def value_of(results: Mapping[str, Any], name: str) -> Any:
    """Return a figure by its name, ``GROUP.GROUP.NAME``."""
    value: Any = results
    for part in name.split("."):
        if part not in value:
            raise KeyError(f"research/results.json has no figure {name!r}: no {part!r} among {', '.join(value)}")
        value = value[part]
    return value


def written(value: Any, before: str) -> str:
    """Write a figure as the one before it is written: its decimals, its sign, and whether a 0 leads it."""
    if isinstance(value, str):
        return value
    number = f"{value:{'+' if before.startswith('+') else ''}.{len(before.partition('.')[2])}f}"
    return number if re.match(r"[+-]?\d", before) else re.sub(r"^([+-]?)0\.", r"\1.", number)


def markdown(rows: list[list[str]]) -> str:
    """Write a table whose first row is its heading and whose first column is text."""
    lines = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
