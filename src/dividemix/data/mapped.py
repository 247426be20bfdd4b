"""Arrays in files, mapped into memory instead of read: a large file costs memory only where it is used."""

import struct
import tokenize
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from dividemix.errors import InputError

_LOCAL_HEADER = struct.Struct("<26xHH")  # of a file in a zip archive: the lengths of its name and its extra field

# What NumPy raises for the damaged header of an array: it is read as a word of Python.
DAMAGE = (ValueError, TypeError, SyntaxError, tokenize.TokenError, EOFError, struct.error, MemoryError, OverflowError)
_OBJECTS, _FIELDS = "has Python objects", "has named fields"  # arrays that are not read


def map_npy(path: Path) -> NDArray[Any]:
    """The array of an .npy file. Changes to it are not written. Raises InputError if the file has none."""
    try:
        with path.open("rb") as file:
            return _mapped(file, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DAMAGE as error:
        if str(error) in (_OBJECTS, _FIELDS):
            raise InputError(f"{path}: {error}: save numbers, and names as text") from error
        raise InputError(f"{path}: not an .npy file, or cut short: write it with numpy.save") from error


def map_member(path: Path, member: zipfile.ZipInfo) -> NDArray[Any] | None:
    """An array in an .npz file that numpy.savez wrote; None if it is compressed, so it must be read."""
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        return None
    with path.open("rb") as file:
        file.seek(member.header_offset)
        file.seek(sum(_LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))), 1)
        return _mapped(file, path)


def _mapped(file: IO[bytes], path: Path) -> NDArray[Any]:
    """The array whose header begins here."""
    version = npy_format.read_magic(file)
    read = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError("unknown version")
    shape, by_column, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(_OBJECTS)
    if dtype.names:
        raise ValueError(_FIELDS)
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "c", file.tell(), shape, "F" if by_column else "C")
