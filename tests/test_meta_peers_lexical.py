"""Peers that need no language model: each against its library called directly, and cases worked by hand."""

import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from mars_score.data.sentences import sentences
from mars_score.errors import ModelUnavailableError
from mars_score.meta.metrics.base import Models
from mars_score.meta.metrics.bleu import Bleu, Bleu1, sentence_bleu
from mars_score.meta.metrics.chrf import Chrf
from mars_score.meta.metrics.cosine import ContextCosine, ContextSentencesCosine
from mars_score.meta.metrics.length import Length
from mars_score.meta.metrics.meteor import _READ_FILES, Meteor
from mars_score.meta.metrics.rouge import RougeL, rouge_l
from mars_score.scoring.embeddings import Embedding
from mars_score.settings import resolve_settings
from mars_score.store.results import digest

ROWS = [
    ("The cat sat on the mat.", ("A cat was sitting on the mat.",), "There is a mat. A cat likes it."),
    ("She bought 2 apples", ("She bought two apples!", "Two apples were bought."), ""),
    ("No overlap whatsoever", ("completely different",), "something else"),
    ("It rains. He didn't mind.", ("It's raining.", "He did not mind the rain.", "Rain, rain, rain."), "Rain."),
    ("same text", ("same text", "same text"), "same text"),
]
# One word, signs only, other scripts, a combining mark, joined emoji, a character of no width, no end.
ODD = ["word", "?!", "...", "über naïve café", "猫が座った。", "Кошка сидит", "\U0001f469\u200d\U0001f467 ok"]
ODD += ["e\u0301", "\u200b", "a" * 5000]


def models(**overrides):
    settings = resolve_settings("mini", variant="plus", **overrides)
    return Models(settings)


def score(metric, *rows):
    """Scores by a metric, or by a new one of a class; a row's context may be left out."""
    metric = metric(models()) if isinstance(metric, type) else metric
    return metric.score([(*row, "") if len(row) == 2 else row for row in rows], [])


@pytest.fixture(scope="module")
def meteor():
    """METEOR with its WordNet, which takes seconds to read; skips where there is none."""
    metric = Meteor(models())
    try:
        metric.key()
    except ModelUnavailableError as error:
        pytest.skip(str(error))
    return metric


@pytest.fixture(params=[Bleu, Bleu1, Chrf, RougeL, Meteor, Length])
def lexical(request):
    """A metric of words."""
    return request.getfixturevalue("meteor") if request.param is Meteor else request.param(models())


def test_scores_do_not_depend_on_the_other_rows(lexical):
    together = lexical.score(ROWS, ["some corpus"])
    assert together == [lexical.score([row], [])[0] for row in ROWS]
    assert lexical.score(ROWS[::-1], []) == together[::-1]


def test_odd_candidates_have_finite_scores_and_keys_are_stable(lexical):
    rows = [(candidate, ("A plain reference.", "über 猫"), "Some context, naïve.") for candidate in ODD]
    assert all(isinstance(one, float) and math.isfinite(one) and one >= 0 for one in lexical.score(rows, []))
    key = digest(*lexical.key())
    lexical.score(ROWS, [])  # sacreBLEU's signature counts the references of the last call
    assert digest(*lexical.key()) == key


def test_keys_tell_metrics_apart(encoder):
    kinds = [Bleu, Bleu1, Chrf, RougeL, Length, ContextCosine, ContextSentencesCosine]
    assert len({digest(*kind(models(encoder=encoder)).key()) for kind in kinds}) == len(kinds)


# sacreBLEU, rouge-score


def test_bleu_and_chrf_are_sacrebleus():
    import sacrebleu
    from sacrebleu.metrics import BLEU, CHRF

    scores = zip(ROWS, score(Bleu, *ROWS), score(Bleu1, *ROWS), score(Chrf, *ROWS), strict=True)
    for (candidate, references, _), whole, bleu, chrf in scores:
        expected = sacrebleu.sentence_bleu(candidate, list(references)).score
        assert sentence_bleu(candidate, references) == pytest.approx(expected, abs=1e-12)
        assert whole == pytest.approx(expected / 100, abs=1e-12)
        fresh = BLEU(max_ngram_order=1, effective_order=True).sentence_score(candidate, list(references))
        assert bleu == pytest.approx(fresh.score / 100, abs=1e-12)
        assert chrf == pytest.approx(CHRF().sentence_score(candidate, list(references)).score / 100, abs=1e-12)


def test_rouge_l_is_rouge_scores():
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    for (candidate, references, _), found in zip(ROWS, score(RougeL, *ROWS), strict=True):
        assert found == max(scorer.score(one, candidate)["rougeL"].fmeasure for one in references)
        assert rouge_l(candidate, references) == found


# METEOR


def test_meteor_is_nltks(meteor):
    from nltk.tokenize import wordpunct_tokenize
    from nltk.translate.meteor_score import single_meteor_score

    for (candidate, references, _), found in zip(ROWS, score(meteor, *ROWS), strict=True):
        words = wordpunct_tokenize(candidate)
        assert found == max(
            single_meteor_score(wordpunct_tokenize(one), words, wordnet=meteor._wordnet) for one in references
        )


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
    assert score(meteor, (candidate, (reference,))) == pytest.approx([expected])
    assert score(meteor, (candidate, ("nothing alike", reference))) == pytest.approx([expected])


def test_the_reader_is_wordnets(meteor):
    wordnet = meteor._wordnet
    assert wordnet.get_version() == "3.0"
    assert set(wordnet.synsets("automobiles")[0].lemma_names()) == {
        *("car", "auto", "automobile", "machine", "motorcar")
    }
    assert wordnet.synsets("xyzzyx") == []


@pytest.fixture
def only_in(monkeypatch):
    """Look for WordNet in one folder of nltk's kind and in one of the system's kind."""
    import nltk.data

    def look(nltk_folder, system_folder):
        monkeypatch.setattr(nltk.data, "path", [str(nltk_folder)])
        monkeypatch.setattr("mars_score.meta.metrics.meteor._SYSTEM_FOLDER", Path(system_folder))

    return look


@pytest.mark.slow
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_nltks_copy_of_wordnet_serves_as_well(meteor, form, tmp_path, only_in):
    place = tmp_path / "corpora" / "wordnet"
    place.mkdir(parents=True)
    for name in _READ_FILES:
        with meteor._wordnet.open(name) as file:
            (place / name).write_text(file.read(), encoding="utf-8")
    if form == "zip":
        shutil.make_archive(str(place), "zip", place.parent, "wordnet")
        shutil.rmtree(place)
    expected = meteor.key()
    only_in(tmp_path, tmp_path / "none")
    other = Meteor(models())
    assert other.key() == expected
    assert score(other, ("the car left", ("the auto left",))) == pytest.approx([1 - 0.5 / 3**3])


def test_without_wordnet_meteor_says_how_to_get_it(tmp_path, only_in):
    only_in(tmp_path, tmp_path)
    for use in (Meteor(models()).key, lambda: score(Meteor, ROWS[0])):
        with pytest.raises(ModelUnavailableError, match=r"apt-get install wordnet-base.*nltk.download"):
            use()


# Packages


@pytest.mark.parametrize(
    ("metric", "package"),
    [(Bleu, "sacrebleu"), (Chrf, "sacrebleu"), (RougeL, "rouge_score"), (RougeL, "nltk"), (Meteor, "nltk")],
)
def test_a_missing_package_is_named_with_the_remedy(metric, package, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] in ("sacrebleu", "rouge_score", "nltk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for use in (metric(models()).key, lambda: score(metric, ROWS[0])):
        with pytest.raises(
            ImportError, match=rf"{package} is not installed; run: pip install 'mars-score\[meta\]'"
        ):
            use()


# Length


def test_length_counts_words():
    assert score(Length, ("one", ("r",)), (" two\u00a0 words,\n\tthree ", ("r",)), ("...", ("r",))) == [1, 3, 1]


# Cosines


class PlaneEmbedder:
    """A text that is a number of degrees is that direction of the plane; others are a zero vector."""

    def read(self, kind, texts, progress=None):
        return {text: Embedding.of(self.vector(text.rstrip(".")), shortened=False) for text in texts}

    @staticmethod
    def vector(text):
        angle = math.radians(float(text)) if text.isdigit() else None
        return np.zeros(2) if angle is None else np.array([math.cos(angle), math.sin(angle)])


def degrees(metric, *rows):
    metric = metric(models())
    metric.models.__dict__["reader"] = PlaneEmbedder()  # in the place of the one that is made when asked for
    return metric.score(list(rows), [])


def cosine(angle):
    return math.cos(math.radians(angle))


def test_cosines_by_hand():
    rows = [("10", ("70", "40"), "100. 130."), ("0", ("180",), "90"), ("0", ("0",), ""), ("0", ("x",), " \n")]
    assert degrees(ContextCosine, *rows) == pytest.approx([0, 0, 0, 0], abs=1e-12)  # "100. 130." is no number
    assert degrees(ContextCosine, ("10", ("0",), "100"), ("10", ("0",), "30.")) == pytest.approx([0, cosine(20)])
    # The mean of the unit vectors at 100 and 130 degrees points to 115.
    assert degrees(ContextSentencesCosine, *rows) == pytest.approx([cosine(105), 0, 0, 0], abs=1e-12)
    assert degrees(ContextSentencesCosine, ("45", ("0",), "no. number.")) == [0]  # all vectors are zero
    assert degrees(ContextSentencesCosine, ("0", ("0",), "0. 0. 90.")) == pytest.approx([2 / math.sqrt(5)])


def test_blank_contexts_alone_need_no_encoder():
    refused = ContextCosine(models(encoder="no-such-owner/no-such-encoder"))
    assert refused.score([("a", ("b",), "")], []) == [0.0]


def test_an_encoder_that_is_not_there_has_no_key():
    for kind in (ContextCosine, ContextSentencesCosine):
        with pytest.raises(ModelUnavailableError):
            kind(models(encoder="no-such-owner/no-such-encoder")).key()


def test_cosines_are_those_of_sentence_transformers(encoder):
    from sentence_transformers.util import cos_sim

    shared = models(encoder=encoder, dtype="float64")
    contexts = [row[2] or "A context. Of two sentences!" for row in ROWS]
    rows = [(candidate, references, one) for (candidate, references, _), one in zip(ROWS, contexts, strict=True)]
    whole, split = ContextCosine(shared).score(rows, []), ContextSentencesCosine(shared).score(rows, [])
    for row, one, many in zip(rows, whole, split, strict=True):
        vector = encoder.encode(row[0])
        assert one == pytest.approx(float(cos_sim(vector, encoder.encode(row[2]))), abs=1e-9)
        units = encoder.encode(sentences(row[2]), normalize_embeddings=True)
        assert many == pytest.approx(float(cos_sim(vector, units.mean(axis=0))), abs=1e-9)


# Sentences


def test_sentences():
    text = ' Dr. Smith bought 3.5 kg in the U.S. today.  "Did he?"\nYes!! 猫 。 no end '
    assert sentences(text) == [
        "Dr. Smith bought 3.5 kg in the U.S. today.",
        '"Did he?"',
        "Yes!!",
        "猫 。",
        "no end",
    ]
    assert sentences("") == sentences(" \n\t ") == []
    assert sentences("one line\nanother line") == ["one line", "another line"]


def test_sentences_of_a_text_longer_than_spacys_own_limit():
    assert sentences(("x" * 999 + " ") * 1_001 + ". End.")[-1] == "End."
