"""A cleaned folder, read back by the reader of folders; expected trees are written out by hand."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from dividemix.data.readers.folder import list_folder
from dividemix.errors import InputError
from dividemix.relabel.cleaned_folder import write_cleaned_folder
from dividemix.relabel.corrections import Correction


def picture(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8), shade).save(path)


def correction(index: int, path: str, given: str, new: str, action: str = "choose") -> Correction:
    return Correction(where="c.csv", index=index, path=path, given_label=given, new_label=new, action=action)


def found(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for shade, name in enumerate(["cat/1.png", "cat/deep/2.png", "cat/3.png", "dog/1.png", "dog/4.png"]):
        picture(tmp_path / "photos" / name, shade)
    return tmp_path / "photos"


DECIDED = [
    correction(0, "cat/1.png", "cat", "dog"),
    correction(2, "cat/deep/2.png", "cat", "big cat"),
    correction(1, "cat/3.png", "cat", "", "delete"),
    correction(4, "dog/4.png", "dog", "", "ambiguous"),
]


@pytest.mark.parametrize("can_link", [True, False])
def test_images_are_in_the_folder_of_their_label(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_link: bool
) -> None:
    """Where two images would have one name, the second gets another; where links cannot be, there are copies."""

    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    if not can_link:
        monkeypatch.setattr(os, "link", refuse)
    before = found(photos)
    assert write_cleaned_folder(photos, DECIDED, tmp_path / "clean") == 4
    assert found(tmp_path / "clean") == {
        "dog/1.png": before["cat/1.png"],
        "dog/1-2.png": before["dog/1.png"],
        "dog/4.png": before["dog/4.png"],
        "big cat/deep/2.png": before["cat/deep/2.png"],
    }
    assert found(photos) == before
    assert (tmp_path / "clean" / "dog" / "4.png").samefile(photos / "dog" / "4.png") == can_link
    assert sorted(list_folder(tmp_path / "clean")[0].labels) == ["big cat", "dog", "dog", "dog"]


def test_test_images_stay_test_images(tmp_path: Path) -> None:
    for shade, name in enumerate(["train/cat/a.png", "train/dog/b.png", "val/cat/c.png"]):
        picture(tmp_path / "p" / name, shade)
    write_cleaned_folder(tmp_path / "p", [correction(0, "train/cat/a.png", "cat", "dog")], tmp_path / "clean")
    assert found(tmp_path / "clean").keys() == {"train/dog/a.png", "train/dog/b.png", "test/cat/c.png"}


def test_a_table_becomes_a_folder(tmp_path: Path) -> None:
    for shade, name in enumerate(["x/a.png", "y/a.png", "y/b.png"]):
        picture(tmp_path / name, shade)
    (tmp_path / "t.csv").write_text("path,label\nx/a.png,cat\ny/a.png,cat\ny/b.png,dog\n")
    assert write_cleaned_folder(tmp_path / "t.csv", [correction(2, "y/b.png", "dog", "cat")], tmp_path / "clean") == 3
    assert found(tmp_path / "clean").keys() == {"cat/a.png", "cat/a-2.png", "cat/b.png"}


def test_a_table_may_be_elsewhere(tmp_path: Path) -> None:
    """Its paths start from image_root, or are absolute."""
    picture(tmp_path / "disk" / "a.png", 1)
    picture(tmp_path / "other" / "b.png", 2)
    table = tmp_path / "project" / "t.csv"
    table.parent.mkdir()
    table.write_text(f"path,label\na.png,cat\n{tmp_path / 'other' / 'b.png'},dog\n")
    write_cleaned_folder(
        table, [correction(0, "a.png", "cat", "emu")], tmp_path / "clean", image_root=tmp_path / "disk"
    )
    assert found(tmp_path / "clean").keys() == {"emu/a.png", "dog/b.png"}


def test_a_link_is_followed_to_its_image(photos: Path, tmp_path: Path) -> None:
    picture(tmp_path / "cache" / "7f3a.png", 99)
    (photos / "dog" / "link.png").symlink_to(tmp_path / "cache" / "7f3a.png")
    write_cleaned_folder(photos, [], tmp_path / "clean")
    copied = tmp_path / "clean" / "dog" / "link.png"
    assert not copied.is_symlink()
    assert copied.read_bytes() == (tmp_path / "cache" / "7f3a.png").read_bytes()


@pytest.mark.parametrize("label", ["../out", "a/b", "..", ".hidden", "a\\b", "x" * 300])
def test_a_label_that_is_no_name_of_a_folder_is_refused(photos: Path, tmp_path: Path, label: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="cannot be the name of a folder: write a table instead"):
        write_cleaned_folder(photos, [correction(0, "cat/1.png", "cat", label)], tmp_path / "clean")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("full", "exists and is not empty"),
        ("photos/clean", "must not be inside of"),
        ("photos", "exists and is not empty"),
        ("file.txt", "exists and is not empty"),
    ],
)
def test_nothing_is_overwritten(photos: Path, tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "file.txt").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        write_cleaned_folder(photos, DECIDED, tmp_path / out)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_leaves_nothing(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:3])
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(18, "no links")))
    monkeypatch.setattr("shutil.copy2", full)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match="No space left"):
        write_cleaned_folder(photos, DECIDED, tmp_path / "clean")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["d.npz", "d.parquet"])
def test_data_without_image_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match="has no image files to copy"):
        write_cleaned_folder(tmp_path / name, [], tmp_path / "clean")


def test_corrections_for_other_data_are_refused(photos: Path, tmp_path: Path) -> None:
    decided: Sequence[Correction] = [correction(0, "cat/1.png", "dog", "cat")]
    with pytest.raises(InputError, match="the corrections are for other data"):
        write_cleaned_folder(photos, decided, tmp_path / "clean")
    assert not (tmp_path / "clean").exists()
