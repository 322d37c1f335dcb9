"""Runs on a Ray cluster: a real one of this machine, with tiny models."""

import subprocess
import sys
from pathlib import Path

import pytest
from jsonl import read, write
from test_runs import make_rows

from mars_score.cli import main

ROOT = Path(__file__).parent.parent
pytest.importorskip("ray")


def test_a_missing_ray_is_named():
    code = "import sys; sys.modules['ray'] = None; import mars_score.runs.ray"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Ray is not installed; run: pip install 'mars-score[ray]'" in found.stderr


def test_a_client_address_is_refused(named_models, tmp_path, capsys):
    models = [part for name, value in named_models.items() for part in (f"--{name.replace('_', '-')}", value)]
    path = write(tmp_path / "rows.jsonl", make_rows(3))
    assert (
        main(["score", str(path), "--ray-address", "ray://host:1", "--variant", "fast", *models, "--quiet"]) == 2
    )
    assert "is for Ray Client" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_scores_as_one_process_does(named_models, tmp_path, capsys):
    models = [part for name, value in named_models.items() for part in (f"--{name.replace('_', '-')}", value)]
    path = write(tmp_path / "rows.jsonl", make_rows(24))
    outs = [tmp_path / "one.jsonl", tmp_path / "ray.jsonl"]
    for out, options in zip(outs, ([], ["--ray", "--workers", "2"]), strict=True):
        argv = ["score", str(path), "--out", str(out), "--variant", "paper", "--chunk-size", "4", "--quiet"]
        assert main([*argv, *models, *options, "--store", str(tmp_path / out.stem)]) == 0
    one, ray = map(read, outs)
    assert [row["id"] for row in ray] == list(range(24))
    assert [row["mars"] for row in ray] == pytest.approx([row["mars"] for row in one], abs=1e-9)
    damaged = [*models, "--encoder", str(tmp_path / "nowhere")]
    assert main(["score", str(path), "--ray", "--workers", "1", "--variant", "fast", *damaged, "--quiet"]) == 1
    assert "mars: error: " in capsys.readouterr().err
