"""Writes the table of all settings into docs/settings.md, from the settings dataclasses.

python -m docs.settings
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mars_score.settings import STAGES, Settings, resolve_settings
from mars_score.settings.options import NAMED, POSITIVE, Setting, settings_of
from mars_score.settings.presets import PRESETS, VARIANTS

PAGE = Path(__file__).with_suffix(".md")
START, END = "<!-- made by python -m docs.settings -->", "<!-- end -->"


def render(page: str) -> str:
    """The page with the tables as they should be; all else stays as it is."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{tables()}\n\n{END}{after}"


def tables() -> str:
    """A Markdown table with a part for each stage of the pipeline and the defaults of the default variant."""
    defaults = dict(resolve_settings("base").items())
    lines = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for stage in (Settings, *STAGES.values()):
        title = stage.__name__.removesuffix("Settings") or "General"
        about = "" if stage is Settings else inspect.getdoc(stage)
        lines.append(f"| **{title}** | | | {about} |")
        for setting in settings_of(stage):
            cells = [
                f"`{setting.name}`",
                _default(setting, defaults),
                _allowed(setting),
                _meaning(setting, defaults),
            ]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _default(setting: Setting, defaults: dict[str, Any]) -> str:
    if setting.name in PRESETS["base"]:
        return "the preset's"
    return _code(defaults[setting.name])


def _allowed(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(map(_code, setting.choices))
    return "" if setting.convert else setting.allowed()


def _meaning(setting: Setting, defaults: dict[str, Any]) -> str:
    return " ".join([setting.text, *_needed(setting), *_variants(setting, defaults[setting.name])])


def _needed(setting: Setting) -> Iterator[str]:
    if setting.needs:
        name, value = setting.needs
        condition = " above 0" if value is POSITIVE else "" if value is NAMED else f"=`{_plain(value)}`"
        yield f"Has an effect only with `{name}`{condition}."


def _variants(setting: Setting, default: Any) -> Iterator[str]:
    """The variants whose value is not the default."""
    different: dict[str, list[str]] = {}
    for variant, values in VARIANTS.items():
        if (value := values.get(setting.name, default)) != default:
            different.setdefault(_code(value), []).append(f"`{variant}`")
    if different:
        yield "; ".join(f"{value} in {', '.join(variants)}" for value, variants in different.items()) + "."


def _code(value: Any) -> str:
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
