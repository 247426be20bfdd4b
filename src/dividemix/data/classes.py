"""Class names: their natural order, labels as class numbers, and names as the labels that a program gave."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError

LabelType = Literal["text", "integer", "boolean"]
"""What labels of a Python program were. Classes have names, which are text, wherever they are stored or shown."""
Label: TypeAlias = str | int

_MISSING = ("NAType", "NaTType")  # of pandas, which need not be installed


def natural_key(text: str) -> tuple[Any, ...]:
    """A sort key: numbers in the text sort by value, letters without regard to case (a2, A10, b1)."""
    key: list[Any] = [part.casefold() for part in re.split(r"([0-9]+)", text)]  # text and number in turn
    key[1::2] = [(len(number), number) for number in (part.lstrip("0") for part in key[1::2])]
    return key, text


def natural_sorted(names: Iterable[str]) -> list[str]:
    """The names in natural order."""
    return sorted(names, key=natural_key)


def label_name(value: Any) -> str | None:
    """The class name of a label: text without spaces around it, an integer in digits; None for no label.

    NaN and pandas' NA and NaT are no labels.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, float) and value != value) or type(value).__name__ in _MISSING:
        return None
    try:
        return printable(str(value).strip()) or None
    except ValueError:  # an integer of thousands of digits
        return None


def label_type(labels: Iterable[Any]) -> LabelType:
    """The type that all labels have, apart from missing ones; text if they have several. 2.0 counts as an integer."""
    found = {_type_of(label) for label in labels if label_name(label) is not None}
    return found.pop() if len(found) == 1 else "text"


def are_text(labels: Iterable[Any]) -> bool:
    """Whether all labels are text, apart from missing ones."""
    return all(isinstance(label, str | bytes) for label in labels if label_name(label) is not None)


def _type_of(label: Any) -> LabelType:
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, bool):
        return "boolean"
    is_whole = isinstance(label, int) or (isinstance(label, float) and label.is_integer())
    return "integer" if is_whole and abs(label) < 2**63 else "text"  # what numpy's integers can have


def class_labels(classes: Sequence[str], kind: str) -> tuple[Label, ...]:
    """The classes as labels of that type, which compare with what a program gave. Raises ValueError if one is not."""
    if kind == "text":
        return tuple(classes)
    values: dict[str, Label] = {"False": False, "True": True}
    if kind == "integer":
        values = {name: int(name) for name in classes}
    if kind not in ("integer", "boolean") or any(str(values.get(name)) != name for name in classes):
        raise ValueError(f"label_type is {kind!r}, and the classes are {', '.join(classes)[:100]}")
    return tuple(values[name] for name in classes)


def printable(text: str) -> str:
    """The text with escapes for what UTF-8 cannot encode, such as stray bytes in a file name."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def check_text(texts: Iterable[str] | NDArray[np.str_], where: str) -> None:
    """Raise InputError, starting with `where`, unless all texts are valid Unicode, which files can store."""
    try:
        "\n".join(texts.ravel().tolist() if isinstance(texts, np.ndarray) else texts).encode()
    except (ValueError, SystemError) as error:  # half a pair of surrogates, or a number beyond all characters
        raise InputError(f"{where}: has text that is not valid Unicode ({error}): write it as UTF-8") from error


def numbered(names: Sequence[str], classes: Sequence[str], where: str) -> NDArray[np.int64]:
    """The position (N,) of each name among the classes; InputError, starting with `where`, if one is not a class."""
    number = {name: position for position, name in enumerate(classes)}
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:
        known = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise InputError(f"{where}: {unknown[:100]!r} is not a class of the training labels, which are {known}")
    return np.array([number[name] for name in names], dtype=np.int64)
