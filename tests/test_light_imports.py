"""Nothing expensive is imported before it is needed: each case in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mars_score.cache import ResultStore, digest
from tests import ROOT

METRICS = ("lexical", "neural")
CASES = {  # code -> what it must not import
    "import mars_score.runs; from mars_score.metrics import paper, plus; mars_score.MarsScorer('mini')": (
        "torch transformers spacy sentence_transformers evaluate"
    ),
    "from mars_score.language import Tagger; assert Tagger().tags": "spacy torch",
    "import mars_score.cache": "torch transformers platformdirs",
    "import mars_score.integrations.trainer, mars_score.cli": "torchmetrics",
    "; ".join(f"import mars_score.meta.metrics.{one}" for one in METRICS): (
        "sacrebleu nltk rouge_score spacy sentence_transformers"
    ),
}


def run(code, heavy):
    """What code prints, with a last line of the ``heavy`` modules that it imported."""
    code = f"import sys; {code}\nprint([name for name in {heavy.split()} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("code", CASES)
def test_imports_are_light(code):
    assert run(code, CASES[code]) == ["[]"]


def test_help_the_cache_and_usage_errors_are_fast():
    ResultStore(Path(os.environ["MARS_STORE"])).put("infills", {digest(1): b"a"})
    commands = [
        *(["--help"], ["score", "--help"], ["augment", "--help"], ["--version"], ["cache", "--help"]),
        *(["cache", "info"], ["cache", "info", "--json"], ["cache", "clear"]),
    ]
    code = f"from mars_score.cli import main; assert not any(map(main, {commands})); sys.stderr = sys.stdout; "
    *printed, error, imported = run(
        f"{code}assert main(['score']) == 2", "torch transformers spacy rich evaluate datasets"
    )
    assert imported == "[]"
    assert error.startswith("mars: error: the following arguments are required: FILE")
    assert len(printed) > 50
