"""Write the table of all settings into docs/settings.md: ``python -m docs.settings``."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mars_score.cli.arguments import setting_groups
from mars_score.presets import PRESETS
from mars_score.settings import GROUPS

PAGE = Path(__file__).with_suffix(".md")
START, END = "<!-- made by python -m docs.settings -->", "<!-- end -->"


def render(page: str) -> str:
    """Return the page with its table written anew."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


def table() -> str:
    """Return a Markdown table with a part for each group of settings."""
    schemas = {
        name: schema
        for config in GROUPS.values()
        for name, schema in TypeAdapter(config).json_schema()["properties"].items()
    }
    lines = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for title, options in setting_groups().items():
        lines.append(f"| **{title}** | | | |")
        for option in options:
            allowed = list(_allowed(schemas[option.name]))
            shown = ", ".join(allowed) if allowed != ["`None`"] else ""
            default = "the preset's" if option.name in PRESETS["base"] else _code(option.default)
            cells = [f"`{option.name}`", default, shown, option.text]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _allowed(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that a JSON schema allows, as far as they have a short form."""
    for part in schema.get("anyOf", [schema]):
        kind = part.get("type")
        if "enum" in part:
            yield from map(_code, part["enum"])
        elif kind in ("integer", "number"):
            yield _range({"integer": "an integer", "number": "a number"}[kind], part)
        elif kind == "boolean":
            yield "True or False"
        elif kind == "null":
            yield "`None`"


def _range(kind: str, schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if high is None and below is None:
        return f"{kind} above {above:g}" if low is None else f"{kind} of at least {low:g}"
    start = f"({above:g}" if low is None else f"[{low:g}"
    end = f"{below:g})" if high is None else f"{high:g}]"
    return f"{kind} in {start}, {end}"


def _code(value: Any) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
