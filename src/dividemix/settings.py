"""The mechanism of settings: fields with a text, a type and a range, checked when they are set. No torch import.

A group of settings is a dataclass that inherits from `Settings` and is defined next to the code that uses it. The
groups of one training are joined by inheritance, so that every name is unique and the surface is flat.
"""

import contextlib
import dataclasses
import math
import os
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from dividemix.errors import InputError, shown
from dividemix.meant import or_meant

REQUIRED: Any = dataclasses.MISSING  # the default of a setting that has none
_NUMBERS: dict[type, str] = {int: "an integer", float: "a number"}
_LIMITS: dict[type, float] = {int: 2**63, float: 1e30}  # a float32 ends at 3e38, also where it is multiplied


def setting(
    default: Any, doc: str, noun: str = "", *, low: float = -math.inf, high: float = math.inf, above: float = -math.inf
) -> Any:
    """A dataclass field: its help text, a noun for its value, and its range: low <= value <= high, value > above."""
    about = {"doc": doc, "noun": noun, "low": low, "high": high, "above": above}
    return dataclasses.field(default=default, metadata=about)


def with_default(group: "type[Settings]", name: str, default: Any) -> Any:
    """The setting of a group with another default, for a group that inherits from it."""
    (field,) = (field for field in dataclasses.fields(group) if field.name == name)
    return dataclasses.field(default=default, metadata=field.metadata)


@dataclass(frozen=True)
class Field:
    """A setting: its name, its type (bool, int, float or str), what is allowed, its default and its help text."""

    name: str
    kind: type
    default: Any
    doc: str
    words: tuple[str, ...] = ()  # of a setting that takes one of a few words
    optional: bool = False
    noun: str = ""  # for the value, as --help shows it; made from the type if empty
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.kind not in _NUMBERS:
            return "true or false" if self.kind is bool else "text"
        limits = {">": self.above, ">=": self.low, "<=": self.high}
        bounds = [
            f"{sign} {limit if self.kind is int else f'{limit:g}'}"
            for sign, limit in limits.items()
            if math.isfinite(limit)
        ]
        return " ".join([_NUMBERS[self.kind], " and ".join(bounds)]).strip()

    @property
    def metavar(self) -> str:
        """What --help shows for the value."""
        kinds = {bool: "true|false", int: "INT", float: "FLOAT", str: "TEXT"}
        return self.noun or "|".join(self.words) or kinds[self.kind]

    def checked(self, value: Any) -> Any:
        """The value, an int widened to float where a float is meant.

        Raises:
            InputError: naming the setting, its value and what is allowed.
        """
        if self.optional and value is None:
            return None
        if self.kind is float and type(value) is int:
            with contextlib.suppress(OverflowError):
                value = float(value)
        fits = type(value) is self.kind
        limit = ""
        if fits and self.words:
            fits = value in self.words
        elif fits and self.kind in _NUMBERS:
            fits = self.low <= value <= self.high and value > self.above
            if fits and abs(value) >= _LIMITS[self.kind]:
                fits, limit = False, f", less than {_LIMITS[self.kind]:g}"
        if not fits:
            raise InputError(f"{self.name} is {shown(value)}: it must be {self.allowed}{limit}")
        if self.kind is str and not _is_utf8(value):
            raise InputError(f"{self.name} is {value!r}: it is not valid UTF-8; rename it")
        return value

    def from_text(self, text: str) -> Any:
        """The value that a word of the command line means; the word itself if it means none."""
        with contextlib.suppress(ValueError, KeyError):
            return {"true": True, "false": False}[text.lower()] if self.kind is bool else self.kind(text)
        return text

    def from_yaml(self, value: Any) -> Any:
        """The value as YAML 1.1 meant it: it reads 1e-3 as text."""
        if self.kind is float and isinstance(value, str):
            with contextlib.suppress(ValueError):
                return float(value)
        return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A group of settings. Setting a value of the wrong type, or out of range, raises InputError."""

    def __post_init__(self) -> None:
        for field in fields_of(type(self)).values():
            object.__setattr__(self, field.name, field.checked(getattr(self, field.name)))
        self.check()

    def check(self) -> None:
        """Raise InputError unless the settings fit each other. A group that overrides this calls super().check()."""


def fields_of(group: type[Settings]) -> Mapping[str, Field]:
    """The settings of a group by name, in the order of their definition; those of its bases come first."""
    if group not in _KNOWN:
        hints = typing.get_type_hints(group)
        fields = {field.name: field for field in dataclasses.fields(group) if "doc" in field.metadata}
        _KNOWN[group] = {name: _field(field, hints[name]) for name, field in fields.items()}
    return _KNOWN[group]


_KNOWN: dict[type[Settings], Mapping[str, Field]] = {}


def refuse_unknown(names: Iterable[Any], allowed: Iterable[str], where: str = "") -> None:
    """Raise InputError for the first name that is not allowed."""
    allowed = tuple(allowed)
    for name in names:
        if name not in allowed:
            known = f"the settings are {', '.join(allowed)}"
            raise InputError(f"{where}unknown setting {name!r}: {or_meant(str(name), allowed, known)}")


def checked_path(value: Any, name: str) -> Path:
    """The path that an argument names. Raises InputError unless it is text or a path that a system can have."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or "\0" in path or not _has_bytes(path):
        raise InputError(f"{name} is {shown(value)}: it must be a path")
    return Path(path)


def _has_bytes(path: str) -> bool:
    """Whether it can be the name of a file: half a character cannot."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _is_utf8(text: str) -> bool:
    """Whether it can be written as UTF-8: a file name of other bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _field(field: "dataclasses.Field[Any]", hint: Any) -> Field:
    optional = NoneType in typing.get_args(hint)
    if optional:
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not NoneType)
    words = typing.get_args(hint)
    return Field(field.name, str if words else hint, field.default, words=words, optional=optional, **field.metadata)
