"""Split texts into sentences."""

import re
from functools import cache
from typing import Any

from mars_score.text import leave_long_runs_whole

_ONE_SENTENCE = re.compile(r"[\w\s,;:'\"()-]*[.!?]?\s*")  # a line that is a single sentence
# Ends of sentences that spaCy does not see: after a full stop of Chinese and Japanese, unless a closing quotation
# mark or another stop follows, and before an opening mark of Spanish.
_SENTENCE_END = re.compile(
    r"(?<=[\u3002\uff01\uff1f])(?![\u3002\uff01\uff1f\u2019\u201d\u300d\u300f)\uff09])|(?<=[.!?]\s)(?=[\u00bf\u00a1])"
)


def sentences(text: str) -> list[str]:
    """Split a text into sentences without outer white space; none for a blank text.

    spaCy's rule-based sentencizer (https://spacy.io/api/sentencizer) ends a sentence after ".", "!", "?" and
    their like in other scripts where they are tokens by themselves ("U.S." and "3.5" are whole tokens). Full stops
    of Chinese and Japanese, opening marks of Spanish, line breaks and passage breaks also separate sentences.
    """
    parts: list[str] = []
    for piece in (piece for line in text.splitlines() for piece in _SENTENCE_END.split(line)):
        is_sentence = _ONE_SENTENCE.fullmatch(piece)  # Most are, and spaCy takes a millisecond.
        parts += [piece] if is_sentence else (sentence.text for sentence in _sentencizer()(piece).sents)
    return [part.strip() for part in parts if part.strip()]


@cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**9  # characters; spaCy's limit is meant for pipelines with a parser
    leave_long_runs_whole(pipeline.tokenizer)
    return pipeline
