"""Exceptions and warnings, and notices: how many rows were treated in a special way, and which ones."""

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

BLANK = "blank candidates score 0.0, although wrong ones can score less"
BLANK_CONTEXT = "the context is blank and the row is scored by its references alone"
CONTEXT_CUT = (
    "the end of the context (see max_context_tokens), or of a candidate of over 1,024 tokens, is beyond what the "
    "language model is given"
)
REFERENCE_CUT = "the reference is longer than the language model's window and its end was not augmented"
CONTRADICTED = "the candidate probably contradicts its context or a reference"
NOT_ENGLISH = "the row is not in English, the only language of the NLI model, which does not judge it"
SENTENCES_CUT = "the NLI model is given the first sentences of the candidate alone (see max_sentences)"
UNTAGGED = "no spaCy pipeline of the language is installed and words are masked whatever their part of speech"
FEW_DOCUMENTS = "IDF is counted over fewer than 10 different references; give more as idf_corpus (--idf-corpus)"
OWN_SAMPLE = "a sample is the candidate itself and was left out"
TOKEN_LISTS = "all references are single words: a list of tokens? join it, as each entry is a reference"
CANDIDATE_TOKENS = "all candidates are single words: lists of tokens? join them, as each entry is a candidate"
REASONING = "the candidate holds reasoning such as <think>, which counts; take it out with clean=True (--clean)"
CLEANED = "reasoning or special tokens were taken out of the candidate"
URLS_REMOVED = "URLs and hashtags were taken out of the texts of the row (see strip_urls_hashtags)"
TEXT_CUT = "a text is longer than the sentence encoder's window and its end does not count"
UNKNOWN = (
    "more than 10% of the tokens of the candidate or a reference are unknown to the sentence encoder and match "
    "nothing"
)
# In the order in which they are reported.
NOTICES = (
    *(BLANK, BLANK_CONTEXT, CONTEXT_CUT, REFERENCE_CUT, UNTAGGED, FEW_DOCUMENTS),
    *(TOKEN_LISTS, REASONING, CLEANED, URLS_REMOVED, OWN_SAMPLE, TEXT_CUT, UNKNOWN),
    *(NOT_ENGLISH, SENTENCES_CUT, CONTRADICTED),
)
_NAMED = 5  # rows that a sentence names
# Packages that may stand between a caller's line and MARS.
_BETWEEN = {
    *("mars_score", "mars_metric", "evaluate", "evaluate_modules", "torchmetrics", "torch", "transformers"),
    *("contextlib", "functools", "threading", "concurrent"),
}


def special_token_notice(token: str) -> str:
    """Make the kind of notice on a special token of a chat template or tokenizer in a candidate."""
    return f"the candidate holds the special token {token}, which counts; take it out with clean=True (--clean)"


class ModelUnavailableError(OSError):
    """A model could not be loaded: the Hub is out of reach, or a wheel or an extra is missing."""


class UnsupportedModelError(ValueError):
    """A model was loaded but lacks something that MARS needs (see the message)."""


class HeadError(ValueError):
    """A learned head is damaged, or was trained with other models or settings; names file and fault."""


class WorkerError(RuntimeError):
    """A process that did a part of the work died; what it had done is in the store."""


class MarsWarning(UserWarning):
    """Some rows were treated in a special way (blank, shortened); one warning per kind and call."""


def warn(message: str) -> None:
    """Issue a MarsWarning that points at the line that called MARS, directly or through another library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MarsWarning, stacklevel=level)


def brief(value: Any) -> str:
    """Return the type of a value and the start of its representation, for an error."""
    try:
        return f"{type(value).__name__} ({value!r:.60})"
    except RecursionError:
        return f"{type(value).__name__} (nested too deeply to be shown)"


@dataclass
class Notices:
    """Counts over the rows of a call or a run.

    Attributes:
        rows: number of rows; one with several candidates counts once for each.
        counts: number of rows by kind of notice.
        first: the first of these rows, counted from 0, and one more than is named.
    """

    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[int | str]] = field(default_factory=dict)

    def add(self, number: int | str, notices: Iterable[str]) -> None:
        """Count the next row, which is named by its number or otherwise, and its kinds of notices."""
        self.rows += 1
        for what in notices:
            self.counts[what] += 1
            first = self.first.setdefault(what, [])
            if number not in first and len(first) <= _NAMED:
                first.append(number)

    def sentences(self, *, lines: bool = False) -> tuple[str, ...]:
        """Write one sentence per kind of notice; rows are counted from 0, or as the lines of a file from 1."""
        kinds = [*NOTICES, *sorted(self.counts.keys() - set(NOTICES))]
        sentences = []
        unit = "" if any(isinstance(row, str) for rows in self.first.values() for row in rows) else "index "
        unit = "line " if lines else unit
        for kind in kinds:
            count = self.counts[kind]
            if not count or (kind == TOKEN_LISTS and count < self.rows):
                continue
            named = ", ".join(
                row if isinstance(row, str) else str(row + lines) for row in self.first[kind][:_NAMED]
            )
            more = ", ..." if len(self.first[kind]) > _NAMED else ""
            sentences.append(f"{kind}: {count} of {self.rows} rows ({unit}{named}{more})")
        return tuple(sentences)
