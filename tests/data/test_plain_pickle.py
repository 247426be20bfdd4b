"""The pickle reader against Python's own pickles of the same content; hostile pickles must leave a marker unmade."""

import builtins
import contextlib
import os
import pickle
import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dividemix.data.readers.plain_pickle import read_plain_pickle
from dividemix.errors import InputError


def content() -> dict[str, Any]:
    """What a batch holds, in Python 3's types."""
    rng = np.random.default_rng(0)
    return {
        "batch_label": "training batch 1 of 5",
        "labels": [3, 300, 70000, -1, 2**40],
        "data": rng.integers(0, 256, (5, 7), dtype=np.uint8),
        "filenames": ["a.png", "b.png"],
        "nothing": None,
        "yes": (True, False, 1.5, (), ("x",), ("x", "y"), (1, 2, 3, 4)),
        "nested": {"empty": {}, "list": []},
    }


def same(got: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert got.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(got[key], value)
            assert got[key].dtype == value.dtype
        else:
            assert got[key] == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_python_3_pickles(protocol: int) -> None:
    same(read_plain_pickle(pickle.dumps(content(), protocol), "file"), content())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_byte_keys_become_text(protocol: int) -> None:
    pickled = pickle.dumps({b"data": content()["data"], b"labels": [1, 2]}, protocol)
    same(read_plain_pickle(pickled, "file"), {"data": content()["data"], "labels": [1, 2]})


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["u1", "i1", "<i4", ">i4", "<u8", ">i2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_integer_arrays_of_any_order(protocol: int, dtype: str, order: Literal["C", "F"]) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4), dtype=dtype, order=order)
    got = read_plain_pickle(pickle.dumps({"data": array}, protocol), "file")["data"]
    np.testing.assert_array_equal(got, array)


def python_2_batch(
    rows: NDArray[np.uint8],
    labels: list[int],
    string: Callable[[bytes], bytes] = lambda text: b"U" + bytes([len(text)]) + text,
) -> bytes:
    """A batch written as Python 2 wrote CIFAR's: protocol 2, byte strings, memo entries."""
    raw = rows.tobytes()
    return b"".join(
        [
            *(b"\x80\x02}q\x01(", string(b"batch_label"), b"q\x02", string(b"batch 1"), b"q\x03"),
            *(string(b"labels"), b"q\x04]q\x05(", *(b"K" + bytes([label]) for label in labels), b"e"),
            *(string(b"data"), b"r\x06\x00\x00\x00cnumpy.core.multiarray\n_reconstruct\nq\x07"),
            *(b"cnumpy\nndarray\nq\x08K\x00\x85", string(b"b"), b"\x87Rq\x09("),
            *(b"K\x01", b"J", struct.pack("<i", rows.shape[0]), b"M", struct.pack("<H", rows.shape[1]), b"\x86"),
            *(b"cnumpy\ndtype\nq\x0a", string(b"u1"), b"K\x00K\x01\x87R(K\x03", string(b"|")),
            *(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89", b"T", struct.pack("<i", len(raw)), raw, b"tb"),
            b"u.",
        ]
    )


@pytest.mark.parametrize(
    "string",
    [
        lambda text: b"U" + bytes([len(text)]) + text,
        lambda text: b"T" + struct.pack("<i", len(text)) + text,
        lambda text: b"S'" + text + b"'\n",
    ],
    ids=["SHORT_BINSTRING", "BINSTRING", "STRING"],
)
def test_python_2_pickles(string: Callable[[bytes], bytes]) -> None:
    """The bytes are written by hand; Python's own unpickler must agree that they are a batch."""
    rows = np.random.default_rng(1).integers(0, 256, (3, 300), dtype=np.uint8)
    pickled = python_2_batch(rows, [7, 0, 9], string)
    oracle = pickle.loads(pickled, encoding="bytes")
    got = read_plain_pickle(pickled, "file")
    same(got, {"batch_label": "batch 1", "labels": oracle[b"labels"], "data": oracle[b"data"]})
    np.testing.assert_array_equal(got["data"], rows)


class Calls:
    """Unpickled by Python, an instance calls the function."""

    def __init__(self, function: Callable[..., object], *arguments: object, state: object = None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduced


def hostile(marker: Path | str) -> dict[str, Any]:
    """Name -> object whose pickle would make the marker, or reach what it must not."""
    touch = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    array = np.zeros(3, np.uint8)
    return {
        "os.system": Calls(os.system, f"touch {marker}"),
        "eval": Calls(builtins.eval, touch),
        "exec": {"data": [Calls(builtins.exec, touch)]},
        "Path.touch": Calls(Path.touch, marker),
        "nested": {"data": Calls(list, Calls(map, builtins.eval, [touch]))},
        "as an argument": {"data": Calls(np.dtype, Calls(eval, touch))},
        "as a key": {Calls(eval, touch): 1},
        "getattr": Calls(getattr, "x", "upper"),
        "hostile state": Calls(np.dtype, "u1", state=Calls(eval, touch)),
        "object array": {"data": np.array([Calls(eval, touch)], object)},
        "array subclass": {"data": array.view(np.recarray)},
        "numpy.load": Calls(np.load, str(marker), "w+"),
    }


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", hostile("marker"))
def test_nothing_runs(tmp_path: Path, name: str, protocol: int) -> None:
    marker = tmp_path / "marker"
    pickled = pickle.dumps(hostile(marker)[name], protocol)
    with pytest.raises(InputError, match="file: truncated or not a CIFAR batch: ") as caught:
        read_plain_pickle(pickled, "file")
    assert "\n" not in str(caught.value)
    assert not marker.exists()


def test_the_marker_would_be_made_by_an_ordinary_unpickler(tmp_path: Path) -> None:
    """The hostile cases are real: Python's unpickler falls for them."""
    for name in (
        "os.system",
        "eval",
        "exec",
        "Path.touch",
        "nested",
        "as an argument",
        "hostile state",
        "object array",
    ):
        marker = tmp_path / name.replace(" ", "_")
        with contextlib.suppress(TypeError, ValueError):  # numpy may stumble over what it got, after it ran
            pickle.loads(pickle.dumps(hostile(marker)[name], 2))
        assert marker.exists(), name


def test_a_refusal_names_what_was_called() -> None:
    with pytest.raises(InputError, match=r"it calls '(posix|nt)\.system'"):
        read_plain_pickle(pickle.dumps(Calls(os.system, "true")), "file")


NDARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
U1 = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR"


def data(value: bytes) -> bytes:
    """A pickled dict whose data is what the opcodes push."""
    return b"\x80\x02}U\x04data" + value + b"s."


MALFORMED = {
    "empty": b"",
    "garbage": b"\xff\xfe\xfd not a pickle",
    "text": b"hello world",
    "no stop": b"\x80\x02}",
    "stop at once": b".",
    "a list": b"\x80\x02].",
    "an array": pickle.dumps(np.zeros(3, np.uint8), 2),
    "mark missing": b"\x80\x02e.",
    "memo missing": b"\x80\x02h\x05.",
    "one key": b"\x80\x02}(U\x01au.",
    "numbered key": b"\x80\x02}(K\x01K\x02u.",
    "append to a dict": b"\x80\x02}K\x01a.",
    "set in a list": b"\x80\x02]K\x01K\x02s.",
    "announced size": b"\x80\x02T\xff\xff\xff\x7fx.",
    "announced huge size": b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7fx.",
    "huge number": b"\x80\x02I" + b"9" * 10000 + b"\n.",
    "deep lists": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "deep tuple as key": b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"Ns.",
    "list that holds itself": b"\x80\x02]q\x01h\x01a.",
    "persistent object": b"\x80\x02U\x01xQ.",
    "extension code": b"\x80\x02\x82\x01.",
    "out-of-band buffer": b"\x80\x05\x97.",
    "instance": b"\x80\x02(ios\nsystem\n.",
    "new object": b"\x80\x02cnumpy\ndtype\n)\x81.",
    "state of a global": data(b"cnumpy\ndtype\n}b"),
    "state of a dict": data(b"}}b"),
    "call of a text": data(b"U\x01x)R"),
    "array without state": data(NDARRAY),
    "state no tuple": data(NDARRAY + b"}b"),
    "state without dtype": data(NDARRAY + b"(K\x01(K\x03tN\x89U\x03abctb"),
    "state without shape": data(NDARRAY + b"(K\x01U\x01x" + U1 + b"\x89U\x03abctb"),
    "negative shape": data(NDARRAY + b"(K\x01(J\xfd\xff\xff\xfft" + U1 + b"\x89U\x03abctb"),
    "huge shape": data(NDARRAY + b"(K\x01(" + b"J\xff\xff\xff\x7f" * 9 + b"t" + U1 + b"\x89U\x03abctb"),
    "too few bytes": data(NDARRAY + b"(K\x01(K\x04t" + U1 + b"\x89U\x03abctb"),
    "too many bytes": data(NDARRAY + b"(K\x01(K\x02t" + U1 + b"\x89U\x03abctb"),
    "bytes are a list": data(NDARRAY + b"(K\x01(K\x03t" + U1 + b"\x89]tb"),
    "bytes are wide text": data(NDARRAY + b"(K\x01(K\x01t" + U1 + b"\x89X\x03\x00\x00\x00\xe2\x82\xactb"),
    "object dtype": data(b"cnumpy\ndtype\n(U\x02O8K\x00K\x01tR"),
    "float dtype": pickle.dumps({"data": np.zeros(3)}, 2),
    "text dtype": pickle.dumps({"data": np.array(["a"])}, 2),
    "structured dtype": pickle.dumps({"data": np.zeros(3, [("a", "u1")])}, 2),
    "fields in the state": data(U1 + b"(K\x03U\x01|N)}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"),
    "odd byte order": data(U1 + b"(K\x03U\x01OK\x00K\x00K\x00tb"),
    "another array class": data(b"cnumpy.core.multiarray\n_reconstruct\n(cos\nsystem\n(K\x00tU\x01btR"),
    "another codec": data(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00hextR"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_content_is_one_clear_line(name: str) -> None:
    with pytest.raises(InputError, match="file: truncated or not a CIFAR batch: ") as caught:
        read_plain_pickle(MALFORMED[name], "file")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_huge_memo_index_reserves_nothing() -> None:
    assert read_plain_pickle(data(b"Nr\xff\xff\xff\xff"), "file") == {"data": None}


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_random_damage_never_raises_anything_else() -> None:
    """Flipped, cut and repeated bytes: a dict or InputError."""
    rng = random.Random(0)
    originals = [pickle.dumps(content(), protocol) for protocol in (2, 3, 4, 5)]
    originals.append(python_2_batch(np.zeros((2, 300), np.uint8), [1, 2]))
    refused = 0
    for _ in range(3000):
        damaged = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            assert isinstance(read_plain_pickle(bytes(damaged), "file"), dict)
        except InputError:
            refused += 1
    assert refused > 1000
