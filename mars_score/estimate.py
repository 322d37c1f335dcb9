"""How long a run over a file takes: by the store, what is left to compute; by a sample of the rows, how fast."""

from __future__ import annotations

import heapq
import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from mars_score.cache import KINDS, Codec, Done, Item, Value, digest, item_keys
from mars_score.data.files import Columns
from mars_score.model_calls import ModelCalls
from mars_score.rows import Entailment, LogProbability, Row
from mars_score.runs import InputFile
from mars_score.scorer import MarsScorer

SAMPLE_ROWS = 16  # scored together to measure a speed
SAMPLE_SECONDS = 5.0  # after which no more rows are scored for it
_POOL = 512  # rows from which the sample is drawn
_ENTRY_BYTES = 130  # of the store for a value's key and its place in an index, beside the value
_READINGS = {"log_probabilities": 2}  # how often a text is read: given its context, and alone


@dataclass
class CallEstimate:
    """What one kind of model call takes.

    Attributes:
        items: different texts or pairs of texts.
        missing: those of them that are not in the store.
        characters: of the missing ones; one that is read twice counts twice.
        seconds: that they take.
        bytes: that they take in the store.
    """

    items: int = 0
    missing: int = 0
    characters: int = 0
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True)
class RunEstimate:
    """What a run takes in one process, with the store as it is now.

    Attributes:
        rows: of the file, one for each candidate.
        calls: by kind of model call, those that the run makes.
        loading: seconds in which the models are loaded that are needed.
        rest: seconds of all else: reading, checking, and the arithmetic of scores.
        memory: bytes of this process at its peak, which scored a sample; on a GPU its own memory is not counted.
    """

    rows: int
    calls: Mapping[str, CallEstimate]
    loading: float
    rest: float
    memory: int

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole run."""
        return self.loading + self.rest + sum(call.seconds for call in self.calls.values())

    @property
    def disk(self) -> int:
        """Return the bytes by which the store grows."""
        return sum(call.bytes for call in self.calls.values())

    def to_dict(self) -> dict[str, Any]:
        """Return all figures for JSON."""
        return {**asdict(self), "seconds": self.seconds, "disk": self.disk}


def estimate(path: str, columns: Columns, arguments: Mapping[str, Any], chunk_size: int = 256) -> RunEstimate:
    """Estimate what scoring a file takes; what the models compute for the sample is saved in the store.

    Args:
        path: of the file.
        columns: their names.
        arguments: of :class:`MarsScorer`.
        chunk_size: rows scored together.

    Raises:
        TypeError, ValueError: a row cannot be used, named with its line; or as of :class:`MarsScorer`.
        ModelUnavailableError: a model is needed and cannot be loaded.
    """
    began = time.perf_counter()
    scorer = _CountingScorer(**arguments)
    scorer.check_inputs(columns.reference, columns.samples)
    chunks = InputFile(path, columns, scorer.settings.task).chunks(chunk_size)
    rows, pool = _count(scorer, (chunk.rows for chunk in chunks))
    rest = time.perf_counter() - began
    found = scorer.calls.found
    measured, loading = _measure(pool, arguments, found)
    left = {kind: _left(call, measured[kind]) for kind, call in found.items() if call.items}
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return RunEstimate(rows, left, loading, rest, usage)


def _count(scorer: _CountingScorer, chunks: Iterable[Sequence[Row]]) -> tuple[int, list[Row]]:
    """Count rows and model calls; return the number of rows, and a random choice of those that need a model."""
    calls, rows, generator = scorer.calls, 0, random.Random(0)
    pool: list[tuple[float, int, Row]] = []
    for chunk in chunks:
        calls.new_texts.clear()
        scorer.score_rows(chunk)
        needing = [row for row in chunk if calls.new_texts & {row.candidate, row.context, *row.references}]
        numbered = enumerate(needing or (chunk if calls.new_texts else ()), rows)
        pool = heapq.nsmallest(_POOL, [*pool, *((generator.random(), number, row) for number, row in numbered)])
        rows += len(chunk)
    return rows, [row for _, _, row in pool]


def _measure(
    rows: Sequence[Row], arguments: Mapping[str, Any], needed: Mapping[str, CallEstimate]
) -> tuple[dict[str, CallEstimate], float]:
    """Score rows until there are figures; return what they took, and the seconds in which models were loaded."""
    scorer = _TimedScorer(**arguments)
    began = time.perf_counter()
    for kind, call in needed.items():
        if call.missing:
            scorer.calls.load(kind)
    loaded = time.perf_counter()
    for start in range(0, len(rows), SAMPLE_ROWS):
        scorer.score_rows(rows[start : start + SAMPLE_ROWS])
        if time.perf_counter() - loaded > SAMPLE_SECONDS:
            break
    return scorer.calls.found, loaded - began


def _left(all_of_them: CallEstimate, sample: CallEstimate) -> CallEstimate:
    """Extrapolate from the sample to those that are left, by their characters."""
    characters = max(0, all_of_them.characters - sample.characters)
    share = characters / max(1, sample.characters)
    return CallEstimate(
        all_of_them.items,
        max(0, all_of_them.missing - sample.missing),
        characters,
        share * sample.seconds,
        round(share * sample.bytes),
    )


def _count_characters(kind: str, items: Iterable[Any]) -> int:
    """Count what a model reads: a context or premise once for all its texts."""
    if kind == "encodings":
        return sum(map(len, items))
    pairs = [(item[0], item[1]) for item in items]
    firsts = sum(map(len, {first for first, _ in pairs}))
    return firsts + _READINGS.get(kind, 1) * sum(len(text) for _, text in pairs)


class _CountingCalls(ModelCalls):
    """Counts the items that are not in the store, and returns a made-up value for each one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found = {kind: CallEstimate() for kind in KINDS}
        self.new_texts: set[str] = set()  # parts of items that are missing
        self._known: set[bytes] = set()  # keys of items

    def _cached(
        self,
        kind: str,
        name: str,
        method: Sequence[Any],
        items: Iterable[Any],
        compute: Any,
        codec: Codec[Any],
        stage: str = "",
    ) -> dict[Any, Any]:
        different, found = list(dict.fromkeys(items)), self.found[kind]
        common = self._common(kind, name, method)
        keys = item_keys(common or [kind, *method], different)
        stored = self.runtime.store.get(kind, list(keys.values())) if common else {}
        fresh = [item for item in different if keys[item] not in self._known]
        missing = [item for item in fresh if keys[item] not in stored]
        self._known.update(keys.values())
        found.items += len(fresh)
        found.missing += len(missing)
        found.characters += _count_characters(kind, missing)
        self.new_texts.update(*((item,) if isinstance(item, str) else item[:2] for item in missing))
        values = {item: _MADE_UP[kind](item) for item in different}
        if kind == "infills":  # which are encoded in turn
            values |= {item: codec.decode(stored[key]) for item, key in keys.items() if key in stored}
        return values


class _TimedCalls(ModelCalls):
    """Measures what is computed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found = {kind: CallEstimate() for kind in KINDS}

    def _cached(
        self,
        kind: str,
        name: str,
        method: Sequence[Any],
        items: Iterable[Item],
        compute: Callable[[list[Item], Done[Item, Value]], object],
        codec: Codec[Value],
        stage: str = "encode",
    ) -> dict[Item, Value]:
        found = self.found[kind]

        def timed(missing: list[Item], done: Done[Item, Value]) -> None:
            began = time.perf_counter()
            compute(missing, done)
            found.seconds += time.perf_counter() - began
            found.missing += len(missing)
            found.characters += _count_characters(kind, missing)

        def encode(value: Value) -> bytes:
            encoded = codec.encode(value)
            found.bytes += len(encoded) + _ENTRY_BYTES
            return encoded

        return super()._cached(kind, name, method, items, timed, replace(codec, encode=encode), stage)


class _CountingScorer(MarsScorer):
    _head = None  # a learned head would read the values

    @cached_property
    def calls(self) -> _CountingCalls:
        return _CountingCalls(self.settings.models, self.runtime)


class _TimedScorer(MarsScorer):
    @cached_property
    def calls(self) -> _TimedCalls:
        return _TimedCalls(self.settings.models, self.runtime)


def _random_encoding(text: str) -> Any:
    import numpy as np

    from mars_score.models.encoder import Encoding

    vector = np.frombuffer(digest(text), np.int8).astype(np.float32)  # so that sentences have different premises
    return Encoding(vector, vector[None], False, 0.0)


def _unfilled(item: Any) -> Any:
    from mars_score.infilling.jobs import FilledTemplate

    _, reference, blanks = item
    return FilledTemplate(f"{reference} {len(blanks)}", False, False)  # a text of its own


_MADE_UP: dict[str, Callable[[Any], Any]] = {
    "encodings": _random_encoding,
    "log_probabilities": lambda _: LogProbability(0.0, 0.0),
    "entailments": lambda _: Entailment(0.0, 0.0),
    "infills": _unfilled,
}
