"""fetch against an archive that the test made and offers on this machine: the oracle is what was packed.

The server is asked, cut, refused and lied to by; whatever happens, the folder is there whole or not at all, and the
next call ends well.
"""

import errno
import os
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archive_server import Site, describe, packed, serving
from injected import dying, full_disk
from test_cifar import LAYOUTS, same, write_tree

from dividemix.data.archives import Archive
from dividemix.data.builtin import BUILT_IN
from dividemix.data.fetch import fetch
from dividemix.data.readers import read_source
from dividemix.data.readers.cifar import CIFARS
from dividemix.errors import InputError
from dividemix.lock import exclusive

FOLDER = "numbers"
FILES = {name: np.random.default_rng(ord(name)).bytes(300_000) for name in "abc"}
CONTENT = packed(FOLDER, FILES)
PART = "numbers.tar.gz.part"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(CONTENT) as site:
        yield site


@pytest.fixture
def archive(site: Site) -> Archive:
    return describe(FOLDER, FILES, CONTENT, site.url)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


def refused(archive: Archive, root: Path, *words: str, **arguments: Any) -> str:
    """The one line with which a fetch ends."""
    with pytest.raises(InputError) as caught:
        fetch(archive, root, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


def complete(root: Path) -> None:
    """The official files and nothing else are there, as plain files, and none outside."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if not path.is_dir()}
    assert found == {f"{FOLDER}/{name}": content for name, content in FILES.items()}
    assert not any(path.is_symlink() or path.stat().st_mode & 0o7111 for path in root.rglob("*") if path.is_file())
    assert list(root.parent.iterdir()) == [root]


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


# Downloads that end well


@pytest.mark.parametrize("length", [True, False])
def test_the_files_are_there_and_nothing_else(site: Site, archive: Archive, root: Path, length: bool) -> None:
    site.length = length
    steps = []
    assert fetch(archive, root, progress=lambda *step: steps.append(step)) is True
    complete(root)
    assert site.asked == [None]
    assert steps == sorted(set(steps))
    assert steps[0] == (0, len(CONTENT))
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert len(steps) > 2


def test_the_address_can_be_another(site: Site, archive: Archive, root: Path) -> None:
    elsewhere = describe(FOLDER, FILES, CONTENT, "http://127.0.0.1:9/numbers.tar.gz")
    assert fetch(elsewhere, root, url=f"{site.url}?mirror") is True
    complete(root)


@pytest.mark.parametrize("layout", ["10-python", "100-python"])
def test_the_reader_reads_what_was_fetched(tmp_path: Path, root: Path, layout: str) -> None:
    data, folder, *_ = LAYOUTS[layout]
    files = {path.name: path.read_bytes() for path in write_tree(tmp_path / "made", layout).iterdir()}
    del files["readme.html"]
    content = packed(folder, files)
    with serving(content) as site:
        fetch(describe(folder, files, content, site.url), root)
    same(read_source(data, root), data)


def test_what_is_there_is_not_fetched_again(site: Site, archive: Archive, root: Path) -> None:
    fetch(archive, root)
    assert fetch(archive, root) is False
    complete(root)
    assert len(site.asked) == 1


def test_the_archive_itself_is_enough(site: Site, archive: Archive, root: Path) -> None:
    root.mkdir()
    (root / "numbers.tar.gz").write_bytes(CONTENT)
    assert fetch(archive, root) is False
    assert site.asked == []
    assert names(root) == ["numbers.tar.gz"]


def test_a_damaged_archive_is_not_enough_and_stays(archive: Archive, root: Path) -> None:
    root.mkdir()
    (root / "numbers.tar.gz").write_bytes(CONTENT[:-1])
    assert fetch(archive, root) is True
    assert names(root) == [FOLDER, "numbers.tar.gz"]
    assert (root / "numbers.tar.gz").read_bytes() == CONTENT[:-1]


# Downloads that were cut


def cut(site: Site, archive: Archive, root: Path, at: int) -> None:
    site.cut = at
    refused(archive, root, f"the connection broke after {at} of {len(CONTENT)} bytes", "run the same command to resume")
    assert names(root) == [PART]
    assert (root / PART).read_bytes() == CONTENT[:at]


@pytest.mark.parametrize("length", [True, False])
def test_a_cut_download_goes_on_where_it_ended(site: Site, archive: Archive, root: Path, length: bool) -> None:
    site.length = length
    for at in (1, 300_000, 300_000):
        site.cut = at
        refused(archive, root, "the connection broke")
    assert (root / PART).read_bytes() == CONTENT[:600_001]
    steps = []
    assert fetch(archive, root, progress=lambda *step: steps.append(step)) is True
    complete(root)
    assert site.asked == [None, "bytes=1-", "bytes=300001-", "bytes=600001-"]
    assert steps[0] == (600_001, len(CONTENT))


def test_a_server_that_sends_only_the_whole_is_taken_at_that(site: Site, archive: Archive, root: Path) -> None:
    site.ranges = False
    cut(site, archive, root, 500_000)
    cut(site, archive, root, 400_000)  # less than before: it did start again
    fetch(archive, root)
    complete(root)


def test_a_server_that_sends_another_part_is_asked_for_the_whole(site: Site, archive: Archive, root: Path) -> None:
    cut(site, archive, root, 500_000)
    site.shift = 7
    fetch(archive, root)
    complete(root)
    assert site.asked[1:] == ["bytes=500000-", None]


def test_a_server_that_cannot_resume_there_is_asked_for_the_whole(site: Site, archive: Archive, root: Path) -> None:
    cut(site, archive, root, 500_000)
    site.shift = -len(CONTENT)
    fetch(archive, root)
    complete(root)
    assert site.asked[1:] == ["bytes=500000-", None]


def test_a_download_that_was_whole_but_not_unpacked_is_not_fetched_again(
    site: Site, archive: Archive, root: Path
) -> None:
    root.mkdir()
    (root / PART).write_bytes(CONTENT)
    assert fetch(archive, root) is True
    complete(root)
    assert site.asked == []


# Wrong content


def test_a_wrong_checksum_throws_the_download_away(site: Site, archive: Archive, root: Path) -> None:
    site.content = CONTENT[:-1] + b"x"
    refused(archive, root, PART, "checksum", "deleted", "fetch it again")
    assert not root.exists()
    site.content = CONTENT
    fetch(archive, root)
    complete(root)


@pytest.mark.parametrize("part", [b"x" * 1000, b"x" * len(CONTENT), CONTENT + b"x"])
def test_a_damaged_part_is_thrown_away(archive: Archive, root: Path, part: bytes) -> None:
    root.mkdir()
    (root / PART).write_bytes(part)
    refused(archive, root, PART, "checksum", "deleted")
    assert names(root) == []
    fetch(archive, root)
    complete(root)


@pytest.mark.parametrize("victim", [b"precious", CONTENT[:500_000], CONTENT + b"x"])
def test_a_link_in_the_place_of_a_download_is_not_followed(archive: Archive, root: Path, victim: bytes) -> None:
    root.mkdir()
    (root / "victim").write_bytes(victim)
    (root / PART).symlink_to("victim")
    fetch(archive, root)
    assert (root / "victim").read_bytes() == victim
    (root / "victim").unlink()
    complete(root)


@pytest.mark.parametrize("content", [b"<html>Log in first</html>", CONTENT + b"x"])
def test_a_file_of_another_size_is_not_downloaded(site: Site, archive: Archive, root: Path, content: bytes) -> None:
    cut(site, archive, root, 500_000)
    site.content, site.ranges = content, False
    refused(archive, root, site.url, f"a file of {len(content)} bytes", str(len(CONTENT)), "give the url")
    assert (root / PART).read_bytes() == CONTENT[:500_000]  # what is there may still be right


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("at", [None, 500_000])
def test_an_answer_that_is_no_archive_changes_nothing(
    site: Site, archive: Archive, root: Path, length: bool, at: int | None
) -> None:
    """A page to log in, as long as the archive or of a length that the server does not tell."""
    if at:
        cut(site, archive, root, at)
    site.content, site.ranges, site.length = b"<html>Log in</html>".ljust(len(CONTENT)), False, length
    refused(archive, root, site.url, "is not the archive numbers.tar.gz", "give the url")
    assert (root / PART).read_bytes() == CONTENT[:at] if at else not root.exists()
    site.content, site.ranges = CONTENT, True
    fetch(archive, root)
    complete(root)
    assert site.asked[-1] == (f"bytes={at}-" if at else None)


def test_nothing_at_all_changes_nothing(site: Site, archive: Archive, root: Path) -> None:
    cut(site, archive, root, 500_000)
    site.content, site.ranges, site.length = b"", False, False
    refused(archive, root, "the connection broke after 0 of")
    assert (root / PART).read_bytes() == CONTENT[:500_000]


@pytest.mark.parametrize("length", [True, False])
def test_the_rest_of_a_file_of_another_size_is_not_added(
    site: Site, archive: Archive, root: Path, length: bool
) -> None:
    cut(site, archive, root, 500_000)
    site.total, site.length = len(CONTENT) + 1, length
    refused(archive, root, site.url, f"a file of {len(CONTENT) + 1} bytes", str(len(CONTENT)), "give the url")
    assert (root / PART).read_bytes() == CONTENT[:500_000]


def test_a_server_that_never_ends_is_not_followed(site: Site, archive: Archive, root: Path) -> None:
    site.length, site.content = False, CONTENT + b"x" * 10**6
    fetch(archive, root)
    complete(root)


# No answer


@pytest.mark.parametrize("status", [403, 404, 416, 500])
def test_an_error_of_the_server(site: Site, archive: Archive, root: Path, status: int) -> None:
    site.status = status
    refused(archive, root, site.url, f"the server answers {status}", "give another url")
    assert not root.exists()


def test_nobody_listens(archive: Archive, root: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
        refused(archive, root, url, "no answer (Connection refused)", url=url)
    assert not root.exists()


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_no_network(archive: Archive, root: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, word: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    refused(archive, root, f"no answer ({word})", "check the network")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "numbers.tar.gz", ""])
def test_an_address_that_is_none(archive: Archive, root: Path, url: str) -> None:
    refused(archive, root, url, "https://", url=url)


@pytest.mark.parametrize("url", ["http://", "http://127.0.0.1:port/x", "http://a b/", "http://[/"])
def test_an_address_that_is_misspelt(archive: Archive, root: Path, url: str) -> None:
    refused(archive, root, url, "no answer", url=url)


# In the way


def test_a_folder_that_is_another_is_left_alone(site: Site, archive: Archive, root: Path) -> None:
    (root / FOLDER).mkdir(parents=True)
    refused(archive, root, f"{root / FOLDER} exists and is not the official folder", "no file a", "another root")
    for name in FILES:
        (root / FOLDER / name).write_bytes(b"mine")
    refused(archive, root, "is not the official folder", "wrong checksum of a")
    assert (root / FOLDER / "a").read_bytes() == b"mine"
    assert site.asked == []


def test_files_in_the_way(site: Site, archive: Archive, root: Path) -> None:
    root.write_bytes(b"a file")
    refused(archive, root, str(root), "File exists")
    root.unlink()
    (root / PART).mkdir(parents=True)
    refused(archive, root, PART, "Is a directory")
    (root / PART).rmdir()
    (root / FOLDER).symlink_to("nowhere")
    refused(archive, root, "is not the official folder")


def test_one_at_a_time(site: Site, archive: Archive, root: Path) -> None:
    root.mkdir()
    with exclusive(root):
        refused(archive, root, str(root), "another process is fetching")
    assert site.asked == []


# Whatever happens, at whatever moment


def test_a_full_disk_at_every_moment(archive: Archive, tmp_path: Path) -> None:
    for at in count():
        root = tmp_path / str(at) / "data"
        root.parent.mkdir()
        with full_disk(root.parent, at) as fault:
            said = outcome(archive, root)
        if not fault.happened:
            break
        assert str(root) in said
        assert f"{os.strerror(errno.ENOSPC)}: free some space" in said
        assert not (root / FOLDER).exists()
        fetch(archive, root)
        complete(root)
    assert said == "True"
    assert at > 5


def outcome(archive: Archive, root: Path) -> str:
    """What a fetch returns or raises, as text."""
    try:
        return str(fetch(archive, root))
    except InputError as error:
        return str(error)


def test_a_process_that_dies_at_every_moment(archive: Archive, tmp_path: Path) -> None:
    for at in count():
        root = tmp_path / str(at) / "data"
        root.parent.mkdir()
        with dying(root.parent, at) as fault:
            fetch(archive, root)
        if not fault.happened:
            break
        if (root / FOLDER).exists():
            assert {path.name: path.read_bytes() for path in (root / FOLDER).iterdir()} == FILES
        fetch(archive, root)
        complete(root)
    assert at > 8


# The official archives


def test_the_official_files_are_those_that_the_reader_reads() -> None:
    for name, cifar in CIFARS.items():
        archive, layout = BUILT_IN[name].archive, cifar.layouts[0]
        assert archive is not None
        assert (archive.name, archive.folder) == (layout.archive, layout.folder)
        assert set(layout.files) < set(archive.md5)
        assert archive.url == f"https://www.cs.toronto.edu/~kriz/{layout.archive}"


@pytest.mark.parametrize("name", [name for name, entry in BUILT_IN.items() if entry.archive])
def test_an_archive_has_checksums_of_their_length_and_is_named_in_the_layout(name: str) -> None:
    """Where fetch finds the archive already, it unpacks nothing: the reader must read it packed."""
    archive = BUILT_IN[name].archive
    assert archive is not None
    assert archive.name.endswith(".tar.gz")
    assert len(archive.sha256) == 64
    assert archive.md5
    assert all(len(digest) == 32 for digest in archive.md5.values())
    assert f"DIR/{archive.name}" in BUILT_IN[name].layout
    assert f"DIR/{archive.folder}/" in BUILT_IN[name].layout
