"""How long a run will take, told from a few of its contexts before it begins."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mars_score.augment.augmented import AugmentedReference
from mars_score.augment.sampling.samples import ContextSampler, make_request
from mars_score.data.validation import Row
from mars_score.runs.input import Input
from mars_score.scoring.evidence import Reader, ScorableRow, needs
from mars_score.scoring.form import Form
from mars_score.settings import Settings
from mars_score.store.lookup import Storage
from mars_score.store.results import digest
from mars_score.store.runtime import Runtime

PART = 512  # rows that are read together
CONTEXTS = 300  # that are looked up in the store
ROWS_OF_CONTEXT = 50  # of each of them, at most
SECONDS = 20.0  # after the first context; when they have passed no further ones are scored
BATCH = 8  # contexts that are scored together after the first one: fewer are slower per context
SHARE, FEWEST = 0.1, 1 + BATCH  # of the contexts in the sample, so many are scored at most
FEW = 3  # contexts, of which single rows tell more


@dataclass(frozen=True)
class Estimate:
    """How long a run will take.

    Attributes:
        rows: of the input.
        kept: share of them whose results are in the store, as told by a sample.
        measured: rows that were scored to find out.
        loading: seconds in which models are loaded.
        new: seconds for a row whose results are not in the store; 0 without such rows.
        old: seconds for one whose results are.
        workers: among which the rows are divided.
    """

    rows: int
    kept: float
    measured: int
    loading: float
    new: float
    old: float
    workers: int

    @property
    def seconds(self) -> float:
        """For all rows, if workers do not slow each other."""
        return self.loading + self.rows * (self.kept * self.old + (1 - self.kept) * self.new) / self.workers

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"seconds": self.seconds, **asdict(self)}


def estimate(
    rows: Input,
    settings: Settings,
    runtime: Runtime,
    score: Callable[[Sequence[Row]], object],
    workers: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Estimate:
    """Read all rows, look a sample of their contexts up in the store, and score a few of both kinds.

    Whole contexts are sampled, as their rows share what is computed. Infills are not looked up, as they depend on
    all references: a row whose other results are stored counts as kept.

    Args:
        rows: the input.
        settings: of the run.
        runtime: of the run.
        score: scores some rows; what it computes is stored.
        workers: processes that share the work.
        clock: in seconds.

    Raises:
        ValueError, TypeError, OSError: see :meth:`Input.parts`; no rows.
    """
    count, groups = _sample(rows)
    if not count:
        raise ValueError(f"{rows.path} has no rows")
    lookup = _Lookup(settings, runtime)
    kept = [all(map(lookup.keeps, group)) for group, _ in groups]
    new, old = (
        [group for (group, _), is_kept in zip(groups, kept, strict=True) if is_kept == want]
        for want in (False, True)
    )
    kept_rows = sum(size for (_, size), is_kept in zip(groups, kept, strict=True) if is_kept)
    most = max(FEWEST, int(SHARE * len(groups)))
    of_new, of_old = (_measure(score, one[:most], clock) for one in (new, old))
    return Estimate(
        count,
        kept_rows / sum(size for _, size in groups),
        of_new.rows + of_old.rows,
        of_new.first + of_old.first,
        of_new.per_row,
        of_old.per_row,
        workers,
    )


def _sample(rows: Input) -> tuple[int, list[tuple[list[Row], int]]]:
    """The number of rows, and contexts drawn by their hash: the first rows of each and the number of all."""
    count = 0
    chosen: dict[bytes, tuple[list[Row], int]] = {}
    largest: list[tuple[int, bytes]] = []  # hashes of those chosen, negative, as a heap
    for part in rows.parts(PART):
        count += len(part.candidates)
        for candidate, context, pairs in zip(part.candidates, part.contexts, part.pairs, strict=True):
            references = tuple(text for _, text in pairs)
            key = digest(context or references)
            if key not in chosen:
                heapq.heappush(largest, (-int.from_bytes(key), key))
                chosen[key] = [], 0
            of_context, size = chosen[key]
            if size < ROWS_OF_CONTEXT:
                of_context.append((candidate, references, context))
            chosen[key] = of_context, size + 1
            if len(chosen) > CONTEXTS:
                del chosen[heapq.heappop(largest)[1]]
    return count, list(chosen.values())


class _MissingError(Exception):
    """Something is not in the store."""


class _Found:
    """A store for which nothing is computed: what is not in it is an error."""

    def __init__(self, store: Storage) -> None:
        self._store, self.folder = store, store.folder

    def get(self, kind: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = self._store.get(kind, keys)
        if len(found) < len(set(keys)):
            raise _MissingError
        return found

    def put(self, kind: str, entries: Mapping[bytes, bytes]) -> None:
        """Nothing is computed."""


class _Lookup:
    """Tells which rows need nothing but the store."""

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self._settings = settings
        runtime = replace(runtime, store=_Found(runtime.store), progress=None)
        self._sampler, self._reader = ContextSampler(settings, runtime), Reader(settings, runtime)

    def keeps(self, row: Row) -> bool:
        """Whether the samples of a row's context, and all that it is scored by, are stored."""
        candidate, texts, context = row
        if not candidate:
            return True
        request = make_request(context, texts, self._settings.sampling)
        references = tuple(AugmentedReference(text, ()) for text in texts)
        try:
            samples = self._sampler.draw([request])[request].texts
            scored = ScorableRow(candidate, references, context, request.task, samples)
            for kind, items in needs(Form.of(self._settings.similarity), scored).items():
                self._reader.read(kind, items)
        except _MissingError:
            return False
        return True


class _Measured(NamedTuple):
    per_row: float  # seconds
    first: float  # seconds that the first rows took more
    rows: int


def _measure(
    score: Callable[[Sequence[Row]], object], groups: Iterable[list[Row]], clock: Callable[[], float]
) -> _Measured:
    """Score one context, then more at a time: the last ones tell the rate, the first what loading takes.

    Of very few contexts single rows in their place.
    """
    left, size = list(groups), 1
    if len(left) < FEW:
        left = [[row] for group in left for row in group][:FEWEST]
    times: list[tuple[float, int]] = []
    while left and sum(seconds for seconds, _ in times[1:]) < SECONDS:
        rows = [row for group in left[:size] for row in group]
        left, size = left[size:], max(BATCH, 2 * size)
        began = clock()
        score(rows)
        times.append((clock() - began, len(rows)))
    if not times:
        return _Measured(0.0, 0.0, 0)
    seconds, count = times[-1]
    rate = seconds / count
    before = sum(seconds - rate * count for seconds, count in times[:-1])
    return _Measured(rate, max(0.0, before), sum(count for _, count in times))
