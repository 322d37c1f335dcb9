"""Sets of rated candidates: read from files, checked, and sampled by whole groups."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from mars_score.data.columns import NAMES, Columns, RawRows, find_title
from mars_score.data.frames import get_field
from mars_score.data.reading import read_rows
from mars_score.options import unknown_name
from mars_score.rows import TASKS, Row

# Default names of columns by what they contain. Only the ratings are required.
RATED_COLUMNS = {"rating": "human", "group": "group", "system": "system", "id": "id", "single": "individual"}
_NO_LISTS = "cells cannot hold lists of single ratings; write the rows as JSON lines"
SingleRatings = Mapping[str, Sequence[float]]  # each rater's rating by aspect, NaN where missing


@dataclass(frozen=True)
class RatedSet:
    """The rated candidates of a data set, called items, in the order of the file.

    Attributes:
        name: name of the data set.
        rows: candidate, references and context of each item.
        ratings: human ratings, larger is better.
        groups: labels of groups. Items of a group share context and references, and are not independent.
        systems: labels of the systems that wrote the candidates.
        ids: labels of the items.
        corpus: the different references of the whole file, for document frequencies. Samples keep it, so that
            their items score as in the whole set.
        notices: a sentence for each thing that was left out or is missing.
        single_ratings: single ratings of each item, or [] if the file has none.
    """

    name: str
    rows: list[Row]
    ratings: list[float]
    groups: list[str]
    systems: list[str]
    ids: list[str]
    corpus: tuple[str, ...]
    notices: tuple[str, ...] = ()
    single_ratings: list[SingleRatings] = field(default_factory=list)

    def where(self, kept: Sequence[bool]) -> RatedSet:
        """Return the items where ``kept`` is true."""
        names = ("rows", "ratings", "groups", "systems", "ids", "single_ratings")
        columns: dict[str, Any] = {name: list(compress(getattr(self, name), kept)) for name in names}
        return replace(self, **columns)

    def sample(self, groups: int) -> RatedSet:
        """Return the items of at most ``groups`` groups, those whose labels have the lowest hashes."""
        hashed = {hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest(): group for group in self.groups}
        chosen = {hashed[key] for key in sorted(hashed)[:groups]}
        return self.where([group in chosen for group in self.groups])


def read_rated_set(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None, task: str | None = None
) -> RatedSet:
    """Read a file with one rated candidate per row. The set is named after the file.

    Items without a rating (null, NaN) are left out and counted. Without a column of groups, items with the same
    context and references form a group. Without a column of systems, all items are of one system.

    Args:
        path: the file.
        columns: names of its columns by what they contain, which is in :data:`RATED_COLUMNS` or as for
            :meth:`mars_score.MarsScorer.score_table`. ``doc.question`` is in the objects of a column ``doc``.
        task: task of items without one in the file (see :data:`mars_score.rows.TASKS`). None derives it from the
            type of the context.

    Raises:
        TypeError, ValueError: the file is faulty. Line and column are named.
    """
    columns = columns or {}
    for name in columns:
        if name not in (*NAMES, *RATED_COLUMNS):
            raise unknown_name("column", name, (*NAMES, *RATED_COLUMNS))
    file = read_rows(path)
    texts = {name: title for name, title in columns.items() if name in NAMES}
    rows = Columns.named(texts).rows(file, task=task)
    title = columns.get("rating", RATED_COLUMNS["rating"])
    ratings = _ratings(file, title)
    rated = [not math.isnan(rating) for rating in ratings]
    if not any(rated):
        raise ValueError(f"{file.path}: no item has a rating in column {title!r}")
    groups, systems = _labels(file, columns, "group"), _labels(file, columns, "system")
    whole = RatedSet(
        Path(path).stem,
        rows,
        ratings,
        groups or [hashlib.sha256(repr((row.references, row.prompt)).encode()).hexdigest() for row in rows],
        systems or [""] * len(rows),
        _labels(file, columns, "id") or [str(number) for number in range(1, len(rows) + 1)],
        corpus=tuple(dict.fromkeys(text for row in rows for text in row.references)),
        notices=tuple(_notices(file, groups, systems, rated)),
        single_ratings=_single_ratings(file, columns.get("single")),
    )
    return whole.where(rated)


def _notices(
    file: RawRows,
    groups: list[str] | None,
    systems: list[str] | None,
    rated: Sequence[bool],
) -> Iterator[str]:
    if groups is None:
        yield f"no column {RATED_COLUMNS['group']!r}: items with the same context and references are a group"
    if systems is None:
        yield f"no column {RATED_COLUMNS['system']!r}: all candidates count as one system's"
    if file.in_cells and file.has(RATED_COLUMNS["single"]):
        yield f"column {RATED_COLUMNS['single']!r} is not read: {_NO_LISTS}"
    if not all(rated):
        yield f"{rated.count(False)} of {len(rated)} items have no rating and are left out"


def read_rated_sets(
    paths: Sequence[str | os.PathLike[str]],
    columns: Mapping[str, str] | None = None,
    groups: int | None = None,
    tasks: Mapping[str, str] | None = None,
) -> list[RatedSet]:
    """Read several files.

    Args:
        paths: the files. The sets are named after them.
        columns: as for :func:`read_rated_set`.
        groups: number of groups to sample from each file, or None for all.
        tasks: task of the items by name of the set, as for :func:`read_rated_set`.

    Raises:
        TypeError, ValueError: a file, a number or a name is faulty.
    """
    tasks = tasks or {}
    check_names("task", tasks.values(), TASKS)
    check_names("data set", tasks, [Path(path).stem for path in paths])
    if groups is not None and groups < 1:
        raise ValueError(f"the number of groups must be at least 1, got {groups}")
    sets = [read_rated_set(path, columns, tasks.get(Path(path).stem)) for path in paths]
    for name, count in Counter(data.name for data in sets).items():
        if count > 1:
            raise ValueError(f"{count} files are named {name}; results are listed by name, so rename one")
    return [data.sample(groups) if groups else data for data in sets]


def check_names(kind: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise ValueError for an unknown name."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}; choose among: {', '.join(known)}")


def _ratings(file: RawRows, name: str) -> list[float]:
    """Return a column of ratings, with NaN for missing ones (None, or blank cells of CSV files)."""
    if not file.has(name):
        file.column(name, "rating")
    ratings: list[float] = []
    for index, row in enumerate(file.rows):
        value: Any = get_field(row, name)
        if file.in_cells and "_" not in value:  # Python reads "1_0" as 10.
            with suppress(ValueError):
                value = float(value) if value.strip() else None
        value = math.nan if value is None else value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isinf(value):
            fault = f"must be a finite number, or null where there is no rating, got {value!r:.60}"
            raise ValueError(f"{file.cell(name, index)} {fault}")
        ratings.append(float(value))
    return ratings


def _single_ratings(file: RawRows, name: str | None) -> list[SingleRatings]:
    """Return the single ratings of each item, or [] if no item has any or the file is a table of cells."""
    if name is not None:
        if not file.has(name):
            file.column(name, "single")
        if file.in_cells:
            raise ValueError(f"{file.cell(name, 0)} cannot be read: {_NO_LISTS}, or name no such column")
    if file.in_cells:
        return []
    name = name or RATED_COLUMNS["single"]
    singles: list[SingleRatings] = []
    for index, row in enumerate(file.rows):
        value: Any = get_field(row, name) or {}
        by_aspect = value if isinstance(value, Mapping) else {"rating": value}
        for ratings in by_aspect.values():
            if not isinstance(ratings, list) or not set(map(type, ratings)) <= {int, float, type(None)}:
                fault = "must hold a list with each rater's rating (null: none), or one such list by aspect"
                raise ValueError(f"{file.cell(name, index)} {fault}, got {value!r:.60}")
        singles.append(
            {
                aspect: [math.nan if rating is None else float(rating) for rating in ratings]
                for aspect, ratings in by_aspect.items()
            }
        )
    return singles if any(singles) else []


def _labels(file: RawRows, columns: Mapping[str, str], holds: str) -> list[str] | None:
    """Return a column of labels, or None if it was not named and no row has it."""
    name = columns.get(holds) or find_title(file, RATED_COLUMNS[holds], holds, is_named=False)
    return None if name is None else file.labels(name, holds)
