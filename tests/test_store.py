"""What is stored between calls and processes, seen through the store's public counts of entries."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import tiny_models
import torch
from jsonl import columns

from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import loading as models
from mars_score.models.fingerprints import fingerprint
from mars_score.models.loading import load_model
from mars_score.scorer import MarsScorer
from mars_score.settings import SETTING_NAMES
from mars_score.store.results import ResultStore
from mars_score.store.runtime import Runtime

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


def gpt2_of(seed, dtype=torch.float64):
    """One that reads the contexts of ROWS to their end; the shared one reads none of some."""
    return tiny_models.tiny_gpt2(seed, dtype, n_positions=128, n_layer=1)


def roberta_of(seed, dtype=torch.float64):
    return tiny_models.tiny_roberta_mlm(seed, dtype, n_positions=128, num_hidden_layers=1)


@pytest.fixture(scope="module")
def objects(encoder):
    """Settings that name tiny ready-made models."""
    return {
        "language_model": gpt2_of(1),
        "masked_language_model": roberta_of(3),
        "preset": "mini",
        "variant": "fast",
        "max_mask_ratio": 0.6,
        "matching": "sentences",
        "context_weight": 0.0,
        "encoder": encoder,
        "dtype": "float64",
        "mask_ratio_step": 0.3,
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


def texts(result):
    """All augmented references of a result."""
    return [one.augmented.texts for row in result.rows for one in row.references]


def counts(store):
    """Entries of each kind."""
    return {kind: number for kind, (number, _) in ResultStore(store).info().items()}


@contextmanager
def growth(store):
    """Yields a dict that holds, after the block, by how many entries each kind has grown; those that have."""
    before, grown = counts(store), {}
    yield grown
    grown |= {kind: number - before[kind] for kind, number in counts(store).items() if number > before[kind]}


# Settings


PLANNED = {"planner": "self", "plan_step": 0.5, "plan_iterations": 1, "sigma": 1}
MASKED = {"infiller": "masked"}
OTHER_MODELS = {
    "language_model": lambda: gpt2_of(21),
    "masked_language_model": lambda: roberta_of(22),
    "encoder": lambda: tiny_models.tiny_encoder(seed=23),
    "entailment_model": lambda: tiny_models.tiny_classifier(
        id2label={0: "neutral", 1: "entailment", 2: "contradiction"}
    ),
}


SAMPLED = {"sample_count": 2, "task": "story"}
# The first results that are computed anew: (settings, what is changed in them)
CHANGES = {
    "infills": [
        ({}, {"variant": "paper"}),  # which plans
        ({}, {"planner": "self"}),
        (PLANNED, {"plan_step": 0.51}),
        (PLANNED, {"plan_iterations": 2}),
        (PLANNED, {"plan_temperature": 1.2}),
        (PLANNED, {"plan_norm_exponent": 1.5}),
        (PLANNED, {"plan_fusion": 0.9}),
        ({}, {"sigma": 2}),
        ({}, {"max_context_tokens": 1}),
        ({}, {"dtype": "float32"}),
        ({}, {"language": "de"}),
        ({}, {"language_model": "another"}),
        ({}, {"use_context": False}),
        ({}, MASKED),
        (MASKED, {"infiller": "causal"}),
        (MASKED, {"max_context_tokens": 1}),
        (MASKED, {"dtype": "float32"}),
        (MASKED, {"masked_language_model": "another"}),
        (MASKED, {"use_context": False}),
    ],
    "samples": [
        ({}, SAMPLED),
        (SAMPLED, {"sample_count": 3}),
        (SAMPLED, {"sample_temperature": 0.5}),
        (SAMPLED, {"sample_top_p": 0.5}),
        (SAMPLED, {"sample_seed": 1}),
        (SAMPLED, {"task": "summary"}),
    ],
    "embeddings": [
        ({}, {"matching": "tokens"}),
        ({}, {"context_weight": 0.5}),
        ({}, {"encoder": "another"}),
        (SAMPLED, {"encoder": "another"}),
    ],
    "scores": [
        ({}, {"likelihood_weight": 0.1}),
        ({}, {"entailment_model": "another", "contradiction_penalty": 0.5}),
    ],
    "": [
        ({}, {"repetition_penalty": 0.1}),
        (PLANNED, {"augmentation_aggregation": "weighted"}),
        ({}, {"augmentation_aggregation": "weighted", "q": 0.5}),
        ({}, {"reference_aggregation": "mean"}),
        ({}, {"batch_size": 1}),
        ({}, {"progress": lambda *report: None}),
        ({}, {"masked_language_model": "another"}),
        ({}, {"mask_ratio_step": 0.6}),
        ({}, {"max_mask_ratio": 0.4}),
        ({}, {"idf_corpus": ["Of other words.", "Yes."]}),
        ({}, {"idf_corpus": None}),
        ({}, {"pos_weights": {"ADJ": 4.5, "ADV": 3.0, "NOUN": 2.0, "PUNCT": 0.1}}),
        ({}, {"strip_urls_hashtags": True}),
        (MASKED, {"language_model": "another"}),
        (SAMPLED, {"sample_weight": 0.5}),
    ],
}
CASES_OF_CHANGES = [(anew, *case) for anew, cases in CHANGES.items() for case in cases]


def changed_settings(changes):
    return {name: OTHER_MODELS[name]() if value == "another" else value for name, value in changes.items()}


def test_every_setting_is_in_the_table():
    tried = {name for _, _, changes in CASES_OF_CHANGES for name in changes}
    # Comes after all that is kept: tests/test_learning.py; needs models with names: tests/test_openvino.py.
    untried = {"learned", "engine"}
    assert tried == {*SETTING_NAMES, "batch_size", "progress"} - untried


@pytest.mark.filterwarnings("ignore:the end of the context")
@pytest.mark.parametrize(("anew", "settings", "changes"), CASES_OF_CHANGES)
def test_a_setting_is_reused_or_recomputed(make, store, scored, anew, settings, changes):
    scored(store, settings)
    changed = {**settings, **changed_settings(changes)}
    with growth(store) as grown:
        result = make(**changed).score(*columns(ROW))
    assert next((kind for kind in CHANGES if kind in grown), "") == anew
    if anew in ("infills", "samples"):
        fresh = make(**changed, store=False).score(*columns(ROW))
        assert result.scores == pytest.approx(fresh.scores, abs=1e-5)
        assert texts(result) == texts(fresh)
        with growth(store) as grown:
            make(**settings).score(*columns(ROW))
        assert grown == {}  # the others are still there


# Rows and models


def test_a_new_row_is_the_only_work(make, store):
    make(idf_corpus=CORPUS).score(*columns(ROWS))
    alone = store.parent / "alone"
    result = make(idf_corpus=CORPUS, store=alone).score(*columns([NEW]))
    with growth(store) as grown:
        rows = [ROWS[0], NEW, ROWS[1]]
        assert make(idf_corpus=CORPUS).score(*columns(rows)).scores[1] == pytest.approx(result.scores[0], abs=1e-9)
    for kind in ("infills", "embeddings", "rows"):
        assert grown[kind] == counts(alone)[kind]
    with growth(store) as grown:
        make(idf_corpus=CORPUS).score(*columns([(NEW[0], *ROWS[0][1:])]))
    assert grown == {"rows": 1}  # a candidate that was embedded before
    with growth(store) as grown:
        make(idf_corpus=CORPUS).score(*columns([*ROWS[::-1], *ROWS]))
    assert grown == {}


@pytest.mark.parametrize("what", ["language_model", "encoder"])
def test_a_model_that_is_changed_in_place(make, store, what):
    model = gpt2_of(31) if what == "language_model" else tiny_models.tiny_encoder(seed=32)
    weights = model[0].lm_head.weight if what == "language_model" else next(model.parameters())
    scorer = make(**{what: model})
    before = scorer.score(*columns(ROW))
    weights.data[[0, 1]] = weights.data[[1, 0]] + 1
    with growth(store) as grown:
        after = scorer.score(*columns(ROW))
    assert ("infills" in grown) == (what == "language_model")
    assert after.signature != before.signature
    with growth(store) as grown:
        twin = gpt2_of(31) if what == "language_model" else tiny_models.tiny_encoder(seed=32)  # as it was
        assert make(**{what: twin}).score(*columns(ROW)).scores == before.scores
    assert grown == {}


# Other processes


PROCESS = """if True:
    import json, sys, warnings
    task = json.loads(sys.argv[1])
    warnings.simplefilter("error")
    from mars_score.scorer import MarsScorer
    scorer = MarsScorer(**task["settings"])
    result = scorer.score(*task["columns"])
    from mars_score.models import loading as models
    loaded = [key[0] for key in models._loaded]
    libraries = [name for name in ("torch", "transformers", "spacy") if name in sys.modules]
    print(json.dumps({"result": result.to_dict(), "loaded": loaded, "libraries": libraries}))
"""


def elsewhere(settings, rows):
    """What another process makes of ``rows``."""
    command = [sys.executable, "-c", PROCESS, json.dumps({"settings": settings, "columns": columns(rows)})]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(**json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of tiny models, float32."""
    folder = tmp_path_factory.mktemp("models")
    for part in gpt2_of(6, torch.float32):
        part.save_pretrained(folder / "model")
    for part in roberta_of(6, torch.float32):
        part.save_pretrained(folder / "masked")
    tiny_models.tiny_encoder(seed=4, dtype=torch.float32).save(str(folder / "encoder"))
    return folder


@pytest.fixture
def named(folders):
    """Settings that name the folders."""
    return {
        "preset": "mini",
        "variant": "fast",
        "max_mask_ratio": 0.6,
        "language_model": str(folders / "model"),
        "masked_language_model": str(folders / "masked"),
        "encoder": str(folders / "encoder"),
        "device": "cpu",
        "mask_ratio_step": 0.3,
        "entailment_model": None,
    }


@pytest.mark.parametrize(("variant", "corpus"), [("paper", None), ("fast", None), ("plus", CORPUS)])
def test_another_process_loads_nothing_for_what_is_stored(named, variant, corpus):
    settings = {**named, "variant": variant, "idf_corpus": corpus}
    here = MarsScorer(**settings).score(*columns(ROWS))
    there = elsewhere(settings, ROWS)
    assert there.result == json.loads(here.to_json())  # to the last bit
    assert (there.loaded, there.libraries) == ([], [])


@pytest.mark.parametrize("what", ["language_model", "encoder"])
def test_a_folder_that_changes_while_its_model_is_loaded(named, tmp_path, what):
    shutil.copytree(named[what], tmp_path / "model")
    settings = {**named, what: tmp_path / "model"}
    scorer = MarsScorer(**settings)
    before = scorer.score(*columns(ROWS))
    if what == "language_model":
        gpt2_of(7, torch.float32)[0].save_pretrained(tmp_path / "model")
    else:
        tiny_models.tiny_encoder(seed=7, dtype=torch.float32).save(str(tmp_path / "model"))
    after = scorer.score(*columns(ROWS))
    assert after.signature != before.signature
    models.free_models()
    fresh = MarsScorer(**settings, store=False).score(*columns(ROWS))
    assert after.scores == pytest.approx(fresh.scores, abs=1e-5)


# Models of the Hub


class Hub:
    """The Hub's cache on this machine."""

    def __init__(self):
        self.cache = Path(huggingface_hub.constants.HF_HUB_CACHE)
        self.fetched = []

    def fetch(self, name, commit, folder, cache=None):
        """Put a folder there as a commit, which is the newest from now on."""
        place = (cache or self.cache) / f"models--{name.replace('/', '--')}"
        shutil.copytree(folder, place / "snapshots" / commit)
        (place / "refs").mkdir(exist_ok=True)
        (place / "refs" / "main").write_text(commit)
        self.fetched.append(place)


@pytest.fixture
def hub():
    cache = Hub()
    yield cache
    for place in cache.fetched:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def second(tmp_path):
    """A folder as ``folders``, with other weights."""
    gpt2_of(16, torch.float32)[0].save_pretrained(tmp_path / "model")
    tiny_models.causal_tokenizer().save_pretrained(tmp_path / "model")
    tiny_models.tiny_encoder(seed=17, dtype=torch.float32).save(str(tmp_path / "encoder"))
    return tmp_path


ONE, TWO = "1" * 40, "2" * 40
HUB = {"language_model": "tiny/model", "encoder": "tiny/encoder"}


@pytest.mark.parametrize("what", HUB)
def test_models_of_the_hub_are_their_commits(named, hub, folders, second, store, what):
    """The newest, or that of a commit, a tag or a branch that is asked for."""
    name, folder = HUB[what], Path(named[what]).name
    settings = {**named, what: name}
    assert str(fingerprint(name)) == f"{name}@unknown"
    hub.fetch(name, ONE, folders / folder)
    first = MarsScorer(**settings).score(*columns(ROWS))
    assert first.signature.to_dict()[what] == f"{name}@{ONE}"
    hub.fetch(name, TWO, second / folder)
    (hub.fetched[0] / "refs" / "v1.0").write_text(ONE)
    for revision in (ONE, "v1.0"):
        models.free_models()
        with growth(store) as grown:
            result = MarsScorer(**{**named, what: f"{name}@{revision}"}).score(*columns(ROWS))
        assert grown == {}
        assert (result.rows, result.signature.to_dict()[what]) == (first.rows, f"{name}@{ONE}")
    fresh = MarsScorer(**{**named, what: f"{name}@{ONE}"}, store=False).score(*columns(ROWS))
    assert fresh.rows == first.rows
    with growth(store) as grown:
        newest = MarsScorer(**settings).score(*columns(ROWS))
    assert newest.signature.to_dict()[what] == str(fingerprint(f"{name}@main")) == f"{name}@{TWO}"
    assert ("infills" if what == "language_model" else "embeddings") in grown
    missing = f"{name}@v2.0"
    with pytest.raises(ModelUnavailableError, match=f"could not load '{missing}'"):
        MarsScorer(**{**named, what: missing}, store=False).score(*columns(ROWS))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_encoders_where_sentence_transformers_looks(hub, folders, monkeypatch, tmp_path, elsewhere):
    """Under its own name where there is no owner, and in its own cache."""
    if elsewhere:
        monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    hub.fetch("sentence-transformers/tiny-short", ONE, folders / "encoder", tmp_path if elsewhere else None)
    assert load_model("encoder", "tiny-short", "float32", Runtime(device="cpu"))
    assert str(fingerprint("tiny-short")) == f"tiny-short@{ONE}"


# Equal to the last bit, and runs that are stopped


LONG = [
    *ROWS,
    ("", *NEW[1:]),
    ("They walk. " * 60, ["They walk to the river."], "The children walk to school. " * 20),
    ("No.", ["The mayor told a reporter about it. " * 14], ""),
]
CASES = [
    {**PLANNED, "augmentation_aggregation": "weighted"},
    {**MASKED, "use_context": False, "idf_corpus": CORPUS},
    {"variant": "plus", "max_mask_ratio": 0.6},
    SAMPLED,
]


@pytest.mark.parametrize("case", CASES, ids=",".join)
def test_cold_warm_and_without_a_store(make, store, case):
    settings = {
        "dtype": "float32",
        "language_model": gpt2_of(1, torch.float32),
        "masked_language_model": roberta_of(3, torch.float32),
        "encoder": tiny_models.tiny_encoder(seed=4, dtype=torch.float32),
        "mask_ratio_step": 0.6,
        **case,
    }
    results = []
    for where in (False, None, None):
        with pytest.warns(MarsWarning) as messages, growth(store) as grown:
            results.append(make(store=where, **settings).score(*columns(LONG)))
        assert {str(one.message) for one in messages} >= set(results[-1].notices)
        assert bool(grown) == (len(results) == 2)
    assert results[0] == results[1] == results[2]
    words = " ".join(results[0].notices)
    assert "blank candidates" in words
    assert "sentence encoder" in words


@pytest.mark.parametrize("infiller", ["causal", "masked"])
def test_what_is_done_is_stored_when_a_call_is_stopped(make, store, infiller):
    rows = [*ROWS, NEW]
    expected = make(store=False, infiller=infiller).score(*columns(rows))
    reports = []

    def stop(stage, done, total):
        if stage == "infill" and len(reports) < 4:
            reports.append((done, total))
            if done == 3:
                raise KeyboardInterrupt

    scorer = make(infiller=infiller, batch_size=1, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        scorer.score(*columns(rows))
    assert reports == [(0, 8), (1, 8), (2, 8), (3, 8)]
    assert counts(store)["infills"] == 3
    # The scorer that was stopped is none the worse.
    assert scorer.score(*columns(rows)).scores == pytest.approx(expected.scores, abs=1e-12)
    assert counts(store)["infills"] == 8
