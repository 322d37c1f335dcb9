"""Words of a text, for all that counts or cuts by words: in Chinese and Japanese each character is one.

Characters are the usual unit where words are not separated by spaces (sacreBLEU's tokenizer "zh", spaCy's default
for Chinese); a run of katakana is one word. Korean has spaces. Thai, Lao, Khmer and Burmese have them between
phrases only, and a phrase counts as a word.
"""

import re

# For a character class: Han characters, their iteration marks, and hiragana.
CJK = "\u3005-\u3007\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_CJK = re.compile(f"[{CJK}]")
# Punctuation belongs to the character that it touches, as it belongs to the word in text with spaces.
_WORD = re.compile(rf"[^\w\s]*[{CJK}][^\w\s]*|[^\s{CJK}]+")
_PLAIN_WORD = re.compile(rf"[{CJK}]|[^\W{CJK}]+")
# The most frequent words of English: two of five in running text, one of ten at most in other languages.
_ENGLISH = frozenset(
    _PLAIN_WORD.findall(
        "the of and to a in is it you that he was for on are with as i his they be at have this from or had by not"
        " but what all were we when your can said there an she which do their if will how out about so has her"
        " would him into my than its no more been who did get after just over also"
    )
)
_FEW = 25  # words of which nothing is concluded
AMONG = 10  # long words before a word among which it is a repetition
LETTERS = 4  # of a long word; most words of fewer are function words, which fluent text repeats, too
_PAIR_OR_WORD = re.compile(rf"(?=([{CJK}]{{2}}))|([^\W{CJK}]+(?:'\w+)?)")


def split_words(text: str) -> list[str]:
    """The words of a text with their punctuation: ``text.split()`` but for Han characters and hiragana."""
    return _WORD.findall(text) if _CJK.search(text) else text.split()


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words that :func:`split_words` gives begin and end among the text's characters."""
    return [word.span() for word in _WORD.finditer(text)]


def plain_words(text: str) -> list[str]:
    r"""The words of a text lower-cased and without punctuation: runs of ``\w``, but for the same characters."""
    return _PLAIN_WORD.findall(text.lower())


def is_english(text: str) -> bool:
    """Whether a text may be English: it is short, or at least a tenth of its words are frequent in English.

    Words with a capital do not count: lists of names are of no language.
    """
    words = [word for word in _PLAIN_WORD.findall(text) if not word[0].isupper()]
    return len(words) < _FEW or sum(word in _ENGLISH for word in words) * 10 >= len(words)


def repetition(text: str) -> float:
    """The share of a text's long words that are among the :data:`AMONG` long words before them, in [0, 1).

    Upper and lower case are the same. Two neighbouring characters of Chinese or Japanese are a long word.
    """
    words = [
        pair or word
        for pair, word in _PAIR_OR_WORD.findall(text.lower().replace("\u2019", "'"))
        if pair or len(word) >= LETTERS
    ]
    repeated = sum(word in words[max(0, place - AMONG) : place] for place, word in enumerate(words))
    return repeated / len(words) if words else 0.0
