"""Words of a text, for all that counts or cuts by words: in Chinese and Japanese each character is one.

Characters are the usual unit where words are not separated by spaces (sacreBLEU's tokenizer "zh", spaCy's default
for Chinese); a run of katakana is one word. Korean has spaces. Thai, Lao, Khmer and Burmese have them between
phrases only, and a phrase counts as a word.
"""

from __future__ import annotations

import re

# For a character class: Han characters, their iteration marks, and hiragana.
CJK = "\u3005-\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_CJK = re.compile(f"[{CJK}]")
# Punctuation belongs to the character that it touches, as it belongs to the word in text with spaces.
_WORD = re.compile(rf"[^\w\s]*[{CJK}][^\w\s]*|[^\s{CJK}]+")
_PLAIN_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+")


def split_words(text: str) -> list[str]:
    """The words of a text with their punctuation: ``text.split()`` but for Han characters and hiragana."""
    return _WORD.findall(text) if _CJK.search(text) else text.split()


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words that :func:`split_words` gives begin and end among the text's characters."""
    return [word.span() for word in _WORD.finditer(text)]


def plain_words(text: str) -> list[str]:
    r"""The words of a text lower-cased and without punctuation: runs of ``\w``, but for the same characters."""
    return _PLAIN_WORD.findall(text.lower())
