"""Recognise texts that stand in place of an answer: error messages, placeholders, punctuation alone."""

import re
import string
import unicodedata
from collections.abc import Sequence

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
