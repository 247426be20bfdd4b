"""Atomic writing against the file system itself, with faults put into each of its operations in turn."""

import itertools
import os
from pathlib import Path

import pytest
from injected import dying, full_disk

from dividemix import atomic


def test_content_comes_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    atomic.write_bytes(tmp_path / "file", b"\x00\xff old")
    atomic.write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_text_is_utf8_with_plain_line_ends(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "file", "été\n")
    assert (tmp_path / "file").read_bytes() == b"\xc3\xa9t\xc3\xa9\n"


def test_content_is_on_the_disk_before_the_name_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut could leave the new name with no content."""
    seen = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        seen.append((os.fstat(descriptor).st_size, (tmp_path / "file").exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    atomic.write_bytes(tmp_path / "file", b"12345")
    assert seen[0] == (5, False)
    assert [exists for _, exists in seen] == [False, True]  # then the folder, so that the name lasts too


@pytest.mark.parametrize("old", [None, b"old content"])
def test_a_process_that_dies_leaves_the_old_or_the_new_content(tmp_path: Path, old: bytes | None) -> None:
    outcomes = []
    for at in itertools.count():
        folder = tmp_path / str(at)
        folder.mkdir()
        path = folder / "file"
        if old is not None:
            path.write_bytes(old)
        with dying(folder, at) as fault:
            atomic.write_bytes(path, b"new content")
        outcomes.append(path.read_bytes() if path.exists() else None)
        if not fault.happened:
            break
    assert outcomes[0] == old
    assert outcomes[-1] == b"new content"
    assert set(outcomes) == {old, b"new content"}
    assert len(outcomes) >= 4  # opening, writing, renaming, and no fault


@pytest.mark.parametrize("at", [0, 1])
def test_a_full_disk_leaves_the_old_content_alone_and_says_which_file(tmp_path: Path, at: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old content")
    with full_disk(tmp_path, at), pytest.raises(OSError, match="No space left on device") as caught:
        atomic.write_bytes(path, b"new content")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"old content")]
    assert "file" in str(caught.value.filename)


def test_a_link_stays_one_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "null").symlink_to("/dev/null")
    atomic.write_bytes(tmp_path / "link", b"new")
    atomic.write_bytes(tmp_path / "null", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "null").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "null"]
