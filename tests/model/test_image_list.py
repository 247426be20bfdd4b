"""Lists of images against lists written by hand."""

from pathlib import Path

import pytest

from dividemix.errors import InputError
from dividemix.model.image_list import list_images


@pytest.fixture(autouse=True)
def _photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only names count here, so the files are empty."""
    monkeypatch.chdir(tmp_path)
    for name in ("img10.png", "img2.PNG", "b/img1.jpeg", "b/c/x.webp", "notes.txt", ".hidden.png", ".git/y.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "photos" / "loop").symlink_to(tmp_path / "photos")


FOLDER = [f"photos/{name}" for name in ("b/c/x.webp", "b/img1.jpeg", "img2.PNG", "img10.png")]


def names(*places: str) -> list[str]:
    return [name for name, _ in list_images(map(Path, places))]


def test_a_folder_is_searched_in_natural_order() -> None:
    assert names("photos") == FOLDER
    assert [str(file) for _, file in list_images([Path("photos")])] == FOLDER


def test_places_keep_their_order_and_files_may_be_called_anything() -> None:
    assert names("photos/notes.txt", "photos/b", "photos/img10.png") == [
        "photos/notes.txt",
        "photos/b/c/x.webp",
        "photos/b/img1.jpeg",
        "photos/img10.png",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("photos/t.csv", "label,path\na,img2.PNG\n\nb,b/img1.jpeg\n"),
        ("photos/t.csv", "label;path\na;img2.PNG\nb;b/img1.jpeg"),
        ("photos/t.csv", '"label";"path "\n"a";"img2.PNG"\n"b";" b/img1.jpeg "\n'),
        ("photos/t.CSV", "\ufeffpath\r\nimg2.PNG\r\nb/img1.jpeg\r\n"),
        ("photos/t.tsv", "path\tlabel, given\nimg2.PNG\ta,b\nb/img1.jpeg\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_paths_of_a_table_are_relative_to_it_and_shown_as_they_stand(name: str, text: str, encoding: str) -> None:
    Path(name).write_bytes((text if encoding == "utf-8" else text.removeprefix("\ufeff")).encode(encoding))
    assert list_images([Path(name)]) == [
        ("img2.PNG", Path("photos/img2.PNG")),
        ("b/img1.jpeg", Path("photos/b/img1.jpeg")),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty: its first line must name the columns"),
        (b"file,label\na.png,1\n", "no column 'path'"),
        (b"path,label\n,1\n", "no path in line 2"),
        (b"label,path\n1\n", "no path in line 2"),
        (b"path\na\0.png\n", "NUL character in line 2"),
        (b"path\n\xff.png\n", "line 2 is not UTF-8"),
        (b'path\n"' + b"x" * 200_000 + b'"\n', "damaged at line 2"),
        (b"path\n", "no images found"),
    ],
)
def test_what_is_no_table_is_told(content: bytes, told: str) -> None:
    Path("t.csv").write_bytes(content)
    with pytest.raises(InputError, match=told):
        names("t.csv")


def test_no_images_and_no_place_are_told() -> None:
    Path("empty").mkdir()
    with pytest.raises(InputError, match="empty: no images found"):
        names("empty")
    with pytest.raises(InputError, match=r"gone\.png: no such file"):
        names("photos", "gone.png")
