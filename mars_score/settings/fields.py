"""Dataclass fields that carry their help text and range, and the checks that follow from them."""

import dataclasses
import functools
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


class _Condition:
    """Equal to every value for which a condition holds; shown in remedies as in "set sample_count above 0"."""

    def __init__(self, condition: Callable[[object], bool], text: str) -> None:
        self._condition, self._text = condition, text

    def __eq__(self, other: object) -> bool:
        return self._condition(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self._text


POSITIVE = _Condition(lambda value: is_number(value, float, 0, above_low=True), "above 0")
NAMED = _Condition(lambda value: value is not None, "to a name")


def with_value(needed: Any) -> str:
    """The value that another setting needs, as it stands behind the name of that setting."""
    return f" {needed!r}" if isinstance(needed, _Condition) else f"={needed!r}"


def setting(
    default: Any,
    text: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above_low: bool = False,
    needs: tuple[str, Any] | None = None,
    convert: Callable[[str, Any], Any] | None = None,
    **options: Any,
) -> Any:
    """A field of a :class:`Checked` dataclass; its type, ``Literal`` choices included, is its annotation.

    Args:
        default: the default value, ``dataclasses.MISSING``, or a function that makes a mutable default.
        text: what the setting means; the command line's help.
        low: smallest number allowed.
        high: largest number allowed.
        above_low: ``low`` itself is not allowed.
        needs: (name, value) of the setting without which this one has no effect; the value may be ``POSITIVE``
            or ``NAMED``.
        convert: called as ``convert(name, value)`` for other types than bool, int, float and ``Literal``; returns
            the value to store, or raises ValueError.
        options: passed on to ``dataclasses.field``.
    """
    options["default_factory" if callable(default) else "default"] = default
    known = {"text": text, "low": low, "high": high, "above_low": above_low, "needs": needs, "convert": convert}
    return dataclasses.field(metadata=known, **options)


@dataclass(frozen=True)
class Setting:
    """What is known of a field that :func:`setting` made.

    Attributes:
        kind: its type apart from None and literals, such as ``int`` or ``Mapping``; ``str`` for literals alone.
        choices: its literals.
        optional: whether it may be None.
        default: ``dataclasses.MISSING`` where there is none, or none that can be shown.
        text, low, high, above_low, needs, convert: see :func:`setting`.
    """

    name: str
    kind: Any
    choices: tuple[str, ...]
    optional: bool
    default: Any
    text: str
    low: float
    high: float
    above_low: bool
    needs: tuple[str, Any] | None
    convert: Callable[[str, Any], Any] | None

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
        interval = f"{'(' if self.above_low else '['}{self.low:g}, {self.high:g}]"
        if self.kind is int and self.high == math.inf:
            interval = f"of at least {self.low:g}"
        elif self.kind in (int, float):
            interval = f"in {interval}"
        numbers = {int: f"an integer {interval}", float: f"a number {interval}"}.get(self.kind)
        if numbers is None:
            return f"one of {', '.join(map(repr, self.choices))}"
        return " or ".join([numbers, *(f'"{one}"' for one in self.choices), *["None"] * self.optional])


def is_number(value: Any, kind: type, low: float, high: float = math.inf, above_low: bool = False) -> bool:
    """Whether ``value`` is an integer (``kind`` int) or a real number (float) in the range, NumPy's included."""
    if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        return False
    number: Any = value
    return bool(low < number if above_low else low <= number) and bool(number <= high)


def settings_of(cls: Any) -> tuple[Setting, ...]:
    """The fields of a dataclass that :func:`setting` made, in order."""
    return _settings_of(cls)


@functools.cache
def _settings_of(cls: Any) -> tuple[Setting, ...]:
    hints = get_type_hints(cls)
    return tuple(_describe(one, hints[one.name]) for one in dataclasses.fields(cls) if "text" in one.metadata)


def _describe(field: dataclasses.Field[Any], hint: Any) -> Setting:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    literals = [one for one in parts if get_origin(one) is Literal]
    kinds = [one for one in parts if one not in literals and one is not type(None)]
    return Setting(
        name=field.name,
        kind=(get_origin(kinds[0]) or kinds[0]) if kinds else str,
        choices=tuple(choice for one in literals for choice in get_args(one)),
        optional=type(None) in parts,
        default=field.default,
        **field.metadata,
    )


@dataclass(frozen=True)
class Checked:
    """Base class of dataclasses whose :func:`setting` fields are checked and converted when one is made."""

    def __post_init__(self) -> None:
        for one in settings_of(type(self)):
            object.__setattr__(self, one.name, one.check(getattr(self, one.name)))


def unknown(what: str, name: str, known: Sequence[str]) -> TypeError:
    """The error for an unknown name: what was probably meant, or else where the known ones are listed."""
    close = get_close_matches(str(name).lower(), known, n=1)
    listed = "docs/settings.md and mars score --help have all"
    every = f"choose one of {', '.join(known)}" if len(known) <= 8 else listed
    hint = f"did you mean {close[0]!r}?" if close else every
    return TypeError(f"unknown {what} {name!r}; {hint}")


def weights_of(names: Sequence[str]) -> Callable[[str, Any], dict[str, float]]:
    """For ``convert``: a mapping from some of ``names`` to positive numbers."""

    def convert(setting: str, weights: Any) -> dict[str, float]:
        if not isinstance(weights, Mapping):
            raise ValueError(f'{setting} must be a mapping such as {{"{names[0]}": 4}}, got {weights!r:.200}')
        for name, weight in weights.items():
            if name not in names:
                raise ValueError(f"{setting}: unknown tag {name!r}; known tags: {', '.join(names)}")
            if not is_number(weight, float, 0, 1000, above_low=True):
                raise ValueError(f"{setting}[{name!r}] must be a number in (0, 1000], got {weight!r}")
        return {name: float(weight) for name, weight in weights.items()}

    return convert


def list_of_texts(name: str, texts: Any) -> tuple[str, ...] | None:
    """For ``convert``: one or more strings, or None."""
    if texts is None:
        return None
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ValueError(f"{name} must be a list of strings, got {texts!r:.60}")
    checked = tuple(texts)
    if not all(isinstance(text, str) for text in checked):
        raise ValueError(f"{name} must hold strings only")
    if not checked:
        raise ValueError(f"{name} is empty; leave it out or give at least one text")
    return checked


def model_pair(name: str, model: Any) -> Any:
    """For ``convert``: the name of a model, a folder, or a pair (model, tokenizer); None: not given."""
    if model is None or isinstance(model, (str, os.PathLike)) or (isinstance(model, tuple) and len(model) == 2):
        return model
    raise ValueError(f"{name} must be a name, a folder or a pair (model, tokenizer), got {model!r:.200}")


def sentence_encoder(name: str, model: Any) -> Any:
    """For ``convert``: the name of a model, a folder, or an object with a method ``encode``; None: not given."""
    if model is None or isinstance(model, (str, os.PathLike)) or hasattr(model, "encode"):
        return model
    raise ValueError(f"{name} must be a name, a folder or a SentenceTransformer, got {model!r:.200}")


def learned_head(name: str, head: Any) -> str | None:
    """For ``convert``: a folder; None: not given."""
    if head is None:
        return None
    if isinstance(head, (str, os.PathLike)) and os.fspath(head):
        return os.fspath(head)
    raise ValueError(f"{name} must be the folder of a learned head, got {head!r:.200}")


TASKS = ("dialogue", "story", "summary", "answer", "simplification", "data")
UNSAMPLED_TASKS = ("answer", "data")  # small models answer wrongly, and continue a record with another one


def task_or_prompt(name: str, task: Any) -> str | None:
    """For ``convert``: one of ``TASKS``, or a text with ``{context}``; None: not given."""
    if task is None or (isinstance(task, str) and (task in TASKS or "{context}" in task)):
        return task
    known = ", ".join(map(repr, TASKS))
    raise ValueError(f'{name} must be one of {known}, or a prompt that contains "{{context}}", got {task!r:.200}')
