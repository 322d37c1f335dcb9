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
    """Scores candidates by ``plus``, with the same reference and context unless others are given."""

    def score_all(*candidates, references=REFERENCE, contexts=CONTEXT, **settings):
        scorer = MarsScorer(**{"variant": "plus", "store": False, **tiny_mini, **settings})
        count = len(candidates)
        others = (texts if isinstance(texts, list) else [texts] * count for texts in (references, contexts))
        return scorer.score(list(candidates), *others)

    return score_all


WRITTEN = [
    *(ANSWER, ANSWER.replace(" ", "\u00a0"), ANSWER.replace(" ", "  "), ANSWER.replace(" and ", "\nand ")),
    *(ANSWER.replace(" and ", "\r\nand "), ANSWER.replace("e", "e\u00ad"), ANSWER.replace("e", "e\u200b")),
    f"\ufeff{ANSWER}\n",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["text", "summary"])
def test_white_space_and_invisible_signs_change_no_score(score, task):
    same = [ANSWER] * len(WRITTEN)
    assert len(set(score(*WRITTEN, task=task).scores)) == 1
    assert len(set(score(*same, references=WRITTEN, task=task).scores)) == 1
    assert len(set(score(*same, contexts=WRITTEN, task=task).scores)) == 1


@pytest.mark.filterwarnings("ignore")
def test_composed_and_decomposed_letters_have_one_score(score):
    texts = [unicodedata.normalize(form, "Le résumé répété, résumé, répété à Orléans.") for form in ("NFC", "NFD")]
    composed, decomposed = (score(text, references=text, contexts=text).row_scores for text in texts)
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


UNBROKEN = [
    *("well- known", "the shop- which is", "two- and three-storey", "two-\nand three-", "Smith-\nJones", "a - b"),
    *("- day", "5-\nday", "x --\nday", "Tues-day", "Tues -\nday"),
]


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
        *((text, text) for text in UNBROKEN),
    ],
)
def test_words_that_are_broken_at_the_end_of_a_line_are_joined(text, joined):
    assert join_broken_words(text, WORDS.__contains__) == joined


def test_joiners_stay_where_they_are_letters():
    for text in ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f467"):
        assert normalise(text) == text
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
        # It ends where its own tag closes.
        ("a<think>b</think>c<reasoning>d</reasoning>e", "a c e"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<think>a</thinking>b</think>c", "c"),
        ("a<thinking>b</think>c", "c"),
        ("a<think>b</THINK>c<think>d", "a c"),
        ("<|channel|>analysis a<|channel|>commentary b", ""),
        ("a<|channel|>analysis b<|channel|>final c", "a   c"),
    ],
)
def test_reasoning_is_taken_out(text, cleaned):
    assert has_reasoning(text)
    assert clean_text(text) == cleaned


LOOPS = [
    *("<think>", "<think ", "<think a=", "</think", "<Reasoning>", "<think></thinking>", "<|channel|>analysis"),
    *("<|channel|>", "<|start_header_id|> a ", "<|", "<", "[", "(", "so, ", "<!-- ", "a ", "\n", " \n", "- "),
    *("```", "|", ".", "\u2026", "http://", "a-\n", "a- ", "-\n", "\u00ad\n", "\u00ad ", "www.", "#1", "##a "),
    *("\u0120a", " ##", "1. ", "a'", "\u4e2d", "\u00ad"),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_are_read_in_linear_time(loop):
    text = f"She {loop * (50_000 // len(loop))} stayed."
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


def test_special_tokens_are_found():
    for token in TOKENS:
        assert special_tokens(f"She stayed.{token}{token}") == [token]
        assert clean_text(f"She stayed.{token}") == "She stayed."


PIECES = [
    *("She\u0120took the bus", "\u0120She \u0120took \u0120it", "to@@ ok it", "\u2581She\u2581took", "walk ##ing"),
    "go@@",
]
NO_PIECES = [
    *("\u0120or\u0121 saw \u0120gantija.", "a@b.org", "## Title", "bars \u2581\u2582\u2583", "C# and F##"),
    "me @@ you",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("clean", [False, True])
def test_pieces_are_noticed_and_not_joined(score, clean):
    result = score(*PIECES, *NO_PIECES, clean=clean)
    noticed = [Notice.PIECES in row.notices for row in result.row_scores]
    assert noticed == [True] * len(PIECES) + [False] * len(NO_PIECES)
    assert any("##ing" in notice for notice in result.notices)
    assert list(map(clean_text, PIECES)) == PIECES


MARKS = [
    *("<b>bus</b>", "a < b and c > d", "<image>", "<answer>", "[note]", "<special>", "See [1].", "x|y|z"),
    "<thinking about it> is hard",
]


def test_other_marks_are_text():
    for text in MARKS:
        assert not has_reasoning(text)
        assert not special_tokens(text)
        assert clean_text(text) == text


@pytest.mark.filterwarnings("ignore")
def test_a_row_with_reasoning_is_noticed_or_cleaned(score):
    wrong = "She stayed with her grandmother."
    text = f"<think>Did she take the bus until the road was open?</think>{wrong}<|im_end|>"
    result = score(text, wrong)
    assert [Notice.REASONING in row.notices for row in result.row_scores] == [True, False]
    assert any("<|im_end|>" in notice for notice in result.notices)
    cleaned = score(text, wrong, "<think>Did she", clean=True)
    assert [Notice.CLEANED in row.notices for row in cleaned.row_scores] == [True, False, True]
    assert cleaned.scores == pytest.approx([result.scores[1]] * 2 + [0], abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_lists_of_tokens_are_noticed(score):
    rows = {"She took it.": ["She", "took", "the", "bus", "."], "Bus.": ["bus", "by bus", "a bus"]}
    result = score(*rows, references=list(rows.values()))
    assert [Notice.TOKEN_LISTS in row.notices for row in result.row_scores] == [True, False]
    for candidates, noticed in (
        (["She", "took", "the", "bus", "."], True),
        (["Bus.", "A bus.", "By bus."], False),
    ):
        notices = score(candidates).notices
        assert any(notice.startswith(Notice.CANDIDATE_TOKENS.message) for notice in notices) == noticed
