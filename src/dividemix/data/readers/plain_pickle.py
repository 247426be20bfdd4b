"""Read pickles as data: numbers, text, lists, dicts and integer arrays. No code in a pickle can run.

A pickle is a program for a small stack machine. Python's own machine imports and calls what the program names. The
machine below has no import and no call. A global is only its name. The only calls it understands are those by which
numpy rebuilds an array of integers; they end in `numpy.frombuffer`, after all sizes have been compared. There is no
recursion, and no memory is reserved because a pickle announces a size, so deep or large claims do no harm.
"""

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError


def read_plain_pickle(content: bytes, where: str, what: str = "CIFAR batch") -> dict[str, Any]:
    """The dict in a pickle (protocol 2 to 5, by Python 2 or 3): keys as str, arrays as numpy arrays.

    Byte strings of Python 2 become str, byte by byte (latin-1). Raises InputError, starting with `where` and naming
    `what` was expected, for anything but such a dict of plain content.
    """
    try:
        found = _run(content)
        if not isinstance(found, dict):
            raise ValueError(f"it contains not a dict but {type(found).__name__.lstrip('_')}")
        if any(isinstance(value, _Array) and value.value is None for value in found.values()):
            raise ValueError("an array without content")
        return {key: value.value if isinstance(value, _Array) else value for key, value in found.items()}
    except ValueError as error:
        raise InputError(f"{where}: truncated or not a {what}: {' '.join(str(error).split())}") from error
    except (LookupError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(f"{where}: truncated or not a {what}: damaged pickle ({type(error).__name__})") from error


@dataclass(frozen=True)
class _Name:
    """The name of a global; it is never looked up."""

    name: str


@dataclass
class _DType:
    """numpy.dtype: kind and size, such as u1; BUILD sets the byte order."""

    code: str
    order: str = "|"

    def build(self, state: Any) -> None:
        """Take the byte order from numpy's state (version, order, subarray, names, fields, size, alignment, flags)."""
        if not (isinstance(state, tuple) and len(state) >= 5 and state[2:5] == (None, None, None)):
            raise ValueError("an array of structured type")
        order = _text(state[1])
        if order not in ("<", ">", "|", "="):
            raise ValueError("an array of unknown byte order")
        self.order = order


@dataclass
class _Array:
    """numpy.ndarray: created empty, filled by BUILD."""

    value: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        """Take the content from numpy's state: (version, shape, dtype, is Fortran order, bytes)."""
        if not (isinstance(state, tuple) and len(state) == 5):
            raise ValueError("an array with unknown state")
        _, shape, dtype, fortran, raw = state
        self.value = _array(raw, dtype, shape, "F" if fortran else "C")


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> NDArray[Any]:
    """The array with the bytes `raw`; raise ValueError unless type, shape and number of bytes agree."""
    if not isinstance(dtype, _DType):
        raise ValueError("an array without a type")
    if not (isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 2**48 for size in shape)):
        raise ValueError("an array without a shape")
    raw = raw.encode("latin-1") if isinstance(raw, str) else raw
    if not isinstance(raw, bytes | bytearray):
        raise ValueError("an array without its bytes")
    needed = math.prod(shape) * int(dtype.code[1])
    if len(raw) != needed:
        raise ValueError(f"an array of {len(raw)} bytes whose shape needs {needed}")
    return np.frombuffer(raw, np.dtype(dtype.order + dtype.code)).reshape(shape, order="F" if order == "F" else "C")


def _reduce(function: Any, arguments: Any) -> Any:
    """The result of a function that numpy's pickles use; raise ValueError for any other function."""
    if not isinstance(function, _Name):
        raise ValueError("it calls something that is not a function")
    match function.name.replace("numpy._core.", "numpy.core."), arguments:
        case "numpy.core.multiarray._reconstruct", (_Name("numpy.ndarray"), (0,), _):
            return _Array()
        case "numpy.core.numeric._frombuffer", (raw, dtype, shape, order):
            return _Array(_array(raw, dtype, shape, order))
        case "numpy.dtype", (code, *_):
            if _text(code) not in _INTEGERS:
                raise ValueError(f"an array of type {_text(code)[:20]!r}, only integers are read")
            return _DType(_text(code))
        case "_codecs.encode", (str(text), "latin1"):  # Python 3 writes bytes for Python 2 as latin-1 text
            return text
    raise ValueError(f"it calls {function.name[:80]!r}, but only arrays of integers are read")


def _text(value: Any) -> str:
    """A str of str or bytes; raise ValueError for anything else."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__.lstrip('_')} instead of text")
    return value


def _run(content: bytes) -> Any:
    stack: list[Any] = []
    marks: list[int] = []  # heights of the stack at each MARK
    memo: dict[Any, Any] = {}

    def since_mark() -> list[Any]:
        height = marks.pop()
        items = stack[height:]
        del stack[height:]
        return items

    for opcode, argument, _ in pickletools.genops(content):
        match opcode.name:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                return stack.pop()
            case name if name in _CONSTANTS:
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[opcode.name])
            case "MARK":
                marks.append(len(stack))
            case "POP":
                stack.pop()
            case "EMPTY_LIST" | "EMPTY_TUPLE" | "EMPTY_DICT":
                stack.append(_CONTAINERS[opcode.name.removeprefix("EMPTY_")]([]))
            case "LIST" | "TUPLE" | "DICT":
                stack.append(_CONTAINERS[opcode.name](since_mark()))
            case "APPEND" | "APPENDS":
                items = [stack.pop()] if opcode.name == "APPEND" else since_mark()
                if not isinstance(stack[-1], list):
                    raise ValueError("it appends to something that is not a list")
                stack[-1].extend(items)
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                items = [stack.pop() for _ in range(int(opcode.name[-1]))]
                stack.append(tuple(reversed(items)))
            case "SETITEM" | "SETITEMS":
                items = [stack.pop(), stack.pop()][::-1] if opcode.name == "SETITEM" else since_mark()
                if not isinstance(stack[-1], dict):
                    raise ValueError("it sets a key of something that is not a dict")
                stack[-1].update(_dict(items))
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "GLOBAL":
                stack.append(_Name(str(argument).replace(" ", ".")))
            case "STACK_GLOBAL":
                name, module = _text(stack.pop()), _text(stack.pop())
                stack.append(_Name(f"{module}.{name}"))
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(_reduce(function, arguments))
            case "BUILD":
                state = stack.pop()
                if not isinstance(stack[-1], _DType | _Array):
                    raise ValueError("it changes the state of something that is not an array")
                stack[-1].build(state)
            case other:
                raise ValueError(f"it uses {other}, which plain content does not need")
    raise ValueError("it has no end")


def _dict(items: list[Any]) -> dict[str, Any]:
    """key, value, key, value, ... as a dict; its keys must be text, because the hash of a deep tuple recurses."""
    if len(items) % 2:
        raise ValueError("a key without a value")
    return {_text(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {"LIST": list, "TUPLE": tuple, "DICT": _dict}
# Opcodes that push their argument.
_CONSTANTS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_INTEGERS = {kind + size for kind in "iu" for size in "1248"}
