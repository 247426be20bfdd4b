"""The reader of WebVision and ILSVRC12's validation images, against the tree of their layout that the test wrote."""

from pathlib import Path

import numpy as np
import pytest
from official_trees import SYNSETS, make_webvision, write_image, write_lines

from dividemix.data.image_files import ImageFiles
from dividemix.data.images import read_image
from dividemix.data.readers import read_source
from dividemix.data.readers.webvision import list_webvision, read_webvision
from dividemix.errors import InputError


def refused(root: Path | None) -> str:
    with pytest.raises(InputError) as refusal:
        read_webvision(root)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("by_number", [False, True])
@pytest.mark.parametrize("val_folder", ["val_images_256", "val"])
def test_every_split_has_its_images_and_labels(tmp_path: Path, by_number: bool, val_folder: str) -> None:
    """Folders of ILSVRC12 by WordNet's numbers or, as the released code has it, by those of the classes."""
    make_webvision(tmp_path, by_number=by_number, val_folder=val_folder)
    source = read_webvision(tmp_path, 16)
    assert source.classes[:3] == ("tench", "goldfish", "great white shark")
    assert source.train_labels.tolist() == [i % 7 for i in range(28)]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [i % 7 for i in range(14)]
    images, labels = source.other_tests["ilsvrc12"]
    assert labels.tolist() == list(range(7))
    assert source.skipped == ()
    folder = "3" if by_number else "n01491361"
    for read, file in (
        (source.train_samples, "google/q0003/3_a,b.jpg"),
        (source.test_samples, f"{val_folder}/val000003.jpg"),
        (images, f"imagenet/val/{folder}/ILSVRC2012_val_00000003.JPEG"),
    ):
        assert isinstance(read, ImageFiles)
        np.testing.assert_array_equal(read[3], read_image(tmp_path / file, 16, 16, 3))


def test_images_are_256_pixels_unless_asked(tmp_path: Path) -> None:
    make_webvision(tmp_path)
    assert read_source("webvision", tmp_path).train_samples.shape == (28, 256, 256, 3)
    assert read_source("webvision", tmp_path, image_size=40).other_tests["ilsvrc12"][0].shape == (7, 40, 40, 3)


def test_only_the_first_fifty_classes_count(tmp_path: Path) -> None:
    make_webvision(tmp_path)
    write_lines(tmp_path / "info" / "synsets.txt", [f"n{i:08d} name {i}" for i in range(1000)])
    source = read_webvision(tmp_path)
    assert len(source.classes) == 50
    assert source.train_labels.max() == 6  # class 900 is in the list, and 51 in that of the validation images


def test_without_ilsvrc12_it_is_noted_and_not_tested(tmp_path: Path) -> None:
    make_webvision(tmp_path, num_ilsvrc12=0)
    source = read_webvision(tmp_path)
    assert source.other_tests == {}
    assert [one.path for one in source.skipped] == ["imagenet/val"]
    assert list_webvision(tmp_path).ilsvrc12 is None


@pytest.mark.parametrize("kept", [1, 6])
def test_absent_classes_of_ilsvrc12_are_listed_and_the_others_tested(tmp_path: Path, kept: int) -> None:
    make_webvision(tmp_path, num_ilsvrc12=kept)
    empty = tmp_path / "imagenet" / "val" / "n01498041"
    empty.mkdir()  # a folder without images is no better
    source = read_webvision(tmp_path)
    assert source.other_tests["ilsvrc12"][1].tolist() == list(range(kept))
    assert [one.path for one in source.skipped] == [f"imagenet/val/{line.split()[0]}" for line in SYNSETS[kept:]]
    assert source.skipped[-1].reason == "ILSVRC12: no images of the class stingray: not tested"


@pytest.mark.parametrize("in_folders", [0, 6])
def test_images_of_ilsvrc12_outside_of_class_folders_are_told(tmp_path: Path, in_folders: int) -> None:
    make_webvision(tmp_path, num_ilsvrc12=in_folders)
    for number in (8, 9):
        write_image(tmp_path / "imagenet" / "val" / f"ILSVRC2012_val_{number:08d}.JPEG", 0, number)
    source = read_webvision(tmp_path)
    assert ("ilsvrc12" in source.other_tests) == bool(in_folders)
    loose, *absent = source.skipped
    assert loose.path == "imagenet/val"
    assert "2 images, such as ILSVRC2012_val_00000008.JPEG, are not in class folders" in loose.reason
    assert "imagenet/val/n01440764/" in loose.reason
    assert [one.path for one in absent] == (["imagenet/val/n01498041"] if in_folders else [])


def test_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    make_webvision(tmp_path)
    write_lines(tmp_path / "info" / "synsets.txt", ["n00000001 crane, bird", "n00000002 crane", *SYNSETS[2:]])
    assert read_webvision(tmp_path).classes[:2] == ("crane (n00000001)", "crane (n00000002)")


def test_missing_images_are_left_out_and_listed(tmp_path: Path) -> None:
    make_webvision(tmp_path)
    (tmp_path / "google/q0003/3_a,b.jpg").unlink()
    (tmp_path / "val_images_256/val000004.jpg").unlink()
    source = read_webvision(tmp_path)
    assert source.rows.tolist() == [i for i in range(28) if i != 3]
    assert [(one.path, one.reason) for one in source.skipped] == [
        ("google/q0003/3_a,b.jpg", "no such file"),
        ("val000004.jpg", "test set: no such file"),
    ]


def test_lists_that_are_missing_or_wrong_are_named(tmp_path: Path) -> None:
    assert "needs root" in refused(None)
    assert "no such folder" in refused(tmp_path / "nowhere")
    make_webvision(tmp_path)
    for name, content in (
        ("synsets.txt", "tench\n"),
        ("train_filelist_google.txt", "google/a.jpg\n"),
        ("val_filelist.txt", "a.jpg -1\n"),
    ):
        path = tmp_path / "info" / name
        good = path.read_text()
        path.write_text(content)
        assert str(path) in refused(tmp_path)
        path.unlink()
        assert f"{path}: no such file" in refused(tmp_path)
        path.write_text(good)
