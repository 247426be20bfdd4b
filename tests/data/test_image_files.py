"""Images in files. Oracle: the same images as an array, which the test wrote to the files."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from pictures import encoded, pixels, write_png

from dividemix.data.image_files import ImageFiles, fingerprint, image_digest
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.data.source import Images
from dividemix.errors import InputError

ARRAY = np.stack([pixels(number) for number in range(12)])


def files_of(folder: Path) -> ImageFiles:
    """Half of the images in files, half as bytes."""
    files: list[Path | bytes] = [folder / f"{number}.png" for number in range(6)]
    for number in range(6):
        write_png(folder / f"{number}.png", number)
    files += [encoded(ARRAY[number]) for number in range(6, 12)]
    digests = np.stack([np.frombuffer(image_digest(image), dtype=np.uint8) for image in ARRAY])
    return ImageFiles(files, (8, 8, 3), np.arange(12), digests)


def test_it_behaves_like_the_array(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    assert files.shape == ARRAY.shape
    assert len(files) == 12
    assert files.dtype == ARRAY.dtype
    for index in (
        [3, 3, 0, 11],
        np.array([5]),
        slice(2, 9, 3),
        ARRAY[:, 0, 0, 0] > 99,
        4,
        -1,
        [],
        np.array([[1, 2], [3, 1]]),
    ):
        index = np.array(index, dtype=np.int64) if isinstance(index, list) else index
        np.testing.assert_array_equal(files[index], ARRAY[index])


def test_a_subset_stays_in_its_files(tmp_path: Path) -> None:
    index = np.array([9, 2, 2, 0])
    part = files_of(tmp_path).subset(index).subset(np.array([3, 1, 0]))
    assert part.shape == (3, 8, 8, 3)
    np.testing.assert_array_equal(part[:], ARRAY[[0, 2, 9]])
    assert fingerprint(part) == fingerprint(ARRAY[[0, 2, 9]])


def test_batches_come_in_order_and_may_be_left_early(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    batches = [np.array(batch, dtype=np.int64) for batch in ([1, 0], [], [5, 5, 5], [11], [2, 10, 3], [0])]
    for index, images in zip(batches, files.batches(batches), strict=True):
        np.testing.assert_array_equal(images, ARRAY[index])
    stream = files.batches(np.array([number]) for number in range(12))
    np.testing.assert_array_equal(next(stream), ARRAY[:1])
    assert isinstance(stream, Generator)
    stream.close()


def test_an_image_that_is_asked_for_twice_in_a_batch_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(tmp_path)
    rows: list[int] = []
    read = files._read

    def watched(row: int) -> Images:
        rows.append(row)
        return read(row)

    monkeypatch.setattr(files, "_read", watched)
    files[np.array([7, 1, 7, 7, 1])]
    assert sorted(rows) == [1, 7]


def test_a_file_that_vanishes_is_named(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    (tmp_path / "4.png").unlink()
    with pytest.raises(InputError, match=r"4\.png: no such file, but it was readable at the start"):
        files[[3, 4, 5]]
    np.testing.assert_array_equal(files[[3, 5]], ARRAY[[3, 5]])


def test_statistics_are_the_arrays(tmp_path: Path) -> None:
    assert pixel_statistics(files_of(tmp_path)) == pixel_statistics(ARRAY)


def test_the_fingerprint_tells_images_by_pixels_alone(tmp_path: Path) -> None:
    files = files_of(tmp_path / "here")
    elsewhere = files_of(tmp_path / "elsewhere" / "deeper")
    assert len({fingerprint(images) for images in (ARRAY, np.asfortranarray(ARRAY), files, elsewhere)}) == 1
    changed = ARRAY.copy()
    changed[7, 3, 3, 1] ^= 1
    others = (changed, ARRAY[:-1], ARRAY[::-1], ARRAY.reshape(12, 4, 16, 3), files.subset(np.arange(11)))
    assert len({fingerprint(images) for images in (ARRAY, *others)}) == 5  # the shortened one in both homes is one
