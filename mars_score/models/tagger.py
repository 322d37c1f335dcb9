"""Words of a text with their part-of-speech tags, from spaCy, which is imported when first needed."""

import sys
import threading
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

from mars_score.language import ENGLISH, blank_pipeline, find_pipeline, language_code
from mars_score.text import TaggedWord, leave_long_runs_whole

_EXCLUDED = ["parser", "ner", "lemmatizer", "senter"]  # tok2vec, tagger and attribute_ruler are needed
_BATCH_SIZE = 64  # documents that are tagged together; tags do not depend on it (tensors equal to the last bit)
_loading_or_using = threading.RLock()  # threads share pipelines, which spaCy does not promise to be safe


class Tagger:
    """Splits texts into words (spaCy's tokens but for white space) and tags them.

    Args:
        language: a language code of spaCy, or the name of an installed pipeline.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        self.language = language

    @cached_property
    def tags(self) -> bool:
        """Whether a pipeline is installed, which tags words; else all tags are X or PUNCT.

        Raises:
            PipelineMissingError: there is none for English.
        """
        return find_pipeline(self.language) is not None

    def tag(self, texts: Iterable[str]) -> dict[str, tuple[TaggedWord, ...]]:
        """Split each different text into tagged words; only white space lies outside them.

        Raises:
            PipelineMissingError: there is no pipeline for English, or no package that spaCy needs for a language.
        """
        different = list(dict.fromkeys(texts))
        with _loading_or_using:
            docs = self._pipeline().pipe(different, batch_size=_BATCH_SIZE)
            return {text: _tagged_words(doc) for text, doc in zip(different, docs, strict=True)}

    def words(self, texts: Iterable[str], *, lower: bool = True) -> dict[str, tuple[str, ...]]:
        """Split each different text into the same words, lower-cased or as they are, without tagging them.

        Texts are long and share most words: one string object for each different word keeps them small.

        Raises:
            PipelineMissingError: as for :meth:`tag`.
        """
        different, cased = list(dict.fromkeys(texts)), str.lower if lower else str
        with _loading_or_using:
            docs = self._pipeline().tokenizer.pipe(different)
            return {
                text: tuple(sys.intern(cased(token.text)) for token in doc if not token.is_space)
                for text, doc in zip(different, docs, strict=True)
            }

    def _pipeline(self) -> Any:
        return _load(find_pipeline(self.language), language_code(self.language))


def _tagged_words(doc: Any) -> tuple[TaggedWord, ...]:
    return tuple(
        TaggedWord(token.idx, token.idx + len(token.text), token.pos_ or ("PUNCT" if token.is_punct else "X"))
        for token in doc
        if not token.is_space
    )


@cache
def _load(installed: tuple[str, str] | None, code: str) -> Any:
    """Load a pipeline, or a language's tokenizer alone, once in a process: spaCy takes seconds to import."""
    import spacy

    pipeline = spacy.load(installed[0], exclude=_EXCLUDED) if installed else blank_pipeline(code)
    # The limit guards the memory of the parser and the entity recogniser, which are not loaded.
    pipeline.max_length = sys.maxsize
    if hasattr(pipeline.tokenizer, "token_match"):  # It is missing where characters are the words.
        leave_long_runs_whole(pipeline.tokenizer)
    return pipeline
