"""Exceptions, warnings, and notices of rows that were treated in a special way."""

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Notice(Enum):
    """What was special about a row: the value is the message, and the order is that of reports."""

    BLANK = "blank candidates score 0.0; a bad candidate that is not blank can score lower"
    NO_ANSWER = (
        "the candidate is an error message, a placeholder such as N/A or null, or punctuation alone; if a"
        " system failed to answer, leave the row out or count it separately"
    )
    BLANK_CONTEXT = "the context is blank and the row is scored by its references alone"
    CONTEXT_CUT = (
        "the language model did not see the end of the context (see max_context_tokens), or the candidate has more"
        " than 1,024 tokens"
    )
    REFERENCE_CUT = "the reference is longer than the language model's window and its end was not augmented"
    UNTAGGED = "no spaCy pipeline of the language is installed and words are masked whatever their part of speech"
    FEW_DOCUMENTS = (
        "IDF is counted over fewer than 10 different references; give more as idf_corpus (--idf-corpus)"
    )
    TOKEN_LISTS = "all references are single words: a list of tokens? join it, as each entry is a reference"
    CANDIDATE_TOKENS = "all candidates are single words: lists of tokens? join them, as each entry is a candidate"
    REASONING = (
        "the candidate holds reasoning such as <think>, which counts; take it out with clean=True (--clean)"
    )
    SPECIAL_TOKENS = (
        "the candidate holds special tokens such as <|im_end|>, which count; take them out with clean=True"
        " (--clean)"
    )
    PIECES = (
        "the candidate holds pieces of words that a tokenizer split, such as ##ing or to@@, which count as they"
        " are; decode it with the tokenizer"
    )
    CLEANED = "reasoning or special tokens were taken out of the candidate"
    URLS_REMOVED = "URLs and hashtags were taken out of the texts of the row (see strip_urls_hashtags)"
    OWN_SAMPLE = "a sample is the candidate itself and was left out"
    TEXT_CUT = "a text is longer than the sentence encoder's window and its end does not count"
    UNKNOWN = (
        "more than 10% of the tokens of the candidate or a reference are unknown to the sentence encoder and"
        " match nothing"
    )
    NOT_ENGLISH = "the row is not in English, the only language of the NLI model, which does not judge it"
    SENTENCES_CUT = "the NLI model is given the first sentences of the candidate alone (see max_sentences)"
    REFUSAL = (
        "the candidate says that the text does not tell something, or that it cannot answer; such sentences are"
        " neither supported nor contradicted"
    )
    FRAGMENT = (
        "a sentence of the candidate has no verb, such as a short answer, and only its numbers and negations are"
        " checked"
    )
    CONTRADICTED = "the candidate probably contradicts its context or a reference"

    @property
    def message(self) -> str:
        """Return the message."""
        return self.value


_OF_ALL = (Notice.TOKEN_LISTS, Notice.CANDIDATE_TOKENS)  # reported only if all rows have them
_NAMED = 5  # maximum rows that a sentence names
# Packages between the caller's line and MARS. Warnings point at the caller's line.
_BETWEEN = {
    *("mars_score", "mars_metric", "evaluate", "evaluate_modules", "torchmetrics", "torch", "transformers"),
    *("contextlib", "functools", "threading", "concurrent"),
}


def raised(flags: Mapping[Notice, Any]) -> frozenset[Notice]:
    """Return the notices whose flag is true."""
    return frozenset(notice for notice, flag in flags.items() if flag)


class ModelUnavailableError(OSError):
    """A model could not be loaded: the Hub is out of reach, or a wheel or an extra is missing."""


class UnsupportedModelError(ValueError):
    """A model was loaded but lacks something that MARS needs (see the message)."""


class HeadError(ValueError):
    """A learned head is damaged, or was trained with other models or settings."""


class ColumnError(ValueError):
    """A column is missing or ambiguous. The surface adds how a user names a column.

    Attributes:
        holds: what the columns should contain, such as "reference".
    """

    def __init__(self, message: str, holds: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.holds = tuple(holds)


class WorkerError(RuntimeError):
    """A worker process died. Its finished work is in the store."""


class MarsWarning(UserWarning):
    """Some rows were treated in a special way, such as blank ones. There is one warning per kind and call."""


def warn(message: str) -> None:
    """Issue a MarsWarning that points at the line that called MARS, directly or through another library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MarsWarning, stacklevel=level)


@contextmanager
def extra_meta() -> Iterator[None]:
    """Name the extra ``meta`` if a package cannot be imported in the block."""
    try:
        yield
    except ModuleNotFoundError as fault:
        raise ImportError(f"{fault.name} is not installed; run: pip install 'mars-score[meta]'") from fault


def brief(value: object) -> str:
    """Return the type of a value and the start of its representation, for error messages."""
    try:
        return f"{type(value).__name__} ({value!r:.60})"
    except RecursionError:
        return f"{type(value).__name__} (nested too deeply to be shown)"


@dataclass(frozen=True)
class Place:
    """Names a row of a column in errors, such as ``references[3]``.

    Attributes:
        first: number of the first row.
        names: the user's names of columns, where they differ.
    """

    first: int = 0
    names: Mapping[str, str] = field(default_factory=dict)

    def of(self, column: str, row: int) -> str:
        """Return the name of a row, which is counted from 0."""
        return f"{self.names.get(column, column)}[{self.first + row}]"


BY_INDEX = Place()


@dataclass
class Notices:
    """Counts notices over the rows of a call or a run.

    Attributes:
        rows: number of rows. A row counts once for each of its candidates.
        counts: number of rows by notice.
        first: the first rows of each notice, counted from 0, one more than are named.
    """

    rows: int = 0
    counts: Counter[Notice] = field(default_factory=Counter)
    first: dict[Notice, list[int | str]] = field(default_factory=dict)

    def add(self, row: int | str, notices: Iterable[Notice]) -> None:
        """Count the notices of the next row, given by number or name."""
        self.rows += 1
        for notice in notices:
            self.counts[notice] += 1
            first = self.first.setdefault(notice, [])
            if row not in first and len(first) <= _NAMED:
                first.append(row)

    def sentences(self, *, lines: bool = False) -> dict[Notice, str]:
        """Write a sentence for each notice. Rows are counted from 0 or, as ``lines`` of a file, from 1."""
        have_names = any(isinstance(row, str) for rows in self.first.values() for row in rows)
        unit = "line " if lines else "" if have_names else "index "
        sentences = {}
        for notice in Notice:
            count, first = self.counts[notice], self.first.get(notice, [])
            if not count or (notice in _OF_ALL and count < self.rows):
                continue
            named = ", ".join(row if isinstance(row, str) else str(row + lines) for row in first[:_NAMED])
            more = ", ..." if len(first) > _NAMED else ""
            sentences[notice] = f"{notice.message}: {count} of {self.rows} rows ({unit}{named}{more})"
        return sentences
