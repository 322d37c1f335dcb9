"""Sentences end where they end: not after abbreviations, initials, numbers of a list, or within an item."""

import pytest

from mars_score.sentences import sentences

ABBREVIATIONS = {
    "titles": "Mr. Mrs. Ms. Dr. Prof. Rev. Hon. Gen. Col. Capt. Lt. Sgt. Maj. Gov. Sen. Rep. Messrs. Mme. "
    "St. Jr. Esq.",
    "months": "Jan. Feb. Mar. Apr. Aug. Sept. Oct. Nov. Dec.",
    "days": "Mon. Tue. Tues. Wed. Thu. Thurs. Fri. Sat. Sun.",
    "units": "in. ft. yd. mi. mm. cm. km. kg. mg. ml. lb. lbs. oz. pt. qt. gal. tsp. tbsp. hr. hrs. min. "
    "sec. yr. yrs. mo. wk. sq. cu. deg. mph.",
    "academic": "Fig. fig. Figs. Eq. Ch. ch. Sec. sec. p. pp. ed. eds. vol. Vol. no. No. nos. al. ibid. cf. "
    "approx. est. avg. max. min. std. Univ. Assoc. Inst. Ph.D. M.D. B.Sc. App.",
    "legal": "v. vs. Inc. Ltd. Co. Corp. Bros. LLC. Cal. Ct. Cir. Dist. Supp. Stat. Reg. Art. art. para. "
    "subsec. U.S.C.",
    "addresses": "Ave. Blvd. Rd. Ln. Hwy. Pkwy. Pl. Apt. Ste. Bldg. bldg. Rm. Mt. Ft. P.O. N.Y. Calif. Mass. "
    "Wash. D.C.",
    "Latin": "e.g. i.e. etc. a.m. p.m. c. ca. et al. N.B. viz. op. cit.",
    "other": "tel. Tel. ext. incl. excl. misc. govt. intl. mfg. mgr. asst. Dept. dept. div. attn. cont. "
    "alt. abbr. adj. adv. fem. masc. pl. esp. usu. resp. qty. amt. acct. pkg. pcs. U.S. U.K. "
    "R.I.P. e.V. bzw. Nr.",
}
FOLLOWING = ("five of them was", "was (seen) and", "(the new one) was")
BEFORE_NUMBERS = """
No. no. Nos. Fig. Eq. Sec. p. pp. vol. ch. Art. art. approx. ca. Apt. Rm. Jan. Sept. Tue. Sat. Ext. Tel. para.
Cl. Rte. Hwy. max. min. avg. qty. v. ver. bldg.
"""


NUMBERED = ("See {} 12 of the book.", "It stands there ({} 12) as a whole.", "We saw {} (12) first.")


def misread(texts):
    """Those of some texts, in which "|" stands between sentences, whose sentences are others."""
    return [text for text in texts if sentences(text.replace("|", " ")) != text.split("|")]


@pytest.mark.parametrize("kind", ABBREVIATIONS)
def test_no_sentence_ends_after_an_abbreviation_before_a_small_letter(kind):
    written = ABBREVIATIONS[kind].split()
    assert misread(f"The item {one} {follows} sold." for one in written for follows in FOLLOWING) == []


def test_no_sentence_ends_after_an_abbreviation_before_a_number():
    assert misread(text.format(one) for one in BEFORE_NUMBERS.split() for text in NUMBERED) == []


ENDS = """\
He lives on 5th Ave.|The house is red.
It was 5 p.m.|The shop closed.
We open at 9 a.m.|Tickets cost five.
It is a law in the U.S.|The court said so.
They sell pens, pads, etc.|They are cheap.
He works at Acme Inc.|She does not.
It snowed in Dec.|The snow melted.
She has a Ph.D.|She teaches.
It weighs 5 lb.|It is heavy.
It is 3 ft.|Bob measured it.
It holds 20 kg.|Components are light.
It takes 20 min.|Trains are late.
He said no.|Mary left.
He came in.|Anna left.
We lay in the sun.|Bob slept.
I ate a fig.|It was sweet.
She loves art.|Mary does not.
I took the bus.|Mary walked.
See you next week.|Bob is here.
It is in the park.|Anna waits.
It is a series.|Tom likes it.
He works hard.|Tom sleeps.
It is vitamin C.|It is good.
They chose plan B.|This works.
He lives in D.C.|He works there.
He met Bob Jr.|They talked.
He is 5.|She is 6.
It costs $5.|It is cheap.
It was in 2019.|He was there.
Answer: 5.|She has five.
They won 3, 2.|Then they lost.
Is it?|Yes.
No.|He left.
He left!|She stayed.
Really?!|Yes!
He left...|She stayed.
Wow\u2026|He left.
He left. . .|She stayed.
"He left."|She stayed.
He said "go."|She went.
\u201cHe left.\u201d|She stayed.
(He left.)|She stayed.
He left (see below).|She stayed.
He left.|(She stayed.)
He left.|"She stayed."
\u201eEr ging.\u201c|Sie blieb.
He left.[1]|She stayed.[2, 3]
i left.|she stayed.
it is big.|they like it.
it was no.|we left.
rated 5 out of 5.|it is near.
in the sun.|then we left.
Go to example.com.|It is free.
\u00bfQu\u00e9?|\u00a1No!|Es as\u00ed.|\u00bfPor qu\u00e9?
That's all.|Bye.
In the centre.|the restaurant is near.
""".splitlines()


WHOLE = """\
They went to the U.S. by sea.
U.S. troops left.
J. K. Rowling wrote it.
It is by George R. R. Martin.
Dr. Smith met Mrs. Jones.
The firm is Smith & Co. Ltd. of London.
Brown v. Board of Education was heard.
He came at 7 a.m. Thursday.
It ends at 6 p.m. EST today.
It is Art. IV of it.
See Fig. A and No. 5 in Sec. 2 of it.
Take 5 mg. of warfarin.
Smith et al. (2019) found it.
It was cited (2d Cir. 1999).
Read pp. 3\u20135 and vol. 2.
It costs 3.50 or 4.5 euros.
He waited... and left.
He asked "Is it?" and left.
"Go!" she said.
See www.a.org/b.c now.
The meeting is on Tues. at 5 p.m. in the hall.
He eats fruit, e.g. apples, i.e. sweets.
Das ist z.B. gut und kostet ca. 5 Euro.
There are three: 1. a pizza, 2. A pie, 3. tea.
Buy (1) bread, (2) Milk and (3) tea.
""".splitlines()


# Of lines that were joined
JOINED = """\
1. Do this. Then that.|2. Do those.|3. End.
The steps are: 1. Do this.|2. Do that.|3. End.
- It opens at nine. Come early.|- It closes at six.
* A dog. It ran.|* A cat.
Step 1. Mix it.|Step 2. Bake it.
(a) One. Two.|(b) Three.
- Is it open?|Yes, today. Come early.
1. They are late!|Is that all?|2. It is.
""".splitlines()


@pytest.mark.parametrize("texts", [ENDS, WHOLE, JOINED], ids=["ends", "whole", "joined lines"])
def test_sentences_end_or_go_on(texts):
    assert misread(texts) == []


ITEMS = """\
- It opens at nine. It closes at six.
* Rome. The capital of Italy.
1. Do this. Then that.
2) Mix it. Stir.
(a) It is. It was.
# 3. Methods. Results
## The end. Almost
| a. B | c. D. | E |
Step 1. Mix it.
\u2022 One. Two.
""".splitlines()


@pytest.mark.parametrize("text", ITEMS)
def test_an_item_stays_one(text):
    assert sentences(text) == [text]
    assert sentences(f"He left. She stayed.\n{text}\nHe ran.") == ["He left.", "She stayed.", text, "He ran."]


def test_a_long_paragraph_behind_a_mark_is_split():
    assert sentences("- " + "It rains again. " * 50) == ["- It rains again.", *["It rains again."] * 49]
    assert sentences("1. " + "It rains again. " * 50) == ["1. It rains again.", *["It rains again."] * 49]


@pytest.mark.parametrize(
    "text",
    [
        "\u4ed6\u8d70\u4e86\u3002|\u5979\u8bf4\uff1a\u201c\u597d\u3002\u201d\u6211\u4eec\u8d70\u5427\uff01|\u771f\u7684\u5417\uff1f",
        "\u300c\u884c\u3053\u3046\u3002\u300d\u3068\u8a00\u3063\u305f\u3002|\u5f7c\u306f\u53bb\u3063\u305f\u3002",
    ],
)
def test_full_stops_of_chinese_and_japanese_need_no_space(text):
    assert sentences(text.replace("|", "")) == text.split("|")


@pytest.mark.parametrize("stop", "\u0964\u0965\u061f\u06d4\u1362\u104b\u17d4\u0589\u203d")
def test_stops_of_other_scripts(stop):
    assert sentences(f"a b{stop} c d{stop}\u00bb e") == [f"a b{stop}", f"c d{stop}\u00bb", "e"]


def test_lines_and_passages_end_sentences():
    assert sentences(" a b\nc\r\n\n \x1ede. E f.\x1e") == ["a b", "c", "de.", "E f."]
    assert sentences(" \n\x1e ") == sentences("") == []


LOOPS = [
    *("<think>", "so, ", "<!-- ", "[", "(", "a ", "\n", "- ", "```", "|", ".", "\u2026", "http://", "1. ", "!"),
    *("?)", ".)", ". ", "! ? ", "e.g. ", "A. It ", "No. 3 ", ". . .a ", "\u0964", "\u0964)", "\u3002", "? \u00bf"),
    *(".[1]", "\x1e "),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_lose_nothing(loop):
    text = f"It {loop * (50_000 // len(loop))} x"
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
