"""What is kept between processes: which work it saves, which settings and models it tells apart."""

import contextlib
import copy
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import tiny_models
import torch
from jsonl import columns

from mars_score.augment.infilling.engine import CausalInfiller
from mars_score.augment.infilling.masked import MaskedInfiller
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.augment.sampling import samples
from mars_score.errors import MarsWarning, ModelUnavailableError
from mars_score.models import loading as models
from mars_score.models.engine import surprisal
from mars_score.models.engine.encoder import SentenceEncoder
from mars_score.models.fingerprints import fingerprint, is_here
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
KINDS = ("analyses", "infills", "embeddings")


def infilled(result):
    """All augmented references of a result."""
    return [one.augmented.texts for row in result.rows for one in row.references]


def alike(one, other):
    """The same augmented references, and the same scores but for the make-up of the encoder's batches."""
    return infilled(one) == infilled(other) and one.scores == pytest.approx(other.scores, abs=1e-5)


def pairs_of(rows, result):
    """The different contexts and templates that have blanks."""
    return {
        (context, augmentation.template)
        for (_, _, context), row in zip(rows, result.rows, strict=True)
        for one in row.references
        for augmentation in one.augmented.augmentations
        if augmentation.template.blanks
    }


@pytest.fixture
def work(monkeypatch):
    """What has been done since :meth:`take` was last called."""
    done = SimpleNamespace(tagged=[], split=[], jobs=[], drawn=[], embedded=[], read=[])

    def note(cls, name, things):
        usual = getattr(cls, name)

        def noted(self, what, *others, **options):
            things.extend(what)
            return usual(self, what, *others, **options)

        monkeypatch.setattr(cls, name, noted)

    note(WordAnalyser, "_tag", done.tagged)
    note(WordAnalyser, "_split", done.split)
    note(CausalInfiller, "infill", done.jobs)
    note(MaskedInfiller, "infill", done.jobs)
    note(SentenceEncoder, "encode", done.embedded)

    surprisals = surprisal.surprisals

    def noted_surprisals(model, pairs, *others):
        done.read.extend(pair for pair in pairs if pair[0])  # candidates are also read alone
        return surprisals(model, pairs, *others)

    monkeypatch.setattr(surprisal, "surprisals", noted_surprisals)

    draw = samples.draw_samples

    def noted_draw(model, settings, requests, *others):
        done.drawn.extend(requests)
        draw(model, settings, requests, *others)

    monkeypatch.setattr(samples, "draw_samples", noted_draw)

    def take():
        taken = SimpleNamespace(**{name: sorted(map(str, things)) for name, things in lists.items()})
        for things in lists.values():
            things.clear()
        return taken

    lists = dict(vars(done))
    done.take = take
    return done


def nothing(taken):
    return not any(vars(taken).values())


def gpt2_of(seed, dtype=torch.float64):
    """One that reads the contexts of ROWS to their end; the shared one reads none of some."""
    return tiny_models.tiny_gpt2(seed, dtype, n_positions=128, n_layer=1)


def roberta_of(seed, dtype=torch.float64):
    return tiny_models.tiny_roberta_mlm(seed, dtype, n_positions=128, num_hidden_layers=1)


@pytest.fixture(scope="module")
def wide():
    return {"language_model": gpt2_of(1), "masked_language_model": roberta_of(3)}


@pytest.fixture(scope="module")
def objects(wide, encoder):
    """Settings that name tiny ready-made models."""
    return {
        **wide,
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
def make(objects, work):
    """Makes scorers of tiny models with the test's store and settings."""

    def make_scorer(**settings):
        return MarsScorer(**{**objects, **settings})

    return make_scorer


@pytest.fixture
def store():
    """The test's own store, which scorers use unless told."""
    return Path(os.environ["MARS_STORE"])


@pytest.fixture(scope="module")
def scored(objects, tmp_path_factory):
    """Fills a store with the results of ROW by some settings, which are computed once."""
    made = {}

    def fill(store, settings):
        key = json.dumps(settings)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("scored")
            MarsScorer(**{**objects, **settings}, store=made[key]).score(*columns(ROW))
        shutil.copytree(made[key], store)

    return fill


@contextlib.contextmanager
def warnings_of_mars():
    """The messages of MARS's warnings meanwhile."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages += [str(one.message) for one in caught if one.category is MarsWarning]


def counts(store):
    """Entries of each kind."""
    return {kind: number for kind, (number, _) in ResultStore(store).info().items()}


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
        "matching": "sentences",
        "context_weight": 0.0,
        "language_model": str(folders / "model"),
        "masked_language_model": str(folders / "masked"),
        "encoder": str(folders / "encoder"),
        "device": "cpu",
        "mask_ratio_step": 0.3,
    }


@pytest.mark.parametrize(("variant", "corpus"), [("paper", None), ("fast", None), ("plus", CORPUS)])
def test_another_process_loads_nothing_for_what_is_kept(named, work, variant, corpus):
    infilled = {**PLANNED, "idf_corpus": corpus, "max_mask_ratio": 0.6}
    settings = {**named, "variant": variant, **infilled, "task": "story"}
    here = MarsScorer(**settings).score(*columns(ROWS))
    assert work.take().jobs
    there = elsewhere(settings, ROWS)
    assert there.result == json.loads(here.to_json())  # to the last bit
    assert there.loaded == []
    assert there.libraries == []


def score_without_spacy(sender, settings, rows):
    """In a forked child, where spaCy cannot be imported."""
    torch.set_num_threads(1)  # a fork has no threads but this one
    for name in [name for name in sys.modules if name.split(".")[0] == "spacy"]:
        sys.modules[name] = None
    sender.send((MarsScorer(**settings).score(*columns(rows)), [key[0] for key in models._loaded]))


@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.parametrize("variant", ["paper", "fast"])
def test_another_process_with_new_candidates_loads_the_encoder_alone(named, store, variant):
    named = {**named, "variant": variant}
    MarsScorer(**named).score(*columns(ROWS))
    rows = [(f"{candidate} Indeed.", *others) for candidate, *others in ROWS]
    models.free_models()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=score_without_spacy, args=(sender, named, rows))
    child.start()
    sender.close()
    result, loaded = receiver.recv()
    child.join(60)
    assert loaded == ["encoder"]
    here = MarsScorer(**named).score(*columns(rows))
    assert here == result
    assert models._loaded == {}  # this process is the other one's other process


# A new row


def test_a_new_row_is_the_only_work(make, work):
    make(idf_corpus=CORPUS).score(*columns(ROWS))
    work.take()
    make(idf_corpus=CORPUS, store=False).score(*columns([NEW]))
    alone = work.take()
    rows = [ROWS[0], NEW, ROWS[1]]
    result = make(idf_corpus=CORPUS).score(*columns(rows))
    done = work.take()
    assert done.tagged == NEW[1]
    assert done.split == [NEW[2]]
    assert done.jobs == alone.jobs
    assert len(done.jobs) == 2
    assert done.embedded == alone.embedded == sorted([NEW[0], *infilled(result)[2]])

    other = make(idf_corpus=CORPUS, store=False).score(*columns(rows))
    assert infilled(result) == infilled(other)
    assert result.scores == pytest.approx(other.scores, abs=1e-12)


def test_a_new_row_that_changes_templates(make, work):
    """Without a corpus a new row may change what is masked in others."""
    rows = [*ROWS, ("He reads.", ["The car stopped near the house."], "")]
    before = pairs_of(rows, make().score(*columns(rows)))
    work.take()
    rows = [*rows, ("No.", ["My house and her friend and the truck."], "")]
    result = make().score(*columns(rows))
    after, done = pairs_of(rows, result), work.take()
    assert len(done.jobs) == len(after - before)
    of_old_rows = {pair for pair in after if pair[1].reference in {of.reference for _, of in before}}
    assert before != of_old_rows  # some have changed
    assert before & of_old_rows  # and some have not
    assert done.tagged == rows[-1][1]
    assert done.split == []
    assert infilled(result) == infilled(make(store=False).score(*columns(rows)))


@pytest.mark.parametrize("variant", ["paper", "plus"])
def test_a_new_candidate_is_only_embedded_and_read_for_its_likelihood(make, work, variant):
    make(variant=variant).score(*columns(ROWS))
    work.take()
    make(variant=variant).score(*columns([(NEW[0], *ROWS[0][1:]), ROWS[1]]))
    done = work.take()
    assert done.read == ([str((ROWS[0][2], NEW[0]))] if variant == "plus" else [])
    assert done.embedded == [NEW[0]]
    assert (done.tagged, done.split, done.jobs) == ([], [], [])


def test_more_of_the_same_is_no_work(make, work):
    make().score(*columns(ROWS))
    work.take()
    make().score(*columns([*ROWS[::-1], *ROWS]))
    assert make().augment(*columns(ROWS)[1:])
    assert nothing(work.take())


def test_larger_mask_ratios_are_the_only_work(make, work):
    make(idf_corpus=CORPUS, mask_ratio_step=0.2, max_mask_ratio=0.2).score(*columns(ROWS))
    work.take()
    make(idf_corpus=CORPUS, mask_ratio_step=0.2, max_mask_ratio=0.4).score(*columns(ROWS))
    assert len(work.take().jobs) == 3  # one per reference


# Keys

PLANNED = {"planner": "self", "plan_step": 0.5, "plan_iterations": 1, "sigma": 1}
MASKED = {"infiller": "masked"}
OTHER_MODELS = {
    "language_model": lambda: gpt2_of(21),
    "masked_language_model": lambda: roberta_of(22),
    "encoder": lambda: tiny_models.tiny_encoder(seed=23),
    "entailment_model": lambda: tiny_models.tiny_classifier(
        id2label={0: "neutral", 1: "other", 2: "contradiction"}
    ),
}
# (settings, what is changed): the infills are made anew
NEW_WORK = [
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
]
# the infills are those that are kept
NO_WORK = [
    ({}, {"matching": "tokens"}),
    ({}, {"context_weight": 0.5}),
    ({}, {"likelihood_weight": 0.1}),
    ({}, {"repetition_penalty": 0.1}),
    (PLANNED, {"augmentation_aggregation": "weighted"}),
    ({}, {"augmentation_aggregation": "weighted", "q": 0.5}),
    ({}, {"reference_aggregation": "mean"}),
    ({}, {"batch_size": 1}),
    ({}, {"progress": lambda *report: None}),
    ({}, {"encoder": "another"}),
    ({}, {"masked_language_model": "another"}),
    ({}, {"entailment_model": "another", "contradiction_penalty": 0.5}),
    ({}, {"mask_ratio_step": 0.6}),
    ({}, {"max_mask_ratio": 0.4}),
    ({}, {"idf_corpus": ["Of other words.", "Yes."]}),
    ({}, {"idf_corpus": None}),
    ({}, {"pos_weights": {"ADJ": 4.5, "ADV": 3.0, "NOUN": 2.0, "PUNCT": 0.1}}),
    ({}, {"strip_urls_hashtags": True}),
    (MASKED, {"language_model": "another"}),
]
# of those the ones for which texts are embedded that were not, or not so
READ_ANEW = {"encoder", "matching", "context_weight"}
SAMPLED = {"samples": 2, "task": "story"}
# the infills are those that are kept, the samples are drawn anew
NEW_SAMPLES = [
    ({}, SAMPLED),
    (SAMPLED, {"samples": 3}),
    (SAMPLED, {"sample_temperature": 0.5}),
    (SAMPLED, {"sample_top_p": 0.5}),
    (SAMPLED, {"sample_seed": 1}),
    (SAMPLED, {"task": "summary"}),
]
# the samples are those that are kept, too
OLD_SAMPLES = [
    (SAMPLED, {"sample_weight": 0.5}),
    (SAMPLED, {"encoder": "another"}),
]


def changed_settings(changes):
    return {name: OTHER_MODELS[name]() if value == "another" else value for name, value in changes.items()}


def test_every_setting_is_in_a_table():
    tried = {name for _, changes in [*NEW_WORK, *NO_WORK, *NEW_SAMPLES, *OLD_SAMPLES] for name in changes}
    untried = {"learned"}  # comes after all that is kept: tests/test_learning.py
    assert tried == {*SETTING_NAMES, "batch_size", "progress"} - untried


@pytest.mark.filterwarnings("ignore:the end of the context")
@pytest.mark.parametrize(("settings", "changes"), NEW_WORK, ids=",".join)
def test_settings_that_infills_depend_on(make, work, store, scored, settings, changes):
    settings = {**settings, "mask_ratio_step": 0.6}
    scored(store, settings)
    work.take()
    changed = {**settings, **changed_settings(changes)}
    result = make(**changed).score(*columns(ROW))
    assert len(work.take().jobs) == 1
    fresh = make(**changed, store=False).score(*columns(ROW))
    assert infilled(result) == infilled(fresh)
    work.take()
    make(**settings).score(*columns(ROW))  # the others are still there
    assert nothing(work.take())


@pytest.mark.parametrize(("settings", "changes"), NO_WORK, ids=",".join)
def test_settings_that_infills_do_not_depend_on(make, work, store, scored, settings, changes):
    scored(store, settings)
    assert counts(store)["infills"] == 2
    work.take()
    make(**{**settings, **changed_settings(changes)}).score(*columns(ROW))
    done = work.take()
    assert done.jobs == []
    assert bool(done.embedded) == (not READ_ANEW.isdisjoint(changes))
    assert bool(done.read) == ("likelihood_weight" in changes)


@pytest.mark.parametrize(("settings", "changes"), [*NEW_SAMPLES, *OLD_SAMPLES], ids=",".join)
def test_settings_that_samples_depend_on(make, work, store, scored, settings, changes):
    scored(store, {**settings, "mask_ratio_step": 0.6})
    assert bool(counts(store)["samples"]) == (settings is SAMPLED)
    work.take()
    make(**{**settings, **changed_settings(changes)}, mask_ratio_step=0.6).score(*columns(ROW))
    done = work.take()
    assert bool(done.drawn) == ((settings, changes) in NEW_SAMPLES)
    assert done.jobs == []


def swap_rows(weight):
    weight.data[[0, 1]] = weight.data[[1, 0]]


def add_without_gradient(weight):
    with torch.no_grad():
        weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)).to(weight))


def add_to_one(weight):
    weight.data[0, 0] += 1


WRITES = [add_to_one, add_without_gradient, swap_rows, pytest.param(lambda weight: weight.data.neg_(), id="neg_")]


@pytest.mark.parametrize("write", WRITES)
def test_a_language_model_that_is_changed_in_place(make, work, write):
    model, tokenizer = gpt2_of(31)
    scorer = make(language_model=(model, tokenizer))
    scorer.score(*columns(ROW))
    assert len(work.take().jobs) == 2
    write(model.lm_head.weight)
    result = scorer.score(*columns(ROW))
    assert len(work.take().jobs) == 2
    fresh = make(language_model=(copy.deepcopy(model), tokenizer), store=False).score(*columns(ROW))
    assert infilled(result) == infilled(fresh)
    work.take()
    assert scorer.score(*columns(ROW)) == result
    assert make(language_model=gpt2_of(31)).score(*columns(ROW))  # as it was
    assert nothing(work.take())


def test_an_encoder_that_is_changed_in_place(make, work):
    encoder = tiny_models.tiny_encoder(seed=32)
    scorer = make(encoder=encoder)
    before = scorer.score(*columns(ROW))
    texts = work.take().embedded
    swap_rows(next(weight for weight in encoder.parameters() if weight.ndim == 2))
    result = scorer.score(*columns(ROW))
    done = work.take()
    assert (done.embedded, done.jobs) == (texts, [])
    fresh = make(encoder=copy.deepcopy(encoder), store=False).score(*columns(ROW))
    assert result.scores == fresh.scores
    assert result.scores != before.scores


def test_equal_objects_share_results(make, work):
    result = make().score(*columns(ROWS))
    work.take()
    twins = {"language_model": gpt2_of(1), "encoder": tiny_models.tiny_encoder(seed=4)}
    assert make(**twins).score(*columns(ROWS)) == result
    assert make(language_model=copy.deepcopy(twins["language_model"])).score(*columns(ROWS)) == result
    assert nothing(work.take())


def test_objects_that_begin_texts_with_other_tokens(make, work):
    model, tokenizer = gpt2_of(1)
    make().score(*columns([(*ROW[0][:2], "")]))
    work.take()
    other = copy.deepcopy(tokenizer)
    other.bos_token = "the"
    make(language_model=(model, other)).score(*columns([(*ROW[0][:2], "")]))
    assert len(work.take().jobs) == 2


def test_encoders_that_put_other_words_before_texts(make, work):
    make().score(*columns(ROW))
    texts = work.take().embedded
    other = tiny_models.tiny_encoder(seed=4)
    other.prompts, other.default_prompt_name = {"query": "query: "}, "query"
    make(encoder=other).score(*columns(ROW))
    assert work.take().embedded == texts


# Folders


def test_copies_of_folders_share_results(named, folders, work, tmp_path):
    result = MarsScorer(**named).score(*columns(ROWS))
    work.take()
    models.free_models()
    shutil.copytree(folders, tmp_path / "copy")
    copies = {name: tmp_path / "copy" / Path(named[name]).name for name in ("language_model", "encoder")}
    assert MarsScorer(**{**named, **copies}).score(*columns(ROWS)).rows == result.rows
    assert nothing(work.take())
    assert models._loaded == {}


@pytest.mark.parametrize("again", ["the same scorer", pytest.param("another scorer", marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["language_model", "encoder"])
def test_a_folder_that_changes_while_its_model_is_loaded(named, folders, work, tmp_path, what, again):
    shutil.copytree(named[what], tmp_path / "model")
    settings = {**named, what: tmp_path / "model"}
    scorer = MarsScorer(**settings)
    scorer.score(*columns(ROWS))
    if what == "language_model":
        gpt2_of(7, torch.float32)[0].save_pretrained(tmp_path / "model")
    else:
        tiny_models.tiny_encoder(seed=7, dtype=torch.float32).save(str(tmp_path / "model"))
    scorer = scorer if again == "the same scorer" else MarsScorer(**settings)
    scorer.score(*columns(ROWS))
    models.free_models()  # as another process
    result = MarsScorer(**settings).score(*columns(ROWS))
    assert alike(result, MarsScorer(**settings, store=False).score(*columns(ROWS)))


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
def test_models_of_the_hub_are_their_commits(named, hub, folders, second, work, monkeypatch, what):
    name, folder = HUB[what], Path(named[what]).name
    hub.fetch(name, ONE, folders / folder)
    assert str(fingerprint(name)) == f"{name}@{ONE}"
    assert is_here(name)
    settings = {**named, what: name}
    result = MarsScorer(**settings).score(*columns(ROWS))
    assert result.rows == MarsScorer(**named, store=False).score(*columns(ROWS)).rows
    assert result.signature.to_dict()[what] == f"{name}@{ONE}"
    models.free_models()
    work.take()
    assert MarsScorer(**settings).score(*columns(ROWS)) == result
    assert nothing(work.take())
    assert models._loaded == {}

    hub.fetch(name, TWO, second / folder)
    assert str(fingerprint(name)) == f"{name}@{TWO}"
    other = MarsScorer(**settings).score(*columns(ROWS))
    done = work.take()
    assert done.jobs if what == "language_model" else done.embedded
    models.free_models()
    of_second = MarsScorer(**{**named, what: second / folder}, store=False)
    assert alike(other, of_second.score(*columns(ROWS)))
    assert not alike(other, result)


@pytest.mark.parametrize("what", HUB)
def test_a_revision_can_be_asked_for(named, hub, folders, second, what):
    """A commit, a tag or a branch, also where another one is the newest."""
    name, folder = HUB[what], Path(named[what]).name
    hub.fetch(name, ONE, folders / folder)
    hub.fetch(name, TWO, second / folder)
    (hub.fetched[0] / "refs" / "v1.0").write_text(ONE)
    expected = MarsScorer(**named, store=False).score(*columns(ROWS))
    for revision in (ONE, "v1.0"):
        models.free_models()
        assert str(fingerprint(f"{name}@{revision}")) == f"{name}@{ONE}"
        result = MarsScorer(**{**named, what: f"{name}@{revision}"}, store=False).score(*columns(ROWS))
        assert result.rows == expected.rows
        assert result.signature.to_dict()[what] == f"{name}@{ONE}"
    assert str(fingerprint(f"{name}@main")) == str(fingerprint(name)) == f"{name}@{TWO}"
    missing = f"{name}@v2.0"
    assert str(fingerprint(missing)) == f"{name}@unknown"
    with pytest.raises(ModelUnavailableError, match=f"could not load '{missing}'"):
        MarsScorer(**{**named, what: missing}, store=False).score(*columns(ROWS))


def test_a_folder_with_an_at_sign(named, tmp_path):
    for what in HUB:
        shutil.copytree(named[what], tmp_path / f"{what}@2")
    scorer = MarsScorer(**{**named, **{what: tmp_path / f"{what}@2" for what in HUB}}, store=False)
    assert scorer.score(*columns(ROWS)).rows == MarsScorer(**named, store=False).score(*columns(ROWS)).rows


@pytest.mark.parametrize("what", HUB)
def test_the_commit_is_what_is_loaded(named, hub, folders, work, monkeypatch, what):
    """A newer one on the Hub is left where it is."""
    import sentence_transformers
    import transformers

    revisions = []

    def note(owner, name):
        usual = getattr(owner, name)

        def noted(*arguments, **options):
            revisions.append(options.get("revision"))
            return usual(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    note(transformers.AutoTokenizer, "from_pretrained")
    note(transformers.AutoModelForCausalLM, "from_pretrained")
    note(sentence_transformers, "SentenceTransformer")
    hub.fetch(HUB[what], ONE, folders / Path(named[what]).name)
    if what == "language_model":
        models.load_language_model(HUB[what], "causal", "float32", Runtime(device="cpu"))
        assert revisions == [ONE, ONE]
    else:
        models.load_encoder(HUB[what], "float32", Runtime(device="cpu"))
        assert revisions[0] == ONE


@pytest.mark.parametrize("what", HUB)
def test_a_model_that_was_never_fetched_is_loaded_first(named, hub, folders, work, monkeypatch, what):
    """Only then is its commit known, under which results are kept."""
    name = HUB[what]
    load = "load_language_model" if what == "language_model" else "load_encoder"
    usual, loads = getattr(models, load), []

    def fetch_and_load(spec, *others):
        loads.append(spec)
        if not is_here(spec):
            hub.fetch(name, ONE, folders / Path(named[what]).name)
        return usual(spec, *others)

    monkeypatch.setattr(models, load, fetch_and_load)
    assert not is_here(name)
    assert str(fingerprint(name)) == f"{name}@unknown"
    result = MarsScorer(**{**named, what: name}).score(*columns(ROWS))
    assert loads == [name]
    assert result.signature.to_dict()[what] == f"{name}@{ONE}"
    work.take()
    models.free_models()
    assert MarsScorer(**{**named, what: name}).score(*columns(ROWS)) == result
    assert nothing(work.take())
    assert loads == [name]


def test_an_encoder_without_an_owner(named, hub, folders):
    hub.fetch("sentence-transformers/tiny-short", ONE, folders / "encoder")
    assert models.load_encoder("tiny-short", "float32", Runtime(device="cpu"))
    assert str(fingerprint("tiny-short")) == f"tiny-short@{ONE}"


def test_an_encoder_in_another_cache(named, hub, folders, monkeypatch, tmp_path):
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    hub.fetch(HUB["encoder"], ONE, folders / "encoder", tmp_path)
    assert models.load_encoder(HUB["encoder"], "float32", Runtime(device="cpu"))
    assert str(fingerprint(HUB["encoder"])) == f"{HUB['encoder']}@{ONE}"


# Equal to the last bit

LONG = [
    *ROWS,
    ("", *NEW[1:]),
    ("They walk. " * 60, ["They walk to the river."], "The children walk to school. " * 20),
    ("No.", ["The mayor told a reporter about it. " * 14], ""),
]
CASES = {
    "planned": {**PLANNED, "augmentation_aggregation": "weighted"},
    "masked": MASKED,
    "no context": {"use_context": False, "idf_corpus": CORPUS},
    "likelihood": {"variant": "plus", "max_mask_ratio": 0.6},
    "samples": SAMPLED,
}


@pytest.mark.parametrize("case", CASES)
def test_cold_warm_and_without_a_store(make, work, store, case):
    settings = {
        "dtype": "float32",
        "language_model": gpt2_of(1, torch.float32),
        "masked_language_model": roberta_of(3, torch.float32),
        "encoder": tiny_models.tiny_encoder(seed=4, dtype=torch.float32),
        "mask_ratio_step": 0.6,
        **CASES[case],
    }
    results = []
    for where in (False, None, None):
        with warnings_of_mars() as messages:
            results.append(make(store=where, **settings).score(*columns(LONG)))
        assert tuple(messages) == results[-1].notices
        done = work.take()
        assert nothing(done) == (len(results) == 3)
        assert store.exists() == (where is None)
    assert results[0] == results[1] == results[2]
    words = " ".join(results[0].notices)
    assert "blank candidates" in words
    assert ("end of the context" in words) == (case != "no context")
    assert "its end was not augmented" in words
    assert "sentence encoder" in words


# Runs that are stopped


@pytest.mark.parametrize("infiller", ["causal", "masked"])
def test_what_is_done_is_kept_when_a_run_is_stopped(make, work, store, infiller):
    rows = [*ROWS, NEW]
    expected = make(store=False, infiller=infiller).score(*columns(rows))
    jobs = work.take().jobs
    reports = []

    def stop(stage, done, total):
        if stage == "infill":
            reports.append((done, total))
            if done == 3:
                raise KeyboardInterrupt

    scorer = make(infiller=infiller, batch_size=1, progress=stop)
    with pytest.raises(KeyboardInterrupt):
        scorer.score(*columns(rows))
    assert reports == [(0, 8), (1, 8), (2, 8), (3, 8)]
    assert counts(store)["infills"] == 3
    work.take()
    assert make(infiller=infiller).score(*columns(rows)).scores == pytest.approx(expected.scores, abs=1e-12)
    done = work.take()
    assert len(done.jobs) == len(jobs) - 3
    assert set(done.jobs) < set(jobs)
    assert (done.tagged, done.split) == ([], [])
    assert counts(store)["infills"] == 8
    scorer.progress = None
    scorer.score(*columns(rows))  # the scorer that was stopped is none the worse
    assert nothing(work.take())


# Where it is kept


def test_without_a_store_nothing_is_written(make, work, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scorer = make(store=False)
    result = scorer.score(*columns(ROWS))
    work.take()
    assert scorer.score(*columns(ROWS)) == result
    assert work.take().jobs  # nor kept in memory
    assert scorer.augment(*columns(ROWS)[1:])
    assert list(tmp_path.iterdir()) == []
    assert store.parent == tmp_path


def test_a_store_that_is_full_is_not_read_without_a_store(make, work):
    result = make().score(*columns(ROWS))
    first = work.take()
    assert make(store=False).score(*columns(ROWS)) == result
    assert vars(work.take()) == vars(first)


def test_a_folder_takes_the_place_of_the_usual_one(make, work, store, tmp_path):
    folder = tmp_path / "another" / "folder"
    result = make(store=folder).score(*columns(ROWS))
    assert os.listdir(folder) == ["results.sqlite3"]
    assert not store.exists()
    first = work.take()
    assert make(store=str(folder)).score(*columns(ROWS)) == result
    assert nothing(work.take())
    assert make().score(*columns(ROWS)) == result
    assert vars(work.take()) == vars(first)
    assert counts(store) == counts(folder)
    assert all(counts(store)[kind] for kind in KINDS)
