"""Files of rated candidates: read, checked, and sampled by whole groups."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

from mars_score.data.files import Columns, RowFile, read_rows
from mars_score.data.readers import delimiter_of
from mars_score.data.validation import Row
from mars_score.settings.options import TASKS


@dataclass(frozen=True)
class RatedColumns:
    """The names of a file's columns."""

    candidate: str = "candidate"
    reference: str = "references"
    context: str = "context"
    rating: str = "human"
    group: str = "group"
    system: str = "system"
    id: str = "id"
    samples: str | None = None  # None: there are none


@dataclass(frozen=True)
class RatedSet:
    """The rated candidates of a data set, its items, in the order of its file."""

    name: str  # of the data set
    rows: list[Row]  # candidate, references and context of each item
    ratings: list[float]  # by people, larger is better
    # Items of a group share their context and references; they are not independent of each other.
    groups: list[str]
    systems: list[str]  # what wrote the candidates
    ids: list[str]  # labels of the items
    # The different references of the whole file, over which document frequencies are counted, so that a sample's
    # scores are those of the whole.
    corpus: tuple[str, ...]
    notices: tuple[str, ...] = ()  # what was left out or is missing, one sentence each
    # What a candidate is to its context, for MARS; see :class:`mars_score.settings.SamplingSettings`.
    task: str | None = None

    def where(self, kept: Sequence[bool]) -> RatedSet:
        """The items of which ``kept`` is true."""
        names = ("rows", "ratings", "groups", "systems", "ids")
        columns: dict[str, Any] = {name: list(compress(getattr(self, name), kept)) for name in names}
        return replace(self, **columns)

    def sample(self, groups: int) -> RatedSet:
        """At most ``groups`` groups, chosen by the hash of their name: the same in every run and version."""

        def number(group: str) -> str:
            return hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()

        chosen = set(sorted(set(self.groups), key=number)[:groups])
        return self.where([group in chosen for group in self.groups])


def read_rated_set(path: str | os.PathLike[str], columns: RatedColumns | None = None) -> RatedSet:
    """Read a file with one rated candidate per line, a JSON object; the set is named after the file.

    Items without a rating (null, NaN) are left out and counted. Without a column of groups, items with the same
    context and references are a group; without one of systems, all are of one system. Faults of the file raise
    ValueError or TypeError with line and column.
    """
    columns = columns or RatedColumns()
    file = read_rows(path)
    texts = Columns(columns.reference, columns.context, columns.candidate, columns.samples)
    rows = texts.rows(file, required=True)
    ratings = _ratings(file, columns.rating)
    ids = _labels(file, columns.id) or [str(number) for number in range(1, len(rows) + 1)]
    groups, systems = _labels(file, columns.group), _labels(file, columns.system)
    notices = []
    if groups is None:
        notices.append(f"no column {columns.group!r}: items with the same context and references are a group")
        groups = [hashlib.sha256(repr((row.references, row.context)).encode()).hexdigest() for row in rows]
    if systems is None:
        notices.append(f"no column {columns.system!r}: all candidates count as one system's")
        systems = [""] * len(rows)
    unrated = sum(map(math.isnan, ratings))
    if unrated:
        notices.append(f"{unrated} of {len(rows)} items have no rating and are left out")
    if unrated == len(rows):
        raise ValueError(f"{file.path}: no item has a rating in column {columns.rating!r}")
    corpus = tuple(dict.fromkeys(text for row in rows for text in row.references))
    every = RatedSet(Path(path).stem, rows, ratings, groups, systems, ids, corpus, tuple(notices))
    return every.where([not math.isnan(rating) for rating in ratings])


def read_rated_sets(
    paths: Sequence[str | os.PathLike[str]],
    columns: RatedColumns | None = None,
    groups: int | None = None,
    tasks: Mapping[str, str] | None = None,
) -> list[RatedSet]:
    """Read files, of each at most ``groups`` groups; ``tasks`` say, by name of a set, what candidates are."""
    tasks = tasks or {}
    check_names("task", tasks.values(), TASKS)
    check_names("data set", tasks, [Path(path).stem for path in paths])
    if groups is not None and groups < 1:
        raise ValueError(f"the number of groups must be at least 1, got {groups}")
    sets = [replace(data, task=tasks.get(data.name)) for data in (read_rated_set(path, columns) for path in paths)]
    for name, count in Counter(data.name for data in sets).items():
        if count > 1:
            raise ValueError(f"{count} files are named {name}; results are listed by name, so rename one")
    return [data.sample(groups) if groups else data for data in sets]


def check_names(kind: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise ValueError for a name that is not known."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}; choose among: {', '.join(known)}")


def _ratings(file: RowFile, name: str) -> list[float]:
    """A column of ratings, NaN where there is none; in CSV files the number in a cell, unless it is empty."""
    if not any(name in row for row in file.rows):
        file.column(name, remedy="add the ratings or name their column")
    in_cells = delimiter_of(file.path) is not None
    ratings: list[float] = []
    for index, row in enumerate(file.rows):
        value: Any = row.get(name)
        if in_cells:
            with suppress(ValueError):
                value = float(value) if value.strip() else None
        if value is None:
            value = math.nan
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isinf(value):
            fault = f"must be a finite number, or null where there is no rating, got {value!r:.60}"
            raise ValueError(f"{file.place(name)(index)} {fault}")
        ratings.append(float(value))
    return ratings


def _labels(file: RowFile, name: str) -> list[str] | None:
    """A column of labels; None where no row has it."""
    if not any(name in row for row in file.rows):
        return None
    return file.labels(name, remedy="give every row one")
