"""What is around the code says the same as the code: citation, workflows, hooks, golden scores, release check."""

import re
import runpy
import tomllib

import pytest
import yaml

from mars_score import __version__
from mars_score.settings import CONFIGS
from tests import ROOT, golden

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# For other CPUs and numbers of threads, whose sums in another order move a number of a vector to the next float16,
# by 1e-3 of it at most. Not measured; an infill of "paper" may differ where words are equally probable.
TOLERANCE = 2e-3


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are", "store_with_mini")
@pytest.mark.parametrize("variant", CONFIGS)
def test_golden_scores(variant):
    """If they change on purpose: ``python -m tests.golden``, and a line of the changelog."""
    rows = golden.read()
    assert len(rows) == 10
    assert golden.compute(rows, variant) == pytest.approx([row["scores"][variant] for row in rows], abs=TOLERANCE)


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["title"], citation["version"]) == (PROJECT["name"], __version__)
    assert citation["license"] == PROJECT["license"]


def test_the_workflow_checks_every_python_that_is_declared():
    [workflow] = (ROOT / ".github" / "workflows").glob("*.yml")
    job = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]["ci"]
    versions = [re.fullmatch(r".* Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]]
    declared = [version[1] for version in versions if version]
    assert job["strategy"]["matrix"]["python"] == declared
    assert job["steps"][-1] == {"run": ".ci/run"}


def test_hooks_and_lint_are_the_same_tools():
    [hooks] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    names = {hook["name"] for hook in hooks["hooks"]}
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nlint: install\n")[1].split("\n\n")[0]
    called = [re.search(r"ruff check|ruff format|mypy", line) for line in lint.splitlines()]
    assert {tool[0] for tool in called} == names


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, None),
        ({"changelog": "## [1.2.0] - unreleased\n"}, "YYYY-MM-DD"),
        ({"changelog": "## [1.3.0] - 2026-12-01\n"}, "YYYY-MM-DD"),
        ({"citation": "a: b\nversion: 1.1.0\n"}, "CITATION.cff"),
        ({"tags": ["v1.1.0", "v1.2.0"]}, "the tag v1.2.0 exists"),
        ({"changes": " M README.md\n"}, "not committed"),
    ],
)
def test_what_keeps_a_version_from_being_released(changed, fault):
    ready = {
        "version": "1.2.0",
        "changelog": "# Changelog\n\n## [1.2.0] - 2026-12-01\n\n## [1.1.0] - 2026-11-01\n",
        "citation": "a: b\nversion: 1.2.0\nc: d\n",
        "tags": ["v1.1.0"],
        "changes": "",
    }
    found = runpy.run_path(str(ROOT / ".ci" / "release.py"))["faults"](**(ready | changed))
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]
