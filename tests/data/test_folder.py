"""Folders of images. Oracle: the files that the test wrote, listed by hand."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import write_png

from dividemix.data.readers import read_source
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError


def make(folder: Path, *paths: str) -> np.ndarray:
    """Images of 8 x 8 at the paths, in their order."""
    return np.stack([write_png(folder / path, number) for number, path in enumerate(paths)])


def names(source: Source) -> list[str]:
    return [source.classes[label] for label in source.train_labels]


def test_each_subfolder_is_a_class(tmp_path: Path) -> None:
    paths = ["class 9/a10.png", "class 9/a9.png", "class 10/x.png", "class 10/deep/er/y.PNG"]
    images = make(tmp_path / "photos", *paths)
    source = read_source(str(tmp_path / "photos"))
    assert source.name == "photos"
    assert source.classes == ("class 9", "class 10")
    assert source.paths == ("class 9/a9.png", "class 9/a10.png", "class 10/deep/er/y.PNG", "class 10/x.png")
    np.testing.assert_array_equal(source.train_samples, images[[1, 0, 3, 2]])
    assert names(source) == ["class 9", "class 9", "class 10", "class 10"]
    assert source.skipped == ()
    assert source.test_samples is None
    assert source.true_labels is None
    assert source.median_size == (8, 8)


def test_what_is_not_an_image_is_listed_and_what_is_hidden_is_not(tmp_path: Path) -> None:
    make(tmp_path, "a/1.png", "b/1.png", "a/.hidden.png", ".git/1.png", "b/.cache/1.png", "outside.png")
    for path in ("readme.txt", "a/Thumbs.db", "b/none", ".DS_Store", "a/.DS_Store"):
        (tmp_path / path).write_text("text")
    (tmp_path / "b/2.png").write_bytes(b"")
    (tmp_path / "c/deep").mkdir(parents=True)
    (tmp_path / "b/folder.png").mkdir()
    source = read_source(str(tmp_path))
    assert source.paths == ("a/1.png", "b/1.png")
    assert set(source.skipped) == {
        Skipped("b/2.png", "empty"),
        Skipped("a/Thumbs.db", "extension '.db' is not that of an image"),
        Skipped("b/none", "extension '' is not that of an image"),
        Skipped("b/folder.png", "a folder, not an image"),
        Skipped("readme.txt", "not in a class folder"),
        Skipped("outside.png", "not in a class folder"),
        Skipped("c", "folder without images: it is no class"),
    }


def test_links_are_followed(tmp_path: Path) -> None:
    """As DVC, git-annex and the cache of Hugging Face lay files out: the images are elsewhere, under other names."""
    photos, store = tmp_path / "photos", tmp_path / "store"
    images = make(store, "blobs/3f2a", "blobs/77c1", "dogs/1.png", "dogs/deep/2.png", "cats/1.png")
    (photos / "cat").mkdir(parents=True)
    (photos / "cat/1.png").symlink_to(store / "blobs/3f2a")
    (photos / "cat/2.png").symlink_to(os.path.relpath(store / "blobs/77c1", photos / "cat"))
    (photos / "cat/more").symlink_to(store / "cats")
    (photos / "dog").symlink_to(store / "dogs")
    source = read_source(str(photos))
    assert source.paths == ("cat/1.png", "cat/2.png", "cat/more/1.png", "dog/1.png", "dog/deep/2.png")
    np.testing.assert_array_equal(source.train_samples, images[[0, 1, 4, 2, 3]])
    assert names(source) == ["cat"] * 3 + ["dog"] * 2
    assert source.skipped == ()


def test_links_that_lead_around_end_and_are_listed(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    make(photos, "a/1.png", "b/1.png", "b/x/2.png")
    (photos / "a/up").symlink_to(photos)
    (photos / "a/self").symlink_to(photos / "a")
    (photos / "b/dangling.png").symlink_to(photos / "b/none.png")
    (photos / "b/x/y").symlink_to(photos / "b")
    (photos / "b/z").symlink_to(photos / "b/x")
    (photos / "c").symlink_to(tmp_path)
    source = read_source(str(photos))
    assert source.paths == ("a/1.png", "b/1.png", "b/x/2.png")
    assert set(source.skipped) == {
        Skipped("a/up", "link to a folder around it: not followed"),
        Skipped("a/self", "link to a folder around it: not followed"),
        Skipped("b/dangling.png", "link to a file that does not exist"),
        Skipped("b/x/y", "link to a folder around it: not followed"),
        Skipped("b/z", "link to a folder that is read already"),
        Skipped("c", "link to a folder around it: not followed"),
        Skipped("c", "folder without images: it is no class"),
    }


def test_a_file_under_two_names_is_one_sample_of_a_class(tmp_path: Path) -> None:
    """The same file in two classes stays two samples: one of the labels is wrong, and that is to be found."""
    photos = tmp_path / "photos"
    make(photos, "train/a/1.png", "train/b/1.png", "test/b/2.png")
    (photos / "train/a/0.png").symlink_to(photos / "train/a/1.png")
    os.link(photos / "train/a/1.png", photos / "train/a/2.png")
    (photos / "train/b/a.png").symlink_to(photos / "train/a/1.png")
    (photos / "test/b/1.png").symlink_to(photos / "train/b/1.png")
    source = read_source(str(photos))
    assert source.paths is not None
    assert source.paths[1:] == ("train/b/1.png", "train/b/a.png")
    notes = {one.path: one.reason for one in source.skipped}
    assert {source.paths[0], *notes} == {*(f"train/a/{number}.png" for number in range(3)), "test/b/1.png"}
    assert notes.pop("test/b/1.png") == "test set: the same file as train/b/1.png"
    assert set(notes.values()) == {f"the same file as {source.paths[0]}"}
    assert source.test_labels is not None
    assert len(source.test_labels) == 1


@pytest.mark.parametrize(
    ("paths", "meant"),
    [
        (["photos/cat/1.png", "photos/dog/1.png"], "photos"),
        (["data/photos/cat/1.png", "data/photos/dog/x/1.png"], "data/photos"),
        (["photos/train/cat/1.png", "photos/train/dog/1.png", "photos/test/cat/2.png"], "photos"),
        (["train/cat/1.png", "train/dog/1.png"], "train"),
    ],
)
def test_a_folder_one_level_too_high_is_named(tmp_path: Path, paths: list[str], meant: str) -> None:
    make(tmp_path, *paths)
    (tmp_path / "runs/old").mkdir(parents=True)
    (tmp_path / "runs/old/report.html").touch()
    with pytest.raises(InputError) as caught:
        read_source(str(tmp_path))
    assert str(caught.value).endswith(
        f"all its images are in one folder, {meant}, whose subfolders seem to be the classes: "
        f"give {tmp_path / meant} as data"
    )


@pytest.mark.parametrize(
    ("paths", "note"),
    [
        ([*(f"photos/{name}/{n}.png" for name in "abcd" for n in range(3)), "docs/logo.png"], "12 of 13 images are in"),
        (["2019/cat/1.png", "2019/dog/1.png", "2020/cat/1.png", "2020/dog/1.png"], "same subfolders, cat, dog: if"),
        (["cat/1.png", "cat/2.png", "dog/1.png"], None),
        (["cat/indoors/1.png", "cat/outdoors/1.png", "dog/1.png", "dog/2.png"], None),
        (["cat/1.png", *(f"cat/{name}/{n}.png" for name in "ab" for n in range(9)), "dog/1.png"], None),
    ],
)
def test_classes_that_may_be_one_level_too_high_are_trained_with_a_note(
    tmp_path: Path, paths: list[str], note: str | None
) -> None:
    """A class may have subfolders, such as one for each camera: that cannot be an error."""
    make(tmp_path, *paths)
    notes = read_source(str(tmp_path)).notes
    assert (notes == ()) if note is None else (len(notes) == 1 and note in notes[0])


def test_the_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    make(tmp_path / "photos", "a/1.png", "b/1.png")
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    assert read_source(str(tmp_path / "link")).paths == ("a/1.png", "b/1.png")


@pytest.mark.parametrize("others", [["test"], ["val"], ["Validation"], ["val", "test"]])
def test_train_and_test_folders(tmp_path: Path, others: list[str]) -> None:
    images = make(tmp_path, "train/a/1.png", "train/b/1.png", "train/b/2.png", *(f"{name}/b/1.png" for name in others))
    (tmp_path / others[0] / "a").mkdir()
    (tmp_path / others[0] / "a/bad.png").write_bytes(b"bad")
    (tmp_path / others[0] / "b/more.png").write_bytes((tmp_path / "train/a/1.png").read_bytes())
    source = read_source(str(tmp_path))
    assert source.classes == ("a", "b")
    tested = f"{' and '.join(sorted(others))} to test on ({len(others) + 2} images)"
    assert source.notes == (f"train is to train on (3 images), {tested}",)
    assert source.paths == ("train/a/1.png", "train/b/1.png", "train/b/2.png")
    np.testing.assert_array_equal(source.train_samples, images[:3])
    assert source.test_labels is not None
    assert isinstance(source.test_samples, np.ndarray)
    assert source.test_labels.tolist() == [1] * (len(others) + 1)
    assert {image.tobytes() for image in source.test_samples} == {image.tobytes() for image in (images[0], *images[3:])}
    assert source.skipped == (Skipped(f"{others[0]}/a/bad.png", "test set: not an image, or damaged at the start"),)


@pytest.mark.parametrize(
    "paths",
    [
        ["train/1.png", "test/1.png"],  # no folders in them
        ["train/a/1.png", "bus/1.png"],  # none to test on
        ["test/a/1.png", "val/b/1.png"],  # nothing to train on
        ["train/a/1.png", "training/b/1.png"],
    ],
)
def test_classes_that_are_only_called_so(tmp_path: Path, paths: list[str]) -> None:
    make(tmp_path, *paths)
    source = read_source(str(tmp_path))
    assert set(source.classes) == {path.split("/")[0] for path in paths}
    assert source.test_samples is None


def test_a_folder_without_images_beside_splits_is_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "train/a/1.png", "train/b/1.png", "test/a/1.png")
    (tmp_path / "runs/first").mkdir(parents=True)
    (tmp_path / "runs/first/summary.json").touch()
    assert read_source(str(tmp_path)).classes == ("a", "b")


@pytest.mark.parametrize("beside", ["test/1.png", "more/first/1.png"])
def test_a_split_beside_what_is_none_is_not_taken_for_a_class(tmp_path: Path, beside: str) -> None:
    make(tmp_path, "train/a/1.png", "train/b/1.png", "val/a/1.png", beside)
    name = beside.split("/")[0]
    with pytest.raises(InputError, match=f"train has class folders, but {name} is neither for training nor .* as test"):
        read_source(str(tmp_path))


def test_another_folder_for_testing(tmp_path: Path) -> None:
    train = make(tmp_path / "train", "a/1.png", "b/1.png", "c/1.png")
    write_png(tmp_path / "other/b/7.png", 1, 20, 8)
    write_png(tmp_path / "other/b/8.png", 1)
    source = read_source(str(tmp_path / "train"), test=str(tmp_path / "other"))
    assert source.test_samples is not None
    assert source.test_labels is not None
    assert source.test_samples.shape == (2, 8, 8, 3)
    assert source.test_labels.tolist() == [1, 1]
    np.testing.assert_array_equal(source.test_samples[1], train[1])
    write_png(tmp_path / "other/d/1.png", 1)
    with pytest.raises(InputError, match="other: test labels: 'd' is not a class of the training labels"):
        read_source(str(tmp_path / "train"), test=str(tmp_path / "other"))


@pytest.mark.parametrize("test", ["whole", "fashion", "missing", "train.txt"])
def test_what_cannot_be_a_test_set(tmp_path: Path, test: str) -> None:
    make(tmp_path / "whole", "train/a/1.png", "train/b/1.png", "test/b/1.png")
    make(tmp_path / "plain", "a/1.png", "b/1.png")
    (tmp_path / "train.txt").write_text("x")
    given = str(tmp_path / test) if test != "fashion" else test
    with pytest.raises(InputError) as caught:
        read_source(str(tmp_path / ("whole" if test == "whole" else "plain")), test=given)
    assert "\n" not in str(caught.value)


def test_the_test_part_of_a_divided_folder_is_taken(tmp_path: Path) -> None:
    make(tmp_path / "plain", "a/1.png", "b/1.png")
    divided = make(tmp_path / "whole", "train/a/1.png", "train/b/1.png", "test/b/1.png")
    source = read_source(str(tmp_path / "plain"), test=str(tmp_path / "whole"))
    np.testing.assert_array_equal(source.test_samples, divided[2:])


def test_no_class_folders(tmp_path: Path) -> None:
    make(tmp_path / "flat", "1.png", "2.png")
    with pytest.raises(
        InputError, match=r"flat: no class folders in it, but 2 images, .*: put the images of each class"
    ):
        read_source(str(tmp_path / "flat"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no class folders in it, it is empty: put"):
        read_source(str(tmp_path / "empty"))
    (tmp_path / "hollow/a").mkdir(parents=True)
    (tmp_path / "hollow/b").mkdir()
    with pytest.raises(InputError, match="hollow: has no images"):
        read_source(str(tmp_path / "hollow"))


@pytest.mark.skipif(os.name != "posix", reason="names that are no text exist on POSIX alone")
def test_names_of_any_bytes_and_any_text(tmp_path: Path) -> None:
    """What is listed can be written as UTF-8."""
    for number, name in enumerate([b"caf\xe9", "ä <script> \n\t😀".encode()]):
        folder = os.path.join(os.fsencode(tmp_path), name)  # noqa: PTH118
        os.mkdir(folder)  # noqa: PTH102
        write_png(tmp_path / "x.png", number)
        os.rename(tmp_path / "x.png", os.path.join(folder, b"\xff.png"))  # noqa: PTH104, PTH118
    source = read_source(str(tmp_path))
    assert set(source.classes) == {"caf\\udce9", "ä <script> \n\t😀"}
    assert source.paths is not None
    assert sorted(path.split("/")[1] for path in source.paths) == ["\\udcff.png"] * 2
    for text in (*source.classes, *source.paths):
        text.encode("utf-8")


@pytest.mark.parametrize("option", [{"root": Path("x")}, {"image_size": 4}])
def test_options_that_make_no_sense(tmp_path: Path, option: dict[str, Any]) -> None:
    make(tmp_path, "a/1.png", "b/1.png")
    with pytest.raises(InputError, match=r"no meaning|image_size is 4"):
        read_source(str(tmp_path), **option)


def test_image_size_is_for_files_alone(tmp_path: Path) -> None:
    make(tmp_path, "a/1.png", "b/1.png")
    assert read_source(str(tmp_path), image_size=24).train_samples.shape == (2, 24, 24, 3)
    with pytest.raises(InputError, match=r"^image_size 24 has no meaning for fashion"):
        read_source("fashion", image_size=24)
    with pytest.raises(InputError, match="fashion has its own"):
        read_source("fashion", test=str(tmp_path))
