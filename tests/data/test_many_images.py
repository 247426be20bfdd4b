"""Sets of very many images, of which a sample is examined. Oracle: the same images, all examined."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from pictures import encoded, pixels, write_png
from tar_shards import sample, write_shards, write_tar

from dividemix.data import assemble as module
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.readers import read_source
from dividemix.errors import DamagedImageWarning, InputError

ARRAY = np.stack([pixels(number) for number in range(12)])


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten images are many, and five of them are examined."""
    monkeypatch.setattr(module, "MANY", 9)
    monkeypatch.setattr(module, "_SAMPLE", 5)


@pytest.mark.usefixtures("many")
def test_images_and_identity_do_not_depend_on_the_memory(tmp_path: Path) -> None:
    folder = str(write_shards(tmp_path / "set", 12, 3))
    inside, outside = read_source(folder), read_source(folder, memory_gb=0)
    for source in (inside, outside):
        assert isinstance(source.train_samples, ImageFiles)
        np.testing.assert_array_equal(source.train_samples[:], ARRAY)
        assert source.train_labels.tolist() == [0, 1, 2] * 4
        assert "12 images: 5 of them decide on size and mean" in source.notes[-1]
    assert (inside.mean, inside.std) == (outside.mean, outside.std)
    assert fingerprint(inside.train_samples) == fingerprint(outside.train_samples)
    assert inside.train_samples.nbytes == ARRAY.nbytes
    assert outside.train_samples.nbytes == 0


@pytest.mark.usefixtures("many")
def test_the_mean_is_that_of_images_at_equal_distances(tmp_path: Path) -> None:
    source = read_source(str(write_shards(tmp_path / "set", 12, 3)))
    assert source.mean is not None
    assert source.std is not None
    chosen = ARRAY[[0, 2, 4, 7, 9]] / 255
    np.testing.assert_allclose(source.mean, chosen.mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(source.std, chosen.std(axis=(0, 1, 2)))


@pytest.mark.usefixtures("many")
def test_an_image_that_is_kept_is_read_from_its_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = read_source(str(write_shards(tmp_path / "set", 12, 3))).train_samples
    assert isinstance(images, ImageFiles)
    first = images[:]
    part = images.subset(np.array([7, 3]))
    monkeypatch.setattr(ImageFiles, "_read", None)
    np.testing.assert_array_equal(images[[5, 5, 1]], first[[5, 5, 1]])
    np.testing.assert_array_equal(part[:], first[[7, 3]])


@pytest.mark.usefixtures("many")
def test_a_damaged_image_is_black_and_named(tmp_path: Path) -> None:
    files = [file for number in range(12) for file in sample(number, str(number % 3))]
    files[2] = (files[2][0], b"no image")  # the second image is not in the sample
    write_tar(tmp_path / "a.tar", files)
    source = read_source(str(tmp_path / "a.tar"), memory_gb=0)
    with pytest.warns(DamagedImageWarning, match=r"a\.tar, image 1: not an image.*; used as a black image"):
        images = source.train_samples[:]
    expected = ARRAY.copy()
    expected[1] = 0
    np.testing.assert_array_equal(images, expected)


@pytest.mark.usefixtures("many")
def test_images_that_cannot_be_read_at_all_are_an_error(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", [(f"{n}.{kind}", b"1") for n in range(12) for kind in ("png", "cls")])
    with pytest.raises(InputError, match=r"5 of 5 images that were tried cannot be read: 'a\.tar/0\.png': not"):
        read_source(str(tmp_path / "a.tar"))


@pytest.mark.usefixtures("many")
def test_folders_and_tables_of_many_files_are_not_all_decoded(tmp_path: Path) -> None:
    for number in range(12):
        write_png(tmp_path / "set" / "ab"[number % 2] / f"{number}.png", number)
    (tmp_path / "set" / "a" / "10.png").write_bytes(b"")
    shutil.copytree(tmp_path / "set", tmp_path / "other")
    rows = [f"set/{'ab'[number % 2]}/{number}.png,{'ab'[number % 2]}" for number in range(12)]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]))
    order = [*range(0, 10, 2), *range(1, 12, 2)]
    for data, expected in (("set", order), ("table.csv", sorted(order))):
        source = read_source(str(tmp_path / data), test=str(tmp_path / "other"))
        np.testing.assert_array_equal(source.train_samples[:], ARRAY[expected])
        np.testing.assert_array_equal(source.test_samples[:], ARRAY[order])  # type: ignore[index]
        assert [one.reason for one in source.skipped] == ["empty", "test set: empty"]
        whole = dataclasses.replace(source, mean=None, std=None)
        assert whole.train_labels.tolist() == [number % 2 for number in expected]


def test_pictures_in_a_list_are_examined_whatever_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files have no names or sizes by which they could be told apart."""
    from dividemix.data.readers.arrays import read_arrays

    monkeypatch.setattr(module, "MANY", 9)
    source = read_arrays([encoded(image) for image in ARRAY], [0, 1] * 6, memory_gb=0)
    assert fingerprint(source.train_samples) == fingerprint(ARRAY)
