"""What a sentence states: its words without the marks, markup and phrases that state nothing.

An NLI model reads sentences in this form, so that a citation, an emoji or "Yes," changes no judgement. All else
reads texts as they are.
"""

import html
import re
import unicodedata
from functools import lru_cache

import regex

from mars_score.data.cleaning import without_special_tokens
from mars_score.sentences import sentences
from mars_score.text import plain_words

_SIGNS = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201a": "'",
        "\u201b": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
        "\u2039": "'",
        "\u203a": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2015": "-",
        "\u2212": "-",
        "\u00ad": None,
        "\u2026": ".",  # NFKC makes three full stops of it, which end no sentence for spaCy.
        "\ufffd": None,
    }
)
_BYTES = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")  # as Python prints them: caf\xc3\xa9, 10\xb0
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:https?://|/|#)[^()\s]*\)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,100}>|<!--.*?-->", re.DOTALL)
_ADDRESS = re.compile(r"\(?(?<!\w)(?:https?://|www\.)\S*[^\s.,!?;:'\")\]]\)?", re.IGNORECASE)
# [1], [2, 3], [^4], [citation needed]; (Smith 2020), (see Smith and Jones, 2019; Wu et al., 2021b).
_NUMBERS = r"\[\^?\d{1,3}(?:\s*[-,;]\s*\d{1,3})*\]"
_AUTHORS = (
    r"\p{Lu}[\p{L}'-]+(?:(?:,? (?:and|&) |, )\p{Lu}[\p{L}'-]+)*(?: et al\.?)?,? (?:1[89]|20)\d\d[a-z]?"
    r"(?:, pp?\. ?[\d-]+)?"
)
_NEEDED = (
    r"[\[(](?:(?i:citation needed|sources?|sic|refs?|ibid\.?|op\. cit\.)|(?:see )?pp?\. ?\d+(?:-\d+)?"
    r"|\d{1,3}\u2020source)[\])]"
)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_RAISED = r"[\u00b9\u00b2\u00b3\u2070-\u2079\u2020\u2021]+"
_CITATION = regex.compile(
    rf"\s*(?:{_NUMBERS}|{_NEEDED}|[\[(](?!{_MONTH})(?:(?:see|cf\.|e\.g\.,?) )?{_AUTHORS}(?:; {_AUTHORS})*[\])])"
    rf"|(?<=[.,;:!?\"')])\s*{_RAISED}|(?<=\p{{L}})\s+{_RAISED}(?=[\s.,;:!?]|$)"
)
_POWER = re.compile(r"(?<=\d)([\u00b9\u00b2\u00b3\u2070-\u2079]+)")
_FRACTION = re.compile(r"(?<=\d)(?=[\u00bc-\u00be\u2150-\u215e])")
_EMOJI = regex.compile(
    r"[\p{Extended_Pictographic}--[\u00a9\u00ae\u2122\u2139]][\p{Emoji_Modifier}\ufe0e\ufe0f]*"
    r"|[\U0001f1e6-\U0001f1ff\ufe0e\ufe0f\u200d\u20e3]",
    regex.V1,
)
_EMOTICON = re.compile(r"(?<!\S)(?:[:;=][-o']?[)(DPp/\\|]+|[xX]D+|\^_?\^)(?=[\s.,!?]|$)|(?<=[.!?])\s*<3+(?=\s|$)")
_MARKUP = re.compile(r"(?<![\d\s*])\*{1,3}|\*{1,3}(?![\d\s*])|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)|`+|~~")
_LIST_MARK = re.compile(
    r"(?:[-+>#=\u2022\u00b7\u25aa\u25cf\u25e6\u2023|]+|\(?\d{1,2}[.)]|\(?[a-zA-Z]\)|\[[ xX]?\])\s+"
)
_LABEL = re.compile(
    r"(?:(?:the|my|final|short|full) )*(?:answer|summary|response|reply|output|tl;?dr|note|result|conclusion|a)"
    r"\s*:\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:yes|yeah|yep|sure|certainly|of course|absolutely|ok|okay|well|so|oh|ah|hi|hello|hey|right|indeed"
    r"|actually|basically|essentially|overall|in short|in brief|briefly|in summary|in sum|in conclusion|in essence"
    r"|in fact|in other words|to summari[sz]e|to sum up|all in all|in a nutshell|to be clear|that is|i\.e\.|also"
    r"|moreover|furthermore|in addition|additionally|importantly|notably|thanks|thank you|(?:great|good) question"
    r"|(?:according to|based on|as (?:stated|mentioned|described) in|as per)"
    r" (?:the|this) (?:text|passage|article|document|context|report|dialogue|conversation|information)(?: above)?"
    r")\s*(?:[,:;!]|\.(?=\s)|\s-+\s)\s*"
    r"|(?:so|and|but)\s+(?!(?:far|for|that|much|many|long|as|on|called|what)\b)|(?:please )?note that\s+"
    r"|(?:the|this) (?:text|passage|article|document|report) (?:says|states|mentions|explains) that\s+)",
    re.IGNORECASE,
)
# Whole sentences of chat models about the chat.
_CHATTER = re.compile(
    r"(?:i )?hope (?:this|that|it) (?:helps|is helpful)\b.*|(?:hm+,? )?let me (?:see|know|think|check)\b.*"
    r"|(?:here|below)(?:'s| is| are) (?:a|an|the|my|your)\b[^:]{0,30}\b(?:summary|answer|reply|response)\b[^:]*:?"
    r"|(?:please )?feel free to ask\b.*|(?:thanks|thank you) for (?:asking|your question|reaching out)\b.*"
    r"|you(?: are|'re) welcome\W*|(?:i'm |i am )?(?:happy|glad) to help\b.*|(?:great|good) question\W*"
    r"|is there anything else\b.*",
    re.IGNORECASE,
)
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+|(?<!\w)-(?=\d)|[%$\u20ac\xa3\xa5\xb0<>=+?]")
_END = re.compile(r"[\s.!\u2026\u3002\uff01~*|,;:]+$")
_QUESTION = re.compile(r"\?[\s!?*]*([\"')\]]*)$")
_SPACE_BEFORE = re.compile(r"\s+(?=[.,;:!?)\]])")


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Return a text without special tokens, markup, citations, addresses, emoji and typographic signs.

    Escaped bytes are decoded.
    """
    before = ""
    while before != text:  # marks within marks
        before, text = text, _plain(text)
    return text


def _decoded(escaped: re.Match[str]) -> str:
    """Decode escaped bytes as UTF-8; a single one is the number of a character, as in Latin-1."""
    data = bytes.fromhex(escaped[0].replace("\\x", ""))
    return data.decode("latin-1") if len(data) == 1 else data.decode(errors="ignore")


def _plain(text: str) -> str:
    text = _BYTES.sub(_decoded, text)
    text = _FRACTION.sub(" ", _LINK.sub(r"\1", html.unescape(text)).translate(_SIGNS))
    text = unicodedata.normalize("NFKC", _POWER.sub(r"^\1", _CITATION.sub("", text)))
    for pattern in (_TAG, _ADDRESS, _EMOJI, _EMOTICON):
        text = pattern.sub(" ", text)
    text = _MARKUP.sub("", without_special_tokens(text))
    return _SPACE_BEFORE.sub("", " ".join(text.split()))


@lru_cache(maxsize=4096)
def statement(sentence: str) -> str:
    """Return what a sentence states: without what :func:`plain` takes out, list marks, labels and discourse words.

    It ends with one full stop, or with a question mark. "" where nothing is left.
    """
    before, text = "", sentence
    while before != text:  # what stood behind a mark may be markup at the beginning
        before, text = text, _statement(text)
    return text


def _statement(sentence: str) -> str:
    text = plain(sentence)
    before = ""
    while before != text:  # "- So, in short, ..."
        before = text
        for pattern in (_LIST_MARK, _LABEL, _LEAD):
            text = rest if (match := pattern.match(text)) and (rest := text[match.end() :]).strip() else text
        quoted = _END.sub("", text)
        if quoted[:1] in ("'", '"') and quoted[-1:] == quoted[:1] and quoted.count(quoted[0]) == 2:
            text = plain(quoted[1:-1])
    if _CHATTER.fullmatch(text):
        return ""
    if question := _QUESTION.search(text):
        return f"{text[: question.start()]}?{question[1]}"
    text = _END.sub("", text)
    closing = text[-1:] if text[-1:] in ("'", '"', ")") and text[-2:-1] in (".", "!") else ""
    if closing:
        text = _END.sub("", text[:-1]) + closing
    return f"{text[:1].upper()}{text[1:]}." if plain_words(text) else ""


def is_question(text: str) -> bool:
    """Tell whether a statement, or a sentence, is a question."""
    return bool(_QUESTION.search(text))


def states(premise: str, hypothesis: str) -> bool:
    """Tell whether a premise says a statement word for word: as one of its sentences, or as a whole."""
    return _words(hypothesis) in _said(premise)


@lru_cache(maxsize=1024)
def _said(premise: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_words(statement(text)) for text in (premise, *sentences(premise)))


def _words(text: str) -> tuple[str, ...]:
    """Return words, minus signs and signs of units; other punctuation changes no statement."""
    return tuple(_WORD.findall(text.lower()))
