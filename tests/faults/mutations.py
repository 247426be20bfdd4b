"""Damaged versions of a file, by its format: cut, mixed and enlarged bytes, and changes that keep the format.

Every function takes a random generator and yields contents without end; equal seeds give equal contents.
"""

import copy
import csv
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import yaml

Mutations = Iterator[bytes]
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *("", "x", "x" * 5000, "\ud800", "\0", "../../etc/passwd", "=1+1", "os:system", "planted:RAN", "true", "1e999"),
    *([], {}, [[]], [None], {"a": {}}, [1, "a", None], {"": 0}),
)
_DEEP = "[" * 5000 + "]" * 5000


def of_bytes(content: bytes, draws: random.Random) -> Mutations:
    """Cut short, with bytes that are lost, added, repeated, zero or random."""
    yield b""
    while True:
        a, b = sorted(draws.randrange(len(content) + 1) for _ in range(2))
        b = min(b, a + draws.choice((1, 2, 8, 64, 1000)))
        noise = draws.randbytes(draws.choice((1, 2, 8, 64)))
        yield draws.choice(
            (
                content[:a],
                content[a:],
                content[:a] + content[b:],
                content[:a] + noise + content[a:],
                content[:a] + noise + content[b:],
                content[:a] + bytes(b - a) + content[b:],
                content[:b] + content[a:],
                content + noise,
                noise + content,
            )
        )


def changed(value: Any, draws: random.Random) -> Any:
    """A JSON value with one change somewhere: another value, a key that is lost, added or renamed."""
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    if isinstance(value, dict | list):
        visit(value)
    if not places:
        return draws.choice(HOSTILE)
    node, key = draws.choice(places)
    how = draws.randrange(6)
    if how == 0:
        del node[key]
    elif how == 1 and isinstance(node, dict):
        node[f"{key}x"] = node.pop(key)
    elif how == 2:
        node[key] = [node[key]]
    elif how == 3 and isinstance(node[key], int | float):
        node[key] = draws.choice((node[key] + 1, -node[key], node[key] * 10**6, str(node[key])))
    else:
        node[key] = draws.choice(HOSTILE)
    return value


def of_json(content: bytes, draws: random.Random) -> Mutations:
    """Another value somewhere, a key twice, deep nesting, another encoding; else bytes."""
    value, rough = json.loads(content), of_bytes(content, draws)
    text = content.decode()
    yield from (_DEEP.encode(), text.encode("utf-16"), b"\xef\xbb\xbf" + content, content * 2, b"[]", b"{}", b"null")
    while True:
        yield json.dumps(changed(value, draws)).encode() if draws.random() < 0.7 else next(rough)


def of_lines(content: bytes, draws: random.Random) -> Mutations:
    """JSON lines: one is changed, lost, repeated or moved; else bytes."""
    lines, rough = content.splitlines(keepends=True), of_bytes(content, draws)
    while True:
        one = draws.randrange(len(lines))
        line = json.dumps(changed(json.loads(lines[one]), draws)).encode() + b"\n"
        yield draws.choice(
            (
                b"".join([*lines[:one], line, *lines[one + 1 :]]),
                b"".join(lines[:one] + lines[one + 1 :]),
                b"".join([*lines, lines[one]]),
                b"".join(reversed(lines)),
                next(rough),
            )
        )


def of_yaml(content: bytes, draws: random.Random) -> Mutations:
    """Another value somewhere, tags, aliases, documents; else bytes."""
    values, rough = yaml.safe_load(content), of_bytes(content, draws)
    yield from (
        b"!!python/object/apply:os.system ['touch RAN']",
        b"data: !!python/name:os.system",
        b"a: &a [*a]",
        b"a: &a {b: 1}\n<<: *a\n",
        content + b"---\n" + content,
        content.replace(b"\n", b"\r"),
        b"? {a: 1}\n: 2\n",
        b"data: " + _DEEP.encode(),
    )
    while True:
        if draws.random() < 0.7:
            yield yaml.safe_dump(changed(values, draws), sort_keys=False).encode("utf-8", "surrogatepass")
        else:
            yield next(rough)


def of_csv(content: bytes, draws: random.Random) -> Mutations:
    """Another field somewhere, a column that is lost, twice or renamed, ragged lines, quotes; else bytes."""
    rough, rows = of_bytes(content, draws), list(csv.reader(io.StringIO(content.decode(), newline="")))
    yield from (content.decode().encode("utf-16"), content.replace(b",", b";"), content.replace(b"\n", b"\r"), b'"')
    while True:
        table = [list(row) for row in rows]
        row, column = draws.randrange(len(table)), draws.randrange(len(table[0]))
        how = draws.randrange(8)
        if how == 0:
            table = [line[:column] + line[column + 1 :] for line in table]
        elif how == 1:
            table = [[*line, line[min(column, len(line) - 1)]] for line in table]
        elif how == 2:
            del table[row][draws.randrange(len(table[row])) :]
        elif how == 3:
            table.append(table[row])
        elif how == 4:
            yield next(rough)
            continue
        else:
            table[row][min(column, len(table[row]) - 1)] = str(draws.choice(HOSTILE))
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(table)
        yield text.getvalue().encode("utf-8", "surrogatepass")


def of_safetensors(content: bytes, draws: random.Random) -> Mutations:
    """Another header or length of the header; else bytes."""
    (length,) = struct.unpack("<Q", content[:8])
    header, body, rough = json.loads(content[8 : 8 + length]), content[8 + length :], of_bytes(content, draws)
    for wrong in (0, 1, length - 1, length + 1, len(content), 2**31, 2**40, 2**63, 2**64 - 1):
        yield struct.pack("<Q", wrong) + content[8:]
    while True:
        text = json.dumps(changed(header, draws)).encode()
        yield struct.pack("<Q", len(text)) + text + body if draws.random() < 0.7 else next(rough)


def of_npz(content: bytes, draws: random.Random) -> Mutations:
    """An array of another type, shape or name, a header that claims more, Python objects; else bytes."""
    rough = of_bytes(content, draws)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    while True:
        changed_members, name = dict(members), draws.choice(list(members))
        how = draws.randrange(6)
        if how == 0:
            del changed_members[name]
        elif how == 1:
            changed_members[draws.choice(("../x.npy", "x.npy", "x_test.npy", "classes.npy", ""))] = members[name]
        elif how == 2:
            changed_members[name] = next(of_bytes(members[name], draws))
        elif how == 3:
            changed_members[name] = _npy(np.load(io.BytesIO(members[name]), allow_pickle=False), draws)
        elif how == 4:
            size = str(draws.choice((10**5, 10**9, 10**15))).encode()
            changed_members[name] = members[name].replace(b"(40,", b"(" + size + b",", 1)
        else:
            yield next(rough)
            continue
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for one, bytes_of_one in changed_members.items():
                archive.writestr(one or "empty", bytes_of_one)
        yield file.getvalue()


def _npy(array: Any, draws: random.Random) -> bytes:
    """The array as another type or shape."""
    changes: tuple[Callable[[], Any], ...] = (
        lambda: array.astype("f4"),
        lambda: array.astype("U3"),
        lambda: array.astype("c8"),
        lambda: array.astype("O"),
        lambda: array.astype(">i8"),
        lambda: np.zeros(len(array), dtype=[("a", "i4"), ("b", "U2")]),
        lambda: array[:0],
        lambda: array[:-1],
        lambda: array.reshape(-1),
        lambda: array[np.newaxis],
        lambda: array[()] if array.ndim == 0 else array[0],
        lambda: np.zeros(len(array), dtype="M8[s]"),
        lambda: -array.astype("i8"),
        lambda: array.astype("i8") + 2**62,
        lambda: np.asfortranarray(array),
    )
    file = io.BytesIO()
    try:
        np.save(file, draws.choice(changes)(), allow_pickle=True)
    except (ValueError, TypeError):
        np.save(file, np.array(None), allow_pickle=True)
    return file.getvalue()


def of_png(content: bytes, draws: random.Random) -> Mutations:
    """Another chunk, with its checksum made right; else bytes."""
    rough, chunks, at = of_bytes(content, draws), list[tuple[bytes, bytes]](), 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + length]))
        at += length + 12
    while True:
        if draws.random() < 0.4:
            yield next(rough)
            continue
        some, one = list(chunks), draws.randrange(len(chunks))
        kind, body = some[one]
        how = draws.randrange(5)
        if how == 0:
            some.insert(one, draws.choice(((b"tRNS", b"\0\0"), (b"acTL", bytes(8)), (b"zTXt", b"a\0\0x"), some[one])))
        elif how == 1:
            del some[one]
        elif kind == b"IHDR":
            size = struct.pack(">II", *(draws.choice((0, 1, 8, 9999, 40000, 2**31 - 1, 2**32 - 1)) for _ in range(2)))
            some[one] = kind, size + bytes([draws.choice((1, 8, 16)), draws.choice((0, 2, 3, 4, 6, 9)), 0, 0, 0])
        elif kind == b"IDAT":
            some[one] = kind, draws.choice((zlib.compress(bytes(10**6)), next(of_bytes(body, draws)), b""))
        else:
            some[one] = draws.choice((b"PLTE", b"IDAT", b"IEND", b"eXIf", b"iCCP")), body or b"x"
        written = (struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in some)
        yield content[:8] + b"".join(written)
