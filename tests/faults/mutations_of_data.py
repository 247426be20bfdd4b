"""Damaged versions of files that hold many samples: .tar shards, .npy arrays, .parquet tables; as mutations.py."""

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from mutations import HOSTILE, Mutations, changed, of_bytes

_SIZES = (b"-0000001000", b"77777777777", b"00000000001", b"9", b"", b"\x80" + bytes(3) + b"\xff" * 8, b"\xff" * 12)
_PAX = (
    b"19 size=99999999999\n",
    b"12 size=-1\n",
    b"0 a=b\n",
    b"9" * 30 + b" a=b\n",
    b"18 path=\xff\xfe\0/../x\n",
    b"7 path=",
)


def of_tar(content: bytes, draws: random.Random) -> Mutations:
    """Another field of a header, with its checksum made right; a long name or attributes before it; else bytes."""
    rough, blocks = of_bytes(content, draws), [content[at : at + 512] for at in range(0, len(content), 512)]
    headers = [at for at, block in enumerate(blocks) if block[257:262] == b"ustar"]
    while True:
        if draws.random() < 0.3:
            yield next(rough)
            continue
        some, at = list(blocks), draws.choice(headers)
        header, how = bytearray(some[at]), draws.randrange(6)
        if how == 0:
            header[124:136] = draws.choice(_SIZES).ljust(12, b"\0")[:12]
        elif how == 1:
            header[156:157] = draws.choice((b"0", b"1", b"2", b"3", b"5", b"6", b"K", b"L", b"S", b"g", b"x", b"\xff"))
        elif how == 2:
            names = (
                b"../../x.png",
                b"/etc/passwd",
                b".png",
                b"a.b.c.png",
                b"0001.cls",
                b"",
                b"\xff\xfe.png",
                b"a/" * 49,
            )
            header[:100] = draws.choice(names).ljust(100, b"\0")[:100]
        elif how == 3:
            body = draws.choice((*_PAX, b"n" * 500, b"\0" * 500, b"a/" * 250))
            own = bytearray(header)
            own[156:157], own[124:136] = draws.choice((b"x", b"L", b"K", b"g")), b"%011o\0" % len(body)
            some[at:at] = [_summed(own), body.ljust(512, b"\0")]
            at += 2
        elif how == 4:
            del some[at + draws.randrange(2)]
            yield b"".join(some)
            continue
        else:
            some.insert(at, draws.choice(blocks))
            yield b"".join(some)
            continue
        some[at] = _summed(header)
        yield b"".join(some)


def _summed(header: bytearray) -> bytes:
    """The header with its checksum made right."""
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def of_npy(content: bytes, draws: random.Random) -> Mutations:
    """Another header, type or shape; Python objects; values that are no numbers; else bytes."""
    rough, array = of_bytes(content, draws), np.load(io.BytesIO(content), allow_pickle=False)
    start = content.index(b"{")
    while True:
        how = draws.randrange(4)
        if how == 0:
            size = draws.choice((b"(10000", b"(10000000000", b"(-1", b"(0", b"(1" + b"0" * 40))
            yield content[:start] + content[start:].replace(f"({len(array)}".encode(), size, 1)
        elif how == 1:
            kinds = (b"'<f8'", b"'|O'", b"'<f2'", b"'<c8'", b"'|V4'", b"'<U1'", b"'<M8[s]'", b"[('a', '<f4')]", b"'x'")
            old = content[start:].partition(b"'descr': ")[2].partition(b",")[0]
            yield content.replace(old, draws.choice(kinds), 1)
        elif how == 2:
            yield _saved(array, draws)
        else:
            yield next(rough)


def _saved(array: Any, draws: random.Random) -> bytes:
    changes: tuple[Callable[[], Any], ...] = (
        lambda: array[:-1],
        lambda: array[:0],
        lambda: array.reshape(-1),
        lambda: array[np.newaxis],
        lambda: np.where(np.arange(array.size).reshape(array.shape) == 5, np.nan, array.astype("f4")),
        lambda: np.where(np.arange(array.size).reshape(array.shape) == 5, np.inf, array.astype("f4")),
        lambda: array.astype("f8") * 1e300,
        lambda: array.astype("i8") - 5,
        lambda: array.astype("U3"),
        lambda: array.astype("O"),
        lambda: np.asfortranarray(array),
        lambda: array.astype(">f4"),
        lambda: np.array(0),
        lambda: np.zeros((len(array), 0), "f4"),
    )
    file = io.BytesIO()
    with np.errstate(all="ignore"):
        np.save(file, draws.choice(changes)(), allow_pickle=True)
    return file.getvalue()


def of_parquet(content: bytes, draws: random.Random) -> Mutations:
    """A column of other values, lost, renamed or of another type; other metadata; else bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rough, table = of_bytes(content, draws), pq.read_table(io.BytesIO(content))
    while True:
        name, how, other = draws.choice(table.column_names), draws.randrange(6), table
        place = table.column_names.index(name)
        if how == 0:
            other = table.drop_columns([name])
        elif how == 1:
            other = table.rename_columns([f"{one}x" if one == name else one for one in table.column_names])
        elif how == 2:
            values = [changed(one, draws) if draws.random() < 0.3 else one for one in table[name].to_pylist()]
            try:
                other = table.set_column(place, name, pa.array(values))
            except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
                continue
        elif how == 3:
            kinds = (pa.string(), pa.binary(), pa.float32(), pa.bool_(), pa.date32(), pa.list_(pa.int8()), pa.null())
            other = table.set_column(place, name, pa.nulls(len(table), draws.choice(kinds)))
        elif how == 4:
            about = draws.choice(("", "[]", "{}", '{"info": {"features": 3}}', "[" * 5000, str(draws.choice(HOSTILE))))
            other = table.replace_schema_metadata({"huggingface": about.encode("utf-8", "surrogatepass")})
        else:
            yield next(rough)
            continue
        file = io.BytesIO()
        pq.write_table(other, file)
        yield file.getvalue()
