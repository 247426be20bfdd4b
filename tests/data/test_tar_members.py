"""The members of .tar files. Oracle: Python's tarfile on the same archive."""

import io
import random
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest
from tar_shards import write_tar

from dividemix.data.tar_members import DamagedTar, Member, members

NAMES = ["a.jpg", "folder/b.jpg", "n" * 90 + "/" + "m" * 80 + ".jpg", "deep/" * 60 + "c.jpg", "ümläut.jpg"]


def found(content: bytes) -> list[Member]:
    return list(members(io.BytesIO(content), len(content)))


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_format_is_read_as_tarfile_reads_it(tmp_path: Path, kind: int) -> None:
    names = [name for name in NAMES if kind != tarfile.USTAR_FORMAT or len(name) < 200]
    files = [(name, bytes([number]) * (300 * number)) for number, name in enumerate(names)]
    path = write_tar(tmp_path / "a.tar", files, format=kind)
    with tarfile.open(path) as archive:
        expected = [(one.name, one.offset_data, one.size) for one in archive if one.isfile()]
    assert [one[:3] for one in found(path.read_bytes())] == expected
    for (_, content), one in zip(files, found(path.read_bytes()), strict=True):
        assert path.read_bytes()[one.offset : one.offset + one.size] == content


def test_links_are_named_and_folders_and_devices_are_not(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in (("folder", tarfile.DIRTYPE), ("soft.jpg", tarfile.SYMTYPE), ("hard.jpg", tarfile.LNKTYPE)):
            about = tarfile.TarInfo(name)
            about.type, about.linkname = kind, "/etc/passwd"
            archive.addfile(about)
        about = tarfile.TarInfo("fifo.jpg")
        about.type = tarfile.FIFOTYPE
        archive.addfile(about)
        archive.addfile(tarfile.TarInfo("last.jpg"))
    assert [(one.name, one.is_link) for one in found((tmp_path / "a.tar").read_bytes())] == [
        ("soft.jpg", True),
        ("hard.jpg", True),
        ("last.jpg", False),
    ]


def test_a_size_beyond_eight_gigabytes_is_read_in_base_256() -> None:
    about = tarfile.TarInfo("large.jpg")
    about.size = 3 << 33
    header = about.tobuf(tarfile.GNU_FORMAT)
    (one,) = members(io.BytesIO(header), 512 + about.size)
    assert one.size == 3 << 33


def test_an_archive_without_its_end_blocks_is_whole(tmp_path: Path) -> None:
    content = write_tar(tmp_path / "a.tar", [("a.jpg", b"x" * 600)]).read_bytes()
    assert len(found(content[: 3 * 512])) == 1
    assert found(b"") == []


def test_damage_is_located(tmp_path: Path) -> None:
    content = write_tar(tmp_path / "a.tar", [("a.jpg", b"x" * 600), ("b.jpg", b"y" * 600)]).read_bytes()
    second = 3 * 512
    flipped = bytearray(content)
    flipped[second + 3] ^= 1
    with pytest.raises(DamagedTar, match=r"damaged at byte 1,536 \(wrong checksum"):
        found(bytes(flipped))
    with pytest.raises(DamagedTar, match="cut short: a file of 600 bytes begins at byte 2,048"):
        found(content[: second + 900])
    with pytest.raises(DamagedTar, match="cut short at byte 1,536"):
        found(content[: second + 100])
    with pytest.raises(DamagedTar, match=r"not a \.tar file"):
        found(b"no archive" * 100)


@pytest.mark.parametrize("seed", range(30))
def test_random_damage_raises_nothing_else(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    content = bytearray(write_tar(tmp_path / "a.tar", [(name, b"x" * 40) for name in NAMES], format=kind).read_bytes())
    for _ in range(rng.randrange(1, 6)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    with suppress(DamagedTar):
        assert len(found(bytes(content[: rng.randrange(len(content))]))) <= len(NAMES)


@pytest.mark.parametrize("kind", [b"0", b"L", b"x"])
@pytest.mark.parametrize("size", [b"-0000001000", b"+0000001000", b"0000_001000"])
def test_a_size_with_a_sign_is_damage(kind: bytes, size: bytes) -> None:
    """A negative size of a long name led back to its own header: the reader never ended."""
    header = bytearray(tarfile.TarInfo("a.jpg").tobuf(tarfile.GNU_FORMAT))
    header[124:136], header[156:157], header[148:156] = size + b"\0", kind, b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(DamagedTar, match="no number in a header"):
        found(bytes(header) + bytes(2048))
