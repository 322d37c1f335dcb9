"""Find the facts that a text adds: numbers and names of a sentence that none of its sources has.

Nan et al. (EACL 2021) call the share of names that the source has entity precision. Here a fact is missing only if
the sources have it in no form: names are compared by accents, initials and first letters, numbers by value. A fact
that a source has may still be about something else.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from rapidfuzz.distance import OSA

from mars_score.language import PipelineMissingError, Tagger
from mars_score.text import TaggedWord
from mars_score.variants.judgements.quantities import Quantity, is_said, read_quantities
from mars_score.variants.judgements.quantities.times import MONTH_NAMES, MONTHS
from mars_score.variants.judgements.spelling import LEXICON, by_shortened, shortened

STEM = 4  # first letters that names and their derivations share: German, Germany
SHORTEST_MISSPELT = 6  # fewest letters of a name that may be misspelt
LONGEST_INITIALS = 6
FEW = 10  # most values of a dimension; with more, any value may be a sum by chance
COUNTABLE = 12  # Smaller numbers may be a count of things in the sources.

Span = tuple[int, int]
SourcedSentence = tuple[str, tuple[str, ...]]  # a sentence and the texts that have its facts

_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_])*")
_NUMBER = re.compile(r"(?<![\d.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\d])")
_DAY = re.compile(
    rf"(?:(?<!\d)(?P<before>\d{{1,2}})(?:st|nd|rd|th)?,? (?:of )?)?\b(?P<month>{MONTH_NAMES})\b\.?"
    r"(?:,? (?:the )?(?P<behind>\d{1,2})(?!\d))?",
    re.IGNORECASE,
)
_SPACED_HYPHEN = re.compile(r"(?<=[a-z]) - (?=[a-z])")
_WITHIN_NAMES = ("of", "the", "and", "for", "de", "in", "on")
_LIST_MARK = re.compile(r"\s*(?:[-*\u2022]\s+|\(?\d{1,2}[.)]\s+)")
_OPENING = re.compile(r"(?:^|[.!?:\u2026]|\s[-\u2013\u2014])[\s\"'\u2018\u201c\u201e(\[*_-]*$|[\"\u201c\u201e]$")
_ARTICLE_FIRST = re.compile(r"An? ")  # "A day in May" has no number.
_NEAR = 12  # characters before a word that may explain its capital
_CONTENT = ("ADJ", "ADV", "AUX", "NOUN", "VERB")
# Titles and kinds of places, which texts write in full, abbreviate or leave out.
_TITLES = re.compile(
    "adm(?:iral)?|ave(?:nue)?|capt(?:ain)?|co|col(?:onel)?|corp|dc|dr|doctor|dept|esq|fr|ft|fort|gen(?:eral)?"
    "|gov(?:ernor)?|hon|inc|jr|junior|lt|lieutenant|ltd|limited|madam|maj(?:or)?|miss|mister|mr|mrs|ms|mt|mount"
    "|ph|phd|pres(?:ident)?|prof(?:essor)?|rd|road|rep|rev(?:erend)?|rm|room|saint|sen(?:ator)?|sgt|sergeant|sir"
    "|sr|senior|st|street"
)
_ALL_DAYS = re.compile(r"\b(?:every day|each day|daily|week(?:day|end)s?|seven days)\b", re.IGNORECASE)
# Stems of a country and its people, and initials, where they differ.
_SAME = [
    ("us", "usa", "amer"), ("uk", "brit", "engl"), ("eu", "euro"), ("neth", "dutc", "holl"),
    ("fran", "fren"), ("spai", "span"), ("pola", "poli", "pole"), ("denm", "dani", "dane"), ("swit", "swis"),
    ("wale", "wels"), ("irel", "iris"), ("phil", "fili"), ("myan", "burm"), ("finl", "finn"), ("gree", "hell"),
]  # fmt: skip
_NOT_ADDED = ("clock", "date", "weekday", "year", "share", "ordinal", "pair")  # dimensions without sums
_LETTERS = str.maketrans(
    {"\u00df": "ss", "\u00fe": "th"}
    | dict(zip("\u00f8\u00e6\u0153\u0142\u0111\u00f0\u0131", "oaolddi", strict=True))
)


class Said(NamedTuple):
    """The words and quantities of the sources of a sentence.

    Attributes:
        words: folded words.
        shortened: words by each string of :func:`mars_score.variants.judgements.spelling.shortened`.
        stems: first letters of the words.
        initials: initials of names with several words.
        first_letters: first letters of all words, in order.
        acronyms: words in capitals, in lower case.
        quantities: the quantities.
        values: some values of the quantities, by dimension.
        days: (month, day) of each date, and (month, 0).
        has_all_days: whether they mention every day or the week.
        numbers: all numbers, also those of names and codes.
        bare: numbers that are no quantities.
    """

    words: frozenset[str]
    shortened: Mapping[str, Sequence[str]]
    stems: frozenset[str]
    initials: frozenset[str]
    first_letters: str
    acronyms: frozenset[str]
    quantities: tuple[Quantity, ...]
    values: Mapping[str, Sequence[float]]
    days: frozenset[tuple[int, int]]
    has_all_days: bool
    numbers: frozenset[float]
    bare: frozenset[float]


class _Name(NamedTuple):
    """A name of one or more words."""

    words: list[Span]
    has_article: bool  # whether an article or a possessive precedes it


def missing_facts(
    asked: Iterable[SourcedSentence], tagger: Tagger | None
) -> dict[SourcedSentence, tuple[str, ...]]:
    """Return the numbers and names of each sentence that its sources lack, in order.

    Names are read only with a tagger for English and its pipeline.
    """
    asked = list(dict.fromkeys(asked))
    names = _missing_names(asked, tagger) if asked and tagger else {}
    found = {}
    for one in asked:
        sentence, sources = one
        quantities = read_quantities(sentence)
        missing = _missing_numbers(sentence, quantities, _said(sources))
        missing += [span for span in names.get(one, ()) if not any(_overlap(span, other) for other in quantities)]
        found[one] = tuple(sentence[start:end] for start, end in sorted(missing))
    return found


@lru_cache(maxsize=256)
def _said(sources: tuple[str, ...]) -> Said:
    words, initials, acronyms = _said_words(sources)
    of_each = [(source, read_quantities(source)) for source in map(joined, sources)]
    quantities = tuple(quantity for _, of_source in of_each for quantity in of_source)
    bare = {number for source, of_source in of_each for number in _bare_numbers(source, of_source)}
    numbers = {float(match[0].replace(",", "")) for source in sources for match in _NUMBER.finditer(source)}
    numbers |= {quantity.written for quantity in quantities}
    return Said(
        frozenset(words),
        by_shortened(words),
        frozenset(word[:STEM] for word in words),
        frozenset(initials),
        " ".join("".join(word[0].lower() for word in _WORD.findall(source)) for source in sources),
        frozenset(acronyms),
        quantities,
        _values(quantities),
        frozenset(day for source in sources for match in _DAY.finditer(source) for day in _days(match)),
        any(map(_ALL_DAYS.search, sources)),
        frozenset(numbers),
        frozenset(bare),
    )


def _said_words(sources: Iterable[str]) -> tuple[set[str], set[str], set[str]]:
    """Return the folded words of texts, the initials of their names, and their acronyms."""
    words: set[str] = set()
    initials: set[str] = set()
    acronyms: set[str] = set()
    for source in sources:
        run = ""
        for word in _WORD.findall(source):
            words |= {fold(word), fold(word.replace(".", ""))}
            if word.isupper():
                acronyms.add(word.lower().replace(".", ""))
            if word[0].isupper():
                run = (run + word[0].lower())[-LONGEST_INITIALS:]
                initials.update(run[start:] for start in range(len(run) - 1))
            elif word not in _WITHIN_NAMES:
                run = ""
    return words, initials, acronyms


def _values(quantities: Iterable[Quantity]) -> dict[str, list[float]]:
    """Return the first different values of each dimension."""
    values: dict[str, list[float]] = {}
    for quantity in quantities:
        same = values.setdefault(quantity.dimension, [])
        if quantity.is_single and quantity.low not in same and len(same) <= FEW:
            same.append(quantity.low)
    return values


def _bare_numbers(text: str, quantities: Sequence[Quantity]) -> list[float]:
    """Return the numbers of a text that are not part of one of its quantities, which are in order."""
    starts = [quantity.start for quantity in quantities]
    numbers = []
    for match in _NUMBER.finditer(text):
        before = bisect_left(starts, match.end())
        if not before or not _overlap(match.span(), quantities[before - 1]):
            numbers.append(float(match[0].replace(",", "")))
    return numbers


def _days(match: re.Match[str]) -> list[tuple[int, int]]:
    month = MONTHS[match["month"].lower()]
    return [(month, int(day)) for day in (0, match["before"] or 0, match["behind"] or 0)]


def joined(text: str) -> str:
    """Remove the spaces around hyphens between words, as in tokenized texts."""
    return _SPACED_HYPHEN.sub("-", text)


# Names


def fold(word: str) -> str:
    """Return a word in lower case without accents, with one letter for the German ae, oe and ue."""
    plain = unicodedata.normalize("NFKD", word.lower().translate(_LETTERS))
    plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
    return re.sub("(?<=[aou])e", "", plain)


def _missing_names(asked: Sequence[SourcedSentence], tagger: Tagger) -> dict[SourcedSentence, list[Span]]:
    try:
        tagged = tagger.tag(sentence for sentence, _ in asked)
    except PipelineMissingError:
        return {}
    found: dict[SourcedSentence, list[Span]] = {}
    doubtful: dict[SourcedSentence, list[Span]] = {}
    for one in asked:
        sentence, sources = one
        said = _said(sources)
        for name in _names(sentence, tagged[sentence]):
            missing = [span for span in name.words if not _is_said(sentence[slice(*span)], said)]
            initials = "".join(sentence[start].lower() for start, _ in name.words)
            if len(name.words) > 1 and initials in said.acronyms:
                continue
            kind = doubtful if name.has_article or len(missing) < len(name.words) else found
            kind.setdefault(one, []).extend(missing)
    names = _only_names(doubtful, tagger)
    return {one: [*found.get(one, ()), *names.get(one, ())] for one in asked}


def _names(sentence: str, tags: Sequence[TaggedWord]) -> list[_Name]:
    """Return the names of a sentence, except words whose position explains their capital."""
    if not any(tag.pos in _CONTENT and sentence[tag.start].islower() for tag in tags):  # a heading or all capitals
        return []
    names: list[_Name] = []
    before = ""
    for tag in tags:
        is_name = tag.pos == "PROPN" and sentence[tag.start].isupper()
        if is_name and not _OPENING.search(sentence, max(0, tag.start - _NEAR), tag.start):
            if before == "PROPN" and names and not sentence[names[-1].words[-1][1] : tag.start].strip():
                names[-1].words.append((tag.start, tag.end))
            else:
                names.append(_Name([(tag.start, tag.end)], before in ("DET", "PRON")))
        before = tag.pos
    return names


def _only_names(found: Mapping[SourcedSentence, list[Span]], tagger: Tagger) -> dict[SourcedSentence, list[Span]]:
    """Leave out ordinary words with a capital ("the Campus"), which are not tagged as names in lower case."""

    def lowered(sentence: str, span: Span) -> str:
        start, end = span
        return sentence[:start] + sentence[start:end].lower() + sentence[end:]

    tagged = tagger.tag(lowered(one[0], span) for one, spans in found.items() for span in spans)

    def is_name(sentence: str, span: Span) -> bool:
        tags = tagged[lowered(sentence, span)]
        is_ordinary = any(tag.pos in _CONTENT for tag in tags if tag.start == span[0])
        return not (is_ordinary and LEXICON.is_word(sentence[slice(*span)].lower()))

    return {one: [span for span in spans if is_name(one[0], span)] for one, spans in found.items()}


def _is_said(name: str, said: Said) -> bool:
    """Tell whether the sources have all parts of a word of a name, in any form."""
    return all(_is_part_said(part, said) for part in _WORD.findall(name))


def _is_part_said(word: str, said: Said) -> bool:
    folded = fold(word).replace(".", "")
    forms, stem = {folded, folded.removesuffix("s")}, folded[:STEM]
    if len(folded) < 2 or _TITLES.fullmatch(folded) or not said.words.isdisjoint(forms):
        return True
    if len(folded) >= STEM and stem in said.stems:
        return True
    is_acronym = len(folded) <= LONGEST_INITIALS and word.replace(".", "").rstrip("s").isupper()
    if is_acronym and not said.initials.isdisjoint(forms):
        return True
    if is_acronym and len(folded) > 2 and folded in said.first_letters:
        return True
    is_other_name = any(stem in same and not (said.stems | said.initials).isdisjoint(same) for same in _SAME)
    return is_other_name or _is_without_vowels(folded, said) or _is_misspelt(word.lower(), said)


def _is_without_vowels(word: str, said: Said) -> bool:
    """Tell whether a word without vowels has letters of a source's word in order, as Utd, Bldg and Pkwy have."""
    if len(word) < 3 or re.search("[aeiou]", word[1:]):
        return False
    return any(
        word[0] == other[0] and _is_subsequence(word, other) for other in said.words if len(other) > len(word)
    )


def _is_subsequence(word: str, other: str) -> bool:
    """Tell whether a word is another one without some letters."""
    letters = iter(other)
    return all(letter in letters for letter in word)


def _is_misspelt(word: str, said: Said) -> bool:
    """Tell whether an unknown name is nearly a word of the sources."""
    if len(word) < SHORTEST_MISSPELT or LEXICON.frequency(word):
        return False
    similar = {other for left in shortened(word) for other in said.shortened.get(left, ())}
    return any(OSA.distance(word, other, score_cutoff=1) <= 1 for other in similar)


# Numbers


def _overlap(span: Span, quantity: Quantity) -> bool:
    return span[0] < quantity.end and quantity.start < span[1]


def _missing_numbers(sentence: str, quantities: Iterable[Quantity], said: Said) -> list[Span]:
    mark = _LIST_MARK.match(sentence)
    first = mark.end() if mark else 0
    return [
        (quantity.start, quantity.end)
        for quantity in quantities
        if quantity.start >= first
        and not _ARTICLE_FIRST.match(sentence, quantity.start)
        and not _may_be_said(quantity, said)
    ]


def _may_be_said(quantity: Quantity, said: Said) -> bool:
    """Tell whether sources have a quantity, in words or figures, or it can be counted or computed from them."""
    if quantity.dimension in ("number", "ordinal") and quantity.low <= COUNTABLE:
        return True
    if quantity.dimension == "share" and not quantity.unit.name:  # a half, a quarter
        return True
    if quantity.dimension == "weekday" and not any(one.dimension == "weekday" for one in said.quantities):
        return True  # Sources may imply the day, as by "tomorrow".
    if is_said(quantity, said.quantities) or _has_time(quantity, said):
        return True
    if quantity.dimension == "number" and quantity.written in said.numbers:
        return True
    if any(one.dimension == "number" and one.written == quantity.written for one in said.quantities):
        return True
    if quantity.dimension in said.values and quantity.written in said.bare:
        return True  # The sources give the unit once: "31 tonnes of one kind and 38 of the other".
    return _is_computed(quantity, said)


def _is_computed(quantity: Quantity, said: Said) -> bool:
    """Tell whether an amount is a sum, difference or product of two values, or the time between two."""
    value, of_kind = quantity.low, said.values
    if quantity.dimension in _NOT_ADDED:
        return False
    clocks = of_kind.get("clock", ()) if quantity.dimension == "duration" else ()
    found = [abs(a - b) * 60 for a, b in _pairs(clocks)]
    for a, b in _pairs(of_kind.get(quantity.dimension, ())):
        found += [a + b, abs(a - b)]
    found += [a * b for a in of_kind.get(quantity.dimension, ()) for b in of_kind.get("number", ()) if b != 1]
    return any(math.isclose(one, value, rel_tol=1e-6) for one in found)


def _pairs(values: Sequence[float]) -> Iterable[tuple[float, float]]:
    return combinations(values, 2) if len(values) <= FEW else ()


def _has_time(quantity: Quantity, said: Said) -> bool:
    """Tell whether the sources have a time or date, perhaps without parts that the time of writing implies."""
    if quantity.dimension == "clock":
        return not quantity.low % 60 and quantity.low // 60 % 12 in {number % 12 for number in said.numbers}
    if quantity.dimension == "weekday":
        return said.has_all_days or fold(quantity.text)[:3] in {stem[:3] for stem in said.stems}
    if quantity.dimension != "date" or len(quantity.parts) != 3:
        return False
    year, month, day = quantity.parts
    return (not year or year in said.numbers) and (month, day) in said.days
