"""Ctrl-C while a real process infills: what was computed is in the store, with and without worker processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonl
import pytest
import tiny_models

from mars_score.store.results import ResultStore

ROOT = Path(__file__).parent.parent
WORDS = tiny_models.TEXT.split()
# A shell that runs the tests in the background has its children ignore Ctrl-C.
CODE = """if True:
    import signal, sys
    from mars_score.cli import main
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
"""


def rows(count):
    return [
        {
            "prediction": "a book",
            "reference": f"{' '.join(WORDS[row % 200 : row % 200 + 12])} {row}",
            "context": " ".join(WORDS[row % 150 : row % 150 + 20]),
        }
        for row in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_has_stored_its_infills(named_models, tmp_path, workers):
    jsonl.write(tmp_path / "rows.jsonl", rows(2000))
    store = ResultStore(tmp_path / "store")
    command = [sys.executable, "-c", CODE, "score", str(tmp_path / "rows.jsonl")]
    command += ["--language-model", named_models["language_model"]]
    command += ["--encoder", named_models["encoder"], "--store", str(tmp_path / "store"), "--dtype", "float64"]
    command += ["--chunk-size", "1000", "--batch-size", "2", "--workers", str(workers), "--quiet"]  # minutes
    command += ["--variant", "v2"]  # which infills
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not (before := store.info()["infills"][0]) and process.poll() is None:
            time.sleep(0.2)
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "mars: error: interrupted\n"  # and with --quiet nothing else
    kept = store.info()["infills"][0]
    assert kept >= before > 0
    assert kept > before or workers == 2  # a worker process is killed; it saves every two seconds
