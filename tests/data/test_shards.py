"""Shards of .tar files. Oracle: the images and labels that the test wrote, and the same images as an array."""

import gzip
import json
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from pictures import encoded, pixels
from tar_shards import sample, write_shards, write_tar

from dividemix.data import shard_index
from dividemix.data.cache_folder import cache_folder
from dividemix.data.image_files import ImageFiles, fingerprint
from dividemix.data.readers import read_source
from dividemix.data.readers.shard_sets import expanded, find_shards
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.source import Source
from dividemix.errors import DamagedCacheWarning, InputError

ARRAY = np.stack([pixels(number) for number in range(12)])


def reasons(source: Source) -> dict[str, str]:
    return {one.path: one.reason for one in source.skipped}


def test_a_folder_of_shards_is_its_images_in_memory_and_in_the_files(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "set", 12, 3)
    inside, outside = read_source(str(folder)), read_source(str(folder), memory_gb=0)
    assert isinstance(inside.train_samples, np.ndarray)
    assert isinstance(outside.train_samples, ImageFiles)
    for source in (inside, outside):
        np.testing.assert_array_equal(source.train_samples[:], ARRAY)
        assert source.train_labels.tolist() == [0, 1, 2] * 4
        assert source.classes == ("0", "1", "2")
        assert source.name == "set"
        assert source.paths is not None
        assert source.paths[5] == "shard-001.tar/0005.png"
    assert fingerprint(inside.train_samples) == fingerprint(outside.train_samples)


@pytest.mark.parametrize("pattern", ["shard-{000..002}.tar", "shard-{000,001,002}.tar", "shard-*.tar"])
def test_a_pattern_is_the_folder(tmp_path: Path, pattern: str) -> None:
    folder = write_shards(tmp_path / "set", 12, 3)
    np.testing.assert_array_equal(read_source(str(folder / pattern)).train_samples, ARRAY)


def test_braces_are_expanded_as_a_shell_does() -> None:
    assert list(expanded("a-{008..010}.tar")) == ["a-008.tar", "a-009.tar", "a-010.tar"]
    assert list(expanded("{x,y}/{0..1}.tar")) == ["x/0.tar", "x/1.tar", "y/0.tar", "y/1.tar"]
    with pytest.raises(InputError, match="must go from a number to a larger one, for at most 1,000,000 shards"):
        list(expanded("{5..1}.tar"))


@pytest.mark.parametrize("pattern", ["{0..999999}{0..999999}.tar", "{a,b}" * 60 + ".tar"])
def test_a_pattern_that_never_ends_is_refused(pattern: str) -> None:
    """Only single braces had a limit. A run's config.yaml may name such a pattern as its data."""
    with pytest.raises(InputError, match="more than 1,000,000 shards"):
        find_shards(pattern)


def test_a_number_of_thousands_of_digits_is_no_pattern() -> None:
    """Oracle: Python refuses to convert it, which was a traceback."""
    assert list(expanded("{0.." + "9" * 5000 + "}.tar")) == ["{0.." + "9" * 5000 + "}.tar"]


def test_one_tar_file_is_a_data_set_and_a_test_set(tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1, "photos.tar")
    write_shards(tmp_path, 12, 1, "others.tar")
    source = read_source(str(tmp_path / "photos.tar"), test=str(tmp_path / "others.tar"))
    assert source.name == "photos"
    np.testing.assert_array_equal(source.test_samples, ARRAY)


@pytest.mark.parametrize("name", ["{split}-{{:04d}}.tar", "{split}/{{:d}}.tar", "set_{split}_{{:d}}.tar"])
def test_splits_are_told_by_the_names_of_shards_or_folders(tmp_path: Path, name: str) -> None:
    write_shards(tmp_path, 8, 2, name.format(split="train"))
    write_shards(tmp_path, 12, 1, name.format(split="val"))
    source = read_source(str(tmp_path))
    assert len(source.train_samples) == 8
    np.testing.assert_array_equal(source.test_samples, ARRAY)


def test_shards_that_are_all_for_testing_are_trained_on(tmp_path: Path) -> None:
    source = read_source(str(write_shards(tmp_path / "test", 12, 2, "test-{}.tar")))
    assert len(source.train_samples) == 12
    assert source.test_samples is None


def test_json_has_label_and_true_label_and_a_file_names_the_classes(tmp_path: Path) -> None:
    def files(number: int) -> list[tuple[str, bytes]]:
        about = {"kind": number % 2, "true_label": "dog" if number == 3 else number % 2, "caption": "x"}
        return [(f"{number}.JPG", encoded(pixels(number), "JPEG")), (f"{number}.json", json.dumps(about).encode())]

    write_tar(tmp_path / "a.tar", [file for number in range(6) for file in files(number)])
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    source = read_source(str(tmp_path), columns=TableColumns(label_column="kind"))
    assert source.classes == ("cat", "dog")
    assert source.train_labels.tolist() == [0, 1] * 3
    assert source.true_labels is not None
    assert source.true_labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_what_cannot_be_used_is_named_with_its_reason(tmp_path: Path) -> None:
    good = [file for number in range(12) for file in sample(number, str(number % 3), folder="nested/a.b/")]
    odd = [
        *sample(20, None),
        ("0021.cls", b"1"),
        *sample(22, "1"),
        ("0022.json", b'{"label": 2}'),
        *sample(23, "1"),
        ("0023.jpg", encoded(pixels(3), "JPEG")),
        *sample(24, None),
        ("0024.json", b"{"),
        *sample(25, None),
        ("0025.json", b'{"label": [1]}'),
        *sample(26, "1"),
        ("0026.json", b'{"label": 1}'),
        ("README", b"words"),
        *((f"{number:04d}.txt", b"a caption") for number in range(5)),
        ("._0001.png", b"of a Mac"),
    ]
    write_tar(tmp_path / "a.tar", [*good, *odd])
    source = read_source(str(tmp_path / "a.tar"))
    np.testing.assert_array_equal(source.train_samples[:12], ARRAY)
    assert len(source.train_samples) == 13
    assert source.rows.tolist() == [*range(12), 18]
    assert source.num_given == 19
    assert reasons(source) == {
        "a.tar/0020.png": "no label",
        "a.tar/0021": "a label without an image",
        "a.tar/0022.png": "two labels: 1 and 2",
        "a.tar/0023.png": "2 images for one key",
        "a.tar/0024.png": "its .json file is damaged",
        "a.tar/0025.png": "label in its .json file is neither text nor a number",
        "a.tar/README": "neither an image nor a label",
        "a.tar/*.txt": "5 files: neither an image nor a label",
    }


def test_links_are_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(pixels(99)))
    path = write_shards(tmp_path / "set", 12, 1, "a.tar") / "a.tar"
    with tarfile.open(path, "a") as archive:
        for key, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            about = tarfile.TarInfo(f"{key}.png")
            about.type, about.linkname = kind, str(secret)
            archive.addfile(about)
            label = tarfile.TarInfo(f"{key}.cls")
            archive.addfile(label)
    source = read_source(str(path))
    assert len(source.train_samples) == 12
    assert reasons(source) == dict.fromkeys(("a.tar/soft.png", "a.tar/hard.png"), "a link: not followed")


def test_a_damaged_shard_is_one_line(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "set", 12, 3)
    shard = folder / "shard-001.tar"
    content = shard.read_bytes()
    for damaged, words in (
        (content[:700], r"cut short: a file of \d+ bytes begins at byte 512"),
        (b"x" * 600, r"not a \.tar file"),
        (gzip.compress(content), "compressed by gzip, so its images cannot be read by position: decompress it"),
    ):
        shard.write_bytes(damaged)
        with pytest.raises(InputError, match=f"shard-001.tar: {words}") as caught:
            read_source(str(folder))
        assert "\n" not in str(caught.value)


def test_a_compressed_name_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    packed = tmp_path / "set" / "a.tar.gz"
    packed.write_bytes(gzip.compress(b"x" * 600))
    for data in (packed, tmp_path / "set"):
        with pytest.raises(InputError, match=r"a\.tar\.gz: a compressed \.tar file cannot be read by position"):
            read_source(str(data))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "set", 12, 3)
    with pytest.raises(InputError, match=r"shard-003\.tar: no such file: a shard is missing"):
        read_source(str(folder / "shard-{000..003}.tar"))
    folder = write_shards(tmp_path / "counted", 12, 3, "train-{:05d}-of-00004.tar")
    with pytest.raises(InputError, match="has 3 of 4 shards: train-00003-of-00004 is missing"):
        read_source(str(folder))
    with pytest.raises(InputError, match=r"none\.tar.*: no such file"):
        read_source(str(tmp_path / "none.tar"))


def test_shards_without_labels_say_what_is_needed(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", sample(1, None) + sample(2, None))
    with pytest.raises(InputError, match=r"a\.tar/0001\.png: no label: each image of a \.tar shard needs key\.cls"):
        read_source(str(tmp_path))


def test_class_folders_next_to_an_archive_are_still_a_folder_of_classes(tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1, "original.tar")
    (tmp_path / "cats").mkdir()
    assert find_shards(str(tmp_path)) is None


def test_an_index_is_made_once_and_again_if_the_shard_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    folder = write_shards(tmp_path / "set", 12, 3)
    first = read_source(str(folder))
    kept = sorted((cache_folder() / "shards").iterdir())
    assert len(kept) == 3
    with monkeypatch.context() as patch:
        patch.setattr(shard_index, "_packed", None)  # nothing is made again
        patch.setattr("dividemix.data.readers.tar_shards._index", None)
        again = read_source(str(folder))
    assert (again.paths, again.classes) == (first.paths, first.classes)
    write_tar(folder / "shard-001.tar", sample(4, "2") + sample(5, "2"))
    assert read_source(str(folder)).train_labels.tolist() == [0, 1, 2, 0, 2, 2, 2, 0, 1, 2]
    assert len(list((cache_folder() / "shards").iterdir())) == 4


def test_a_damaged_index_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    folder = write_shards(tmp_path / "set", 12, 1)
    first = read_source(str(folder))
    (kept,) = (cache_folder() / "shards").iterdir()
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    with pytest.warns(DamagedCacheWarning, match="wrong digest"):
        assert read_source(str(folder)).paths == first.paths
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_source(str(folder))


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "file" / "below"))
    assert len(read_source(str(write_shards(tmp_path / "set", 12, 1))).train_samples) == 12
