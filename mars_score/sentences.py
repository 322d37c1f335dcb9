"""Split texts into sentences.

nupunkt (https://arxiv.org/abs/2504.04131), an implementation of Punkt (Kiss and Strunk 2006,
https://aclanthology.org/J06-4003/), decides which full stops, question marks and exclamation marks end a sentence.
It learned its abbreviations from legal texts, and many of them are words ("bus", "week"). So this module replaces
them. It also adds the sentence ends of other scripts and the rules for lists.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from nupunkt import PunktSentenceTokenizer

# Abbreviations that end a sentence only if the next word often begins one.
_ABBREVIATIONS = """
mr mrs ms mx dr drs prof profs rev revd hon gen col lt lieut sgt maj cpl cmdr adm brig capt gov sen rep reps pres
supt insp messrs mme mlle fr st ste pvt jr sr esq treas jan feb apr jun jul aug sept sep oct nov dec tue tues
weds thu thur thurs fri fig figs eq eqs eqn eqns sec sect sects ch chap chaps vol vols nos pp pg pgs para paras
ref refs appx eds edn al et etc cf viz vs ibid ca approx est incl excl esp usu resp orig transl publ suppl supp
ser ver seq cit loc dept depts div govt natl intl univ assn assoc inst acad soc admin mgr mgmt mfg mfr asst attn
atty bros corp inc ltd co comm commn conf proc ave blvd rd ln hwy pkwy expy fwy cir cres ter pl plz sq apt apts
bldg fl rm rte ctr cty mt calif penn conn colo ariz okla tenn tex fla minn mich wis wyo neb nebr nev ala ind kan
kans ky md mont va ga pa ont que ct dist stat reg regs cl const amend exh exs subsec subd cert crim civ tel ext
misc abbr adj adv anon aux masc plur prep pron conj interj std avg acct amt qty bal pkg pkgs pc pcs ea bzw evtl
ggf inkl nr str usw vgl zzgl dipl ing sra srta ud uds llc plc cal gmbh
"""
# Abbreviations that are often the last word of a sentence, such as units, or that are also words. They end it
# unless a small letter or a digit follows, perhaps in brackets.
_OFTEN_LAST = """
no in art sun sat mar mon wed mass wash miss ill ore ark gal gals ed add app apps alt cap cont dev ex fem op par
pop pub sing spec tab tabs temp var max min mins mod oz lb lbs ft yd yds mi mm cm km ml cl dl mg kg sec secs hr
hrs wk wks mo mos yr yrs qt qts pt pts tbsp tbsps tsp tsps deg cu mph kph rpm bpm doz dz
"""
# Words that begin a sentence after an abbreviation, in addition to nupunkt's.
_STARTERS = """
a an that its his her their your here and or who where is are was were does did can could will would should not
by for from on of to with before until also every any both other such note go it's that's he's she's we're
they're i'm you're don't there's what's later
"""
_CLOCK = ("a.m", "p.m")
_LABELLED = frozenset(
    {"app", "apt", "art", "ch", "chap", "cl", "eq", "ex", "fig", "no", "para", "pt", "sec", "vol"}
)

# Sentence ends that nupunkt misses: full stops of other scripts (in Chinese and Japanese without a space, but not
# before a closing mark), before a Spanish opening mark, after a German closing quotation mark, after a capital
# letter that is no initial because no name follows, and after a number before a small letter.
_WIDE_STOP = "\u3002\uff01\uff1f"
_STOP = rf"[\p{{Sentence_Terminal}}--[.!?{_WIDE_STOP}]]"
_OTHER_END = regex.compile(
    rf"[{_WIDE_STOP}](?![{_WIDE_STOP}\u2019\u201d\u300d\u300f)\uff09])\s*"
    rf"|{_STOP}[!?\"'\u2018\u2019\u201c\u201d\u00bb)\]]{{0,4}}\s+"
    r"|[.!?]\s+(?=[\u00bf\u00a1])|[.!?][\u201c\u2018\u203a]\s+(?=\p{Lu})"
    r"|(?<=\b\p{Lu})\.\s+(?=(?:It|The|This|That|These|Those|There|They|We|Its|Their|Our|But|However|If|When|What)\s)"
    r"|(?<=\p{L}\s\d{1,4})\.\s+(?=\p{Ll})",
    regex.V1,
)

# Long runs without a space, for which nupunkt takes quadratic time, and loops such as "1. 1. ", which it would
# split into thousands of sentences.
_LONG_RUN = re.compile(r"\S{200,}|(.{1,8}?)\1{99,}")
_FOOTNOTE = re.compile(r"(?<=[.!?])(?:\[[\d, ]{1,12}\])+")  # belongs to the sentence before it
_STAR = re.compile(r"(?<=\s)[*\u2022](?=\s)")  # begins an item of a list

_LAST_WORD = re.compile(r"(?<![\w.])(?:[^\W\d_]+\.)+$")
_INITIALS = re.compile(r"(?:[^\W\d_]{1,2}\.){2,}|[^\W\d_]\.")
_NO_VOWEL = re.compile(r"[B-DF-HJ-NP-TV-XZb-df-hj-np-tv-xz][b-df-hj-np-tv-xz]+\.")
_OPENING = "([{"
_LABEL = re.compile(r"(?:[A-Z]|[IVXLC]+)(?!\w)")  # as in "Art. IV"
_DAY_OR_ZONE = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Jan|Febr)uary|March|April|May|June|July|August|October"
    r"|(?:Sept|Nov|Dec)ember|[A-Z]{2,4}|Eastern|Central|Pacific|Greenwich)(?!\w)"
)
_HEADS = "Step|Part|Chapter|Section|Article|Question|Rule|Phase|Stage|Tip|Table|Figure"
_ITEM = re.compile(
    rf"(?:[-+*\u2013\u2022\u2023\u25aa\u25e6]|#{{1,6}}|\(?\d{{1,3}}[.)]|\(?(?:[a-z]|[ivx]{{1,4}})\)"
    rf"|(?:{_HEADS}) \d{{1,3}}[.:)])(?:\s+|$)"
)
_ITEM_LENGTH = 300  # most characters of an item; a longer one is a paragraph
_QUESTION = re.compile(r"[?!][\"'\u2019\u201d)\]]{0,2}\s*$")
_NUMBER = re.compile(r"(?<![^.!?:;,]\s)(?<!\S)\(?(\d{1,3})[.)]\s+")


def sentences(text: str) -> list[str]:
    """Split a text into sentences without outer white space.

    Line breaks and passage breaks end a sentence. A list item, heading or table row is one sentence up to the next
    item, unless it is long. Closing quotation marks, brackets and footnotes belong to the sentence before them.
    """
    lines = [line for whole in text.splitlines() if (line := whole.strip())]
    split = {line: _sentences_of_line(line) for line in dict.fromkeys(lines)}
    return [part for line in lines for part in split[line]]


def _sentences_of_line(line: str) -> list[str]:
    read = _LONG_RUN.sub(lambda run: "x" * len(run[0]), line)
    read = _STAR.sub("-", _FOOTNOTE.sub(lambda note: '"' * len(note[0]), read))
    cuts = {start for start, _ in _tokenizer().spans(read, paragraph_breaks=False)}
    cuts |= {match.end() for match in _OTHER_END.finditer(read)}
    starts = [0]
    for cut in _between_items(line, sorted(cuts - {0, len(line)} - _list_numbers(line))):
        if not _is_abbreviation(line, starts[-1], cut):
            starts.append(cut)
    return [line[start:end].rstrip() for start, end in pairwise([*starts, len(line)])]


def _list_numbers(line: str) -> set[int]:
    """Return where the items of a numbered list within a line begin: "three things: 1. A pizza, 2. A pie"."""
    found = {match.end(): int(match[1]) for match in _NUMBER.finditer(line)}
    values = set(found.values())
    return {end for end, value in found.items() if not values.isdisjoint((value - 1, value + 1))}


def _between_items(line: str, cuts: list[int]) -> list[int]:
    """Remove the cuts within a list item, a heading or a table row, except after a question in a list item."""
    marks = {cut: mark.end() for cut in [0, *cuts] if (mark := _ITEM.match(line, cut))}
    left = []
    for start, end in pairwise([*sorted({0, *marks}), len(line)]):
        first, last = bisect_right(cuts, marks.get(start, start)), bisect_left(cuts, end)
        inner = cuts[first:last]
        if end - start <= _ITEM_LENGTH and (start in marks or line[start] == "|"):
            inner = [cut for cut in inner if line[start] not in "|#" and _QUESTION.search(line, cut - 9, cut)]
        left += [start, *inner] if start else inner
    return left


def _is_abbreviation(line: str, start: int, cut: int) -> bool:
    """Tell whether the full stop before a cut belongs to an abbreviation."""
    before, after = line[max(start, cut - 40) : cut].rstrip(), line[cut : cut + 20]
    if not (match := _LAST_WORD.search(before)):
        return before[-2:-1].isdigit() and after[:1].islower() and not _is_uncased(line[start : start + 40])
    word = match[0]
    name = word[:-1].lower()
    if name in _CLOCK:
        return bool(_DAY_OR_ZONE.match(after))
    next_sign = after.lstrip(_OPENING)[:1]
    if not (next_sign.islower() or next_sign.isdigit()):
        is_answer = name == "no" and match.start() == 0
        return name in _LABELLED and word[0].isupper() and not is_answer and bool(_LABEL.match(after))
    if _INITIALS.fullmatch(word) or _NO_VOWEL.fullmatch(word):
        return True
    return name in _often_last() and (next_sign.isdigit() or not _is_uncased(line[start : start + 40]))


def _is_uncased(text: str) -> bool:
    """Tell whether a text begins with a small letter. Its next sentence may then begin with one, too."""
    return next((sign.islower() for sign in text if sign.isalnum()), False)


@cache
def _often_last() -> frozenset[str]:
    return frozenset(_OFTEN_LAST.split())


@cache
def _tokenizer() -> PunktSentenceTokenizer:
    """Load nupunkt's model with the abbreviations of this module."""
    import nupunkt

    tokenizer = nupunkt.load_default_model()
    parameters = tokenizer.parameters
    # Learned abbreviations with a full stop inside, such as "u.s", stay.
    parameters.abbrev_types = {name for name in parameters.abbrev_types if "." in name}
    parameters.abbrev_types.update(_ABBREVIATIONS.split())
    parameters.sent_starters.update(_STARTERS.split())
    parameters.abbrev_break_rates |= dict.fromkeys(_CLOCK, (tokenizer.BREAK_RATE_MIN_COUNT,) * 2)
    return tokenizer
