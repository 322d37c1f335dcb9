"""Texts that are taken out of rows before they are scored: reasoning, special tokens, URLs and hashtags."""

import re
import string

from mars_score.errors import CLEANED, REASONING, TOKEN_LISTS, URLS_REMOVED, special_token_notice
from mars_score.rows import Row

# <think>...</think> and its kin, and the analysis channel of harmony templates.
_TAG = "(think|thinking|thought|reasoning|reflection|scratchpad)"
_REASONING = re.compile(
    rf"<{_TAG}(?:\s+\w+=[^<>]*)?>.*?</\1\s*>"
    r"|<\|channel\|>\s*(?:analysis|commentary)\b.*?(?=<\|channel\|>\s*final\b|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_OPENING = re.compile(rf"<{_TAG}(?:\s+\w+=[^<>]*)?>", re.IGNORECASE)
_CLOSING = re.compile(rf"^.*</{_TAG}\s*>", re.DOTALL | re.IGNORECASE)
# A header names the role of a message and belongs to its special tokens.
_HEADER = re.compile(
    r"<\|(?:im_start|start)\|>[ \t]*(?:system|user|assistant|tool)?[ \t]*\n?"
    r"|<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>\s*"
    r"|<start_of_turn>[ \t]*(?:model|user)?[ \t]*\n?"
    r"|<\|channel\|>\s*final\b(?:\s*<\|message\|>)?",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"<\|[a-z][\w ]{0,30}\|>|</?s>|<(?:pad|unk|mask|bos|eos|sep|cls|end_of_turn)>|\[(?:PAD|UNK|CLS|SEP|MASK)\]"
    r"|\[/?INST\]|<</?SYS>>|<\uff5c[^<>\n]{1,40}\uff5c>",
    re.IGNORECASE,
)


# A URL keeps the punctuation after it in the text; a hashtag has a letter ("#1" is a number), and what
# stands before it distinguishes it from HTML entities ("&#39;") and from the anchors of bare addresses.
_URL = r"(?<!\w)(?:https?://|www\.)\S*[^\s.,!?;:'\")\]]"
_HASHTAG = r"(?<![\w&#/])[#\uff03]+\w*[^\W\d]\w*"
_URL_OR_HASHTAG = re.compile(f"{_URL}|{_HASHTAG}", re.IGNORECASE)
_FEW_TOKENS = 3  # single words that may be a list of tokens


def prepare_row(row: Row, *, clean: bool, strip_urls: bool) -> tuple[Row, frozenset[str]]:
    """Take out of a row what is no part of its texts.

    Args:
        row: checked.
        clean: whether reasoning and special tokens go from candidate and samples.
        strip_urls: whether URLs and hashtags go from candidate and references; from none of them if that would
            leave one without a word.

    Returns:
        The row, and the kinds of notices on what was taken out, or was found and left.
    """
    notices = set()
    if clean:
        candidate, *samples = map(clean_text, (row.candidate, *row.samples))
        if candidate != row.candidate:
            notices.add(CLEANED)
        row = row._replace(candidate=candidate, samples=tuple(dict.fromkeys(filter(None, samples))))
    else:
        notices |= set(map(special_token_notice, special_tokens(row.candidate)))
        if has_reasoning(row.candidate):
            notices.add(REASONING)
    if strip_urls:
        texts = (row.candidate, *row.references)
        stripped = [strip_urls_hashtags(text) for text in texts]
        if tuple(stripped) != texts and all(
            after or not before for before, after in zip(texts, stripped, strict=True)
        ):
            notices.add(URLS_REMOVED)
            row = row._replace(candidate=stripped[0], references=tuple(dict.fromkeys(stripped[1:])))
    if len(row.references) >= _FEW_TOKENS and all(len(text.split()) == 1 for text in row.references):
        notices.add(TOKEN_LISTS)
    return row, frozenset(notices)


def strip_urls_hashtags(text: str) -> str:
    """Take out URLs and hashtags with the white space before them, as the paper cleans its data.

    Returns:
        The rest; "" if it is punctuation alone.
    """
    *before, last = _URL_OR_HASHTAG.split(text)
    if not before:
        return text
    rest = ("".join(part.rstrip() for part in before) + last).strip()
    return rest if rest.strip(string.punctuation + string.whitespace) else ""


def has_reasoning(text: str) -> bool:
    """Tell whether a text holds a reasoning block, closed or not."""
    return bool(_REASONING.search(text) or _OPENING.search(text) or _CLOSING.search(text))


def special_tokens(text: str) -> list[str]:
    """Return the different special tokens of chat templates and tokenizers in a text, in order."""
    return list(dict.fromkeys(token.strip() for token in _TOKEN.findall(text)))


def clean_text(text: str) -> str:
    """Take reasoning blocks and special tokens out of a text; what follows an unclosed opening is no answer."""
    text = _CLOSING.sub("", _REASONING.sub(" ", text))  # templates may leave the opening tag out
    if opening := _OPENING.search(text):
        text = text[: opening.start()]
    return _TOKEN.sub(" ", _HEADER.sub(" ", text)).strip()
