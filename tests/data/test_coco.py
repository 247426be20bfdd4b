"""Boxes of an annotation file as samples. Oracle: numpy slices of the images, and files written by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dividemix.data.crop import Crop
from dividemix.data.images import UnreadableImage, probe, read_image, read_whole
from dividemix.data.readers import read_source
from dividemix.data.readers.coco import list_coco
from dividemix.errors import InputError


def photo(path: Path, seed: int = 0) -> np.ndarray[Any, Any]:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def box(number: int, image: int, category: int, *sides: float, **more: Any) -> dict[str, Any]:
    return {"id": number, "image_id": image, "category_id": category, "bbox": list(sides), **more}


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    photo(tmp_path / "train" / "a.png", 1)
    photo(tmp_path / "train" / "b.png", 2)
    return {
        "info": {"year": 2026},
        "images": [{"id": 1, "file_name": "train/a.png"}, {"id": 2, "file_name": "train/b.png"}],
        "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}, {"id": 4, "name": "rare"}],
        "annotations": [box(11, 1, 7, 0, 0, 20, 20), box(12, 1, 3, 5, 10, 20, 20), box(13, 2, 3, 30, 5, 20, 20)],
    }


def saved(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(content))
    return file


def test_every_box_is_a_sample(tmp_path: Path, content: dict[str, Any]) -> None:
    listing, test = list_coco(saved(tmp_path, content))
    assert list(listing.paths) == ["train/a.png#11", "train/a.png#12", "train/b.png#13"]
    assert list(listing.labels) == ["dog", "cat", "cat"]
    assert test is None
    source = read_source(str(saved(tmp_path, content)), image_size=20)
    first = np.array(Image.open(tmp_path / "train" / "a.png"))
    assert (source.train_samples[:][0] == first[:20, :20]).all()
    assert (source.train_samples[:][1] == first[10:30, 5:25]).all()
    assert source.classes == ("cat", "dog")


def test_what_is_no_sample_is_reported(tmp_path: Path, content: dict[str, Any]) -> None:
    good = len(content["annotations"])
    content["annotations"] += [
        box(21, 1, 7, 0, 0, 20, 20, iscrowd=1),
        box(22, 1, 7, 0, 0, 3, 20),
        box(23, 9, 7, 0, 0, 20, 20),
        box(24, 1, 9, 0, 0, 20, 20),
        box(25, 1, 7, 0, 0, 20),
        {"id": 26, "image_id": [1], "category_id": 7, "bbox": "no"},
    ]
    listing, _ = list_coco(saved(tmp_path, content))
    assert len(listing.files) == good
    assert listing.rows == [0, 1, 2]
    assert listing.num_given == good + 6
    assert [one.reason for one in listing.ignored] == [
        "a crowd, not one object",
        "box smaller than 4 pixels",
        "no image with this id",
        "no category with this id",
        "no box of four numbers",
        "no image with this id",
    ]


def test_images_may_be_elsewhere(tmp_path: Path, content: dict[str, Any]) -> None:
    (tmp_path / "notes").mkdir()
    file = saved(tmp_path / "notes", content)
    listing, _ = list_coco(file, image_root=tmp_path)
    assert all(isinstance(crop, Crop) and crop.path.is_file() for crop in listing.files)
    with pytest.raises(InputError, match="set image_root to the folder they start from"):
        read_source(str(file))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"categories": None}, "has no list 'categories'"),
        ({"annotations": [1]}, "has no list 'annotations'"),
        (
            {"categories": [{"id": 7, "name": "a"}, {"id": 8, "name": "a"}]},
            "two categories have the same id or name, or one has none",
        ),
        (
            {"categories": [{"id": 7, "name": "a"}, {"name": "b"}]},
            "two categories have the same id or name, or one has none",
        ),
        ({"annotations": [box(11, 1, 7, 0, 0, 9, 9), box(11, 1, 3, 9, 9, 9, 9)]}, "have the same id"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: dict[str, Any], change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        list_coco(saved(tmp_path, content | change))


@given(st.tuples(*[st.floats(-50, 50)] * 2, *[st.floats(4, 100)] * 2))
def test_a_crop_is_what_a_slice_gives(sides: tuple[float, float, float, float]) -> None:
    """Boxes may reach out of the image; then the part inside counts."""
    crop = Crop(Path("x"), sides)
    left, top, across, down = sides
    columns = [x for x in range(40) if round(left) <= x < round(left + across)]
    rows = [y for y in range(30) if round(top) <= y < round(top + down)]
    found = crop.inside(40, 30)
    expected = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) if columns and rows else None
    assert found == expected


def test_a_box_outside_of_the_image_is_unreadable(tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    crop = Crop(tmp_path / "a.png", (100, 100, 20, 20))
    for read in (probe, lambda file: read_image(file, 8, 8, 3)):
        with pytest.raises(UnreadableImage, match="the box is outside of the image, which has 40 x 30 pixels"):
            read(crop)


def test_boxes_are_of_the_upright_image(tmp_path: Path) -> None:
    """As people see it: an EXIF rotation is applied first, and once."""
    pixels = photo(tmp_path / "a.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    upright = np.rot90(pixels, -1)
    crop = Crop(tmp_path / "turned.png", (2, 4, 10, 12))
    assert probe(crop)[:2] == (12, 10)
    assert (read_image(crop, 12, 10, 3) == upright[4:16, 2:12]).all()
    assert (read_whole(crop, 12) == upright[4:16, 2:12]).all()
