"""Write the table of all settings into docs/settings.md: ``python -m docs.settings``."""

from pathlib import Path
from typing import Any

from mars_score.cli.arguments import setting_groups
from mars_score.presets import PRESETS

PAGE = Path(__file__).with_suffix(".md")
START, END = "<!-- made by python -m docs.settings -->", "<!-- end -->"


def render(page: str) -> str:
    """Return the page with its table written anew."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


def table() -> str:
    """Return a Markdown table with a part for each group of settings."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for title, options in setting_groups().items():
        lines.append(f"| **{title}** | | |")
        for option in options:
            default = "the preset's" if option.name in PRESETS["base"] else _code(option.default)
            if option.choices:
                default += f" of {', '.join(map(_code, option.choices))}"
            cells = [f"`{option.name}`", default, option.text]
            lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("<", "&lt;")


def _code(value: Any) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
