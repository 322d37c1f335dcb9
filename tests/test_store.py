"""What is stored between calls and processes, seen through the store's public counts of entries."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import huggingface_hub
import pytest
import torch

from mars_score.cache import ResultStore
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import loading
from mars_score.models.loading import locate
from mars_score.models.running import Runtime
from mars_score.scorer import MarsScorer
from mars_score.settings import SETTING_NAMES
from tests import ROOT, jsonl, tiny_models
from tests.jsonl import columns
from tests.setting_values import PAPER, PLUS, as_options

CORPUS = ["She called a friend.", "A truck took her home.", "The library closed early.", "They won."]
# (candidate, references, context)
ROWS = [
    ("She took a train.", ["She called a friend and waited.", "A truck took her home."], "Her car broke."),
    ("Nobody came.", ["The library closed early."], "Look at the library."),
]
NEW = ("They lost.", ["They did not win the old game."], "It was late.")
ROW = [("She took a train.", ["The old car took her home."], "Her car broke. Who took the old train?")]
ONE, TWO = "1" * 40, "2" * 40  # commits
FOLDERS = {"language_model": "model", "encoder": "encoder", "entailment_model": "nli"}
RATIOS = {"max_mask_ratio": 0.6, "mask_ratio_step": 0.3}
MASKED = {"variant": "paper", **RATIOS, "planner": "none", "idf_corpus": CORPUS}


def gpt2_of(seed, dtype=torch.float64):
    """One that reads the contexts of ROWS to their end; the shared one reads none of some."""
    return tiny_models.tiny_gpt2(seed, dtype, n_positions=128, n_layer=1)


def save(folder, number, dtype):
    """Save tiny models into a folder; returns the settings that name them."""
    pairs = {
        "language_model": gpt2_of(number, dtype),
        "entailment_model": tiny_models.tiny_nli(seed=number, dtype=dtype),
    }
    for setting, pair in pairs.items():
        for part in pair:
            part.save_pretrained(folder / FOLDERS[setting])
    tiny_models.tiny_encoder(seed=number, dtype=dtype).save(str(folder / FOLDERS["encoder"]))
    return {setting: str(folder / name) for setting, name in FOLDERS.items()}


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    """Settings that name tiny models in float64."""
    return {"preset": "mini", "dtype": "float64", **save(tmp_path_factory.mktemp("exact"), 1, torch.float64)}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Settings that name other models of the same kinds."""
    return save(tmp_path_factory.mktemp("others"), 21, torch.float64)


@pytest.fixture(autouse=True)
def models_are_loaded_anew(request):
    """In each test, but not in that of the table of settings, whose many cases share their models."""
    if request.node.originalname != "test_a_setting_is_reused_or_recomputed":
        request.getfixturevalue("nothing_loaded")


@pytest.fixture
def store():
    """The test's own store, which scorers use unless told."""
    return Path(os.environ["MARS_STORE"])


def score(rows, **settings):
    """The result of a new scorer."""
    return MarsScorer(**settings).score(*columns(rows))


def counts(store):
    """Entries of each kind."""
    return {kind: number for kind, (number, _) in ResultStore(store).info().items()}


@contextmanager
def growth(store):
    """Yields a dict that holds, after the block, by how many entries each kind has grown; those that have."""
    before, grown = counts(store), {}
    yield grown
    grown |= {kind: number - before[kind] for kind, number in counts(store).items() if number > before[kind]}


# Settings: what is computed anew when one changes

PLANNED = {**MASKED, "planner": "self", "plan_step": 0.5, "plan_iterations": 1, "sigma": 1}
SCORED = {"variant": "plus"}
JUDGED = {**SCORED, "task": "summary"}  # by the NLI model
OTHER = "another"


def each(settings, *kinds, **changes):
    """One case per change of a single setting: (settings, change, kinds of results that are computed anew)."""
    return [(settings, {name: value}, set(kinds)) for name, value in changes.items()]


TOOK, BOTH_CASES = ["The took her.", "Took the.", "Her took.", "Rain."], ["The bus.", "The car.", "the dog by it."]
RESCORED = {name: value for name, value in PLUS.items() if name not in ("window_words", "premise_words")}
CASES = [
    # What a model is given, or the model itself.
    *each(MASKED, "infills", "encodings", language_model=OTHER, sigma=2, planner="self", use_context=False),
    *each(MASKED, "infills", "encodings", dtype="float32", language="de", max_context_tokens=1),
    *each(MASKED, "infills", "encodings", pos_weights={"ADJ": 9.0, "NOUN": 0.1, "PROPN": 0.1, "VERB": 9.0}),
    *each(MASKED, "infills", "encodings", max_mask_ratio=0.9, idf_corpus=TOOK),
    *each({**MASKED, "idf_corpus": BOTH_CASES}, "infills", "encodings", lower_words=False),
    *each(PLANNED, "infills", plan_step=0.51, plan_iterations=2, plan_temperature=1.2, plan_norm_exponent=1.5),
    *each(PLANNED, "infills", plan_fusion=0.9),
    *each(MASKED, "encodings", encoder=OTHER),
    *each(SCORED, "encodings", encoder=OTHER, window_words=3),
    *each(SCORED, "log_probabilities", language_model=OTHER, max_context_tokens=1),
    *each(JUDGED, "entailments", entailment_model=OTHER),
    *each(JUDGED, "encodings", "entailments", premise_words=3),
    *each(JUDGED, "encodings", "log_probabilities", "entailments", dtype="float32"),
    *each(SCORED, "encodings", "infills", variant="paper"),
    # What is only computed with, or how.
    *each(MASKED, q=0.5, reference_aggregation="mean", strip_urls_hashtags=False, mask_ratio_step=0.6),
    *each(MASKED, batch_size=1, progress=lambda *report: None),
    *each(SCORED, clean=True),
    *each(SCORED, **RESCORED, variant="fast", reference_aggregation="mean", language="de", task="data"),
]


def test_every_setting_is_in_the_table():
    tried = {name for _, changes, _ in CASES for name in changes}
    # A learned head computes with what is stored: tests/test_heads.py.
    assert tried == {*SETTING_NAMES, "batch_size", "progress"} - {"learned"}
    assert set(RESCORED) < set(PLUS)
    assert set(PAPER) < tried


@pytest.fixture(scope="module")
def scored(exact, tmp_path_factory):
    """Fills a store with the results of ROW by some settings, which are computed once."""
    filled = {}

    def fill(store, settings):
        key = json.dumps(settings)
        if key not in filled:
            filled[key] = tmp_path_factory.mktemp("scored")
            score(ROW, **{**exact, **settings}, store=filled[key])
        shutil.copytree(filled[key], store)

    return fill


@pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
@pytest.mark.parametrize(("settings", "changes", "kinds"), CASES)
def test_a_setting_is_reused_or_recomputed(exact, others, store, scored, settings, changes, kinds):
    scored(store, settings)
    changes = {name: others[name] if value == OTHER else value for name, value in changes.items()}
    changed = {**exact, **(settings if changes.get("variant") != "paper" else {}), **changes}
    with growth(store) as grown:
        result = score(ROW, **changed)
    assert grown.keys() - {"encodings"} == kinds - {"encodings"}
    assert ("encodings" in grown) <= bool(kinds)  # of infills, which may be what they were
    if kinds == {"encodings"}:
        assert grown.keys() == kinds
    fresh = score(ROW, **changed, store=False)
    assert result.scores == pytest.approx(fresh.scores, abs=1e-5)
    assert result.rows == fresh.rows
    with growth(store) as grown:
        score(ROW, **{**exact, **settings})
    assert grown == {}  # the others are still there


# Rows


def test_only_a_new_row_is_computed(exact, store):
    settings = {**exact, **MASKED}
    score(ROWS, **settings)
    alone = store.parent / "alone"
    result = score([NEW], **settings, store=alone)
    with growth(store) as grown:
        again = score([ROWS[0], NEW, ROWS[1]], **settings)
    assert again.scores[1] == pytest.approx(result.scores[0], abs=1e-9)
    assert grown == {kind: number for kind, number in counts(alone).items() if number}
    with growth(store) as grown:
        score([(NEW[0], *ROWS[0][1:]), *ROWS[::-1], *ROWS], **settings)
    assert grown == {}  # a candidate that was encoded before


def test_runs_over_files_and_calls_keep_the_same(named_models, store, tmp_path, run):
    rows = [{"prediction": text, "reference": texts, "context": context} for text, texts, context in [*ROWS, NEW]]
    argv = ["score", jsonl.write(tmp_path / "rows.jsonl", rows), "--preset=mini", "--variant=plus"]
    argv += ["--chunk-size=2", "--json", "--detailed", "--quiet", *as_options(named_models)]
    result = score([*ROWS, NEW], preset="mini", variant="plus", **named_models)
    with growth(store) as grown:
        first, again = json.loads(run(*argv)[1]), json.loads(run(*argv)[1])
    assert grown == {}
    assert first == again
    assert first["scores"] == pytest.approx(result.scores, abs=1e-12)
    assert json.loads(run(*argv, "--no-store")[1])["scores"] == pytest.approx(result.scores, abs=1e-9)


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_folder_is_refused(exact, failing, tmp_path, blank):
    """It would be the working directory."""
    with pytest.raises(ValueError, match=r"store must be a folder, or False \(--no-store\) to save nothing"):
        MarsScorer(**exact, store=blank)
    path = jsonl.write(tmp_path / "rows.jsonl", [{"prediction": "a", "reference": "a", "context": "a"}])
    assert "--no-store" in failing("score", path, "--store", blank)


def test_what_is_done_is_stored_when_a_call_is_stopped(exact, store):
    rows, settings, reports = [*ROWS, NEW], {**exact, **MASKED}, []
    expected = score(rows, **settings, store=False)

    def stop(stage, done, total):
        if stage == "infill" and len(reports) < 4:
            reports.append((done, total))
            if done == 3:
                raise KeyboardInterrupt

    scorer = MarsScorer(**settings, batch_size=1, progress=stop)
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
    """Two folders with tiny models of the same kinds: "model", "encoder" and "nli"."""
    paths = []
    for number in (6, 16):
        paths.append(tmp_path_factory.mktemp("models"))
        save(paths[-1], number, torch.float32)
    return paths


KINDS = {"language_model": "log_probabilities", "encoder": "encodings", "entailment_model": "entailments"}


@pytest.fixture
def named(folders):
    """Settings that name the first of the folders; the NLI model judges summaries."""
    names = {setting: str(folders[0] / name) for setting, name in FOLDERS.items()}
    return {"preset": "mini", **JUDGED, "device": "cpu", **names}


LONG = [
    *ROWS,
    ("", *NEW[1:]),
    ("They walk. " * 60, ["They walk to the river."], "The children walk to school. " * 20),
    ("No.", ["The mayor told a reporter about it."], ""),
]
VARIED = [
    {"variant": "paper", "planner": "none", **RATIOS},
    {**PLANNED, "use_context": False},
    {"variant": "plus"},
]
PROCESS = """if True:
    import json, sys, warnings
    tasks = json.loads(sys.argv[1])
    warnings.simplefilter("error")
    from mars_score.errors import MarsWarning
    from mars_score.scorer import MarsScorer
    warnings.simplefilter("ignore", MarsWarning)
    results = [MarsScorer(**task["settings"]).score(*task["columns"]).to_dict() for task in tasks]
    print(json.dumps({"results": results, "loaded": "transformers" in sys.modules}))
"""


@pytest.mark.slow
def test_results_are_equal_to_the_last_bit_without_a_store_and_in_another_process_which_loads_no_model(
    named, store, few_references
):
    folders = [store / str(number) for number in range(len(VARIED))]
    tasks, expected = [], []
    for folder, changes in zip(folders, VARIED, strict=True):
        settings = {**named, **changes, "store": str(folder)}
        results = []
        for where in (False, folder):
            with pytest.warns(MarsWarning) as messages, growth(folder) as grown:
                results.append(score(LONG, **{**settings, "store": where}))
            assert {str(warning.message) for warning in messages} >= set(results[-1].notices)
            assert bool(grown) == (where == folder)
        assert results[0] == results[1]
        notices = " ".join(results[0].notices)
        assert "blank candidates" in notices
        assert "sentence encoder" in notices
        tasks.append({"settings": settings, "columns": columns(LONG)})
        expected.append(json.loads(results[0].to_json()))
    before = [counts(folder) for folder in folders]
    command = [sys.executable, "-c", PROCESS, json.dumps(tasks)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    assert [counts(folder) for folder in folders] == before
    assert json.loads(process.stdout.splitlines()[-1]) == {"results": expected, "loaded": False}


@pytest.mark.parametrize("setting", FOLDERS)
def test_a_folder_that_changes_is_read_anew_once_models_are_freed(named, folders, store, tmp_path, setting):
    folder = str(shutil.copytree(named[setting], tmp_path / "model"))
    settings = {**named, setting: folder}
    scorer = MarsScorer(**settings)
    before = scorer.score(*columns(ROWS))
    scorer.calls.load(KINDS[setting])
    shutil.rmtree(folder)  # not written over: a loaded model may read its weights from the file
    shutil.copytree(folders[1] / FOLDERS[setting], folder)
    with growth(store) as grown:
        assert score(ROWS, **settings) == before
    assert grown == {}
    loading.free_models()
    with growth(store) as grown:
        after = score(ROWS, **settings)
    # By another encoder other summaries are close to a reference, by which they are judged, too.
    assert grown.keys() - ({"entailments"} if setting == "encoder" else set()) == {KINDS[setting]}
    assert after.signature != before.signature
    assert after.scores == pytest.approx(score(ROWS, **settings, store=False).scores, abs=1e-5)
    with growth(store) as grown:  # a scorer that used the model as it was
        again = scorer.score(*columns(ROWS))
        assert (again.scores, again.signature) == (after.scores, after.signature)
        other = scorer.score(*columns(LONG[::-1]))
    assert KINDS[setting] in grown
    assert other.scores == pytest.approx(score(LONG[::-1], **settings, store=False).scores, abs=1e-5)
    with growth(store) as grown:  # a twin of the model as it was
        assert score(ROWS, **named).scores == before.scores
    assert grown == {}


@pytest.mark.parametrize("setting", FOLDERS)
def test_an_object_may_change_while_a_scorer_uses_it_and_its_outputs_are_not_stored(named, store, setting):
    model = loading.load_model(setting, named[setting], "float32", Runtime(device="cpu"))
    settings = {**named, setting: model}
    if setting == "language_model":
        settings |= MASKED
    scorer = MarsScorer(**settings)
    before = scorer.score(*columns(ROWS))
    weights = next((model if setting == "encoder" else model[0]).parameters())
    weights.data.copy_(weights.data.roll(1, 0))
    after = scorer.score(*columns(ROWS))
    assert after.row_scores != before.row_scores
    assert after.row_scores == score(ROWS, **settings, store=False).row_scores
    assert after.signature == before.signature
    kinds = {"infills", "log_probabilities"} if setting == "language_model" else {KINDS[setting]}
    assert not any(counts(store)[kind] for kind in kinds)


@pytest.fixture
def fetch():
    """Puts a folder into the Hub's cache on this machine as a commit, which is the newest from then on."""
    fetched = []

    def put(name, commit, folder, cache=None):
        home = (cache or Path(huggingface_hub.constants.HF_HUB_CACHE)) / f"models--{name.replace('/', '--')}"
        shutil.copytree(folder, home / "snapshots" / commit)
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / "main").write_text(commit)
        fetched.append(home)
        return home

    yield put
    for home in fetched:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.parametrize("setting", FOLDERS)
def test_models_of_the_hub_are_their_commits(named, fetch, folders, store, setting):
    """The newest, or that of a commit, a tag or a branch that is asked for."""
    folder = FOLDERS[setting]
    name = f"tiny/{folder}"

    def scored(name, **more):
        result = score(ROWS, **{**named, setting: name}, **more)
        return result, result.signature.to_dict()[setting]

    assert str(locate(name)) == f"{name}@unknown"
    fetch(name, ONE, folders[0] / folder)
    first, signature = scored(name)
    assert signature == f"{name}@{ONE}"
    (fetch(name, TWO, folders[1] / folder) / "refs" / "v1.0").write_text(ONE)
    for revision in (ONE, "v1.0"):
        loading.free_models()
        with growth(store) as grown:
            result, signature = scored(f"{name}@{revision}")
        assert grown == {}
        assert (result.row_scores, signature) == (first.row_scores, f"{name}@{ONE}")
    assert scored(f"{name}@{ONE}", store=False)[0].row_scores == first.row_scores
    with growth(store) as grown:
        _, signature = scored(name)
    assert signature == str(locate(f"{name}@main")) == f"{name}@{TWO}"
    assert KINDS[setting] in grown
    with pytest.raises(ModelUnavailableError, match=f"could not load '{name}@v2.0'"):
        scored(f"{name}@v2.0", store=False)


@pytest.mark.parametrize("own_cache", [False, True])
def test_encoders_where_sentence_transformers_looks(fetch, folders, monkeypatch, tmp_path, own_cache):
    """Under its own name where there is no owner, and in its own cache."""
    if own_cache:
        monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    cache = tmp_path if own_cache else None
    fetch("sentence-transformers/tiny-short", ONE, folders[0] / "encoder", cache)
    assert loading.load_model("encoder", "tiny-short", "float32", Runtime(device="cpu"))
    assert str(locate("tiny-short")) == f"tiny-short@{ONE}"
