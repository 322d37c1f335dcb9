"""What the readers of the sources share: texts without tokens, and rows of files with their places.

Every fault of a file is a ValueError that names the file, the row and the remedy.
"""

import collections
import csv
import io
import json
import math
import pickle
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from pathlib import Path
from statistics import fmean
from typing import Any

Item = dict[str, Any]

REMEDY = "the source has another form than is read here; see research/ratings.md"
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}


# Texts.


def letters(text: str) -> str:
    """Return the Latin letters and digits of a text in lower case, so that spaces and marks make no difference."""
    return re.sub("[^a-z0-9]", "", unicodedata.normalize("NFKD", text).lower())


def short_hash(text: str) -> str:
    """Return the first twelve hexadecimal digits of the SHA-1 of a text's letters, as groups are named."""
    return sha1(re.sub("[^a-z0-9]", "", text.lower()).encode()).hexdigest()[:12]


def one_line(text: str) -> str:
    """Return a text with single spaces, and without spaces around it."""
    return " ".join(text.split())


def detokenize(text: str) -> str:
    """Join the tokens of a text: marks and contractions to their words, and marks of brackets and quotes."""
    text = re.sub(r"-[lr][rsc]b-", lambda found: _BRACKETS[found[0].lower()], one_line(text), flags=re.IGNORECASE)
    text = re.sub(r"``|''", '"', text)
    text = re.sub(r"(\w) (n't|'(?:s|m|d|re|ve|ll))\b", r"\1\2", text, flags=re.IGNORECASE)
    text = re.sub(r"(\w) ' (s|t|m|d|re|ve|ll)\b", r"\1'\2", text, flags=re.IGNORECASE)
    parts = text.split('"')
    if len(parts) % 2:  # Every second part is a quotation.
        text = '"'.join(part.strip() if number % 2 else part for number, part in enumerate(parts))
    text = re.sub(r" (?=[.,!?%)\]}]|[;:](?:\s|$))", "", text)  # not before smileys
    return re.sub(r"(?<=[(\[{]) |(?<=[$£]) (?=\d)", "", text)


def dialogue(turns: Iterable[str]) -> str:
    """Return turns as lines, without blank ones."""
    return "\n".join(turn for turn in map(detokenize, turns) if turn)


# Files and their rows.


def get(record: Any, key: Any, kind: type, where: str) -> Any:
    """Return a value of a record, if it is there and of its type (str, int for any number, bool, list, dict)."""
    if not isinstance(record, dict) or key not in record:
        raise ValueError(f"{where}: no {key!r}; {REMEDY}")
    value = record[key]
    if kind is int:
        return as_number(value, f"{where}: {key!r}")
    if not isinstance(value, kind):
        raise ValueError(f"{where}: {key!r} must be of type {kind.__name__}, got {value!r:.60}; {REMEDY}")
    return value


def as_number(value: Any, where: str) -> float:
    """Return a finite number, also of a text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where}: a rating must be a number, got {value!r:.60}; {REMEDY}")
    return number


def get_numbers(record: Any, key: Any, where: str) -> list[float]:
    """Return the numbers of a list in a record, which has at least one."""
    values = get(record, key, list, where)
    if not values:
        raise ValueError(f"{where}: {key!r} is empty; {REMEDY}")
    return [as_number(value, f"{where}: {key!r}") for value in values]


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start}); {REMEDY}") from None


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file; only a line feed ends one."""
    return read_text(path).removesuffix("\n").split("\n")


def parse_json(text: str, where: str, kind: type) -> Any:
    """Return the value of a JSON text, which must be of a type."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: is not JSON ({error.msg}, line {error.lineno}); {REMEDY}") from None
    if not isinstance(value, kind):
        raise ValueError(f"{where}: must hold a {kind.__name__}, got {value!r:.60}; {REMEDY}")
    return value


def read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each element of a JSON list."""
    for number, record in enumerate(parse_json(read_text(path), str(path), list), 1):
        yield f"{path}, element {number}", record


def read_rows(path: Path, *columns: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the cells of each row of a CSV file, which must have some columns."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    for column in columns:
        if column not in (reader.fieldnames or ()):
            raise ValueError(f"{path}: no column {column!r}, but {', '.join(reader.fieldnames or ())}; {REMEDY}")
    for number, row in enumerate(reader, 1):
        if any(not isinstance(row[column], str) for column in columns):
            raise ValueError(f"{path}, row {number}: has fewer cells than the header; {REMEDY}")
        yield f"{path}, row {number}", row


def read_alike(paths: Sequence[Path]) -> list[list[str]]:
    """Return the lines of files that must have equally many."""
    files = [read_lines(path) for path in paths]
    for path, lines in zip(paths, files, strict=True):
        if len(lines) != len(files[0]):
            fault = f"{len(lines)} lines, but {paths[0]} has {len(files[0])}"
            raise ValueError(f"{path}: {fault}; they must be of the same version of the source")
    return files


class _PlainUnpickler(pickle.Unpickler):
    """Reads dicts, lists, texts and numbers only, so that a file can run no code."""

    _NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray")

    def find_class(self, module: str, name: str) -> Any:
        """Return the few classes that plain data needs; refuse the others."""
        if (module, name) in {("builtins", "dict"), ("builtins", "list")}:
            return {"dict": dict, "list": list}[name]
        if (module, name) in {("collections", "OrderedDict"), ("collections", "defaultdict")}:
            return getattr(collections, name)
        if (module, name) == ("numpy", "dtype") or (module in self._NUMPY and name == "scalar"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def read_pickle(path: Path) -> dict[Any, Any]:
    """Return the dict of a pickle that holds plain data and can run no code."""
    try:
        value = _PlainUnpickler(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # Damaged files raise almost any.
        raise ValueError(f"{path}: is not a pickle of plain data ({error}); {REMEDY}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: must hold a dict, got {type(value).__name__}; {REMEDY}")
    return value


def make_item(
    name: tuple[object, ...],
    group: object,
    system: str,
    texts: tuple[str, Iterable[str], str],
    ratings: Mapping[str, float | Sequence[float]],
    human: str | None = None,
) -> Item:
    """Make an item: its name within its set, its texts (context, references, candidate) and its ratings by aspect.

    A list of ratings is of single raters; their mean counts. The overall rating is that of the aspect ``human``,
    or the mean over the aspects.
    """
    means = {aspect: fmean(value) if isinstance(value, Sequence) else value for aspect, value in ratings.items()}
    single = {aspect: list(value) for aspect, value in ratings.items() if isinstance(value, Sequence)}
    context, references, candidate = texts
    item = {
        "id": "-".join(map(str, name)),
        "group": str(group),
        "system": system,
        "context": context,
        "references": list(dict.fromkeys(reference for reference in references if reference.strip())),
        "candidate": candidate,
        "ratings": {aspect: round(value, 4) for aspect, value in means.items()},
        "human": round(means[human] if human else fmean(means.values()), 4),
    }
    return {**item, "individual": single} if single else item
