"""Which picture a sample has, and the address of its file; the oracle of an address is what it leads to."""

import io
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np
import pytest
from PIL import Image

from dividemix.data.image_files import MadeWhenRead
from dividemix.data.listing import Listing
from dividemix.data.originals import Originals
from dividemix.report.pictures import Pictures, matched
from dividemix.report.thumbnails import encode


def size(picture: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(picture)).size


def test_a_file_comes_before_pixels(tmp_path: Path) -> None:
    """Pixels are shown where there is no file, or where it cannot be read any more."""
    Image.new("RGB", (2000, 1000)).save(tmp_path / "a.png")
    files = {0: tmp_path / "a.png", 1: tmp_path / "gone.png"}
    pixels = np.full((8, 8, 1), 7, np.uint8)
    pictures = Pictures(files, lambda i: pixels if i < 3 else None)
    assert (size(pictures.small(0)), size(pictures.large(0))) == ((256, 128), (1600, 800))
    assert [pictures.small(i) for i in (1, 2, 3)] == [encode(pixels), encode(pixels), b""]


@pytest.mark.parametrize(
    "name",
    ["a.png", "a b#c?d%20.png", "javascript:alert(1).png", "\u0642\u0637 \U0001f431.png", "http:", "a\udc80.png"],
)
def test_a_link_leads_to_the_file_and_nowhere_else(tmp_path: Path, name: str) -> None:
    file = tmp_path / "photos" / name
    link = Pictures({0: file}, lambda i: None).link(0, tmp_path / "runs" / "first")
    assert link is not None
    assert link.isascii()
    page = (tmp_path / "runs" / "first" / "report.html").as_uri()
    parts = urlsplit(urljoin(page, link))
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("file", "", "", "")
    assert unquote(parts.path, errors="surrogateescape") == str(file)


def test_images_inside_a_table_have_no_link() -> None:
    assert Pictures({0: b"content"}, lambda i: None).link(0, Path()) is None
    assert Pictures({}, lambda i: None).link(0, Path()) is None


def test_a_file_belongs_to_a_sample_by_its_row_and_its_name() -> None:
    """Data that has changed since the training shows nobody else's picture."""
    names = ["0.png", "2.png", "5.png"]
    files = MadeWhenRead(3, lambda place: Path(names[place]))
    originals = Originals(Listing(where="", files=files, paths=names, labels=["a"] * 3, rows=[0, 2, 5]))
    rows = np.array([5, 0, 1])
    assert dict(matched(originals, rows, ("5.png", "0.png", "1.png"))) == {0: Path("5.png"), 1: Path("0.png")}
    assert dict(matched(originals, rows, ("5.png", "other.png", "1.png"))) == {0: Path("5.png")}
    assert dict(matched(originals, rows, None)) == {0: Path("5.png"), 1: Path("0.png")}
    assert matched(None, rows, None) == {}
