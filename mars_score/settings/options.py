"""Dataclass fields that carry their help text and range, and the checks that follow from them."""

import dataclasses
import functools
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

# What a setting may need of another one besides a certain value; as a remedy says it.
POSITIVE = "above 0"
NAMED = "to a name"
TASKS = ("dialogue", "story", "summary", "answer", "simplification", "data")
UNSAMPLED_TASKS = ("answer", "data")  # small models answer wrongly, and continue a record with another one
# Universal part-of-speech tags (https://universaldependencies.org/u/pos/) with spaCy's SPACE left out.
POS_TAGS = [
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "CONJ", "DET", "EOL", "INTJ", "NOUN"),
    *("NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is known of a field that :func:`setting` made; see there."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False
    needs: tuple[str, Any] | None = None
    convert: Callable[[str, Any], Any] | None = None
    # These follow from the field and its annotation.
    name: str = ""
    kind: Any = str  # its type apart from None, such as ``int`` or ``Mapping``; ``str`` for literals
    choices: tuple[str, ...] = ()  # its literals
    optional: bool = False  # whether it may be None
    default: Any = None  # ``dataclasses.MISSING`` where there is none, or a function makes it

    def check(self, value: Any) -> Any:
        """The value as it is stored: numbers as plain ``int`` or ``float``.

        Raises:
            ValueError: a value of another type or out of range.
        """
        if self.convert:
            return self.convert(self.name, value)
        if (value is None and self.optional) or (isinstance(value, str) and value in self.choices):
            return value
        if self.kind is bool and isinstance(value, bool):
            return value
        if self.kind in (int, float) and is_number(value, self.kind, self.low, self.high, self.above_low):
            return self.kind(value)
        raise ValueError(f"{self.name} must be {self.allowed()}, got {value!r:.200}")

    def allowed(self) -> str:
        """The allowed values, for an error message."""
        if self.kind is bool:
            return "True or False"
        if self.choices:
            return f"one of {', '.join(map(repr, self.choices))}"
        interval = f"in {'(' if self.above_low else '['}{self.low:g}, {self.high:g}]"
        if self.high == math.inf:
            interval = f"of at least {self.low:g}"
        return f"{'an integer' if self.kind is int else 'a number'} {interval}{' or None' * self.optional}"


def setting(default: Any, text: str, *, hashed: bool | None = None, **more: Any) -> Any:
    """A field of a :class:`Checked` dataclass; its type, ``Literal`` choices included, is its annotation.

    Args:
        default: the default value, ``dataclasses.MISSING``, or a function that makes a mutable default.
        text: what the setting means; the command line's help.
        hashed: False for a value that cannot be hashed.
        more: ``low`` and ``high``, the smallest and the largest number allowed; ``above_low``: ``low`` itself is
            not; ``needs``, (name, value) of the setting without which this one has no effect, where the value may
            be ``POSITIVE`` or ``NAMED``; ``convert``, called as ``convert(name, value)`` for other types than
            bool, int, float and ``Literal``, which returns the value to store, or raises ValueError.
    """
    made = {"default_factory" if callable(default) else "default": default}
    field: Any = dataclasses.field(metadata={"setting": Setting(text, **more)}, hash=hashed, **made)
    return field


def is_number(value: Any, kind: type, low: float, high: float = math.inf, above_low: bool = False) -> bool:
    """Whether ``value`` is an integer (``kind`` int) or a real number (float) in the range, NumPy's included."""
    if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        return False
    number: Any = value
    return bool(low < number if above_low else low <= number) and bool(number <= high)


def _settings_of(cls: Any) -> tuple[Setting, ...]:
    """The fields of a dataclass that :func:`setting` made, in order."""
    hints, settings = get_type_hints(cls), []
    for field in dataclasses.fields(cls):
        if setting := field.metadata.get("setting"):
            hint = hints[field.name]
            optional = isinstance(hint, types.UnionType)
            kind = get_args(hint)[0] if optional else hint
            choices = get_args(kind) if get_origin(kind) is Literal else ()
            known = {"name": field.name, "default": field.default, "choices": choices, "optional": optional}
            kind = str if choices else get_origin(kind) or kind
            settings.append(dataclasses.replace(setting, **known, kind=kind))
    return tuple(settings)


settings_of: Callable[[Any], tuple[Setting, ...]] = functools.cache(_settings_of)


@dataclasses.dataclass(frozen=True)
class Checked:
    """Base class of dataclasses whose :func:`setting` fields are checked and converted when one is made."""

    def __post_init__(self) -> None:
        for setting in settings_of(type(self)):
            object.__setattr__(self, setting.name, setting.check(getattr(self, setting.name)))


def unknown(what: str, name: str, known: Sequence[str]) -> TypeError:
    """The error for an unknown name: what was probably meant, or else where the known ones are listed."""
    close = get_close_matches(str(name).lower(), known, n=1)
    listed = "docs/settings.md and mars score --help have all"
    every = f"choose one of {', '.join(known)}" if len(known) <= 8 else listed
    return TypeError(f"unknown {what} {name!r}; {f'did you mean {close[0]!r}?' if close else every}")


# For ``convert``


def tag_weights(name: str, weights: Any) -> dict[str, float]:
    """A mapping from some of ``POS_TAGS`` to positive numbers."""
    if not isinstance(weights, Mapping):
        raise ValueError(f'{name} must be a mapping such as {{"ADJ": 4}}, got {weights!r:.200}')
    for tag, weight in weights.items():
        if tag not in POS_TAGS:
            raise ValueError(f"{name}: unknown tag {tag!r}; known tags: {', '.join(POS_TAGS)}")
        if not is_number(weight, float, 0, 1000, above_low=True):
            raise ValueError(f"{name}[{tag!r}] must be a number in (0, 1000], got {weight!r}")
    return {tag: float(weight) for tag, weight in weights.items()}


def list_of_texts(name: str, texts: Any) -> tuple[str, ...] | None:
    """One or more strings, or None."""
    if texts is None:
        return None
    checked = tuple(texts) if isinstance(texts, Iterable) else (texts,)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in checked):
        raise ValueError(f"{name} must be a list of strings, got {texts!r:.60}")
    if not checked:
        raise ValueError(f"{name} is empty; leave it out or give at least one text")
    return checked


def model(name: str, model: Any) -> Any:
    """The name of a model, a folder, or an object: a pair (model, tokenizer), or an encoder; None: not given."""
    wanted = "SentenceTransformer" if name == "encoder" else "pair (model, tokenizer)"
    ready = hasattr(model, "encode") if name == "encoder" else isinstance(model, tuple) and len(model) == 2
    if model is None or isinstance(model, (str, os.PathLike)) or ready:
        return model
    raise ValueError(f"{name} must be a name, a folder or a {wanted}, got {model!r:.200}")


def learned_head(name: str, head: Any) -> str | None:
    """A folder; None: not given."""
    if head is None:
        return None
    if isinstance(head, (str, os.PathLike)) and os.fspath(head):
        return os.fspath(head)
    raise ValueError(f"{name} must be the folder of a learned head, got {head!r:.200}")


def task_or_prompt(name: str, task: Any) -> str | None:
    """One of ``TASKS``, or a text with ``{context}``; None: not given."""
    if task is None or (isinstance(task, str) and (task in TASKS or "{context}" in task)):
        return task
    known = ", ".join(map(repr, TASKS))
    raise ValueError(f'{name} must be one of {known}, or a prompt that contains "{{context}}", got {task!r:.200}')
