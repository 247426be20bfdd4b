"""Files that the package wrote, read back: limited in size and depth, of a known shape, or one clear line."""

import hashlib
import json
import os
import re
import stat
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import yaml

from dividemix.errors import InputError, shown

T = TypeVar("T")
MAX_BYTES = 1 << 30  # of metrics.jsonl, which has megabytes after a long run
MAX_JSON_BYTES = 1 << 26
_MAX_YAML_BYTES = 1 << 20
_MAX_DEPTH = 50
# Texts, also one without an end, and the brackets outside of them.
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def read_json(path: Path, shape: type[T]) -> T:
    """The content of a JSON file, which has the shape of a type: TypedDicts, lists, dicts, unions, words, numbers.

    Raises:
        InputError: if it cannot be read, is too large or too deep, or has another shape.
    """
    return parse_json(read_bytes(path, MAX_JSON_BYTES), shape, str(path))


def parse_json(content: bytes, shape: type[T], where: str) -> T:
    """JSON text of a known shape, as `read_json`; `where` begins the message of an error."""
    try:
        _check_depth(content)
        value = json.loads(content)
        check_shape(value, shape)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: damaged ({error})") from error
    result: T = value
    return result


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping of names to values in a YAML file.

    Raises:
        InputError: if it cannot be read, is too large or too deep, has aliases, or is something else.
    """
    content = read_bytes(path, _MAX_YAML_BYTES)
    try:
        values = yaml.load(content, Loader=_PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split()) or type(error).__name__}") from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise InputError(f"{path}: not a settings file: it must have lines such as 'epochs: 20'")
    return values


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file of at most `limit` bytes.

    Raises:
        InputError: if it cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            # Python takes memory for all that is asked for. A pipe does not know its size.
            size = about.st_size if stat.S_ISREG(about.st_mode) else limit
            content = file.read(size + 1) if size <= limit else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if max(size, len(content)) > limit:
        raise InputError(f"{path}: larger than {limit / 1e6:,.0f} MB, which no such file is")
    return content


def digest_of(content: bytes, about: Any = None) -> str:
    """The digest that shows whether a content, and what JSON can store about it, is what was written."""
    digest = hashlib.blake2b(content, digest_size=16)
    digest.update(json.dumps(about, sort_keys=True).encode())
    return digest.hexdigest()


def digest_of_file(path: Path, about: Any = None) -> str:
    """The digest of a file's content, of any length, as `digest_of`.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    digest.update(json.dumps(about, sort_keys=True).encode())
    return digest.hexdigest()


def check_shape(value: Any, shape: Any, where: str = "") -> None:
    """Raise ValueError unless a value of JSON has the shape of a type; the message says where it has not."""
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if shape is Any:
        return
    if origin in (typing.Required, typing.NotRequired):
        check_shape(value, arguments[0], where)
    elif typing.is_typeddict(shape):
        _check_record(value, shape, where)
    elif origin is list:
        _require(isinstance(value, list), value, "a list", where)
        for i, item in enumerate(value):
            check_shape(item, arguments[0], f"{where}[{i}]")
    elif origin is dict:
        _require(isinstance(value, dict), value, "an object", where)
        for name, item in value.items():
            check_shape(item, arguments[1], f"{where}.{name}".lstrip("."))
    elif origin in (Union, types.UnionType):
        if not any(_has_shape(value, one) for one in arguments):
            raise ValueError(f"{where or 'it'} is {shown(value, 60)}")
    elif origin is Literal:
        _require(value in arguments, value, f"one of {', '.join(map(str, arguments))}", where)
    elif shape is float:
        is_number = type(value) in (int, float) and abs(value) < 2**1000  # neither infinite nor NaN
        _require(is_number, value, "a finite number", where)
    else:
        kind = types.NoneType if shape is None else shape
        _require(type(value) is kind, value, kind.__name__, where)


def _check_record(value: Any, shape: Any, where: str) -> None:
    """Raise ValueError unless the value is an object with the fields of a TypedDict, required ones and no others."""
    _require(isinstance(value, dict), value, "an object", where)
    hints = typing.get_type_hints(shape, include_extras=True)
    for name in shape.__required_keys__ - value.keys():
        raise ValueError(f"{where or 'it'} has no {name}")
    for name, item in value.items():
        if name not in hints:
            raise ValueError(f"{where or 'it'} has an unknown {shown(name, 60)}")
        check_shape(item, hints[name], f"{where}.{name}".lstrip("."))


def _has_shape(value: Any, shape: Any) -> bool:
    try:
        check_shape(value, shape)
    except ValueError:
        return False
    return True


def _require(holds: bool, value: Any, allowed: str, where: str) -> None:
    if not holds:
        raise ValueError(f"{where or 'it'} is {shown(value, 60)}, not {allowed}")


def _check_depth(content: bytes) -> None:
    """Raise ValueError if brackets nest deeper than any file of ours: the parser would overflow its stack."""
    depth = 0
    for match in _TOKENS.finditer(content):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        if depth > _MAX_DEPTH:
            raise ValueError(f"nested deeper than {_MAX_DEPTH}")


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases, by which a few bytes can stand for gigabytes, and without deep nesting."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_MAX_DEPTH}")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node
