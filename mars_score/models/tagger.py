"""Split texts into words and tag their parts of speech with spaCy."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from mars_score.language import ENGLISH, blank_pipeline, find_pipeline, language_code
from mars_score.locks import ForkSafeLock
from mars_score.text import TaggedWord

_EXCLUDED = ["parser", "ner", "lemmatizer", "senter"]  # tok2vec, tagger and attribute_ruler are needed
_LONGEST_RUN = 1000  # A longer run without spaces becomes one token, as spaCy's rules take quadratic time.
_BATCH_SIZE = 64  # texts that are tagged together; tags do not depend on it
_spacy_lock = ForkSafeLock()  # Threads share pipelines, which spaCy does not declare thread-safe.


@dataclass
class Tagger:
    """Splits texts into words (spaCy's tokens except white space) and tags them.

    Attributes:
        language: a language code of spaCy, or the name of an installed pipeline.
    """

    language: str = ENGLISH

    @cached_property
    def tags(self) -> bool:
        """Whether a pipeline that tags words is installed. Without one all tags are X or PUNCT.

        Raises:
            PipelineMissingError: the language is English and has no pipeline.
        """
        return find_pipeline(self.language) is not None

    def tag(self, texts: Iterable[str]) -> dict[str, tuple[TaggedWord, ...]]:
        """Split each different text into tagged words, without white space.

        Raises:
            PipelineMissingError: English has no pipeline, or spaCy needs another package for the language.
        """
        different = list(dict.fromkeys(texts))
        with _spacy_lock:
            docs = self._pipeline().pipe(different, batch_size=_BATCH_SIZE)
            return {text: _tagged_words(doc) for text, doc in zip(different, docs, strict=True)}

    def words(self, texts: Iterable[str], *, lower: bool = True) -> dict[str, tuple[str, ...]]:
        """Split each different text into the words of :meth:`tag`, without tags, lower-cased if ``lower``.

        Raises:
            PipelineMissingError: as for :meth:`tag`.
        """
        different, cased = list(dict.fromkeys(texts)), str.lower if lower else str
        with _spacy_lock:
            docs = self._pipeline().tokenizer.pipe(different)
            return {  # Interning saves memory, as texts share most words.
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
    """Load a pipeline, or a language's tokenizer alone, once per process."""
    import spacy  # takes seconds

    pipeline = spacy.load(installed[0], exclude=_EXCLUDED) if installed else blank_pipeline(code)
    # The limit guards the memory of the parser and the entity recogniser, which are not loaded.
    pipeline.max_length = sys.maxsize
    if hasattr(pipeline.tokenizer, "token_match"):  # Tokenizers that split by character have none.
        match = pipeline.tokenizer.token_match
        pipeline.tokenizer.token_match = lambda run: len(run) > _LONGEST_RUN or bool(match and match(run))
    return pipeline
