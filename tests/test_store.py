"""What is stored between calls and processes, seen through the store's public counts of entries."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import huggingface_hub
import jsonl
import pytest
import tiny_models
import torch
from jsonl import columns

from mars_score.cache import ResultStore
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import loading as models
from mars_score.models.fingerprints import fingerprint
from mars_score.progress import Runtime
from mars_score.scorer import MarsScorer
from mars_score.settings import SETTING_NAMES

pytestmark = pytest.mark.usefixtures("nothing_loaded")
ROOT = Path(__file__).parent.parent
CORPUS = ["She called a friend.", "A truck took her home.", "The library closed early.", "They won."]
# (candidate, references, context)
ROWS = [
    ("She took a train.", ["She called a friend and waited.", "A truck took her home."], "Her car broke."),
    ("Nobody came.", ["The library closed early."], "Look at the library."),
]
NEW = ("They lost.", ["They did not win the old game."], "It was late.")
ROW = [("She took a train.", ["The old car took her home."], "Her car broke.")]
ONE, TWO = "1" * 40, "2" * 40  # commits
SINGLE = torch.float32


def gpt2_of(seed, dtype=torch.float64):
    """One that reads the contexts of ROWS to their end; the shared one reads none of some."""
    return tiny_models.tiny_gpt2(seed, dtype, n_positions=128, n_layer=1)


@pytest.fixture(scope="module")
def objects(encoder):
    """Settings that name tiny ready-made models."""
    return {
        "preset": "mini",
        "variant": "fast",
        "language_model": gpt2_of(1),
        "encoder": encoder,
        "dtype": "float64",
        "max_mask_ratio": 0.6,
        "mask_ratio_step": 0.3,
        "idf_corpus": CORPUS,
        "matching": "sentences",
        "context_weight": 0.0,
    }


@pytest.fixture
def make(objects):
    """Makes scorers of tiny models with the test's store and settings."""

    def make_scorer(**settings):
        chosen = {**objects, **settings}
        if not chosen.get("use_context", True):
            del chosen["context_weight"]  # it would have no effect
        return MarsScorer(**chosen)

    return make_scorer


@pytest.fixture
def store():
    """The test's own store, which scorers use unless told."""
    return Path(os.environ["MARS_STORE"])


def counts(store):
    """Entries of each kind."""
    return {kind: number for kind, (number, _) in ResultStore(store).info().items()}


@contextmanager
def growth(store):
    """Yields a dict that holds, after the block, by how many entries each kind has grown; those that have."""
    before, grown = counts(store), {}
    yield grown
    grown |= {kind: number - before[kind] for kind, number in counts(store).items() if number > before[kind]}


# Settings: each is either reused or recomputed

PLANNED = {"planner": "self", "plan_step": 0.5, "plan_iterations": 1, "sigma": 1}
SAMPLED = {"sample_count": 2, "task": "story"}
OTHER_MODELS = {
    "language_model": lambda: gpt2_of(21),
    "encoder": lambda: tiny_models.tiny_encoder(seed=23),
    "entailment_model": lambda: tiny_models.tiny_classifier(
        id2label={0: "neutral", 1: "entailment", 2: "contradiction"}
    ),
}


def each(settings, **changes):
    """One case per change of a single setting."""
    return [(settings, {name: value}) for name, value in changes.items()]


OTHER = "another"
# The first results that are computed anew: (settings, what is changed in them)
CHANGES = {
    "infills": [
        *each({}, variant="paper", planner="self", sigma=2, max_context_tokens=1, dtype="float32", language="de"),
        *each({}, language_model=OTHER, use_context=False),
        *each(PLANNED, plan_step=0.51, plan_iterations=2, plan_temperature=1.2, plan_norm_exponent=1.5),
        *each(PLANNED, plan_fusion=0.9),
    ],
    "samples": [
        ({}, SAMPLED),
        *each(SAMPLED, sample_count=3, sample_temperature=0.5, sample_top_p=0.5, sample_seed=1, task="summary"),
    ],
    "embeddings": each({}, matching="tokens", context_weight=0.5, encoder=OTHER),
    "scores": [
        *each({}, likelihood_weight=0.1),
        ({}, {"entailment_model": OTHER, "contradiction_penalty": 0.5}),
    ],
    "rows": [
        *each({}, repetition_penalty=0.1, augmentation_aggregation="weighted", reference_aggregation="mean"),
        *each({"augmentation_aggregation": "weighted"}, q=0.5),
        *each({}, mask_ratio_step=0.6, max_mask_ratio=0.4, idf_corpus=["Of other words.", "Yes."]),
        *each({}, pos_weights={"ADJ": 4.5, "ADV": 3.0, "NOUN": 2.0, "PUNCT": 0.1}, strip_urls_hashtags=True),
        *each(SAMPLED, sample_weight=0.5),
    ],
    # Without a corpus rows depend on each other, and are not kept.
    "": each({}, batch_size=1, progress=lambda *report: None, idf_corpus=None),
}
CASES = [(kind, *case) for kind, cases in CHANGES.items() for case in cases]


def test_every_setting_is_in_the_table():
    # Comes after all that is kept: tests/test_learning.py; needs models with names: tests/test_openvino.py.
    untried = {"learned", "engine"}
    tried = {name for *_, changes in CASES for name in changes}
    assert tried == {*SETTING_NAMES, "batch_size", "progress"} - untried


@pytest.fixture(scope="module")
def scored(objects, tmp_path_factory):
    """Fills a store with the results of ROW by some settings, which are computed once."""
    filled = {}

    def fill(store, settings):
        key = json.dumps(settings)
        if key not in filled:
            filled[key] = tmp_path_factory.mktemp("scored")
            MarsScorer(**{**objects, **settings}, store=filled[key]).score(*columns(ROW))
        shutil.copytree(filled[key], store)

    return fill


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
@pytest.mark.parametrize(("anew", "settings", "changes"), CASES)
def test_a_setting_is_reused_or_recomputed(make, store, scored, anew, settings, changes):
    scored(store, settings)
    changes = {name: OTHER_MODELS[name]() if value == OTHER else value for name, value in changes.items()}
    with growth(store) as grown:
        result = make(**{**settings, **changes}).score(*columns(ROW))
    assert next((kind for kind in CHANGES if kind in grown), "") == anew
    assert ("rows" in grown) == bool(anew)
    if anew in ("infills", "samples"):
        fresh = make(**{**settings, **changes}, store=False).score(*columns(ROW))
        assert result.scores == pytest.approx(fresh.scores, abs=1e-5)
        assert result.texts == fresh.texts
        with growth(store) as grown:
            make(**settings).score(*columns(ROW))
        assert grown == {}  # the others are still there


# Rows


def test_a_new_row_is_the_only_work(make, store):
    make().score(*columns(ROWS))
    alone = store.parent / "alone"
    result = make(store=alone).score(*columns([NEW]))
    with growth(store) as grown:
        again = make().score(*columns([ROWS[0], NEW, ROWS[1]]))
    assert again.scores[1] == pytest.approx(result.scores[0], abs=1e-9)
    for kind in ("infills", "embeddings", "rows"):
        assert grown[kind] == counts(alone)[kind]
    with growth(store) as grown:
        make().score(*columns([(NEW[0], *ROWS[0][1:])]))
    assert grown == {"rows": 1}  # a candidate that was embedded before
    with growth(store) as grown:
        make().score(*columns([*ROWS[::-1], *ROWS]))
    assert grown == {}


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
def test_rows_differ_in_each_of_their_texts(encoder, store):
    scorer = MarsScorer("mini", variant="fast", encoder=encoder)
    rows = [
        ("a b", ["c d"], "e", []),
        ("a", ["c d"], "e", []),
        ("a b", ["c", "d"], "e", []),
        ("a b", ["c d"], "", []),
        ("a b", ["c d"], "e", ["f"]),
        ("a b", ["c d", "f"], "e", []),
        ("a b", [], "e", ["c d"]),
        ("a b", [], "e", ["c d", "f"]),
    ]
    for number, (candidate, references, context, samples) in enumerate(rows, start=1):
        scorer.score([candidate], [references] if references else None, [context], samples=[samples])
        assert counts(store)["rows"] == number


def test_runs_over_files_and_calls_keep_the_same_rows(named_models, store, tmp_path, run):
    rows = [{"prediction": text, "reference": texts, "context": context} for text, texts, context in [*ROWS, NEW]]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in named_models.items()]
    options += ["--preset=mini", "--variant=plus", "--chunk-size=2", "--json", "--detailed", "--quiet"]
    argv = ["score", jsonl.write(tmp_path / "rows.jsonl", rows), *options]
    fresh = run(*argv, "--no-store")
    assert run(*argv) == fresh
    with closing(sqlite3.connect(store / "results.sqlite3")) as db, db:
        db.execute("DELETE FROM entries WHERE kind != 'rows'")
    result = MarsScorer("mini", variant="plus", **named_models).score(*columns([*ROWS, NEW]))
    assert result.scores == json.loads(fresh[1])["scores"]
    assert run(*argv) == fresh
    assert {kind for kind, count in counts(store).items() if count} == {"rows"}


def test_what_is_done_is_stored_when_a_call_is_stopped(make, store):
    rows = [*ROWS, NEW]
    expected = make(store=False).score(*columns(rows))
    reports = []

    def stop(stage, done, total):
        if stage == "infill" and len(reports) < 4:
            reports.append((done, total))
            if done == 3:
                raise KeyboardInterrupt

    scorer = make(batch_size=1, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        scorer.score(*columns(rows))
    total = reports[0][1]
    assert reports == [(done, total) for done in range(4)]
    assert counts(store)["infills"] == 3
    # The scorer that was stopped is none the worse.
    assert scorer.score(*columns(rows)).scores == pytest.approx(expected.scores, abs=1e-12)
    assert counts(store)["infills"] == total


# Models


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders with tiny models of the same kind, "model" and "encoder"."""
    paths = []
    for number in (6, 16):
        paths.append(tmp_path_factory.mktemp("models"))
        for part in gpt2_of(number, SINGLE):
            part.save_pretrained(paths[-1] / "model")
        tiny_models.tiny_encoder(seed=number, dtype=SINGLE).save(str(paths[-1] / "encoder"))
    return paths


@pytest.fixture
def named(folders):
    """Settings that name the first of the folders."""
    names = {"language_model": str(folders[0] / "model"), "encoder": str(folders[0] / "encoder")}
    size = {"max_mask_ratio": 0.6, "mask_ratio_step": 0.3}
    return {"preset": "mini", "variant": "fast", "device": "cpu", "entailment_model": None, **names, **size}


LONG = [
    *ROWS,
    ("", *NEW[1:]),
    ("They walk. " * 60, ["They walk to the river."], "The children walk to school. " * 20),
    ("No.", ["The mayor told a reporter about it. " * 14], ""),
]
PROCESS = """if True:
    import json, sys, warnings
    task = json.loads(sys.argv[1])
    warnings.simplefilter("error")
    from mars_score.errors import MarsWarning
    from mars_score.scorer import MarsScorer
    warnings.simplefilter("ignore", MarsWarning)
    result = MarsScorer(**task["settings"]).score(*task["columns"])
    libraries = [name for name in ("torch", "transformers", "spacy") if name in sys.modules]
    print(json.dumps({"result": result.to_dict(), "libraries": libraries}))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "paper"},
        {**PLANNED, "augmentation_aggregation": "weighted"},
        {"use_context": False, "idf_corpus": CORPUS},
        {"variant": "plus", "idf_corpus": CORPUS},
        {**SAMPLED, "idf_corpus": CORPUS},
    ],
    ids=",".join,
)
def test_results_are_equal_to_the_last_bit_without_a_store_and_in_another_process_which_loads_nothing(
    named, store, settings
):
    settings = {**named, **settings}
    results = []
    for where in (False, None):
        with pytest.warns(MarsWarning) as messages, growth(store) as grown:
            results.append(MarsScorer(**settings, store=where).score(*columns(LONG)))
        assert {str(warning.message) for warning in messages} >= set(results[-1].notices)
        assert bool(grown) == (where is None)
    notices = " ".join(results[0].notices)
    assert "blank candidates" in notices
    assert "sentence encoder" in notices
    command = [sys.executable, "-c", PROCESS, json.dumps({"settings": settings, "columns": columns(LONG)})]
    with growth(store) as grown:
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (process.returncode, grown) == (0, {}), process.stderr
    there = json.loads(process.stdout.splitlines()[-1])
    assert results[0] == results[1]
    assert there == {"result": json.loads(results[0].to_json()), "libraries": []}


@pytest.mark.parametrize("what", ["language_model", "encoder"])
@pytest.mark.parametrize("as_object", [True, False])
def test_a_model_that_changes_while_a_scorer_uses_it(named, folders, store, tmp_path, what, as_object):
    folder = shutil.copytree(named[what], tmp_path / "model")

    def load(folder):
        return models.load_model(what, str(folder), "float32", Runtime(device="cpu")) if as_object else folder

    model = load(folder)
    scorer = MarsScorer(**{**named, what: model})
    before = scorer.score(*columns(ROWS))
    if as_object:
        weights = model[0].lm_head.weight if what == "language_model" else next(model.parameters())
        weights.data[[0, 1]] = weights.data[[1, 0]] + 1
    else:
        shutil.copytree(folders[1] / Path(named[what]).name, folder, dirs_exist_ok=True)
    with growth(store) as grown:
        after = scorer.score(*columns(ROWS))
    assert ("infills" if what == "language_model" else "embeddings") in grown
    assert after.signature != before.signature
    fresh = MarsScorer(**{**named, what: model}, store=False).score(*columns(ROWS))
    assert after.scores == pytest.approx(fresh.scores, abs=1e-5)
    with growth(store) as grown:  # a twin of the model as it was
        assert MarsScorer(**{**named, what: load(named[what])}).score(*columns(ROWS)).scores == before.scores
    assert grown == {}


@pytest.fixture
def fetch():
    """Puts a folder into the Hub's cache on this machine as a commit, which is the newest from then on."""
    fetched = []

    def put(name, commit, folder, cache=None):
        place = (cache or Path(huggingface_hub.constants.HF_HUB_CACHE)) / f"models--{name.replace('/', '--')}"
        shutil.copytree(folder, place / "snapshots" / commit)
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(commit)
        fetched.append(place)
        return place

    yield put
    for place in fetched:
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("what", ["language_model", "encoder"])
def test_models_of_the_hub_are_their_commits(named, fetch, folders, store, what):
    """The newest, or that of a commit, a tag or a branch that is asked for."""
    folder = Path(named[what]).name
    name = f"tiny/{folder}"

    def score(name, **more):
        result = MarsScorer(**{**named, what: name}, **more).score(*columns(ROWS))
        return result, result.signature.to_dict()[what]

    assert str(fingerprint(name)) == f"{name}@unknown"
    fetch(name, ONE, folders[0] / folder)
    first, signature = score(name)
    assert signature == f"{name}@{ONE}"
    (fetch(name, TWO, folders[1] / folder) / "refs" / "v1.0").write_text(ONE)
    for revision in (ONE, "v1.0"):
        models.free_models()
        with growth(store) as grown:
            result, signature = score(f"{name}@{revision}")
        assert grown == {}
        assert (result.rows, signature) == (first.rows, f"{name}@{ONE}")
    assert score(f"{name}@{ONE}", store=False)[0].rows == first.rows
    with growth(store) as grown:
        _, signature = score(name)
    assert signature == str(fingerprint(f"{name}@main")) == f"{name}@{TWO}"
    assert ("infills" if what == "language_model" else "embeddings") in grown
    with pytest.raises(ModelUnavailableError, match=f"could not load '{name}@v2.0'"):
        score(f"{name}@v2.0", store=False)


@pytest.mark.parametrize("own_cache", [False, True])
def test_encoders_where_sentence_transformers_looks(fetch, folders, monkeypatch, tmp_path, own_cache):
    """Under its own name where there is no owner, and in its own cache."""
    if own_cache:
        monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    cache = tmp_path if own_cache else None
    fetch("sentence-transformers/tiny-short", ONE, folders[0] / "encoder", cache)
    assert models.load_model("encoder", "tiny-short", "float32", Runtime(device="cpu"))
    assert str(fingerprint("tiny-short")) == f"tiny-short@{ONE}"
