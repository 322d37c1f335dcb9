"""Clean rows before they are scored, and recognise candidates that are error messages or placeholders."""

import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from mars_score.errors import Notice, raised
from mars_score.rows import Row

# <think>...</think>, similar tags, and the analysis channel of harmony templates.
_TAG = "think|thinking|thought|reasoning|reflection|scratchpad"
_REASONING_MARK = re.compile(
    rf"<(?P<opening>{_TAG})(?:\s+\w+=[^<>]*)?>|</(?P<closing>{_TAG})\s*>"
    r"|<\|channel\|>\s*(?:(?P<channel>analysis|commentary)|(?P<final>final))\b",
    re.IGNORECASE,
)
# A header names the role of a message. It is removed with its special tokens.
_HEADER = re.compile(
    r"<\|(?:im_start|start)\|>[ \t]*(?:system|user|assistant|tool)?[ \t]*\n?"
    r"|<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>\s*"
    r"|<start_of_turn>[ \t]*(?:model|user)?[ \t]*\n?"
    r"|<\|channel\|>\s*final\b(?:\s*<\|message\|>)?",
    re.IGNORECASE,
)
# Special tokens of BERT, GPT, T5, GLM, Llama, Mistral, Gemma, DeepSeek, Qwen, code models and chat templates.
_ANGLED = (
    r"s|/s|pad|unk|mask|bos|eos|sep|cls|[es]o[dpt]|(?:begin|start|end)_of_(?:turn|text|utterance|image)|think/"
    r"|(?:extra_id|reserved|reserved_token|special|unused)_?\d+|0x[0-9a-f]{2}|fim_(?:prefix|middle|suffix|pad)"
    r"|/?tool_(?:call|calls|response)"
)
_BRACKETED = (
    r"pad|unk|cls|sep|mask|[gs]mask|bos|eos|eot|unused_?\d+|/?inst|/?tool_calls|/?available_tools|/?tool_results"
)
_UNKNOWN = "\u2047"  # what SentencePiece writes for an unknown token
_TOKEN = re.compile(
    rf"<\|[a-z][\w ]{{0,30}}\|>|<(?:{_ANGLED})>|\[(?:{_BRACKETED})\]|<</?SYS>>|<\uff5c[^<>\n]{{1,40}}\uff5c>"
    rf"|{_UNKNOWN}",
    re.IGNORECASE,
)
# Subword pieces left unjoined: of byte-level BPE (U+0120, only within a word or before three words in a row,
# as it is a letter of Maltese), of BPE (@@), of SentencePiece (U+2581) and of WordPiece (##).
_PIECES = re.compile(r"(?<=[^\W\u0120])\u0120\w|(?:(?:^|\s)\u0120\w+){3}|\w@@(?:\s|$)|\u2581\w|\w\s+##\w")
# The punctuation after a URL stays in the text. A hashtag has a letter ("#1" is a number). The character before it
# tells it from HTML entities ("&#39;") and anchors of addresses.
_URL = r"(?<!\w)(?:https?://|www\.)\S*[^\s.,!?;:'\")\]]"
_HASHTAG = r"(?<![\w&#/])[#\uff03]+\w*[^\W\d]\w*"
_URL_OR_HASHTAG = re.compile(f"{_URL}|{_HASHTAG}", re.IGNORECASE)
_FEW_TOKENS = 3  # so many references of one word each look like a list of tokens


def prepare_row(
    row: Row, *, clean: bool, use_context: bool, strip_urls: bool = False
) -> tuple[Row, frozenset[Notice]]:
    """Clean the texts of a checked row, and drop a sample that equals the candidate.

    Args:
        row: a checked row.
        clean: whether to remove reasoning and special tokens from candidate and samples.
        use_context: whether a blank context gets a notice.
        strip_urls: whether to remove URLs and hashtags from candidate and references.

    Returns:
        The cleaned row, and the notices that follow from its texts alone.
    """
    candidate, references, samples = row.candidate, row.references, row.samples
    flags = {}
    if clean:
        candidate, samples = clean_text(candidate), tuple(map(clean_text, samples))
        flags[Notice.CLEANED] = candidate != row.candidate
    else:
        flags[Notice.SPECIAL_TOKENS] = bool(special_tokens(candidate))
        flags[Notice.REASONING] = has_reasoning(candidate)
    flags[Notice.PIECES] = bool(_PIECES.search(candidate))
    if strip_urls:
        before = (candidate, *references)
        after = tuple(map(without_urls_hashtags, before))
        candidate, references = after[0], after[1:]
        flags[Notice.URLS_REMOVED] = after != before
    flags |= {
        Notice.BLANK: not candidate,
        Notice.NO_ANSWER: bool(candidate) and is_placeholder(candidate, references),
        Notice.BLANK_CONTEXT: use_context and not row.context,
        Notice.OWN_SAMPLE: bool(candidate) and candidate in samples,
        Notice.TOKEN_LISTS: len(references) >= _FEW_TOKENS and are_words(references),
    }
    prepared = replace(
        row,
        candidate=candidate,
        references=tuple(dict.fromkeys(references)),
        samples=tuple(dict.fromkeys(text for text in samples if text and text != candidate)),
    )
    return prepared, raised(flags)


def are_words(texts: Sequence[str]) -> bool:
    """Tell whether each text is a single word."""
    return all(len(text.split()) == 1 for text in texts)


def without_urls_hashtags(text: str) -> str:
    """Remove URLs and hashtags from a text, unless it would lose all its words."""
    return strip_urls_hashtags(text) or text


def strip_urls_hashtags(text: str) -> str:
    """Remove URLs and hashtags with the white space before them; return "" if only punctuation is left."""
    *before, last = _URL_OR_HASHTAG.split(text)
    if not before:
        return text
    rest = ("".join(part.rstrip() for part in before) + last).strip()
    return rest if rest.strip(string.punctuation + string.whitespace) else ""


def has_reasoning(text: str) -> bool:
    """Tell whether a text has a reasoning block, closed or not."""
    return any(mark.lastgroup != "final" for mark in _REASONING_MARK.finditer(text))


def special_tokens(text: str) -> list[str]:
    """Return the distinct special tokens of chat templates and tokenizers in a text, in order."""
    return list(dict.fromkeys(token.strip() for token in _TOKEN.findall(text)))


def clean_text(text: str) -> str:
    """Remove reasoning blocks and special tokens, and everything after an unclosed opening tag."""
    text = _without_blocks(text)
    marks = list(_REASONING_MARK.finditer(text))
    # Some chat templates leave the opening tag out of the text.
    start = max((mark.end() for mark in marks if mark["closing"]), default=0)
    end = next((mark.start() for mark in marks if mark["opening"] and mark.start() >= start), len(text))
    return without_special_tokens(text[start:end]).strip()


def _without_blocks(text: str) -> str:
    """Replace each closed reasoning block by a space, in linear time."""
    nearest = {"final": len(text)}  # A channel ends at the final one, or at the end.
    blocks = []
    for mark in reversed(list(_REASONING_MARK.finditer(text))):
        if mark["final"]:
            nearest["final"] = mark.start()
        elif mark["closing"]:
            nearest[mark["closing"].lower()] = mark.end()
        elif end := nearest.get("final" if mark["channel"] else mark["opening"].lower()):
            blocks.append((mark.start(), end))
    kept, position = [], 0
    for start, end in reversed(blocks):
        if start >= position:
            kept.append(text[position:start])
            position = end
    return " ".join([*kept, text[position:]])


def without_special_tokens(text: str) -> str:
    """Replace the special tokens of chat templates and tokenizers by spaces."""
    return _TOKEN.sub(" ", _HEADER.sub(" ", text))


# Texts in place of an answer


_PLACEHOLDERS = (
    *("n/a", "na", "<na>", "null", "none", "nan", "nil", "undefined", "error", "timeout", "[object object]"),
)
_REASONS = (
    "too many requests|internal (?:server )?error|bad gateway|service unavailable|gateway time-?out|bad request"
    "|unauthorized|forbidden|not found|request time-?out|payload too large|client error|server error"
)
_ERROR = re.compile(
    # openai.RateLimitError: ..., Error: 429, ERROR - ..., TimeoutError(), Error code: 500
    r"(?:[a-z]\w*\.)*\w*(?:error|exception|timeout)(?:\s+code)?\s*(?:[:(]|[-\u2013]\s)|error(?:\s+code)?\s+\d{3}\b"
    rf"|(?:(?:http(?:/\d\.\d)?|status(?:\s+code)?|error)[\s:]*)?[45]\d\d[\s:,-]+(?:{_REASONS})"
    rf"|(?:{_REASONS})[.!]?\Z|traceback \(most recent call last\)"
    # I'm sorry, an error occurred. An error occurred while processing your request.
    r"|(?:(?:i'm|i am|we're|we are)\s+)?(?:so |very )?(?:sorry|oops|apologies)[,.!:\s]+(?:but\s+)?(?:there was )?"
    r"(?:an?\s+(?:\w+\s+){0,2}error\b|something went wrong|the request (?:failed|timed out))"
    r"|an?\s+(?:\w+\s+){0,2}error\s+(?:has\s+)?occurred(?:[.!]?\Z|\s+(?:while|during|when|with|processing)\b)"
    r"|something went wrong\b|(?:the )?request (?:timed out|failed|was aborted)\b"
    r"|connection (?:error|refused|reset)\b|you exceeded your current quota"
    r"|(?:the )?(?:\w+ )?(?:rate limit|quota) (?:was |has been )?(?:exceeded|reached)"
    r"|this model's maximum context length|(?:the )?(?:server|model) is (?:currently )?overloaded"
    # {"error": ...}, and pages of errors
    r"|\{\s*[\"'](?:error|detail)[\"']\s*:|<!doctype html|<html\b"
)
_LONGEST_START = 300  # characters that are searched
_QUOTES = "\"'`*[(<\u201c\u2018 "


def is_placeholder(text: str, references: Sequence[str] = ()) -> bool:
    """Tell whether a candidate is an error message, a placeholder such as "N/A", or punctuation alone.

    If a reference of its row is such a text too, the candidate counts as an answer. It must not be blank.
    """
    return _is_placeholder(text) and not any(map(_is_placeholder, references))


def _is_placeholder(text: str) -> bool:
    start = text[:_LONGEST_START].strip().casefold().replace("\u2019", "'")
    if start.strip(string.punctuation + " ") in _PLACEHOLDERS or start in _PLACEHOLDERS:
        return True
    if _ERROR.match(start) or _ERROR.match(start.lstrip(_QUOTES)):
        return True
    return all(
        sign.isspace() or sign in string.punctuation or unicodedata.category(sign).startswith("P") for sign in text
    )
