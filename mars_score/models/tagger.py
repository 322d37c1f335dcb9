"""Words of a text with their part-of-speech tags, from spaCy."""

import re
import string
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.metadata import version
from typing import Any

from mars_score.cache import ResultStore
from mars_score.lookup import Results
from mars_score.settings.language import ENGLISH, blank_pipeline, find_pipeline, language_code, pipeline_name

_EXCLUDED = ["parser", "ner", "lemmatizer", "senter"]  # tok2vec, tagger and attribute_ruler are needed
_BATCH_SIZE = 64  # documents tagged together; tags do not depend on it (tensors equal to the last bit)
# spaCy's tokenizer takes time quadratic in the length of a run without whitespace ("!!!!..." of 10,000
# characters: 10 s), so longer runs are one word each.
_LONGEST_RUN = 1000
_loading_or_using = threading.RLock()  # threads share pipelines, which spaCy does not promise to be safe
_RULES = 1  # part of the store's keys; raised when the same text and pipeline come to give other words

# A URL keeps the punctuation after it in the text; a hashtag has a letter ("#1" is a number), and what
# stands before it tells HTML entities ("&#39;") and the anchors of bare addresses from it.
_URL = r"(?<!\w)(?:https?://|www\.)\S*[^\s.,!?;:'\")\]]"
_HASHTAG = r"(?<![\w&#/])[#\uff03]+\w*[^\W\d]\w*"
_URL_OR_HASHTAG = re.compile(f"{_URL}|{_HASHTAG}", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    """A word of a text (spaCy's token; whitespace tokens are no words)."""

    text: str
    start: int  # character offsets into the text, end exclusive
    end: int
    pos: str  # universal part-of-speech tag


@dataclass(frozen=True)
class Analysis:
    """A text and its words, in order; outside the words there is only whitespace."""

    text: str
    words: tuple[Word, ...]

    @property
    def lower_words(self) -> tuple[str, ...]:
        """The words lower-cased, as IDF and the comparison with the context see them."""
        return tuple(word.text.lower() for word in self.words)


def prepare_reference(text: str, *, strip_urls_hashtags: bool) -> str:
    """The reference that is masked and scored: without outer whitespace and, if asked, URLs and hashtags.

    These go with the whitespace before them, as the paper cleans its data, unless only punctuation would be left.
    """
    stripped = text.strip()
    if not strip_urls_hashtags:
        return stripped
    *before, last = _URL_OR_HASHTAG.split(stripped)
    rest = ("".join(part.rstrip() for part in before) + last).strip()
    return rest if rest.strip(string.punctuation + string.whitespace) else stripped


class WordAnalyser:
    """Splits texts into words and tags them; the spaCy pipeline is loaded when first needed."""

    def __init__(self, store: ResultStore | None = None, language: str = ENGLISH) -> None:
        self._store = store or ResultStore(None)
        self._language = language

    @cached_property
    def tags(self) -> bool:
        """Whether the words are tagged, as a pipeline is installed."""
        return find_pipeline(self._language) is not None

    @property
    def _nlp(self) -> Any:
        return _load(find_pipeline(self._language), language_code(self._language))

    def analyse(self, texts: Iterable[str]) -> dict[str, Analysis]:
        """The analysis of each different text. PipelineMissingError: no pipeline is installed."""
        return {
            text: Analysis(text, tuple(Word(text[start:end], start, end, pos) for start, end, pos in words))
            for text, words in self._look_up("tagged", texts, self._tag).items()
        }

    def words(self, texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The lower-cased words of each different text, for contexts and IDF corpora: as above, not tagged."""
        split = self._look_up("split", texts, self._split)
        # Contexts are long and share most words: one string object per distinct word keeps them small.
        return {text: tuple(map(sys.intern, words)) for text, words in split.items()}

    def _look_up(
        self, what: str, texts: Iterable[str], compute: Callable[[Sequence[str]], Iterator[list[Any]]]
    ) -> dict[str, list[Any]]:
        """The result of each different text, from the store or computed."""

        def compute_all(missing: list[str], done: Callable[[str, list[Any]], None]) -> None:
            with _loading_or_using:
                for text, words in zip(missing, compute(missing), strict=True):
                    done(text, words)

        def common() -> tuple[Any, ...]:
            return what, _RULES, pipeline_name(self._language), version("spacy")

        return Results("analyses", common, compute_all).read(self._store, texts)

    def _tag(self, texts: Sequence[str]) -> Iterator[list[tuple[int, int, str]]]:
        """Start, end and tag of each word."""
        for doc in self._nlp.pipe(texts, batch_size=_BATCH_SIZE):
            yield [
                (token.idx, token.idx + len(token.text), token.pos_ or ("PUNCT" if token.is_punct else "X"))
                for token in doc
                if not token.is_space
            ]

    def _split(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The words, lower-cased."""
        for doc in self._nlp.tokenizer.pipe(texts):
            yield [str(token.text).lower() for token in doc if not token.is_space]


@cache
def _load(installed: tuple[str, str] | None, code: str) -> Any:
    """A pipeline, or a language's tokenizer alone, loaded once in a process (spaCy takes seconds to import)."""
    import spacy

    nlp = spacy.load(installed[0], exclude=_EXCLUDED) if installed else blank_pipeline(code)
    # The limit guards the memory of the parser and the entity recogniser, which are not loaded.
    nlp.max_length = sys.maxsize
    if hasattr(nlp.tokenizer, "token_match"):  # not where characters are the words
        nlp.tokenizer.token_match = partial(_is_one_word, nlp.tokenizer.token_match)
    return nlp


def _is_one_word(pipeline_rule: Callable[[str], Any] | None, run: str) -> bool:
    """Whether the tokenizer leaves a run without whitespace whole: a long one, or by the pipeline's own rule."""
    return len(run) > _LONGEST_RUN or bool(pipeline_rule and pipeline_rule(run))
