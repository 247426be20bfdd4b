"""Damaged inputs, a few hundred: each is left out and listed, or refused in one line; nothing else happens.

Oracle: every case says what is wrong with it, and so which files or lines must be listed, or that it must be refused.
A warning of any kind fails a case.
"""

import io
import os
import socket
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import encoded, pixels, write_png
from PIL import Image

from dividemix.data.readers import read_source
from dividemix.data.source import Source
from dividemix.errors import InputError

RNG = np.random.default_rng(0)
REFUSED = "refused"


@pytest.fixture(autouse=True)
def no_warning_leaks() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def outcome(data: Path, **options: Any) -> Source | str:
    """The source, or REFUSED; what is said about damage is one line each, which names no address in memory."""
    try:
        source = read_source(str(data), **options)
    except InputError as error:
        refusal: str | None = str(error)
    else:
        refusal = None
    if refusal is not None:
        assert refusal.strip()
        assert "\n" not in refusal
        assert len(refusal) < 1000
        assert " at 0x" not in refusal
        return REFUSED
    for one in source.skipped:
        assert one.path
        assert one.reason
        assert "\n" not in one.reason
        assert " at 0x" not in one.reason
    return source


def good_folder(folder: Path) -> Path:
    for number, name in enumerate(["a/0.png", "a/1.png", "b/0.png", "b/1.png"]):
        write_png(folder / name, number)
    return folder


def check_listed(source: Source | str, path: str) -> None:
    """The four good images are there as they were written, and the path is listed, once."""
    assert isinstance(source, Source)
    assert source.paths == ("a/0.png", "a/1.png", "b/0.png", "b/1.png")
    np.testing.assert_array_equal(source.train_samples, np.stack([pixels(number) for number in range(4)]))
    assert [one.path for one in source.skipped] == [path]


# Image files


def saved(kind: str, **options: object) -> bytes:
    image = Image.fromarray(RNG.integers(0, 256, (40, 40, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    (image.quantize(32) if kind == "GIF" else image).save(buffer, kind, **options)
    return buffer.getvalue()


WHOLE = {
    **{kind: saved(kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "TGA", "QOI")},
    "progressive JPEG": saved("JPEG", progressive=True),
    "compressed TIFF": saved("TIFF", compression="tiff_lzw"),
}


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width: int, height: int, depth: int = 8, kind: int = 2, data: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def patched(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


def claiming(kind: str, width: int, height: int) -> bytes:
    """A small file whose header claims another size."""
    content = WHOLE[kind]
    if kind == "PNG":
        return png(width, height)
    if kind == "BMP":
        return patched(content, 18, struct.pack("<ii", width, height))
    if kind == "GIF":
        return patched(content, 6, struct.pack("<HH", width % 65536, height % 65536))
    if kind == "PPM":
        return f"P6 {width} {height} 255\n".encode() + bytes(100)
    if kind == "TGA":
        return patched(content, 12, struct.pack("<HH", width % 65536, height % 65536))
    if kind == "QOI":
        return patched(content, 4, struct.pack(">II", width, height))
    at = content.index(b"\xff\xc0")  # JPEG: the start of frame
    return patched(content, at + 5, struct.pack(">HH", height % 65536, width % 65536))


UNREADABLE: dict[str, bytes] = {
    "zero bytes": b"",
    "one byte": b"\x89",
    "line end": b"\n",
    "NUL bytes": bytes(1000),
    "text": b"this is not an image\n" * 20,
    "HTML": b"<!doctype html><html><body>404 Not Found</body></html>",
    "JSON": b'{"error": "denied"}',
    "git-lfs pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n",
    "PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n",
    "EPS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n",
    "ZIP": b"PK\x03\x04" + bytes(60),
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>',
    "ELF": b"\x7fELF" + bytes(100),
    "UTF-16 text": "hello".encode("utf-16"),
    "pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.",
    "PNG signature alone": b"\x89PNG\r\n\x1a\n",
    "PNG without data": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)),
    "PNG of no pixels": png(0, 0),
    "PNG of no width": png(0, 8),
    "PNG of unknown depth": png(8, 8, depth=7),
    "PNG of unknown kind": png(8, 8, kind=5),
    "PNG with too little data": png(8, 8, data=bytes(30)),
    "PNG with unknown filters": png(8, 8, data=b"\x09" * 200),
    "PNG with broken compression": WHOLE["PNG"][:60] + bytes(len(WHOLE["PNG"]) - 60),
    "PNG with wrong header sum": patched(WHOLE["PNG"], 29, b"\0\0\0\0"),
    "PNG with text bomb": png(8, 8)[:-12]
    + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(80_000_000), 1))
    + png(8, 8)[-12:],
    "JPEG markers alone": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9",
    "JPEG of no height": claiming("JPEG", 40, 0),
    "BMP of negative width": claiming("BMP", -40, 40),
    "BMP of unknown depth": patched(WHOLE["BMP"], 28, b"\x05\x00"),
    "BMP of unknown header": patched(WHOLE["BMP"], 14, b"\xff\xff\x00\x00"),
    "GIF without frames": WHOLE["GIF"][:13] + b";",
    "TIFF without pages": b"II*\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    "TIFF directory far away": b"II*\x00\xff\xff\xff\x7f",
    "PPM without numbers": b"P6 x y z\n",
    "PPM of unknown depth": b"P6 8 8 99999999\n" + bytes(200),
    "PPM without end": b"P6 " + b"9" * 500,
    "PPM comment without end": b"P6 #" + b"c" * 500,
    "WebP of no content": b"RIFF\x04\x00\x00\x00WEBP",
    "WebP chunk too long": b"RIFF\xff\xff\xff\x7fWEBPVP8 \xff\xff\xff\x7f" + bytes(50),
    "AVIF of no content": b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf",
    "JPEG 2000 of no content": b"\x00\x00\x00\x0cjP  \r\n\x87\n",
    "two images' halves": WHOLE["PNG"][:500] + WHOLE["JPEG"][500:],
}
for _kind, _content in WHOLE.items():
    for _percent in (2, 10, 30, 50, 70):
        UNREADABLE[f"{_kind} cut at {_percent} %"] = _content[: len(_content) * _percent // 100]
for _kind in ("PNG", "BMP", "GIF", "PPM", "TGA", "QOI", "JPEG"):
    for _side in (10_001, 30_000, 65_535):
        UNREADABLE[f"{_kind} of {_side} x {_side} claimed"] = claiming(_kind, _side, _side)
for _kind in ("PNG", "PPM", "QOI"):
    UNREADABLE[f"{_kind} of 2**31 - 1 squared claimed"] = claiming(_kind, 2**31 - 1, 2**31 - 1)
    UNREADABLE[f"{_kind} wide as a bomb"] = claiming(_kind, 2**31 - 1, 1)
for _number in range(12):
    UNREADABLE[f"random bytes {_number}"] = RNG.bytes(10 * 2**_number // 4 + 3)


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_image_is_left_out_and_listed(tmp_path: Path, case: str) -> None:
    good_folder(tmp_path)
    (tmp_path / "b/bad.jpg").write_bytes(UNREADABLE[case])
    check_listed(outcome(tmp_path, image_size=8), "b/bad.jpg")


@pytest.mark.parametrize("kind", WHOLE)
def test_flipped_bytes_are_found_or_harmless(tmp_path: Path, kind: str) -> None:
    """Every image is in the source or listed, and none is in both."""
    good_folder(tmp_path)
    rng = np.random.default_rng(1)
    for number in range(12):
        content = bytearray(WHOLE[kind])
        for at in rng.integers(0, len(content) if number % 2 else 60, 1 + number % 4):
            content[at] ^= 1 + int(rng.integers(255))
        (tmp_path / f"b/flipped{number}.png").write_bytes(content)
    for number in range(12):
        write_png(tmp_path / f"a/more{number}.png", number)
    source = outcome(tmp_path)
    assert isinstance(source, Source)
    assert source.paths is not None
    listed = [*source.paths, *(one.path for one in source.skipped)]
    assert sorted(listed) == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))


@pytest.mark.parametrize("suffix", [".png", ".gif", ".tiff", ".JPG", ".webp"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
def test_an_image_with_the_ending_of_another_is_read(tmp_path: Path, kind: str, suffix: str) -> None:
    """A wrong ending does no harm: the content decides."""
    good_folder(tmp_path)
    (tmp_path / f"b/other{suffix}").write_bytes(encoded(pixels(9), kind))
    source = outcome(tmp_path)
    assert isinstance(source, Source)
    assert source.paths is not None
    assert len(source.paths) == 5
    assert source.skipped == ()


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".py", ".png.part", ".eps", ".pdf", ".mp4", ".json", "", "."])
def test_a_file_that_does_not_end_like_an_image_is_listed(tmp_path: Path, suffix: str) -> None:
    good_folder(tmp_path)
    (tmp_path / f"b/other{suffix}").write_bytes(encoded(pixels(9)))
    check_listed(outcome(tmp_path), f"b/other{suffix}")


# What lies in a folder


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    os.chdir(path.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def link_loop(path: Path) -> None:
    path.symlink_to(path)


ODD_THINGS: dict[str, Callable[[Path], None]] = {
    "a folder": Path.mkdir,
    "a fifo": fifo,
    "a socket": listening_socket,
    "a link to itself": link_loop,
    "a link to nothing": lambda path: path.symlink_to("nothing.png"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a folder": lambda path: path.symlink_to(path.parent),
    "a link to the folder above": lambda path: path.symlink_to("../.."),
}


@pytest.mark.skipif(os.name != "posix", reason="made with POSIX calls")
@pytest.mark.parametrize("name", ["odd.png", "odd\nline.png", "-rf.png", "odd 😀.png", "odd.jpg"])
@pytest.mark.parametrize("thing", ODD_THINGS)
def test_what_is_called_an_image_and_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thing: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = good_folder(tmp_path / "photos")
    ODD_THINGS[thing](folder / "b" / name)
    check_listed(outcome(folder), f"b/{name}")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is whole, so it is not skipped. The system's answer is put in its mouth, for root may read everything."""
    good_folder(tmp_path)
    write_png(tmp_path / "b/locked.png", 7)
    really_open = Path.open

    def denied(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "locked.png":
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match=r"b/locked\.png: cannot be read: Permission denied: give yourself access"):
        read_source(str(tmp_path))


def test_memory_that_runs_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good_folder(tmp_path)
    write_png(tmp_path / "b/big.png", 7, 9, 9)

    def short(image: Image.Image, *_: object, **__: object) -> Image.Image:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", short)  # only this one has another size
    with pytest.raises(InputError, match=r"b/big\.png: cannot be read: Cannot allocate memory: free some memory"):
        read_source(str(tmp_path), image_size=8)


FOLDERS: dict[str, list[str]] = {  # what is in them; all of it empty files, unless it begins with "good"
    "empty": [],
    "one empty class": ["a/"],
    "empty classes": ["a/", "b/", "c/"],
    "hidden classes": [".a/good.png", ".b/good.png"],
    "hidden files": ["a/.good.png", "b/.good.png"],
    "images beside no folders": ["good1.png", "good2.png"],
    "one class": ["a/good1.png", "a/good2.png"],
    "one class and an empty one": ["a/good1.png", "a/good2.png", "b/"],
    "one class and a bad one": ["a/good1.png", "a/good2.png", "b/bad.png"],
    "one image": ["a/good.png", "b/"],
    "only bad images": ["a/bad.png", "b/bad.png"],
    "mostly bad images": ["a/good.png", "b/good.png", "b/1.png", "b/2.png", "b/3.png"],
    "no images": ["a/text.txt", "b/text.txt"],
    "nothing to train on": ["train/a/", "train/b/", "test/a/good.png", "test/b/good.png"],
    "unknown class in test": ["train/a/good.png", "train/b/good.png", "test/c/good.png"],
    "only bad images in test": ["train/a/good.png", "train/b/good.png", "test/a/bad.png"],
    "no images in test": ["train/a/good.png", "train/b/good.png", "test/a/"],
    "one class in training": ["train/a/good.png", "train/a/good2.png", "test/b/good.png"],
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_is_no_data_set_is_refused(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in FOLDERS[case]:
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        elif path.name.lstrip(".").startswith("good"):
            write_png(path, len(name))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
    assert outcome(folder) is REFUSED


@pytest.mark.parametrize(
    "name",
    ["", " ", "none", "none.csv", "none.parquet", "none.npz", "a\0b", "a\0b.csv", "x" * 300, "x" * 5000 + ".csv"],
)
def test_a_path_that_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read_source(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz", ".png", ""])
def test_a_folder_called_like_a_file_is_a_folder(tmp_path: Path, suffix: str) -> None:
    folder = good_folder(tmp_path / f"data{suffix}")
    assert isinstance(outcome(folder), Source)


# Tables: what stands in them, and which lines must be listed, or that all is refused. They lie beside the good folder,
# lines 2 to 5 are good where there is a header.

GOOD = "path,label\na/0.png,a\na/1.png,a\nb/0.png,b\nb/1.png,b\n"
TABLES: dict[str, tuple[bytes, list[str] | str]] = {}


def table(name: str, content: str | bytes, expected: list[str] | str) -> None:
    TABLES[name] = (content.encode() if isinstance(content, str) else content, expected)


for _name, _text in {
    "empty": "",
    "blanks": " \n\t\n",
    "a byte order mark alone": "\ufeff",
    "header alone": "path,label\n",
    "no header": "a/0.png,a\nb/0.png,b\n",
    "another header": "file,class\na/0.png,a\nb/0.png,b\n",
    "header in capitals": "PATH,LABEL\na/0.png,a\nb/0.png,b\n",
    "half a header": "path\na/0.png\nb/0.png\n",
    "column twice": "path,label,label\na/0.png,a,b\nb/0.png,b,b\n",
    "path twice": "path,path,label\na/0.png,a,b\nb/0.png,b,b\n",
    "other delimiter": GOOD.replace(",", "|"),
    "blank delimiter": GOOD.replace(",", " "),
    "text": "lorem ipsum\ndolor sit amet\n",
    "HTML": "<table><tr><td>path,label</td></tr></table>",
    "JSON": '[{"path": "a/0.png", "label": "a"}]',
    "quote that never ends": GOOD + '"a/2.png,a\n',
    "quote that never ends in the header": '"path,label\na/0.png,a\n',
    "quote within a quoted field": GOOD + '"a/2"x.png",a\n',
    "NUL character": GOOD + "a/2.png\0,a\n",
    "NUL in the header": "path\0,label\n",
    "field of a megabyte": GOOD + "x" * 1_000_000 + ",a\n",
    "all labels empty": "path,label\na/0.png,\nb/0.png,\n",
    "all paths empty": "path,label\n,a\n,b\n",
    "all files missing": "path,label\nx.png,a\ny.png,b\n",
    "all paths outside": "path,label\n../x.png,a\n/y.png,b\n",
    "all paths the same": "path,label\na/0.png,a\na/0.png,a\na/0.png,a\n",
    "labels that contradict each other": "path,label\na/0.png,a\na/0.png,b\nb/0.png,b\n",
    "one class": "path,label\na/0.png,a\na/1.png,a\n",
    "one image": "path,label\na/0.png,a\n",
    "unknown split": "path,label,split\na/0.png,a,train\nb/0.png,b,holdout\n",
    "empty split": "path,label,split\na/0.png,a,train\nb/0.png,b,\n",
    "only test rows": "path,label,split\na/0.png,a,test\nb/0.png,b,test\n",
    "test class unknown": "path,label,split\na/0.png,a,train\nb/0.png,b,train\nb/1.png,c,test\n",
    "true label missing": "path,label,true_label\na/0.png,a,a\nb/0.png,b,\n",
    "true label unknown": "path,label,true_label\na/0.png,a,a\nb/0.png,b,c\n",
    "split twice": "path,label,split,split\na/0.png,a,train,train\n",
    "sep line of a spreadsheet": "sep=,\n" + GOOD,
}.items():
    table(_name, _text, REFUSED)
for _name, _raw in {
    "latin-1": GOOD.encode() + "b/2.png,Käse\n".encode("latin-1"),
    "cp1252 in the header": "path,label,größe\n".encode("cp1252"),
    "UTF-16 without a mark": GOOD.encode("utf-16-le"),
    "UTF-16 with half a character": GOOD.encode("utf-16") + b"x",
    "UTF-16 with half a pair": GOOD.encode("utf-16") + b"\x00\xd8",
    "UTF-32": GOOD.encode("utf-32"),
    "UTF-32 big-endian": b"\x00\x00\xfe\xff" + GOOD.encode("utf-32-be"),
    "UTF-7 mark": b"+/v8-" + GOOD.encode(),
    "Shift-JIS": GOOD.encode() + "b/2.png,日本\n".encode("shift-jis"),
    "EBCDIC": GOOD.encode("cp500"),
    "half a UTF-8 character": GOOD.encode() + b"b/2.png,\xe2\x82",
    "UTF-8 of surrogates": GOOD.encode() + b"b/2.png,\xed\xa0\x80\n",
    "gzip": b"\x1f\x8b\x08\x00" + RNG.bytes(100),
    "ZIP": b"PK\x03\x04" + RNG.bytes(100),
    "PNG": WHOLE["PNG"],
    "random bytes": RNG.bytes(500),
    "0xff bytes": b"\xff" * 100,
}.items():
    table(_name, _raw, REFUSED)
for _name, _line, _listed in [
    ("missing file", "b/2.png,b", "b/2.png"),
    ("missing folder", "c/2.png,b", "c/2.png"),
    ("file as a folder", "b/0.png/2.png,b", "b/0.png/2.png"),
    ("folder", "b,b", "b"),
    ("the table's folder", ".,b", "."),
    ("the table itself", "data.csv,b", "data.csv"),
    ("path up", "../none.png,b", "../none.png"),
    ("path up and down", "../photos/b/0.png,b", "../photos/b/0.png"),
    ("path down and up", "a/../../none.png,b", "a/../../none.png"),
    ("path far up", "../" * 50 + "etc/passwd,b", "../" * 50 + "etc/passwd"),
    ("absolute path", "/etc/passwd,b", "/etc/passwd"),
    ("absolute path, twice the slash", "//etc/passwd,b", "//etc/passwd"),
    ("home", "~/x.png,b", "~/x.png"),
    ("variable", "$HOME/x.png,b", "$HOME/x.png"),
    ("address", "https://example.org/x.png,b", "https://example.org/x.png"),
    ("file address", "file:///etc/passwd,b", "file:///etc/passwd"),
    ("drive", "C:\\x.png,b", "C:\\x.png"),
    ("backslashes", "b\\0.png,b", "b\\0.png"),
    ("device", "/dev/zero,b", "/dev/zero"),
    ("name too long", "x" * 300 + ".png,b", "x" * 300 + ".png"),
    ("path too long", "x/" * 3000 + "x.png,b", "x/" * 3000 + "x.png"),
    ("empty label", "b/2.png,", "b/2.png"),
    ("blank label", "b/2.png, ", "b/2.png"),
    ("empty path", ",b", "line 6"),
    ("nothing but delimiters", '"",""', ""),
    ("one field", "b/2.png", "b/2.png"),
    ("three fields", "b/2.png,b,c", "b/2.png"),
    ("path with a comma", "b/2,3.png,b", "b/2"),
    ("thousand fields", "b/2.png" + ",b" * 1000, "b/2.png"),
    ("same row again", "b/1.png,b", "b/1.png"),
    ("same file another way", "./a/../b/1.png,b", "./a/../b/1.png"),
    ("wildcard", "b/*.png,b", "b/*.png"),
    ("new line in a path", '"b/\n0.png",b', "b/\n0.png"),
    ("control characters", "b/\x07\x1b[31m.png,b", "b/\x07\x1b[31m.png"),
    ("right-to-left mark", "b/\u202egnp.png,b", "b/\u202egnp.png"),
    ("byte order mark inside", "\ufeffb/0.png,b", "\ufeffb/0.png"),
    ("tag", "<script>alert(1)</script>,b", "<script>alert(1)</script>"),
]:
    table(_name, GOOD + _line + "\n", [_listed] if _listed else [])
table("several at once", GOOD + "x.png,a\n../y.png,b\nb/2.png,\n", ["../y.png", "b/2.png", "x.png"])
table("no line end", GOOD.rstrip("\n"), [])
table("blank lines between", GOOD.replace("\n", "\n\n\r\n"), [])
table("byte order mark", "\ufeff" + GOOD, [])
table("old line ends", GOOD.replace("\n", "\r"), [])


@pytest.mark.parametrize("case", TABLES)
def test_a_damaged_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(tmp_path)
    content, expected = TABLES[case]
    folder = good_folder(tmp_path / "photos")
    (folder / "data.csv").write_bytes(content)
    source = outcome(folder / "data.csv")
    if expected is REFUSED:
        assert source is REFUSED
    else:
        assert isinstance(source, Source)
        assert sorted(one.path for one in source.skipped) == sorted(expected)
        assert source.paths == ("a/0.png", "a/1.png", "b/0.png", "b/1.png")


def test_two_labels_for_one_image_leave_out_both(tmp_path: Path) -> None:
    folder = good_folder(tmp_path)
    (folder / "data.csv").write_text(GOOD + "b/1.png,a\n")
    source = outcome(folder / "data.csv")
    assert isinstance(source, Source)
    assert source.paths == ("a/0.png", "a/1.png", "b/0.png")
    assert [one.path for one in source.skipped] == ["b/1.png", "b/1.png"]


@pytest.mark.parametrize("case", ["text", "latin-1", "all files missing", "header alone", "test class unknown"])
def test_a_damaged_table_for_testing_is_refused(tmp_path: Path, case: str) -> None:
    folder = good_folder(tmp_path)
    (folder / "test.csv").write_bytes(TABLES[case][0])
    assert outcome(folder, test=str(folder / "test.csv")) is REFUSED


def test_there_are_enough_cases() -> None:
    assert len(UNREADABLE) + len(TABLES) + len(FOLDERS) + len(ODD_THINGS) >= 200
