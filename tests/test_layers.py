"""The layers of the package, as CONTRIBUTING.md names them: imports go down, and in no circle."""

import ast
import functools
import re
from graphlib import TopologicalSorter

from docs import tree
from tests import ROOT

PACKAGE = ROOT / "mars_score"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


@functools.cache
def layers():
    """The layers from the lowest to the highest, each with the names that stand in it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("```\nSURFACES")[2].partition("```")[0]
    lines = f"SURFACES{text}".splitlines()
    return [re.findall(r"[\w/]+", re.sub(r"\(.*\)", "", line).partition(" ")[2]) for line in reversed(lines)]


def layer_of(module):
    """The number of a module's layer, by the longest name that it is in."""
    name = module.removeprefix("mars_score").removeprefix(".").replace(".", "/")
    found = [
        (len(entry), number)
        for number, entries in enumerate(layers())
        for entry in entries
        if name == entry.rstrip("/") or (entry.endswith("/") and f"{name}/".startswith(entry))
    ]
    return max(found)[1]


@functools.cache
def imported(module):
    """The modules of the package that a module imports, also within functions and for types."""
    names = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return (names & MODULES.keys()) - {module}


def test_imports_go_down():
    upwards = [
        (module, name)
        for module in MODULES.keys() - {"mars_score"}
        for name in imported(module) - {"mars_score"}
        if layer_of(name) > layer_of(module)
    ]
    assert upwards == []


def test_there_is_no_circle():
    TopologicalSorter({module: imported(module) for module in MODULES}).prepare()


def test_every_name_of_the_page_exists():
    for entry in {entry for entries in layers() for entry in entries}:
        assert any(
            (ROOT / folder / entry).with_suffix(suffix).exists()
            for folder in ("", "mars_score")
            for suffix in ("", ".py")
        )


def test_the_tree_of_the_page_is_that_of_the_folders():
    """After a change: python -m docs.tree --write."""
    assert tree.page() == tree.PAGE.read_text(encoding="utf-8")


def test_the_tree_prints_every_file(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tree"])
    tree.main()
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {path.name for path in PACKAGE.rglob("*.py")} - {"__init__.py"} <= {*names}
    assert {f"{path.parent.name}/" for path in PACKAGE.rglob("__init__.py")} <= {*names}
    assert len(names) == len([*PACKAGE.rglob("*.py"), *(ROOT / "space").rglob("*.py")])
