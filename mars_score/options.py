"""Define settings as fields of pydantic dataclasses, with help text and range, and check them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from numbers import Real
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")

# Universal part-of-speech tags (https://universaldependencies.org/u/pos/) with spaCy's SPACE left out.
POS_TAGS = [
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "CONJ", "DET", "EOL", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
]

_TABLES = (
    ".json",
    ".jsonl",
    ".csv",
    ".tsv",
    ".parquet",
    ".gz",
)  # suffixes of files that hold rows, not plain texts

Needs = tuple[tuple[str, ...], ...]  # names of settings; one of each tuple must not be off


def option(
    default: object,
    text: str,
    low: float | None = None,
    high: float | None = None,
    *,
    needs: Sequence[str | tuple[str, ...]] = (),
    **more: Any,
) -> Any:
    """Make a field of a pydantic dataclass.

    Args:
        default: default value.
        text: help text.
        low: lowest number.
        high: highest number.
        needs: names of settings without which this one has no effect: they must not be 0, None, False or "none".
            One setting of a tuple is enough.
        more: arguments of ``pydantic.Field``, such as ``gt`` for an open lower end.
    """
    extra: Any = {"needs": tuple((one,) if isinstance(one, str) else one for one in needs)}
    return Field(default, description=text, ge=low, le=high, json_schema_extra=extra, **more)


@dataclass(frozen=True)
class Option:
    """A setting for command lines and documents."""

    name: str
    text: str  # help text
    default: object  # dataclasses.MISSING without a default
    kind: Any  # type apart from None, such as int or Mapping; str for literals
    choices: tuple[str, ...]  # values of a literal
    needs: Needs


def options_of(config: Any) -> Iterator[Option]:
    """Yield the settings of a pydantic dataclass in order, without nested dataclasses."""
    hints = get_type_hints(config)
    for field in fields(config):
        info = config.__pydantic_fields__[field.name]
        if info.description is None:
            continue
        kind = hints[field.name]
        if get_origin(kind) in (Union, UnionType):
            kind = get_args(kind)[0]
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        default = MISSING if info.is_required() else info.get_default(call_default_factory=True)
        kind = str if choices else get_origin(kind) or kind
        yield Option(field.name, info.description, default, kind, choices, info.json_schema_extra["needs"])


def make_config(config: type[Config], values: Mapping[str, object]) -> Config:
    """Make a pydantic dataclass from those ``values`` that are its fields.

    NumPy numbers become Python numbers.

    Raises:
        ValueError: a value has a wrong type or is out of range. The message is one line.
    """
    arguments = {
        name: value.item() if isinstance(value, Real) and hasattr(value, "item") else value
        for name, value in values.items()
        if name in {field.name for field in fields(config)}
    }
    try:
        return config(**arguments)
    except ValidationError as error:
        fault = error.errors()[0]
        message = fault["msg"].removeprefix("Input ").removeprefix("Value error, ").replace("should", "must")
        if not fault["loc"]:  # an error of __post_init__
            raise ValueError(message) from None
        raise ValueError(f"{fault['loc'][0]} {message}, got {fault['input']!r:.200}") from None


def unknown_name(kind: str, name: str, known: Sequence[str]) -> TypeError:
    """Make the error for an unknown name, with a similar known name or the place where all are listed."""
    if name == "trust_remote_code":
        return TypeError(f"{name} is no {kind}: code that comes with a model never runs here; leave it out")
    if close := get_close_matches(str(name).lower(), known, n=1):
        remedy = f"did you mean {close[0]!r}?"
    elif len(known) <= 8:
        remedy = f"choose one of {', '.join(known)}"
    else:
        remedy = "docs/settings.md and mars score --help have all"
    return TypeError(f"unknown {kind} {name!r}; {remedy}")


# Types of fields that pydantic lacks


def _tag_weights(weights: object) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise ValueError('must be a mapping such as {"ADJ": 4}')
    for tag, weight in weights.items():
        if tag not in POS_TAGS:
            raise ValueError(f"must not have the unknown tag {tag!r}; known tags: {', '.join(POS_TAGS)}")
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight <= 1000:
            raise ValueError(f"must have a number in (0, 1000] for {tag!r}")
    return {tag: float(weight) for tag, weight in weights.items()}


def _texts(texts: object) -> tuple[str, ...] | None:
    """Return texts, or the lines of a file that are not blank."""
    if texts is None:
        return None
    if isinstance(texts, (str, os.PathLike)):
        if os.fspath(texts).endswith(_TABLES):
            raise ValueError(
                "must be a file with one text per line, not a table; write its column of texts to one"
            )
        try:
            texts = read_lines(texts)
        except OSError as error:
            raise ValueError(f"must be a list of strings or a file ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ValueError("must be a file in UTF-8; convert it") from None
    checked = tuple(texts) if isinstance(texts, Iterable) else ()
    if not checked or not all(isinstance(text, str) for text in checked):
        raise ValueError("must be a list of one or more strings, or a file with one text per line")
    return checked


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    r"""Return the stripped lines of a UTF-8 file that are not blank. Only \n ends a line."""
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        return [line.strip() for line in file if line.strip()]


def _path(path: object) -> str | None:
    if path is None:
        return None
    if isinstance(path, (str, os.PathLike)) and os.fspath(path):
        return os.fspath(path)
    raise ValueError("must be a folder")


def _encoder(model: object) -> object:
    if model is None or isinstance(model, (str, os.PathLike)) or hasattr(model, "encode"):
        return model
    raise ValueError("must be a name, a folder or a SentenceTransformer")


def _model_pair(model: object) -> object:
    if model is None or isinstance(model, (str, os.PathLike)) or (isinstance(model, tuple) and len(model) == 2):
        return model
    raise ValueError("must be a name, a folder or a pair (model, tokenizer)")


TagWeights = Annotated[dict[str, float], BeforeValidator(_tag_weights)]
Corpus = Annotated[tuple[str, ...] | None, BeforeValidator(_texts)]
Folder = Annotated[str | None, BeforeValidator(_path)]
Encoder = Annotated[Any, BeforeValidator(_encoder)]
ModelPair = Annotated[Any, BeforeValidator(_model_pair)]
STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)
