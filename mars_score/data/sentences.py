"""Sentences of a text by their punctuation, the same for everything here that reads a context by the sentence."""

import re
from functools import cache
from typing import Any

_LONGEST_RUN = 1000  # characters without whitespace that rules for punctuation are applied to
_LONGEST = 10**9  # characters; spaCy's own limit of 10**6 is meant for pipelines with a parser
_WITHIN_LINE = re.compile(
    r"(?<=[\u3002\uff01\uff1f])(?![\u3002\uff01\uff1f\u2019\u201d\u300d\u300f)\uff09])|(?<=[.!?]\s)(?=[\u00bf\u00a1])"
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, without outer whitespace; none for a blank text.

    spaCy's rule-based "sentencizer" (https://spacy.io/api/sentencizer): a sentence ends after ".", "!", "?" and
    their like in other scripts, where spaCy's tokenizer sees a token of its own ("U.S." and "3.5" are whole
    tokens); also after full stops of Chinese and Japanese, which no space follows, and before the opening marks of
    Spanish. A line break ends a sentence as well: it stands between the turns of a dialogue. So does what stands
    between the passages of a context, which is a line break to Python.
    """
    lines = (part for line in text.splitlines() for part in _WITHIN_LINE.split(line))
    stripped = (sentence.text.strip() for line in lines for sentence in _pipeline()(line).sents)
    return [sentence for sentence in stripped if sentence]


@cache
def _pipeline() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = _LONGEST
    # spaCy's rules for punctuation take a quadratic time for a long run without whitespace: it is one token.
    usual = pipeline.tokenizer.token_match
    pipeline.tokenizer.token_match = lambda run: len(run) > _LONGEST_RUN or bool(usual and usual(run))
    return pipeline
