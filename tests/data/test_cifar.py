"""The CIFAR readers against arrays the test made and wrote in every official form; each kind of damage has a case.

CIFAR-100's superclasses are compared with the coarse label of each fine class, as the official files give them.
"""

import gzip
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dividemix.data.readers import read_source
from dividemix.data.readers.cifar import read_cifar10, read_cifar100
from dividemix.data.source import Images, Labels, Source
from dividemix.errors import InputError

# Layout name: (data set, folder, archive, training files, test file)
LAYOUTS = {
    "10-python": (
        "cifar10",
        "cifar-10-batches-py",
        "cifar-10-python.tar.gz",
        [f"data_batch_{k}" for k in range(1, 6)],
        "test_batch",
    ),
    "10-binary": (
        "cifar10",
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        [f"data_batch_{k}.bin" for k in range(1, 6)],
        "test_batch.bin",
    ),
    "100-python": ("cifar100", "cifar-100-python", "cifar-100-python.tar.gz", ["train"], "test"),
    "100-binary": ("cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", ["train.bin"], "test.bin"),
}
ROWS = 4  # images in a file


def made(data: str) -> tuple[Images, Labels, Images, Labels]:
    """Images (N, 32, 32, 3) and labels of all training files and the test file."""
    rng = np.random.default_rng(0)
    num_train, num_classes = (5 * ROWS, 10) if data == "cifar10" else (ROWS, 100)
    images = rng.integers(0, 256, (num_train + ROWS, 32, 32, 3), dtype=np.uint8)
    labels = rng.permutation(np.arange(num_train + ROWS) * 7 % num_classes)
    return images[:num_train], labels[:num_train], images[num_train:], labels[num_train:]


def as_file(layout: str, images: Images, labels: Labels, protocol: int = 2) -> bytes:
    """The bytes of one batch file, by a loop over its images."""
    rows = [b"".join(image[:, :, channel].tobytes() for channel in range(3)) for image in images]
    if layout == "10-binary":
        return b"".join(bytes([label]) + row for label, row in zip(labels, rows, strict=True))
    if layout == "100-binary":
        return b"".join(bytes([label % 20, label]) + row for label, row in zip(labels, rows, strict=True))
    batch = {"data": np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), 3072), "filenames": ["x.png"]}
    if layout == "10-python":
        batch["labels"] = labels.tolist()
    else:
        batch |= {"fine_labels": labels.tolist(), "coarse_labels": (labels % 20).tolist()}
    return pickle.dumps(batch, protocol)


def write_tree(root: Path, layout: str, protocol: int = 2) -> Path:
    """The extracted folder of a layout under root."""
    data, folder, _, train, test = LAYOUTS[layout]
    train_samples, train_labels, test_samples, test_labels = made(data)
    (root / folder).mkdir(parents=True)
    for k, name in enumerate(train):
        part = slice(k * ROWS, (k + 1) * ROWS)
        (root / folder / name).write_bytes(as_file(layout, train_samples[part], train_labels[part], protocol))
    (root / folder / test).write_bytes(as_file(layout, test_samples, test_labels, protocol))
    (root / folder / "readme.html").write_text("not read")
    return root / folder


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive


def same(source: Source, data: str) -> None:
    assert source.name == data
    for got, expected in zip(
        (source.train_samples, source.train_labels, source.test_samples, source.test_labels), made(data), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(source.true_labels, source.train_labels)
    assert isinstance(source.train_samples, np.ndarray)
    assert source.train_samples.flags.c_contiguous


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("form", ["folder", "its parent", "archive", "archive's folder", "renamed folder", "renamed"])
def test_all_forms_give_the_same_arrays(tmp_path: Path, layout: str, form: str) -> None:
    data, _, archive, *_ = LAYOUTS[layout]
    folder = write_tree(tmp_path / "unpacked", layout)
    (tmp_path / "packed").mkdir()
    root = {
        "folder": lambda: folder,
        "its parent": lambda: folder.parent,
        "archive": lambda: pack(folder, tmp_path / "packed" / archive),
        "archive's folder": lambda: pack(folder, tmp_path / "packed" / archive).parent,
        "renamed folder": lambda: folder.rename(tmp_path / "my_data"),
        "renamed": lambda: pack(folder, tmp_path / "packed" / "download.tgz"),
    }[form]()
    before = sorted(tmp_path.rglob("*"))
    same(read_source(data, root), data)
    assert sorted(tmp_path.rglob("*")) == before  # nothing was unpacked


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("layout", ["10-python", "100-python"])
def test_pickles_of_any_protocol(tmp_path: Path, layout: str, protocol: int) -> None:
    data = LAYOUTS[layout][0]
    same(read_source(data, write_tree(tmp_path, layout, protocol)), data)


def test_an_archive_with_other_members_and_a_dot_before_its_paths(tmp_path: Path) -> None:
    folder = write_tree(tmp_path, "10-binary")
    archive = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, f"./{folder.name}")
        tar.add(folder / "test_batch.bin", "backup/test_batch.bin")
        link = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    same(read_cifar10(archive), "cifar10")


def test_what_is_known_of_cifar10(tmp_path: Path) -> None:
    source = read_cifar10(write_tree(tmp_path, "10-binary"))
    assert source.classes[0] == "airplane"
    assert source.classes[9] == "truck"
    assert source.mean == (0.4914, 0.4822, 0.4465)
    assert source.std == (0.2023, 0.1994, 0.2010)
    assert source.similar is not None
    names = {source.classes[label]: source.classes[other] for label, other in source.similar.items()}
    assert names == {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}


# fmt: off
COARSE = [
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15,
    0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17,
    10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19,
    18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
]
# fmt: on


def test_what_is_known_of_cifar100(tmp_path: Path) -> None:
    """A class is taken for the next higher one with the same coarse label, the highest for the lowest."""
    source = read_cifar100(write_tree(tmp_path, "100-binary"))
    assert len(set(source.classes)) == 100
    assert (source.classes[0], source.classes[1], source.classes[99]) == ("apple", "aquarium_fish", "worm")
    assert source.mean == (0.507, 0.487, 0.441)
    assert source.std == (0.267, 0.256, 0.276)
    assert source.similar is not None
    for label in range(100):
        others = [other for other in range(100) if COARSE[other] == COARSE[label]]
        higher = [other for other in others if other > label]
        assert source.similar[label] == (higher or others)[0]


@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_without_a_root_it_says_what_is_needed(data: str) -> None:
    with pytest.raises(InputError, match=rf"{data} needs root: .*-python\.tar\.gz"):
        read_source(data, None)


def refused(data: str, root: Path, *words: str) -> str:
    """The one line with which root is refused."""
    with pytest.raises(InputError) as caught:
        read_source(data, root)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


def test_roots_that_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    refused("cifar10", tmp_path / "none", "none: no such file or folder", "cifar-10-python.tar.gz")
    refused("cifar10", tmp_path, "has no cifar10", "cifar-10-batches-bin")
    refused("cifar10", tmp_path / "cifar-10-batches-py", "has no cifar10")


def test_the_other_data_set_is_not_taken_for_this_one(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "tree", "100-python")
    archive = pack(folder, tmp_path / "cifar-10-python.tar.gz")
    refused("cifar10", folder, "has no cifar10")
    refused("cifar10", archive, "this archive has no cifar10")


def test_missing_files_are_listed(tmp_path: Path, layout: str) -> None:
    data, _, archive, train, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).unlink()
    refused(data, folder, f"{test} missing", "must have", *train)
    refused(data, pack(folder, tmp_path / archive), f"{test} missing", "must have", *train)
    if len(train) > 1:
        (folder / train[2]).unlink()
        refused(data, folder, f"{train[2]}, {test} missing")


@pytest.mark.parametrize("layout", ["10-binary", "100-binary"])
@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + b"x"])
def test_binary_files_of_a_wrong_size(tmp_path: Path, layout: str, change: Callable[[bytes], bytes]) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).write_bytes(change((folder / test).read_bytes()))
    refused(data, folder, test, "not a multiple of")


def test_empty_files(tmp_path: Path, layout: str) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    (folder / test).write_bytes(b"")
    refused(data, folder, test)


def test_a_file_without_rows(tmp_path: Path) -> None:
    folder = write_tree(tmp_path, "10-python")
    empty = {"data": np.zeros((0, 3072), np.uint8), "labels": []}
    (folder / "test_batch").write_bytes(pickle.dumps(empty, 3))
    refused("cifar10", folder, "test_batch has no images")


def test_a_label_out_of_range(tmp_path: Path, layout: str) -> None:
    data, *_, test = LAYOUTS[layout]
    folder = write_tree(tmp_path, layout)
    labels = np.array([0, 1, 2, 100])
    (folder / test).write_bytes(as_file(layout, made(data)[2], labels))
    refused(data, folder, test, "has label 100: labels must be from 0 to")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, 2, 3]}, "labels has shape (3,): must be (4,), one label for each sample"),
        ({"labels": [1, 2, 3, 4, 5]}, "labels has shape (5,)"),
        ({"labels": [1, 2, 3, -1]}, "has label -1"),
        ({"labels": [1, 2, 3, 0.5]}, "labels is not a list of integers"),
        ({"labels": [1, 2, 3, 2**70]}, "labels is not a list of integers"),
        ({"labels": "1234"}, "labels is not a list of integers"),
        ({"labels": np.zeros((4, 1), np.int64)}, "has shape (4, 1)"),
        ({"labels": np.array(3)}, "has shape ()"),
        ({"data": np.zeros((4, 3071), np.uint8)}, "data is uint8 (4, 3071): must be uint8 (N, 3072)"),
        ({"data": np.zeros((4, 3, 32, 32), np.uint8)}, "data is uint8 (4, 3, 32, 32)"),
        ({"data": np.zeros((4, 3072), np.int64)}, "data is int64 (4, 3072)"),
        ({"data": [1, 2, 3]}, "data is list"),
        ({"data": np.zeros((4, 3072))}, "not a CIFAR batch: an array of type 'f8'"),
    ],
)
def test_pickles_with_wrong_content(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = write_tree(tmp_path, "10-python")
    batch = {"data": np.zeros((4, 3072), np.uint8), "labels": [1, 2, 3, 4]} | change
    (folder / "data_batch_3").write_bytes(pickle.dumps(batch, 2))
    refused("cifar10", folder, "data_batch_3", message)


@pytest.mark.parametrize("key", ["data", "labels"])
def test_pickles_without_a_key(tmp_path: Path, key: str) -> None:
    folder = write_tree(tmp_path, "10-python")
    batch = {"data": np.zeros((4, 3072), np.uint8), "labels": [1, 2, 3, 4]}
    del batch[key]
    (folder / "data_batch_3").write_bytes(pickle.dumps(batch, 2))
    refused("cifar10", folder, f"data_batch_3: not a CIFAR batch: has no {key}")


class Runs:
    """Unpickled by Python, an instance runs a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


@pytest.mark.parametrize("packed", [False, True])
def test_a_pickle_with_code_runs_nothing(tmp_path: Path, packed: bool) -> None:
    marker = tmp_path / "marker"
    folder = write_tree(tmp_path, "10-python")
    (folder / "data_batch_1").write_bytes(pickle.dumps({"data": Runs(f"touch {marker}"), "labels": []}, 2))
    root = pack(folder, tmp_path / "cifar.tar.gz") if packed else folder
    refused("cifar10", root, "data_batch_1: truncated or not a CIFAR batch: it calls", ".system")
    assert not marker.exists()


def test_an_archive_cut_anywhere(tmp_path: Path, layout: str) -> None:
    data, _, archive, *_ = LAYOUTS[layout]
    path = pack(write_tree(tmp_path, layout), tmp_path / archive)
    content = path.read_bytes()
    for size in [*range(0, len(content), len(content) // 25), len(content) - 1]:
        path.write_bytes(content[:size])
        refused(data, path, "truncated, corrupted, or not a .tar.gz")


def test_an_archive_with_a_flipped_byte_anywhere(tmp_path: Path, layout: str) -> None:
    """Past gzip's header every bit is covered by its check sum, so no flip may go unseen."""
    data, _, archive, *_ = LAYOUTS[layout]
    path = pack(write_tree(tmp_path, layout), tmp_path / archive)
    content = path.read_bytes()
    for position in [*range(40, len(content), len(content) // 25), len(content) - 6]:
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :])
        refused(data, path, archive)


@pytest.mark.parametrize(
    "content", [b"", b"not gzip", gzip.compress(b"", mtime=0), gzip.compress(b"not a tar" * 200, mtime=0)]
)
def test_a_file_that_is_no_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cifar-10-python.tar.gz"
    path.write_bytes(content)
    refused("cifar10", path, "truncated, corrupted, or not a .tar.gz")
    refused("cifar10", tmp_path, "truncated, corrupted, or not a .tar.gz")


def test_an_oversized_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = write_tree(tmp_path, "10-binary")
    with (folder / "test_batch.bin").open("r+b") as file:
        file.truncate(2**40)  # sparse: takes no room
    refused("cifar10", folder, "test_batch.bin has 1099511627776 bytes")


def test_an_archive_that_announces_an_oversized_file(tmp_path: Path) -> None:
    member = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
    member.size = 2**40
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(gzip.compress(member.tobuf() + bytes(1024)))
    refused("cifar10", path, "has 1099511627776 bytes")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user who may not read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    folder = write_tree(tmp_path, "10-binary")
    (folder / "test_batch.bin").chmod(0)
    refused("cifar10", folder, "test_batch.bin: cannot be read")
