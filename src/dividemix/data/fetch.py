"""Download an official archive, going on where it was cut, compare it with its check sum, and unpack it as a whole.

In the folder given as root, NAME.tar.gz.part grows and stays until its content is unpacked; only then is the unpacked
folder given its name.
"""

import errno
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from dividemix.data.cifar_archives import Archive
from dividemix.engine.lock import exclusive
from dividemix.errors import InputError

_CHUNK = 2**18  # bytes: small enough to show progress on a slow line
_PATIENCE = 60.0  # seconds without a byte
_GZIP = b"\x1f\x8b"  # with which the archive begins

Progress = Callable[[int, int], None]  # bytes that are there, bytes in all


def fetch(
    archive: Archive, root: Path, *, url: str | None = None, progress: Progress = lambda done, size: None
) -> bool:
    """Whether anything had to be fetched until `root` held the archive's folder; `url` is another place to fetch from.

    Raises:
        InputError: no answer, a wrong one, a connection that broke, a wrong check sum, a full disk, or something else
            under the folder's name. What was downloaded stays for the next call, unless its check sum is wrong.
    """
    folder, part = root / archive.folder, root / f"{archive.name}.part"
    with _one_line_errors(root):
        if os.path.lexists(folder):
            if problem := _problem(archive, folder):
                raise InputError(
                    f"{folder} is in the way, and not the official folder ({problem}): move it, or give another"
                    " --root; dividemix data check says whether it can be used as it is"
                )
            part.unlink(missing_ok=True)  # left by a process that died after unpacking it
            return False
        if (root / archive.name).is_file() and _checksum(root / archive.name, "sha256") == archive.sha256:
            return False  # readers take it as it is
        with _held(root):
            _download(archive, archive.url if url is None else url, part, progress)
            if _checksum(part, "sha256") != archive.sha256:
                part.unlink()
                raise InputError(
                    f"{part}: its check sum is not that of the official {archive.name}, so it was thrown away: "
                    "the same command fetches it anew"
                )
            _unpack(archive, part, folder)
            part.unlink(missing_ok=True)
    return True


def _download(archive: Archive, url: str, part: Path, progress: Progress) -> None:
    """Add to the part what it lacks of the archive."""
    done = part.stat().st_size if part.exists() else 0
    if done >= archive.size:
        return  # the check sum decides
    response, done = _answer(url, done)
    with response:
        if (size := _whole_size(response, done)) not in (None, archive.size):
            raise InputError(
                f"{url}: a file of {size} bytes, but the official {archive.name} has {archive.size}: "
                "give the address of that one with --url"
            )
        chunk = _next_chunk(response, url, done, archive.size)
        if done == 0 and not _GZIP.startswith(chunk[: len(_GZIP)]):  # before what is there is thrown away
            raise InputError(
                f"{url}: the answer is not the archive {archive.name} but something else, such as a page to log in: "
                "give the address of the archive with --url"
            )
        with part.open("ab") as file:
            file.truncate(done)
            progress(done, archive.size)
            while True:
                file.write(chunk)
                done += len(chunk)
                progress(done, archive.size)
                if done == archive.size:
                    break
                chunk = _next_chunk(response, url, done, archive.size)
            file.flush()
            os.fsync(file.fileno())


def _whole_size(response: HTTPResponse, done: int) -> int | None:
    """How many bytes the whole file has by the server's word, of which `done` come before the answer."""
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal():
        return int(total)
    return None if response.length is None else done + response.length


def _next_chunk(response: HTTPResponse, url: str, done: int, size: int) -> bytes:
    """At least one byte more, and none beyond the size."""
    try:
        chunk = response.read(min(_CHUNK, size - done))
    except (OSError, HTTPException) as error:
        raise _broken(url, done, size, str(error)) from error
    if not chunk:
        raise _broken(url, done, size, "closed by the server")
    return chunk


def _broken(url: str, done: int, size: int, why: str) -> InputError:
    """The error of a connection that ended too early."""
    return InputError(
        f"{url}: the connection broke after {done} of {size} bytes ({why}): the same command goes on from there"
    )


def _answer(url: str, done: int) -> tuple[HTTPResponse, int]:
    """What the server sends, and how many bytes of the file come before it: `done`, or 0 if it sends only the whole."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: an address that begins with https:// or http:// is needed")
    headers = {"User-Agent": "dividemix", "Accept-Encoding": "identity"}
    if done:
        headers["Range"] = f"bytes={done}-"
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=_PATIENCE)
    except HTTPError as error:
        if error.code == 416 and done:
            return _answer(url, 0)
        raise InputError(f"{url}: the server answers {error.code} {error.reason}: {_REMEDY}") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise InputError(f"{url}: no answer ({getattr(reason, 'strerror', None) or reason}): {_REMEDY}") from error
    if response.status != 206:
        return response, 0
    if response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
        return response, done
    response.close()
    if not done:
        raise InputError(f"{url}: the server sends a part of the file though all of it was asked for: {_REMEDY}")
    return _answer(url, 0)


_REMEDY = "look at the network and the address, or give another with --url"


def _unpack(archive: Archive, packed: Path, folder: Path) -> None:
    """Leave the archive's files in `folder`.

    They are copied out one by one, under names known beforehand: no path, link or mode in the archive is obeyed.
    """
    temporary = folder.with_name(
        f".{folder.name}.tmp"
    )  # always the same, so that what a killed process left is removed
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        with tarfile.open(packed, "r:gz") as members:
            for member in members:
                parent, _, name = member.name.removeprefix("./").rpartition("/")
                content = members.extractfile(member) if member.isfile() else None
                if content is not None and parent == archive.folder and name in archive.md5:
                    with (temporary / name).open("wb") as file:
                        shutil.copyfileobj(content, file)
                        file.flush()
                        os.fsync(file.fileno())
        if problem := _problem(archive, temporary):
            raise InputError(f"{packed}: could not be unpacked ({problem}): give the same command again")
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _problem(archive: Archive, folder: Path) -> str | None:
    """The first thing that is wrong with an unpacked folder; None if it is the official one."""
    for name, expected in archive.md5.items():
        if not (folder / name).is_file():
            return f"no file {name} in it"
        if _checksum(folder / name, "md5") != expected:
            return f"another check sum of {name}"
    return None


def _checksum(path: Path, kind: str) -> str:
    """The check sum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """Hold the folder while inside: made if it is not there, removed again if nothing came into it."""
    made = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(root, "another process is fetching into this folder: wait for it"):
            yield
    finally:
        if made:
            with suppress(OSError):
                root.rmdir()


@contextmanager
def _one_line_errors(root: Path) -> Iterator[None]:
    """Errors of the file system as InputError that says where."""
    try:
        yield
    except OSError as error:
        advice = ": make room, and the same command goes on from there" if error.errno == errno.ENOSPC else ""
        raise InputError(f"{error.filename or root}: {error.strerror or error}{advice}") from error
