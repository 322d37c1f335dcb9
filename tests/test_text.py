"""Texts are given to all models in one form, and what is no part of an answer is noticed or taken out."""

import unicodedata

import pytest

from mars_score import MarsScorer
from mars_score.data.cleaning import clean_text, has_reasoning, special_tokens
from mars_score.errors import Notice
from mars_score.language import is_english
from mars_score.text import join_broken_words, normalise, plain_words, repeated_share, split_words, windows

REFERENCE = "She took the bus to school until the road was open."
CONTEXT = "The road was closed in March, and her brother could not drive her to school before the summer began."
ANSWER = "The children walk to school along the river and they stop on the bridge to look at the boats."


@pytest.fixture
def score(tiny_mini):
    """Scores a candidate by ``plus``; returns its row of the result, and the notices."""

    def score_one(candidate, reference=REFERENCE, context=CONTEXT, **settings):
        scorer = MarsScorer(**{"variant": "plus", "store": False, **tiny_mini, **settings})
        result = scorer.score([candidate], [reference], [context])
        return result.row_scores[0], result.notices

    return score_one


@pytest.mark.parametrize(
    "written",
    [
        ANSWER.replace(" ", "\u00a0"),
        ANSWER.replace(" ", "  "),
        ANSWER.replace(" and ", "\nand "),
        ANSWER.replace(" and ", "\r\nand "),
        ANSWER.replace("e", "e\u00ad"),
        ANSWER.replace("e", "e\u200b"),
        f"\ufeff{ANSWER}\n",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_white_space_and_invisible_signs_change_no_score(score, written):
    assert score(written)[0].score == score(ANSWER)[0].score
    assert score(ANSWER, written)[0].score == score(ANSWER, ANSWER)[0].score
    for task in ("text", "summary"):
        assert score(ANSWER, context=written, task=task)[0] == score(ANSWER, context=ANSWER, task=task)[0]


@pytest.mark.filterwarnings("ignore")
def test_composed_and_decomposed_letters_have_one_score(score):
    texts = [unicodedata.normalize(form, "Le résumé répété, résumé, répété à Orléans.") for form in ("NFC", "NFD")]
    composed, decomposed = (score(text, reference=text, context=text)[0] for text in texts)
    assert composed == decomposed


def test_lines_of_a_text_are_white_space_and_those_of_a_dialogue_are_turns():
    assert normalise("a\nb\n\n\n c \n d") == "a b\n\nc d"
    assert normalise("A: a \n\n B: b\n", keep_lines=True) == "A: a\nB: b"
    assert normalise("first\x1esecond") == "first\x1esecond"


@pytest.mark.parametrize(
    "broken", ["Tues\u00ad\nday", "Tues\u00ad \r\n day", "Tues\u00adday", "Tu\u00ades\u00ad\nday"]
)
def test_soft_hyphens_are_no_ends_of_words(broken):
    assert normalise(f"It opens on {broken}.") == normalise(f"It opens on {broken}.", keep_lines=True)
    assert normalise(f"It opens on {broken}.") == "It opens on Tuesday."


WORDS = {
    *("tuesday", "information", "resign", "sign", "well", "known", "two", "three", "shop", "afternoon"),
    *("unionised", "ionised"),
}


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("on Tues-\nday.", "on Tuesday."),
        ("on Tues- day.", "on Tuesday."),
        ("ON TUES-\nDAY", "ON TUESDAY"),
        ("the infor-\n  mation, after-\nnoon", "the information, afternoon"),
        ("well-\nknown", "well-known"),
        ("a Smith-\nlike", "a Smith-like"),
        ("re-\nsign", "re-sign"),
        ("un-\nionised", "un-ionised"),
        *(
            (text, text)
            for text in ("well- known", "the shop- which is", "two- and three-storey", "two-\nand three-")
        ),
        *(
            (text, text)
            for text in ("Smith-\nJones", "a - b", "- day", "5-\nday", "x --\nday", "Tues-day", "Tues -\nday")
        ),
    ],
)
def test_words_that_are_broken_at_the_end_of_a_line_are_joined(text, joined):
    assert join_broken_words(text, WORDS.__contains__) == joined


def test_joiners_stay_where_they_are_letters():
    assert (
        normalise("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645")
        == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    )
    assert normalise("\U0001f469\u200d\U0001f467") == "\U0001f469\u200d\U0001f467"
    assert normalise("bo\u200cat\u200ds") == "boats"


SENTENCES = {
    "Russian": "Она поехала на рынок утром.",
    "Hindi": "वह बाज़ार गई और लौटी।",
    "Tamil": "சென்னை பெரிய நகரம்.",
    "Bengali": "সে বাজারে গিয়েছিল।",
    "Arabic, vocalised": "ذَهَبَ الوَلَدُ إِلَى المَدْرَسَةِ.",
    "Hebrew, pointed": "הַיֶּלֶד הָלַךְ לַבַּיִת.",
    "French, decomposed": unicodedata.normalize("NFD", "Hélène préfère l'été."),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_marks_belong_to_their_letters(language):
    text = normalise(SENTENCES[language])
    assert repeated_share(" ".join([text] * 3), 4, 10) == pytest.approx(2 / 3)
    assert all(unicodedata.category(word[0])[0] != "M" for word in plain_words(text))


# Languages

FOREIGN = [
    *("De winkel gaat om negen uur open.", "Der Laden öffnet um neun Uhr.", "Le magasin ouvre à neuf heures."),
    *("La tienda abre a las nueve.", "Butiken öppnar klockan nio.", "Sklep otwiera się o dziewiątej."),
    "Az üzlet kilenckor nyit.",
    "Cửa hàng mở cửa lúc chín giờ.",
    "يفتح المتجر في الساعة التاسعة.",
    "A loja abre às nove.",
    "O presidente da câmara disse na segunda-feira que a ponte só reabre no outono, e que as obras custam mais.",
]
ENGLISH = [
    *("The shop opens at nine.", "She went to work by bus.", "It rained.", "What time does the last train leave?"),
    "Patient denies fever, chills, nausea. BP 120/80, HR 72. Lungs clear bilaterally.",
    "2 cups flour, 1 cup sugar, 3 eggs, 200 g butter, vanilla extract",
    "Los Angeles. where is hallmark channel home and family filmed",
]


def test_short_texts_in_other_languages_are_not_english():
    assert [text for text in FOREIGN if is_english(text)] == []
    assert [text for text in ENGLISH if not is_english(text)] == []


# What is no part of an answer


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("<think>Did she? No.</think>\nShe stayed.", "She stayed."),
        ("<think>\nOkay, the user wants", ""),
        ("They want a word.</think> Bus", "Bus"),
        ("<Thinking level=2>a</thinking>b", "b"),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Bus<|return|>",
            "Bus",
        ),
    ],
)
def test_reasoning_is_taken_out(text, cleaned):
    assert has_reasoning(text)
    assert clean_text(text) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a<think>b</think>c<reasoning>d</reasoning>e", "a c e"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<think>a</thinking>b</think>c", "c"),
        ("a<thinking>b</think>c", "c"),
        ("a<think>b</THINK>c<think>d", "a c"),
        ("<|channel|>analysis a<|channel|>commentary b", ""),
        ("a<|channel|>analysis b<|channel|>final c", "a c"),
    ],
)
def test_reasoning_ends_where_its_own_tag_closes(text, cleaned):
    assert " ".join(clean_text(text).split()) == cleaned


LOOPS = [
    *("<think>", "<think ", "<think a=", "</think", "<Reasoning>", "<think></thinking>"),
    *("<|channel|>analysis", "<|channel|>"),
    *(
        *("<|start_header_id|> a ", "<|", "<", "[", "(", "so, ", "<!-- ", "a ", "\n", " \n", "- ", "```", "|"),
        *(".", "\u2026", "http://"),
    ),
    *("a-\n", "a- ", "-\n", "\u00ad\n", "\u00ad ", "www.", "#1", "##a ", "\u0120a", " ##", "1. ", "a'"),
    *("\u4e2d", "\u00ad"),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_are_read_in_linear_time(loop):
    text = f"She {loop * (100_000 // len(loop))} stayed."
    assert has_reasoning(text) == any(name in loop.lower() for name in ("think>", "reasoning", "analysis"))
    assert clean_text(f"{text}</scratchpad>Bus.") == ("She" if "analysis" in loop else "Bus.")
    assert special_tokens(text) in ([], ["<|channel|>"], ["<|start_header_id|>"])
    assert normalise(text).startswith("She")
    assert 0 <= repeated_share(text, 4, 10) < 1
    assert len(windows(text, 100)) == -(-len(split_words(text)) // 100)
    assert is_english(text) in (True, False)
    assert join_broken_words(text, WORDS.__contains__).startswith("She")


TOKENS = [
    *("</s>", "<|im_end|>", "<pad>", "<|eot_id|>", "[/INST]", "<end_of_turn>", "<start_of_turn>", "<extra_id_0>"),
    *("[gMASK]", "<sop>", "<eop>", "<eod>", "[EOS]", "[BOS]", "[EOT]", "<end_of_utterance>", "<end_of_text>"),
    *("<0x0A>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[unused1]", "<SPECIAL_12>", "<reserved_106>"),
    *("<fim_middle>", "<think/>", "\u2047", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<<SYS>>", "[MASK]"),
    "<unk>",
]


@pytest.mark.parametrize("token", TOKENS)
def test_special_tokens_are_found(token):
    assert special_tokens(f"She stayed.{token}{token}") == [token]
    assert clean_text(f"She stayed.{token}") == "She stayed."


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text",
    [
        "She\u0120took the bus",
        "\u0120She \u0120took \u0120it",
        "to@@ ok it",
        "\u2581She\u2581took",
        "walk ##ing",
        "go@@",
    ],
)
def test_pieces_are_noticed_and_not_joined(score, text):
    for clean in (False, True):
        row, notices = score(text, clean=clean)
        assert Notice.PIECES in row.notices
        assert any("##ing" in notice for notice in notices)
    assert clean_text(text) == text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "text",
    [
        "\u0120or\u0121 saw \u0120gantija.",
        "a@b.org",
        "## Title",
        "bars \u2581\u2582\u2583",
        "C# and F##",
        "me @@ you",
    ],
)
def test_other_signs_are_no_pieces(score, text):
    assert Notice.PIECES not in score(text)[0].notices


@pytest.mark.parametrize(
    "text",
    [
        *("<b>bus</b>", "a < b and c > d", "<image>", "<answer>", "[note]", "<special>", "See [1]."),
        *("<thinking about it> is hard", "x|y|z"),
    ],
)
def test_other_marks_are_text(text):
    assert not has_reasoning(text)
    assert not special_tokens(text)
    assert clean_text(text) == text


@pytest.mark.filterwarnings("ignore")
def test_a_row_with_reasoning_is_noticed_or_cleaned(score):
    wrong = "She stayed with her grandmother."
    text = f"<think>Did she take the bus until the road was open?</think>{wrong}<|im_end|>"
    row, notices = score(text)
    assert Notice.REASONING in row.notices
    assert any("<|im_end|>" in notice for notice in notices)
    cleaned, _ = score(text, clean=True)
    assert Notice.CLEANED in cleaned.notices
    assert cleaned.score == score(wrong)[0].score == score(wrong, clean=True)[0].score
    assert not {Notice.CLEANED, Notice.REASONING} & score(wrong)[0].notices
    assert score("<think>Did she", clean=True)[0].score == 0.0


@pytest.mark.filterwarnings("ignore")
def test_lists_of_tokens_are_noticed(score):
    def is_noticed(notice, *texts):
        return any(sentence.startswith(notice.message) for sentence in score(*texts)[1])

    assert is_noticed(Notice.TOKEN_LISTS, "She took it.", ["She", "took", "the", "bus", "."])
    assert not is_noticed(Notice.TOKEN_LISTS, "Bus.", ["bus", "by bus", "a bus"])
    assert is_noticed(Notice.CANDIDATE_TOKENS, ["She", "took", "the", "bus", "."])
    assert not is_noticed(Notice.CANDIDATE_TOKENS, ["Bus.", "A bus.", "By bus."])
