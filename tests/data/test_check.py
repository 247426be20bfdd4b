"""check against trees that the test made and then damaged in one place: each damage, and no other, must be found.

The trees are of the official layouts; the numbers of images that the official ones have are made as small as the trees.
"""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_cifar import LAYOUTS, ROWS, as_file, made, pack, write_tree

from dividemix.data.archives import Archive
from dividemix.data.builtin import BUILT_IN
from dividemix.data.check import Checked, check


def states(checked: Checked) -> dict[str, str]:
    """What -> state, by the last part of a path."""
    return {finding.what.rpartition("/")[2]: finding.state for finding in checked.findings}


def details(checked: Checked, state: str) -> list[str]:
    return [finding.detail for finding in checked.findings if finding.state == state]


# CIFAR


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A layout of ROWS images a file."""
    data, *_, train, _ = LAYOUTS[request.param]
    num_images = {"train": len(train) * ROWS, "test": ROWS}
    monkeypatch.setitem(BUILT_IN, data, dataclasses.replace(BUILT_IN[data], num_images=num_images))
    return str(request.param)


def names_of(layout: str) -> list[str]:
    *_, train, test = LAYOUTS[layout]
    return [*train, test]


def test_official_files(tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, *_ = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    archive = BUILT_IN[data].archive
    assert archive is not None
    if folder.name == archive.folder:
        md5 = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in names_of(layout)}
        official = Archive(url="", size=0, sha256="", folder=folder.name, md5=md5)
        monkeypatch.setitem(BUILT_IN, data, dataclasses.replace(BUILT_IN[data], archive=official))
    for root in (tmp_path, folder, pack(folder, tmp_path / "packed.tar.gz")):
        checked = check(data, root)
        assert checked.usable
        assert states(checked) == dict.fromkeys(names_of(layout), "ok")
        assert all(f"{ROWS} images" in finding.detail for finding in checked.findings)


@pytest.mark.parametrize("layout", ["10-python", "100-python"], indirect=True)
def test_readable_files_that_are_not_the_official_ones_are_usable(tmp_path: Path, layout: str) -> None:
    data, *_ = LAYOUTS[layout]
    write_tree(tmp_path, layout)
    checked = check(data, tmp_path)
    assert checked.usable
    assert states(checked) == dict.fromkeys(names_of(layout), "note")
    assert all("not the official file" in finding.detail for finding in checked.findings)


@pytest.mark.parametrize("packed", [False, True])
def test_a_missing_file(tmp_path: Path, layout: str, packed: bool) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).unlink()
    checked = check(data, pack(folder, tmp_path / "packed.tar.gz") if packed else tmp_path)
    assert not checked.usable
    assert [name for name, state in states(checked).items() if state == "missing"] == [test]
    assert not details(checked, "damaged")


def damaged(data: str, root: Path, name: str, *words: str) -> None:
    """One file, and only that, is found to be damaged."""
    checked = check(data, root)
    assert not checked.usable
    found = states(checked)
    assert [other for other, state in found.items() if state in ("missing", "damaged")] == [name]
    assert found[name] == "damaged"
    (detail,) = details(checked, "damaged")
    for word in words:
        assert word in detail
    assert str(root) not in detail  # it stands before


def test_a_file_cut_between_two_images(tmp_path: Path, layout: str) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    _, _, images, labels = made(data)
    (folder / test).write_bytes(as_file(layout, images[:-1], labels[:-1]))
    damaged(data, tmp_path, test, f"{ROWS - 1} images instead of {ROWS}")
    (folder / test).write_bytes(as_file(layout, np.concatenate([images, images]), np.concatenate([labels, labels])))
    damaged(data, tmp_path, test, f"{2 * ROWS} images instead of {ROWS}")


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_file_cut_elsewhere(tmp_path: Path, layout: str, size: int) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).write_bytes((folder / test).read_bytes()[:size])
    damaged(data, tmp_path, test)


def test_a_label_out_of_range(tmp_path: Path, layout: str) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).write_bytes(as_file(layout, made(data)[2], np.array([0, 1, 2, 100])))
    damaged(data, tmp_path, test, "has label 100")


def test_a_damaged_archive(tmp_path: Path, layout: str) -> None:
    data, _, archive, *_ = LAYOUTS[layout]
    path = pack(write_tree(tmp_path / "tree", layout), tmp_path / archive)
    path.write_bytes(path.read_bytes()[:-100])
    checked = check(data, tmp_path)
    assert not checked.usable
    assert [finding.state for finding in checked.findings] == ["damaged"]
    assert "fetch it again" in checked.findings[0].what


@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_nothing_there(tmp_path: Path, data: str) -> None:
    for root in (tmp_path, tmp_path / "none"):
        checked = check(data, root)
        assert not checked.usable
        assert states(checked) == {root.name: "missing"}


def test_the_layout_names_every_form(layout: str) -> None:
    data, folder, archive, *_ = LAYOUTS[layout]
    assert all(word in BUILT_IN[data].layout for word in (f"DIR/{folder}/", f"DIR/{archive}", *names_of(layout)))


# Lists of image files


def write_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(path, "JPEG")


def clothing1m(root: Path) -> Path:
    """Five training images, two to validate with, three to test on."""
    splits = {"noisy_train": range(5), "clean_val": range(5, 7), "clean_test": range(7, 10)}
    root.mkdir()
    for split, numbers in splits.items():
        keys = [f"images/{number}/0{number}/{number},x.jpg" for number in numbers]
        (root / f"{split}_key_list.txt").write_text("".join(f"{key}\n" for key in keys))
        for key in keys:
            write_image(root / key)
        with (root / f"{split.partition('_')[0]}_label_kv.txt").open("a") as file:
            file.writelines(f"{key} {number}\n" for key, number in zip(keys, numbers, strict=True))
    return root


def webvision(root: Path) -> Path:
    """Two classes, five training images, three to test on, and two of ILSVRC12."""
    train = [f"google/q000{number}/{number}.jpg" for number in range(5)]
    test = [f"val{number}.jpg" for number in range(3)]
    ilsvrc12 = ["imagenet/val/n01/a.JPEG", "imagenet/val/n02/b.JPEG"]
    for name in (*train, *(f"val_images_256/{name}" for name in test), *ilsvrc12):
        write_image(root / name)
    (root / "info").mkdir()
    (root / "info" / "synsets.txt").write_text("n01 tench, Tinca tinca\nn02 goldfish\n")
    for file, names in (("train_filelist_google", train), ("val_filelist", test)):
        (root / "info" / f"{file}.txt").write_text("".join(f"{name} {i % 2}\n" for i, name in enumerate(names)))
    return root


TREES = {
    "clothing1m": (clothing1m, {"train": 5, "val": 2, "test": 3}),
    "webvision": (webvision, {"train": 5, "test": 3, "ilsvrc12": 2}),
}


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """Name and root of a whole tree."""
    make, num_images = TREES[request.param]
    official(monkeypatch, request.param, num_images)
    return request.param, make(tmp_path / "tree")


def official(monkeypatch: pytest.MonkeyPatch, name: str, num_images: dict[str, int]) -> None:
    """Make these the numbers of images that the official data set has."""
    monkeypatch.setitem(BUILT_IN, name, dataclasses.replace(BUILT_IN[name], num_images=num_images))


def image(root: Path, number: int = 0) -> Path:
    """A training image."""
    return sorted(path for path in root.rglob("*.jpg") if "val" not in str(path.relative_to(root)))[number]


@pytest.mark.parametrize("decode", [False, True])
def test_whole_trees(tree: tuple[str, Path], decode: bool) -> None:
    name, root = tree
    steps = []
    checked = check(name, root, decode=decode, progress=lambda *step: steps.append(step))
    assert checked.usable
    assert set(states(checked).values()) == {"ok"}
    for split, number in TREES[name][1].items():
        assert [f.detail for f in checked.findings if f.what == f"{split} images"] == [
            f"{number}, all {'readable' if decode else 'present'}"
        ]
    assert steps == ([(done + 1, 10) for done in range(10)] if decode else [])


def test_a_missing_list(tree: tuple[str, Path]) -> None:
    name, root = tree
    for path in sorted(root.rglob("*.txt")):
        content = path.read_bytes()
        path.unlink()
        checked = check(name, root)
        assert not checked.usable
        assert [what for what, state in states(checked).items() if state == "missing"] == [path.name]
        assert not details(checked, "damaged")  # of which nothing can be said
        path.write_bytes(content)
    assert check(name, root).usable


def test_a_damaged_list(tree: tuple[str, Path]) -> None:
    name, root = tree
    labels = root / {"clothing1m": "noisy_label_kv.txt", "webvision": "info/val_filelist.txt"}[name]
    labels.write_text("images/x.jpg\n")
    checked = check(name, root)
    assert not checked.usable
    (detail,) = details(checked, "damaged")
    assert labels.name in detail


def test_missing_images_are_counted_and_the_first_named(tree: tuple[str, Path]) -> None:
    name, root = tree
    gone = [image(root, number) for number in range(4)]
    for path in gone:
        path.unlink()
    checked = check(name, root)
    assert not checked.usable
    (detail,) = details(checked, "missing")
    assert detail.startswith("4 of 5: ")
    assert detail.endswith(", ...")
    assert [path.name in detail for path in gone] == [True, True, True, False]


def test_an_empty_image_is_damaged(tree: tuple[str, Path]) -> None:
    name, root = tree
    image(root).write_bytes(b"")
    checked = check(name, root)
    assert states(checked)["train images"] == "damaged"
    assert details(checked, "damaged")[0].startswith("1 of 5: ")


def test_a_damaged_image_is_found_by_decoding(tree: tuple[str, Path]) -> None:
    name, root = tree
    path = image(root)
    path.write_bytes(path.read_bytes()[:-200])
    assert check(name, root).usable
    checked = check(name, root, decode=True)
    assert not checked.usable
    (detail,) = details(checked, "damaged")
    assert detail.startswith("1 of 5: ")
    assert path.name in detail
    assert "truncated" in detail


def test_fewer_images_than_the_official_lists_name(tree: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name, root = tree
    official(monkeypatch, name, TREES[name][1] | {"test": 2500})
    checked = check(name, root)
    assert checked.usable
    assert details(checked, "note") == ["3, all present; the official data set has 2500"]


def test_webvision_without_ilsvrc12_can_be_used(tmp_path: Path) -> None:
    root = webvision(tmp_path / "tree")
    (root / "imagenet").rename(tmp_path / "elsewhere")
    checked = check("webvision", root)
    assert checked.usable
    assert states(checked)["ilsvrc12 images"] == "note"


def test_ilsvrc12_without_some_classes_is_missing_them(tmp_path: Path) -> None:
    root = webvision(tmp_path / "tree")
    (root / "imagenet" / "val" / "n02" / "b.JPEG").unlink()
    checked = check("webvision", root)
    assert not checked.usable
    (detail,) = details(checked, "missing")
    assert detail.startswith("imagenet/val/n02: no images of the class goldfish")
    (root / "info" / "synsets.txt").write_text("".join(f"n0{number} name {number}\n" for number in range(1, 8)))
    (detail,) = details(check("webvision", root), "missing")
    assert detail.endswith("; and 3 more")  # of six


def test_ilsvrc12_without_class_folders_is_told_from_none(tmp_path: Path) -> None:
    root = webvision(tmp_path / "tree")
    val = root / "imagenet" / "val"
    for file in list(val.rglob("*.JPEG")):
        file.rename(val / file.name)
        file.parent.rmdir()
    checked = check("webvision", root)
    assert not checked.usable
    assert [f.state for f in checked.findings if f.what == "ilsvrc12 images"] == ["missing"]
    (detail,) = details(checked, "missing")
    assert "2 images, such as" in detail
    assert "not in class folders: move each into the folder of its class, imagenet/val/n01/" in detail


@pytest.mark.parametrize("name", TREES)
def test_no_tree(tmp_path: Path, name: str) -> None:
    checked = check(name, tmp_path / "none")
    assert not checked.usable
    assert set(states(checked).values()) == {"missing"}
