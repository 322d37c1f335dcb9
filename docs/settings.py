"""Write all settings into docs/settings.md, and their types into a module: ``python -m docs.settings``."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mars_score import settings_dict
from mars_score.cli.arguments import setting_groups
from mars_score.options import Corpus, Folder, TagWeights, options_of
from mars_score.presets import PRESETS
from mars_score.scorer import MarsScorer
from mars_score.settings import GROUPS

PAGE = Path(__file__).with_suffix(".md")
TYPES = Path(str(settings_dict.__file__))
START, END = "<!-- made by python -m docs.settings -->", "<!-- end -->"
_TAKEN: dict[object, str] = {  # the types of arguments that are converted
    Folder: "str | os.PathLike[str] | None",
    TagWeights: "Mapping[str, float]",
    Corpus: "str | os.PathLike[str] | Iterable[str] | None",
}
_TYPES = '''"""The types of the settings, for editors and type checkers; made by ``python -m docs.settings``."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from mars_score.cache import Store
from mars_score.progress import Progress


class SettingsDict(TypedDict, total=False):
    """The settings, by name."""

    {settings}


class ScorerDict(SettingsDict, total=False):
    """The settings and the other arguments of :class:`mars_score.MarsScorer`, by name."""

    {arguments}
'''


def render(page: str) -> str:
    """Return the page with a new table."""
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


def types() -> str:
    """Return the module of the types of settings."""
    arguments = [*inspect.signature(MarsScorer).parameters.values()][:-1]
    return _TYPES.format(
        settings="\n    ".join(dict.fromkeys(_typed_settings())),
        arguments="\n    ".join(f"{argument.name}: {argument.annotation}" for argument in arguments),
    )


def _typed_settings() -> Iterator[str]:
    """Yield name and type of each setting. Settings of several variants are repeated."""
    for config in GROUPS.values():
        hints = get_type_hints(config, include_extras=True)
        yield from (f"{option.name}: {_type(hints[option.name])}" for option in options_of(config))


def _type(kind: Any) -> str:
    """Write the type of a setting as an argument."""
    if kind in (Any, NoneType):
        return "Any" if kind is Any else "None"
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _TAKEN.get(kind) or _type(parts[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_type, parts))
    return f"Literal[{', '.join(map(json.dumps, parts))}]" if origin is Literal else str(kind.__name__)


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|").replace("<", "&lt;")


def _code(value: object) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{value!r}`"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    TYPES.write_text(types(), encoding="utf-8")
