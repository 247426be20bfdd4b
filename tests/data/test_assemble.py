"""From files to a source. Oracles: the pixels that were written, the size rule as a table, lists written by hand."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import encoded, pixels, write_png

from dividemix.data.assemble import assemble, with_test
from dividemix.data.classes import label_name, natural_sorted
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.listing import Listing
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.data.source import Skipped
from dividemix.errors import InputError


def listing(files: Iterable[bytes | Path], labels: list[str] | None = None, **fields: Any) -> Listing:
    files = list(files)
    return Listing(
        where="photos",
        files=files,
        paths=[f"{number}.png" for number in range(len(files))],
        labels=labels or [("cat", "dog")[number % 2] for number in range(len(files))],
        **fields,
    )


def of_sizes(*sizes: tuple[int, int], channels: int = 3) -> Listing:
    return listing(encoded(pixels(number, *size, channels)) for number, size in enumerate(sizes))


@pytest.mark.parametrize(
    ("sizes", "image_size", "expected"),
    [
        ([(28, 28)] * 4, None, (28, 28)),
        ([(7, 9)] * 4, None, (7, 9)),
        ([(96, 40)] * 4, None, (96, 40)),
        ([(97, 40)] * 4, None, (40, 40)),
        ([(97, 97)] * 4, None, (224, 224)),
        ([(28, 28), (28, 28), (28, 29)], None, (32, 32)),  # 28 lies between 24 and 32: to the even multiple
        ([(60, 90), (90, 50), (64, 200)], None, (64, 64)),  # shorter sides 60, 50, 64
        ([(99, 95), (95, 99)], None, (96, 96)),
        ([(99, 97), (97, 99)], None, (224, 224)),
        ([(3, 5), (5, 4)], None, (16, 16)),
        ([(28, 28)] * 4, 40, (40, 40)),
        ([(60, 90), (300, 300)], 8, (8, 8)),
    ],
)
def test_the_size_rule(sizes: list[tuple[int, int]], image_size: int | None, expected: tuple[int, int]) -> None:
    source = assemble(of_sizes(*sizes), image_size=image_size)
    assert source.train_samples.shape == (len(sizes), *expected, 3)
    assert source.median_size == tuple(np.median(side) for side in zip(*sizes, strict=True))


def test_images_of_one_small_size_are_taken_as_they_are() -> None:
    source = assemble(of_sizes(*[(12, 10)] * 5))
    np.testing.assert_array_equal(source.train_samples, np.stack([pixels(number, 12, 10) for number in range(5)]))
    assert source.paths == tuple(f"{number}.png" for number in range(5))
    assert source.classes == ("cat", "dog")
    assert source.train_labels.tolist() == [0, 1, 0, 1, 0]
    assert source.skipped == ()


@pytest.mark.parametrize(
    ("num_odd", "channels", "note"),
    [
        (1, 1, "grey images: 199 of 200 are; 1 colour image is converted to grey"),
        (2, 1, "grey images: 198 of 200 are; 2 colour images are converted to grey"),
        (3, 3, "colour images: 3 of 200 are; 197 grey images are converted to colour"),
        (199, 3, "colour images: 199 of 200 are; 1 grey image is converted to colour"),
    ],
)
def test_nearly_all_images_decide_about_colour(num_odd: int, channels: int, note: str) -> None:
    """One colour file among grey ones doubled the network, and nothing was said."""
    grey, colour = encoded(pixels(0, channels=1)), encoded(pixels(1))
    source = assemble(listing([colour] * num_odd + [grey] * (200 - num_odd)))
    assert source.train_samples.shape == (200, 8, 8, channels)
    assert source.notes == (note,)
    np.testing.assert_array_equal(source.train_samples[-1], np.repeat(pixels(0, channels=1), channels, axis=2))
    if channels == 1:
        luma = pixels(1) @ np.array([0.299, 0.587, 0.114])
        np.testing.assert_allclose(source.train_samples[0, ..., 0], luma, atol=1)


def test_nearly_all_images_decide_about_the_size() -> None:
    """One odd size turned 28 pixels into 32, and nothing was said."""
    odd, usual = encoded(pixels(0, 40, 30)), encoded(pixels(1, 28, 28))
    source = assemble(listing([odd] * 2 + [usual] * 198))
    assert source.train_samples.shape == (200, 28, 28, 3)
    assert source.notes == ("28 x 28 pixels: 198 of 200 images; 2 others are resized",)
    np.testing.assert_array_equal(source.train_samples[-1], pixels(1, 28, 28))
    source = assemble(listing([odd] * 3 + [usual] * 197))
    assert source.train_samples.shape == (200, 32, 32, 3)
    assert source.notes == (
        "all images are resized to 32 x 32 pixels: they have 2 sizes from 28 x 28 to 40 x 30 pixels",
    )


def test_one_channel_only_if_all_are_grey() -> None:
    assert assemble(of_sizes((8, 8), (8, 8), channels=1)).train_samples.shape == (2, 8, 8, 1)
    mixed = assemble(listing([encoded(pixels(0, channels=1)), encoded(pixels(1))]))
    assert mixed.train_samples.shape == (2, 8, 8, 3)
    np.testing.assert_array_equal(mixed.train_samples[0], np.repeat(pixels(0, channels=1), 3, axis=2))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["b", "a", "C"], ["a", "b", "C"]),
        (["10", "9", "1"], ["1", "9", "10"]),
        (["x10y2", "x9y11", "x10y1", "x"], ["x", "x9y11", "x10y1", "x10y2"]),
        (["a2b", "a10a", "a2a"], ["a2a", "a2b", "a10a"]),
        (["007", "7", "08"], ["007", "7", "08"]),
        (["1", "a", "", "é", "2a"], ["", "1", "2a", "a", "é"]),
        (["9" * 5000, "1"], ["1", "9" * 5000]),
    ],
)
def test_natural_order(names: list[str], expected: list[str]) -> None:
    assert natural_sorted(names) == expected
    assert natural_sorted(names[::-1]) == expected


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("cat", "cat"),
        (" cat\t", "cat"),
        ("c\ud800t", "c\\ud800t"),
        ("", None),
        (" ", None),
        (None, None),
        (3, "3"),
        (np.int64(3), "3"),
        (3.0, "3"),
        (float("nan"), None),
        (0.5, "0.5"),
        (True, "True"),
        (b"cat", "cat"),
        (np.str_("x"), "x"),
        (np.float32(2), "2"),
    ],
)
def test_labels_become_names(value: object, name: str | None) -> None:
    assert label_name(value) == name


# What cannot be read


def damaged(*numbers: int, total: int = 10, **fields: Any) -> Listing:
    """A listing of images of which the first named holds nonsense and the others only half of their bytes."""
    files = [encoded(pixels(number)) for number in range(total)]
    for number in numbers:
        files[number] = files[number][: len(files[number]) // 2]
    files[numbers[0]] = b"nonsense"
    return listing(files, **fields)


@pytest.mark.parametrize("memory_gb", [4, 0])
def test_the_unreadable_are_left_out_and_listed(memory_gb: int) -> None:
    """One fails at its header, the others when they are decoded."""
    labels = list("aabbccaabb")
    truth = labels[::-1]
    source = assemble(damaged(3, 4, 7, labels=labels, true_labels=truth), memory_gb=memory_gb)
    kept = [0, 1, 2, 5, 6, 8, 9]
    assert isinstance(source.train_samples, ImageFiles) == (memory_gb == 0)
    np.testing.assert_array_equal(source.train_samples[:], np.stack([pixels(number) for number in kept]))
    assert [source.classes[label] for label in source.train_labels] == [labels[number] for number in kept]
    assert source.true_labels is not None
    assert [source.classes[label] for label in source.true_labels] == [truth[number] for number in kept]
    assert source.paths == tuple(f"{number}.png" for number in kept)
    assert [one.path for one in source.skipped] == ["3.png", "4.png", "7.png"]
    assert source.skipped[0].reason == "not an image, or damaged at the start"
    assert all("\n" not in one.reason for one in source.skipped)


def test_a_class_that_loses_all_its_images_is_dropped_and_listed() -> None:
    source = assemble(damaged(3, labels=list("aabcbababa")))
    assert source.classes == ("a", "b")
    assert source.skipped[-1] == Skipped("c", "class without a readable image: skipped")


def test_fixed_classes_stay_in_their_order_even_without_images() -> None:
    source = assemble(
        listing([encoded(pixels(0)), encoded(pixels(1))], labels=["dog", "cat"], classes=["dog", "bat", "cat"])
    )
    assert source.classes == ("dog", "bat", "cat")
    assert source.train_labels.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (lambda: damaged(0, 1, 2, 3, 4, 5), r"photos: too many images cannot be used, 6 of 10: '0\.png': not an image"),
        (lambda: damaged(0, 1, 2, total=5), "too many images cannot be used, 3 of 5"),
        (lambda: damaged(0, total=3, skipped=[Skipped("x", "no label")]), None),
        (
            lambda: damaged(0, total=3, skipped=[Skipped("x", "no label")] * 2),
            "3 of 5: 'x': no label; 'x': no label; '0",
        ),
        (lambda: damaged(0, total=3, ignored=[Skipped("x", "text")] * 9), None),
        (lambda: listing([]), "photos: has no images"),
        (lambda: listing([encoded(pixels(0))]), "1 readable image of 1 class: at least one image of each of two"),
        (lambda: listing([encoded(pixels(0))] * 4, labels=["a"] * 4), "4 readable images of 1 class: at"),
        (lambda: damaged(1, total=3), "2 readable images of 1 class .skipped: "),
        (
            lambda: listing([encoded(pixels(0))] * 4, true_labels=["cat", "cow", "dog", "dog"]),
            "photos: true labels: 'cow' is not a class of the training labels, which are 'cat', 'dog'",
        ),
    ],
)
def test_too_many_or_too_few(listed: Callable[[], Listing], message: str | None) -> None:
    if message is None:
        assert assemble(listed()).skipped
        return
    with pytest.raises(InputError, match=message) as caught:
        assemble(listed())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"image_size": 7}, {"image_size": 1025}, {"memory_gb": -1}, {"memory_gb": float("nan")}]
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        assemble(of_sizes((8, 8), (8, 8)), **options)


# Memory


def test_in_memory_or_in_files_the_source_is_the_same() -> None:
    """The budget of 6 x 24 x 24 x 3 bytes holds them; one byte less does not."""
    listed = of_sizes((30, 24), (24, 31), (24, 40), (33, 24), (24, 24), (25, 25))
    size = 6 * 24 * 24 * 3
    inside, outside = assemble(listed, memory_gb=size / 1e9), assemble(listed, memory_gb=(size - 1) / 1e9)
    assert isinstance(inside.train_samples, np.ndarray)
    assert isinstance(outside.train_samples, ImageFiles)
    np.testing.assert_array_equal(outside.train_samples[:], inside.train_samples)
    assert (outside.mean, outside.std) == pixel_statistics(inside.train_samples)
    assert fingerprint(inside.train_samples) == fingerprint(outside.train_samples)
    for field in ("classes", "paths", "skipped", "median_size", "name"):
        assert getattr(inside, field) == getattr(outside, field)
    for source in (inside, outside):
        limited = source.limit_train(4)
        assert source.paths is not None
        assert limited.paths == source.paths[:4]
        np.testing.assert_array_equal(limited.train_samples[:], inside.train_samples[:4])


def test_test_images_take_what_memory_is_left() -> None:
    train, test = of_sizes(*[(8, 8)] * 4), of_sizes(*[(8, 8)] * 3)
    one = 8 * 8 * 3 / 1e9
    for memory_gb, in_memory in ((7 * one, True), (6.9 * one, False)):
        source = with_test(assemble(train, memory_gb=memory_gb), test, memory_gb=memory_gb)
        assert isinstance(source.train_samples, np.ndarray)
        assert isinstance(source.test_samples, np.ndarray) == in_memory
        assert source.test_samples is not None
        np.testing.assert_array_equal(source.test_samples[:], source.train_samples[:3])


def test_test_images_are_made_like_the_training_images() -> None:
    """Another size, and colour where training is grey."""
    source = assemble(of_sizes((8, 8), (8, 8), (8, 8), channels=1))
    source = with_test(source, damaged(2, labels=["dog"] * 10))
    assert source.test_samples is not None
    assert source.test_labels is not None
    assert source.test_samples.shape == (9, 8, 8, 1)
    assert source.test_labels.tolist() == [1] * 9
    assert source.skipped == (Skipped("2.png", "test set: not an image, or damaged at the start"),)
    with pytest.raises(InputError, match="photos: test labels: 'cow' is not a class of the training labels"):
        with_test(source, listing([encoded(pixels(0))] * 2, labels=["cat", "cow"]))
    with pytest.raises(InputError, match="too many images cannot be used, 2 of 2"):
        with_test(source, listing([b"", b"x"]))


def test_reading_many_files(tmp_path: Path) -> None:
    """More than one round of the threads, in order."""
    numbers = range(300)
    expected = np.stack([write_png(tmp_path / f"{number}.png", number, 4, 4) for number in numbers])
    source = assemble(listing(tmp_path / f"{number}.png" for number in numbers))
    np.testing.assert_array_equal(source.train_samples, expected)


def test_each_sample_knows_where_it_stood() -> None:
    """Files 1 and 4 of six fail, one by its header and one later; the listing itself is part of a larger table."""
    files = [encoded(pixels(number)) for number in range(6)]
    files[1], files[4] = b"bad", files[4][:60]
    source = assemble(listing(files))
    assert source.rows.tolist() == [0, 2, 3, 5]
    assert source.num_given == 6
    assert source.paths is not None
    assert [f"{row}.png" for row in source.rows] == list(source.paths)
    part = assemble(listing(files, rows=[3, 4, 7, 8, 10, 11], num_given=15))
    assert part.rows.tolist() == [3, 7, 8, 11]
    assert part.num_given == 15
