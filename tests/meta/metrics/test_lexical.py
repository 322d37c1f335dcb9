"""Peers that need no language model: each against its library called directly, and cases worked by hand."""

import importlib
import math
import shutil
import sys

import pytest

from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics import Models, lexical, make_metric
from mars_score.rows import Row
from tests.meta.metrics.wordnet import write_wordnet

ROWS = [
    Row("The cat sat on the mat.", ("A cat was sitting on the mat.",), "There is a mat. A cat likes it."),
    Row("She bought 2 apples", ("She bought two apples!", "Two apples were bought."), ""),
    Row("No overlap whatsoever", ("completely different",), "something else"),
    Row("It rains. He didn't mind.", ("It's raining.", "He did not mind the rain.", "Rain, rain, rain."), "Rain."),
    Row("same text", ("same text", "same text"), "same text"),
]
# One word, signs only, other scripts, a combining mark, joined emoji, a character of no width, no end.
ODD = ["word", "?!", "...", "über naïve café", "猫が座った。", "Кошка сидит", "\U0001f469\u200d\U0001f467 ok"]
ODD += ["e\u0301", "\u200b", "a" * 5000]
LEXICAL = ["bleu", "bleu1", "chrf", "rouge_l", "meteor", "length"]


def make(name, **settings):
    return make_metric(name, Models(preset="mini", variant="plus", store=False, **settings))


def score(metric, *rows):
    """Scores by a metric or a name."""
    metric = make(metric) if isinstance(metric, str) else metric
    return metric.score(rows, [])


@pytest.fixture
def only_in(monkeypatch):
    """Look for WordNet in one folder of nltk's kind and in one of the system's kind."""
    return lambda nltk_folder, system_folder: (
        monkeypatch.setattr("nltk.data.path", [str(nltk_folder)]),
        monkeypatch.setattr(lexical, "SYSTEM_WORDNET", system_folder),
    )


@pytest.fixture
def meteor(tmp_path, only_in):
    """METEOR with a small WordNet."""
    only_in(tmp_path, write_wordnet(tmp_path / "wordnet"))
    return make("meteor")


@pytest.fixture(params=LEXICAL)
def metric(request):
    return request.getfixturevalue("meteor") if request.param == "meteor" else make(request.param)


def test_scores_are_finite_and_do_not_depend_on_the_other_rows(metric):
    rows = ROWS + [Row(text, ("A plain reference.", "über 猫"), "Some context, naïve.") for text in ODD]
    scores = metric.score(rows, ["some corpus"])
    assert all(isinstance(value, float) and math.isfinite(value) and value >= 0 for value in scores)
    assert scores == [metric.score([row], [])[0] for row in rows]


@pytest.mark.parametrize(
    ("name", "package"),
    [
        *(("bleu", "sacrebleu"), ("chrf", "sacrebleu"), ("rouge_l", "rouge_score"), ("meteor", "nltk")),
        *(("moverscore", "ot"), ("sentence_mover", "ot")),
    ],
)
def test_a_missing_package_is_named_with_the_remedy(name, package, encoder, monkeypatch):
    for other in ("nupunkt", "spacy"):  # Nothing else is missing.
        importlib.import_module(other)
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ImportError, match=rf"{package} is not installed; run: pip install 'mars-score\[meta\]'"):
        score(make(name, encoder=encoder), ROWS[0])


def test_scores_are_those_of_sacrebleu_and_rouge_score():
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics import BLEU, CHRF

    scorer, words = RougeScorer(["rougeL"], use_stemmer=True), BLEU(max_ngram_order=1, effective_order=True)
    by_metric = zip(*(score(name, *ROWS) for name in ("bleu", "bleu1", "chrf", "rouge_l")), strict=True)
    for row, scores in zip(ROWS, by_metric, strict=True):
        candidate, references = texts = row.candidate, list(row.references)
        bleu = sacrebleu.sentence_bleu(*texts).score
        percent = [bleu, words.sentence_score(*texts).score, CHRF().sentence_score(*texts).score]
        assert scores[:3] == pytest.approx([value / 100 for value in percent], abs=1e-12)
        assert lexical.sentence_bleu(candidate, references) == pytest.approx(bleu, abs=1e-12)
        rouge = max(scorer.score(text, candidate)["rougeL"].fmeasure for text in references)
        assert scores[3] == lexical.rouge_l(candidate, references) == rouge


def test_length_counts_words():
    assert score("length", *map(Row, ("one", " two\u00a0 words,\n\tthree ", "..."))) == [1, 3, 1]


# METEOR


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("It stops. I go.", "It stops, I go!", (4 / 6) * (1 - 0.5 * (2 / 4) ** 3)),  # "stops", not "stops."
        ("the big car", "the car", (2 / 3) / (0.9 * 2 / 3 + 0.1) * (1 - 0.5)),  # P = 2/3, R = 1, 2 chunks of 2
        ("the dogs barked", "the dog barks", 1 - 0.5 / 3**3),  # by stem
        ("the car left now", "the auto left now", 1 - 0.5 / 4**3),  # by a synset: {car, auto, automobile, ...}
        ("the men left", "the man left", 1 - 0.5 / 3**3),  # by an exception: men -> man
        ("the car left now", "the automobile left now", (3 / 4) * (1 - 0.5 * (2 / 3) ** 3)),  # no: "automobil"
        ("x", "y", 0),
    ],
)
def test_meteor_by_hand(meteor, candidate, reference, expected):
    assert score(meteor, Row(candidate, ("nothing alike", reference))) == pytest.approx([expected])


@pytest.mark.slow
@pytest.mark.skipif(not lexical.SYSTEM_WORDNET.is_dir(), reason="needs Debian's wordnet-base")
@pytest.mark.parametrize("form", ["system", "folder", "zip"])
def test_nltks_copy_of_wordnet_serves_as_well_as_that_of_the_system(form, tmp_path, only_in):
    if form != "system":
        folder = tmp_path / "corpora" / "wordnet"
        shutil.copytree(lexical.SYSTEM_WORDNET, folder)
        if form == "zip":
            shutil.make_archive(str(folder), "zip", folder.parent, "wordnet")
            shutil.rmtree(folder)
        only_in(tmp_path, tmp_path / "none")
    metric = make("meteor")
    assert score(metric, Row("the car left", ("the auto left",))) == pytest.approx([1 - 0.5 / 3**3])


def test_without_wordnet_meteor_says_how_to_get_it(tmp_path, only_in):
    only_in(tmp_path, tmp_path)
    with pytest.raises(ModelUnavailableError, match=r"apt-get install wordnet-base.*nltk.download"):
        score("meteor", ROWS[0])


# Cosines with the context


def test_an_encoder_that_is_not_there_is_said_and_not_asked_for_blank_contexts():
    metric = make("context_cosine", encoder="no-such-owner/no-such-encoder")
    assert score(metric, Row("a", ("b",), " \n")) == [0.0]
    with pytest.raises(ModelUnavailableError):
        score(metric, ROWS[0])


def test_cosines_are_those_of_sentence_transformers(encoder):
    from sentence_transformers.util import cos_sim

    rows = [Row(row.candidate, row.references, row.context or "A context. Of two sentences!") for row in ROWS]
    scores = make("context_cosine", encoder=encoder, dtype="float64").score(rows, [])
    for row, score in zip(rows, scores, strict=True):
        vectors = map(encoder.encode, (row.candidate, row.context))
        assert score == pytest.approx(float(cos_sim(*vectors)), abs=1e-9)
