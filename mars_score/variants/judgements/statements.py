"""Reduce sentences and premises to what they state, as an NLI model reads them.

Markup goes, and so do marks and phrases that cannot be content. A mark that both texts have, such as an emoji, may
be what the sentence is about, and stays in both.
"""

from __future__ import annotations

import html
import re
from enum import Enum
from functools import cache, lru_cache
from operator import ne
from typing import Any, NamedTuple

import regex

from mars_score.data.cleaning import without_special_tokens
from mars_score.language import ENGLISH, PipelineMissingError, Tagger
from mars_score.sentences import sentences
from mars_score.text import join_broken_words, plain_words
from mars_score.variants.judgements.quantities.times import MONTH_NAMES
from mars_score.variants.judgements.spelling import LEXICON

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
    }
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width forms
        "\u00ad": None,
        "\u2026": ".",
        "\ufffd": None,
    }
)
_BYTES = re.compile(r"(?:\\x[89a-fA-F][0-9a-fA-F])+")  # as Python prints bytes: caf\xc3\xa9, 10\xb0

# Marks, where they cannot be content. Citations are at the end of a clause; "is [5]" and "in [0, 1]" are not
# citations. Addresses and emoji are before or after a sentence.
_CLAUSE_END = r"(?=\s*(?:[.,;:!?)]|$))"
_BEFORE_CONTENT = (
    r"(?<!\b(?:is|are|was|were|be|in|of|to|at|by|from|for|with|and|or|than|equals?|returns?|=|<|>|:)\s)"
)
_NUMBERS = r"\[\^?\d{1,3}(?:\s?[-,;]\s?\d{1,3}){0,9}\]"
_TIME = (  # "(May 2020)" is no citation
    rf"(?:(?i:{MONTH_NAMES})|Spring|Summer|Autumn|Fall|Winter|Easter|Christmas|Since|Until|From|In)"
)
_NAME = rf"(?!{_TIME}\b)\p{{Lu}}[\p{{L}}'-]{{1,40}}"
_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_AUTHORS = rf"{_NAME}(?:(?:,? (?:and|&) |, ){_NAME}){{0,8}}(?: et al\.?)?,? {_YEAR}(?:, pp?\. ?[\d-]{{1,9}})?"
_PLACES = (
    r"citation needed|sources?|sic|refs?|ibid\.?|op\. cit\.|(?:see )?pp?\. ?\d{1,4}(?:-\d{1,4})?"
    r"|\d{1,3}\u2020source"
)
_RAISED = r"[\u00b9\u00b2\u00b3\u2070-\u2079\u2020\u2021]+"
_LINK = r"(?:https?://|www\.)"
_PICTURE = r"[\p{Extended_Pictographic}--[\u00a9\u00ae\u2122\u2139]]"
# Emoji with a meaning of their own: arrows, checks, crosses, thumbs, medals, stars, clocks, signs, flags.
_TELLING = (
    r"\u2190-\u21ff\u2705\u2611\u2714-\u2718\u274c-\u274e\u27a1\u2b05-\u2b07\u2b50\u26d4\U0001f44d\U0001f44e"
    r"\U0001f947-\U0001f949\U0001f31f\U0001f336\U0001f550-\U0001f567\U0001f6ab\U0001f1e6-\U0001f1ff"
)
_EMOJI = rf"(?:[{_PICTURE}--[{_TELLING}]][\p{{Emoji_Modifier}}\ufe0e\ufe0f\u200d]*[ ]?)+"
_FORMATS = r"b|i|em|strong|u|p|span|div|font|mark|small|a|li|ul|ol|h[1-6]|code|pre|blockquote"


class _Mark(NamedTuple):
    """A kind of mark."""

    shows: regex.Pattern[str]  # is found in a text with such a mark
    removable: regex.Pattern[str]  # the mark where it cannot be content


def _mark(shows: str, *removable: str) -> _Mark:
    flags = regex.IGNORECASE | regex.V1
    return _Mark(regex.compile(shows, regex.V1), regex.compile("|".join(removable), flags))


_MARKS = {
    "number": _mark(
        r"\[\^?\d",
        rf"\s?{_BEFORE_CONTENT}{_NUMBERS}{_CLAUSE_END}",
        rf"(?:^|(?<=[.!?][\"')]?))\s*(?:{_NUMBERS})+(?=\s|$)",
    ),
    "author": _mark(
        r"[\[(][^()\[\]]{0,80}\b(?:1[89]|20)\d\d",
        rf"(?-i:\s?[\[(](?:(?:see|cf\.|e\.g\.,?) )?{_AUTHORS}(?:; {_AUTHORS}){{0,4}}[\])]){_CLAUSE_END}",
    ),
    "place": _mark(r"\(\s?(?:see )?pp?\. ?\d", rf"\s?[\[(](?:{_PLACES})[\])]{_CLAUSE_END}"),
    # not after a short word, which may be a unit or a symbol: "40 km\u00b2."
    "raised": _mark(
        _RAISED, rf"(?<=[.,;:!?\"'])\s?{_RAISED}", rf"(?<=\p{{L}}{{4}})\s?{_RAISED}(?=\s*(?:[.,;:!?]|$))"
    ),
    "address": _mark(
        _LINK, rf"(?<!\])\s?\({_LINK}[^\s()]{{1,2000}}\)", rf"(?:^|(?<=[.!?]))\s*{_LINK}\S{{1,2000}}(?=\s|$)"
    ),
    "emoji": _mark(_PICTURE, rf"(?:^|(?<=[.!?\"')]))[ ]?{_EMOJI}", rf"[ ]?{_EMOJI}$"),
    "emoticon": _mark(
        r"[:;=][-o']?[)(DPp/\\|]|<3",
        r"(?<=\s)(?:[:;=][-o']?[)(DPp/\\|]{1,9}|\^_?\^)(?=\s*$|[.!?]\s*$)",
        r"(?<=[.!?]\s)(?:[xX]D{1,9}|<3{1,9})(?=\s*$)",  # elsewhere a name, or a number with its bound
    ),
    "tag": _mark(
        rf"<(?!/?(?:{_FORMATS}|br|hr|img)\b)[a-zA-Z]",
        rf"<({_FORMATS})(?:\s[^<>]{{0,200}})?>(?=.{{0,2000}}</\1>)",
        rf"</({_FORMATS})>(?<=<\2(?:\s[^<>]{{0,200}})?>.{{0,2000}}</\2>)",
        r"<(?:br|hr)\s?/?>",
        r"<!--[^<>]{0,1000}-->",
    ),
}
# Marks of lists and tables. "- 5 degrees" may be a number, and "1." or "b)" an answer.
_LINE_MARK = re.compile(r"\A\s*(?:[-+](?!\s*\d)|[*>\u2022\u00b7\u25aa\u25cf\u25e6\u2023]|#{1,6}|\|)\s+")
_LINE_END = re.compile(r"\s\|\s*$")
_LABEL = re.compile(
    r"(?:(?:the|my|final|short|full) ){0,3}"
    r"(?:answer|summary|response|reply|output|tl;?dr|note|result|conclusion|a)\s?:\s",
    re.IGNORECASE,
)
_TEXT = r"(?:text|passage|article|document|context|report|dialogue|conversation|information)"
_TEXTS = rf"(?:{_TEXT}|excerpt|source)s?"
_THANKS = (
    r"(?:thanks|thank you)(?: (?:so much|very much|a lot))?(?: for (?:asking|reaching out|contacting us"
    r"|getting in touch|your (?:question|message|patience|interest)))?"
)
_COURTESY = (
    rf"{_THANKS}|(?:i )?hope (?:this|that|it) (?:helps|is helpful)(?: you)?|(?:hm+,? )?let me (?:see|think|check)"
    r"|(?:i'm |i am )?(?:always )?(?:happy|glad) to help|you(?: are|'re) welcome|(?:great|good) question"
    r"|(?:here|below)(?:'s| is| are) (?:a|an|the|my|your)(?: [a-z]{1,15}){0,2} (?:summary|answer|reply|response)"
    rf"(?: of the {_TEXT})?"
)
# Phrases before a statement. A punctuation mark must follow, so that "So little rain fell" stays.
_LEAD = re.compile(
    r"(?:yes|yeah|yep|sure|certainly|of course|absolutely|ok|okay|well|so|oh|ah|hi|hello|hey|right|indeed"
    r"|actually|basically|essentially|overall|in short|in brief|briefly|in summary|in sum|in conclusion|in essence"
    r"|in fact|in other words|to summari[sz]e|to sum up|all in all|in a nutshell|to be clear|that is|i\.e\.|also"
    rf"|moreover|furthermore|in addition|additionally|importantly|notably|{_COURTESY}"
    rf"|(?:according to|based on|as (?:stated|mentioned|described) in|as per) (?:the|this) {_TEXT}(?: above)?"
    r")(?:\s?[,:;!]|\.(?=\s)|\s-{1,2}\s)\s*"
    rf"|(?:and|but) |(?:please )?note that |(?:the|this) {_TEXT} (?:says|states|mentions|explains) that ",
    re.IGNORECASE,
)
# Sentences addressed to the reader.
_CHATTER = re.compile(
    rf"{_COURTESY}|(?:please )?let me know(?: if (?:you|that|this)\b[^.!?]{{0,80}})?"
    r"|(?:please )?(?:feel free to|do not hesitate to) (?:ask|reach out|contact (?:me|us))(?: (?:me|us))?"
    r"(?: if (?:you|there)\b[^.!?]{0,80}| (?:any|more|further|other)\b[^.!?,]{0,40})?",
    re.IGNORECASE,
)
# Sentences that say that the text lacks something, or that the writer cannot answer.
_LACKS = r"(?:do(?:es)? not|did not|don't|doesn't|didn't|never|contains? no|gives? no|ha(?:s|ve) no|provides? no)"
_TELL = (
    r"(?:mention|say|state|specif|provide|contain|include|give|discuss|address|indicate|tell|explain|cover|answer"
    r"|information|detail|enough|any)"
)
_TOLD = r"(?:mentioned|stated|specified|given|provided|said|clear|known|answered|covered|addressed|available)"
_REFUSAL = re.compile(
    r"(?:(?:unfortunately|sorry|i'm sorry|i am sorry|but),? ){0,3}(?:"
    rf"(?:(?:the|this|that|these|those|your) )?(?:\w{{1,20}} ){{0,3}}{_TEXTS}(?: (?:provided|given|above))?"
    rf" {_LACKS} ?(?:\w{{1,20}} ){{0,2}}{_TELL}"
    r"|(?:there (?:is|was) )?no (?:\w{1,20} )?(?:information|mention|details?|answer|evidence)\b"
    rf"|(?:this|that|it|the answer)(?: \w{{1,20}}){{0,4}} (?:is|was) not (?:\w{{1,20}} )?{_TOLD}"
    r"(?=\.?$| (?:in|by|from) )"
    r"|(?:i|we|one) (?:can(?:no|')t|can not|could(?: not|n't)|(?:am|are) (?:unable|not able) to|do(?: not|n't))"
    r" (?:\w{1,20} )?(?:answer|find|determine|tell|say|know|have (?:that|this|any|enough) information)"
    rf"|(?:it|this) cannot be (?:answered|determined|told)|unanswerable|not {_TOLD}"
    r")",
    re.IGNORECASE,
)
_END = re.compile(r"[\s.!\u3002|,;:]+\Z")
_QUESTION = re.compile(r"\?[\s!?*]{0,9}([\"')\]]{0,9})\Z")
_SPACE_BEFORE = re.compile(r"(?<=\S) {1,3}(?=[.,;:!?]{1,3}(?: |$))")
_STAR_WITHIN = re.compile(r"(?<=[^\W_])\*{1,3}(?=[^\W_])")
_DUNDER = re.compile(r"__+")
_MARKDOWN = re.compile(r"[*_`\[\\]")
READ = 10_000  # most characters of a text, more than an NLI model reads
_FRAGMENT_WORDS = 6  # Longer texts without a verb, such as headlines, are judged.
_MOST_MARKS = 300  # A text with more marks of Markdown is a loop or no Markdown.
UNTIL_READ = frozenset(_MARKS) - {"tag"}  # marks that stay in a sentence until its premise is known


def marks_of(text: str) -> frozenset[str]:
    """Return the kinds of marks that a text has."""
    return frozenset(name for name, mark in _MARKS.items() if mark.shows.search(text))


@lru_cache(maxsize=4096)
def plain(text: str, kept: frozenset[str] = frozenset()) -> str:
    """Return the first :data:`READ` characters without special tokens, markup, and marks that cannot be content.

    Marks of the kinds ``kept`` (:func:`marks_of`) stay.
    """
    text = join_broken_words(text[:READ], LEXICON.is_word)
    text = without_special_tokens(_BYTES.sub(_decoded, text).translate(_SHAPES))
    for name, mark in _MARKS.items():
        if name not in kept:
            text = mark.removable.sub(" " if name == "tag" else "", text)
    text = _without_markdown(text).translate(_SIGNS)
    return _SPACE_BEFORE.sub("", " ".join(text.split()))


def _decoded(escaped: re.Match[str]) -> str:
    """Decode escaped bytes as UTF-8, or a single one as Latin-1."""
    data = bytes.fromhex(escaped[0].replace("\\x", ""))
    return data.decode("latin-1") if len(data) == 1 else data.decode(errors="ignore")


def _without_markdown(text: str) -> str:
    """Return the text of inline Markdown without its markup."""
    if not 0 < len(_MARKDOWN.findall(text)) <= _MOST_MARKS:
        return html.unescape(text)
    text = _DUNDER.sub(lambda match: "\\_" * len(match[0]), text)
    text = _STAR_WITHIN.sub(lambda match: "\\*" * len(match[0]), text)
    tokens = (token for block in _markdown().parseInline(text) for token in block.children or ())
    return "".join(" " if token.type.endswith("break") else token.content for token in tokens)


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("html_inline")


@lru_cache(maxsize=4096)
def statement(sentence: str, kept: frozenset[str] = frozenset()) -> str:
    """Return what a sentence states, without markup, list marks, labels and phrases to the reader.

    It ends with one full stop or question mark, and is "" if nothing is left. ``kept`` is that of :func:`plain`.
    """
    text = plain(_LINE_END.sub("", _LINE_MARK.sub("", sentence, count=1)), kept)
    for _ in range(4):  # "So, in short, ...", but not a long loop of such words
        if _CHATTER.fullmatch(_END.sub("", text)):
            return ""
        rest = text
        for pattern in (_LABEL, _LEAD):
            if (match := pattern.match(rest)) and rest[match.end() :].strip():
                rest = rest[match.end() :]
        if rest == text:
            break
        text = rest
    if text[:1] in ("'", '"') and text.count(text[0]) == 2 and _END.sub("", text)[-1:] == text[0]:
        text = _END.sub("", text)[1:-1]
    if question := _QUESTION.search(text):
        return f"{text[: question.start()]}?{question[1]}"
    text = _END.sub("", text)
    if text[-1:] in ("'", '"', ")") and text[-2:-1] in (".", "!"):
        text = _END.sub("", text[:-1]) + text[-1]
    return f"{text[:1].upper()}{text[1:]}." if plain_words(text) else ""


def states(premise: str, sentence: str) -> bool:
    """Tell whether a premise has a sentence word for word.

    Case, white space, the shape of quotation marks, a final full stop and markup do not matter.
    """
    return _same(sentence) in _said(premise)


@lru_cache(maxsize=1024)
def _said(premise: str) -> frozenset[str]:
    plain_parts = (part for line in premise.splitlines() for part in sentences(_plain_line(line)))
    return frozenset(map(_same, (premise, *sentences(premise), *plain_parts)))


def _same(text: str) -> str:
    return " ".join(text.translate(_SHAPES).lower().split()).removesuffix(".")


def is_reordered(sentence: str, premise: str) -> bool:
    """Tell whether a sentence of a premise has the same words in another order, except that of a list."""
    words = _with_sorted_lists(sentence)
    others = map(_with_sorted_lists, sentences(premise))
    return any(words != other and sorted(words) == sorted(other) for other in others)


def replaces_one_word(sentence: str, premise: str) -> bool:
    """Tell whether a sentence is one of a premise with another word in one place."""
    words = plain_words(sentence)
    others = map(plain_words, sentences(premise))
    return any(len(words) == len(other) and 1 == sum(map(ne, words, other)) < len(words) for other in others)


# "Ann, Ben and Tom"
_LIST = re.compile(r"\w+(?:(?:\s*,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+)\w+)+")


def _with_sorted_lists(text: str) -> list[str]:
    """Split a text into words, with those of each list in alphabetical order."""
    return plain_words(_LIST.sub(lambda match: " ".join(sorted(plain_words(match[0]))), text.lower()))


# The statements of a candidate


class Kind(Enum):
    """Kinds of sentences. An NLI model judges only statements."""

    STATEMENT = "statement"
    QUESTION = "question"
    REFUSAL = "refusal"  # says that the text lacks something, or declines to answer
    FRAGMENT = "fragment"  # has no verb, such as a short answer


class Statement(NamedTuple):
    """A sentence of a candidate that states or asks something.

    Attributes:
        number: number of the sentence in the candidate, from 1.
        sentence: the sentence as it is written, without markup.
        text: the output of :func:`statement`.
        kind: its kind.
    """

    number: int
    sentence: str
    text: str
    kind: Kind


@lru_cache(maxsize=1024)
def statements_of(candidate: str) -> tuple[Statement, ...]:
    """Return the sentences of a candidate that state or ask something.

    A single word beside longer sentences ("Thanks!") states nothing.
    """
    parts = [part for line in candidate.splitlines() for part in sentences(_plain_line(line))]
    texts = list(map(statement, parts))
    counts = [len(plain_words(text)) for text in texts]
    least = min(2, max(counts, default=0))
    return tuple(
        Statement(number, part, text, _kind(text))
        for number, (part, text, count) in enumerate(zip(parts, texts, counts, strict=True), 1)
        if count >= max(1, least)
    )


def _plain_line(line: str) -> str:
    return line if len(line) > READ else plain(line, UNTIL_READ)


def _kind(text: str) -> Kind:
    if _QUESTION.search(text):
        return Kind.QUESTION
    if _REFUSAL.match(text):
        return Kind.REFUSAL
    return Kind.FRAGMENT if is_fragment(text) else Kind.STATEMENT


def is_fragment(text: str) -> bool:
    """Tell whether a short statement has no verb. Without spaCy's pipeline for English the answer is no."""
    if len(plain_words(text)) > _FRAGMENT_WORDS:
        return False
    try:
        tags = Tagger(ENGLISH).tag([text])[text]
    except PipelineMissingError:
        return False
    return not any(word.pos in ("VERB", "AUX") for word in tags)
