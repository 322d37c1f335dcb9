"""Environment variables of the tests, set before anything imports the libraries that read them.

Nothing is written outside a temporary folder, and nothing is fetched; child processes inherit all of it.
"""

import os
import sys
import tempfile
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory(prefix="mars-tests-")
os.environ.pop("MARS_PRESET", None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # child processes would each compile the package
sys.dont_write_bytecode = False  # nor does each run compile all tests
FOLDER = os.environ.setdefault("MARS_TESTS", _FOLDER.name)  # of the whole run: its workers inherit it
os.environ.update(
    MARS_DTYPE="float32",  # else scores would depend on the machine
    MARS_STORE=os.path.join(_FOLDER.name, "store"),
    HF_HOME=os.path.join(_FOLDER.name, "huggingface"),
    GRADIO_TEMP_DIR=os.path.join(_FOLDER.name, "gradio"),
    HF_HUB_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    OMP_WAIT_POLICY="PASSIVE",  # spinning threads make tiny models 4 to 30 times slower on a busy machine
)
for _name in ("HF_HUB_CACHE", "HF_MODULES_CACHE", "HF_EVALUATE_CACHE", "HF_METRICS_CACHE", "HF_DATASETS_CACHE"):
    os.environ.pop(_name, None)  # each would take precedence over HF_HOME

if os.environ.get("MARS_TESTS_BARE"):  # as on a machine without the system packages that only some tests need
    import nltk.data

    from docs.pictures import make
    from mars_score.meta.metrics import lexical

    make.CHROMIUM = None
    lexical.SYSTEM_WORDNET = Path("/nonexistent")
    nltk.data.path.clear()
