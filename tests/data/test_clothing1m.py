"""The reader of Clothing1M, against the tree of its official layout that the test wrote."""

from pathlib import Path

import numpy as np
import pytest
from official_trees import make_clothing1m, write_lines
from PIL import Image

from dividemix.data.builtin import BUILT_IN
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.images import read_image
from dividemix.data.readers import read_source
from dividemix.data.readers.clothing1m import CLASSES, list_clothing1m, read_clothing1m
from dividemix.errors import DamagedImageWarning, InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_clothing1m(tmp_path)
    return tmp_path


def refused(root: Path | None) -> str:
    with pytest.raises(InputError) as refusal:
        read_clothing1m(root)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("prefix", ["images/", ""])
def test_every_split_has_its_images_and_labels(tmp_path: Path, prefix: str) -> None:
    """With the folder images/ or, as the released code has it, without."""
    make_clothing1m(tmp_path, prefix=prefix)
    source = read_clothing1m(tmp_path, 16)
    assert source.classes == CLASSES
    assert len(CLASSES) == 14
    assert source.train_labels.tolist() == [i % 14 for i in range(28)]
    assert source.val_labels is not None
    assert source.val_labels.tolist() == list(range(14))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == list(range(14))
    assert source.paths is not None
    assert source.paths[3] == "images/0/03/1003,3.jpg"
    assert source.skipped == ()
    for split, images in enumerate((source.train_samples, source.val_samples, source.test_samples)):
        assert isinstance(images, ImageFiles)
        file = tmp_path / f"{prefix}{split}/05/1005,5.jpg"
        np.testing.assert_array_equal(images[5], read_image(file, 16, 16, 3))


def test_images_are_256_pixels_unless_asked_and_known_by_name(root: Path) -> None:
    assert read_source("clothing1m", root).train_samples.shape == (28, 256, 256, 3)
    assert read_source("clothing1m", root, image_size=32).train_samples.shape == (28, 32, 32, 3)
    assert "clothing1m" in BUILT_IN
    source = read_source("clothing1m", root)
    assert (source.mean, source.std) == ((0.6959, 0.6537, 0.6371), (0.3113, 0.3192, 0.3214))


def test_listing_opens_no_image(root: Path) -> None:
    for image in root.rglob("*.jpg"):
        image.write_bytes(b"no image")
    found = list_clothing1m(root)
    assert [len(listing.files) for listing in found] == [28, 14, 14]
    assert found.val.labels == list(CLASSES)


def test_names_of_classes_come_from_the_official_file_if_it_is_there(root: Path) -> None:
    write_lines(root / "category_names_eng.txt", [f"class {i}" for i in range(14)])
    assert read_clothing1m(root).classes[13] == "class 13"
    write_lines(root / "category_names_eng.txt", ["class"] * 3)
    assert "14 different names" in refused(root)


def test_missing_and_empty_images_are_left_out_and_listed(root: Path) -> None:
    (root / "images/0/03/1003,3.jpg").unlink()
    (root / "images/0/04/1004,4.jpg").write_bytes(b"")
    (root / "images/1/00/1000,0.jpg").unlink()
    (root / "images/2/01/1001,1.jpg").unlink()
    source = read_clothing1m(root)
    assert source.train_labels.tolist() == [i % 14 for i in range(28) if i not in (3, 4)]
    assert source.rows.tolist() == [i for i in range(28) if i not in (3, 4)]
    assert source.num_given == 28
    assert source.val_labels is not None
    assert source.val_labels.tolist() == list(range(1, 14))
    assert [(one.path, one.reason) for one in source.skipped] == [
        ("images/0/03/1003,3.jpg", "no such file"),
        ("images/0/04/1004,4.jpg", "empty"),
        ("images/1/00/1000,0.jpg", "validation set: no such file"),
        ("images/2/01/1001,1.jpg", "test set: no such file"),
    ]


def test_most_images_missing_is_an_error(root: Path) -> None:
    for image in sorted((root / "images" / "0").rglob("*.jpg"))[:20]:
        image.unlink()
    assert "20 of 28" in refused(root)


def test_a_damaged_image_is_black_with_a_warning_and_a_lost_one_ends_the_run(root: Path) -> None:
    images = read_clothing1m(root, 8).train_samples
    damaged = root / "images/0/02/1002,2.jpg"
    damaged.write_bytes(damaged.read_bytes()[:300])
    with pytest.warns(DamagedImageWarning, match="1002,2.jpg: .*; used as a black image"):
        shown = images[np.array([1, 2])]
    assert shown[0].any()
    assert not shown[1].any()
    damaged.unlink()
    with pytest.raises(InputError, match=r"1002,2\.jpg: no such file"):
        images[2]


def test_a_machine_without_memory_ends_the_run_and_blackens_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = read_clothing1m(root, 8).train_samples

    def decode(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", decode)
    with pytest.raises(InputError, match=r"1002,2\.jpg: cannot be read: Cannot allocate memory: free some memory"):
        images[2]


def test_the_same_files_are_the_same_data_wherever_they_lie(tmp_path: Path) -> None:
    digests = []
    for name in ("here", "there", "other"):
        make_clothing1m(tmp_path / name, prefix="" if name == "there" else "images/")
        if name == "other":
            path = tmp_path / name / "images/0/02/1002,2.jpg"
            path.write_bytes(path.read_bytes() + b" ")
        digests.append(fingerprint(read_clothing1m(tmp_path / name).train_samples))
    assert digests[0] == digests[1] != digests[2]


def test_the_first_images_of_each_class_can_be_taken_alone(root: Path) -> None:
    limited = read_clothing1m(root).limit_train(14)
    assert limited.train_labels.tolist() == list(range(14))
    assert len(limited.train_samples) == 14


def test_lists_that_are_missing_or_wrong_are_named(root: Path) -> None:
    assert "needs root" in refused(None)
    assert "no such folder" in refused(root / "nowhere")
    labels, keys = root / "noisy_label_kv.txt", root / "noisy_train_key_list.txt"
    good = labels.read_text()
    for content, said in (
        ("images/0/00/a.jpg\n", "line 1"),
        (good + "\n\nimages/0/00/b.jpg x\n", "line 31"),
        (good + "images/0/00/c.jpg 14\n", "class 14"),
        ("../a.jpg 3\n", "leads out"),
        ("/etc/a.jpg 3\n", "leads out"),
        (" \n", "empty"),
        ("".join(good.splitlines(keepends=True)[1:]), "'images/0/00/1000,0.jpg' has no label in noisy_label_kv.txt"),
    ):
        labels.write_text(content)
        assert said in refused(root), content
    labels.write_bytes(b"\xff\xfe\xff")
    assert "UTF-8" in refused(root)
    labels.unlink()
    assert f"{labels}: no such file" in refused(root)
    labels.write_text(good)
    keys.unlink()
    assert f"{keys}: no such file" in refused(root)
