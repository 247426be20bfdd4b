"""Download an official archive, verify its checksum, and unpack it; an interrupted download is resumed.

The download is written to NAME.tar.gz.part in the root folder. That file is kept until its content is unpacked; only
then does the unpacked folder get its name.
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

from dividemix.data.archives import Archive
from dividemix.errors import InputError
from dividemix.lock import exclusive

_CHUNK = 2**18  # bytes: small enough to show progress on a slow line
_PATIENCE = 60.0  # seconds to wait for the next byte
_GZIP = b"\x1f\x8b"  # first bytes of the archive

Progress = Callable[[int, int], None]  # bytes downloaded, bytes in total


def fetch(
    archive: Archive, root: Path, *, url: str | None = None, progress: Progress = lambda done, size: None
) -> bool:
    """Fetch the archive into `root`, from `url` if given; return False if it was there already.

    Raises InputError for no answer or a wrong one, a broken connection, a wrong checksum, a full disk, or if something
    else has the folder's name. The next call resumes the download, unless its checksum is wrong.
    """
    folder, part = root / archive.folder, root / f"{archive.name}.part"
    with _one_line_errors(root):
        if os.path.lexists(folder):
            if problem := _problem(archive, folder):
                raise InputError(
                    f"{folder} exists and is not the official folder ({problem}): move it, or give another root;"
                    " dividemix data check reports whether it can be used"
                )
            part.unlink(missing_ok=True)  # left by a process that was killed after unpacking it
            return False
        if (root / archive.name).is_file() and _checksum(root / archive.name, "sha256") == archive.sha256:
            return False  # readers read the archive itself
        with _held(root):
            _download(archive, archive.url if url is None else url, part, progress)
            if _checksum(part, "sha256") != archive.sha256:
                part.unlink()
                raise InputError(
                    f"{part}: its checksum is not that of the official {archive.name}, so it was deleted: "
                    "run the same command to fetch it again"
                )
            _unpack(archive, part, folder)
            part.unlink(missing_ok=True)
    return True


def _download(archive: Archive, url: str, part: Path, progress: Progress) -> None:
    """Append the missing bytes of the archive to `part`."""
    if part.is_symlink():  # not of an earlier download: what it leads to must not change
        part.unlink()
    done = part.stat().st_size if part.exists() else 0
    if done >= archive.size:
        return  # the checksum decides
    response, done = _answer(url, done)
    with response:
        if (size := _whole_size(response, done)) not in (None, archive.size):
            raise InputError(
                f"{url}: a file of {size} bytes, but the official {archive.name} has {archive.size}: "
                "give the url of the official archive"
            )
        chunk = _next_chunk(response, url, done, archive.size)
        if done == 0 and not _GZIP.startswith(chunk[: len(_GZIP)]):  # check before existing bytes are dropped
            raise InputError(
                f"{url}: the answer is not the archive {archive.name} but something else, such as a login page: "
                "give the url of the archive"
            )
        with part.open("ab") as file:
            file.truncate(done)
            progress(done, archive.size)
            while chunk:
                file.write(chunk)
                done += len(chunk)
                progress(done, archive.size)
                chunk = _next_chunk(response, url, done, archive.size) if done < archive.size else b""
            file.flush()
            os.fsync(file.fileno())


def _whole_size(response: HTTPResponse, done: int) -> int | None:
    """Size of the whole file as the server states it; `done` of its bytes come before this answer."""
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal():
        return int(total)
    return None if response.length is None else done + response.length


def _next_chunk(response: HTTPResponse, url: str, done: int, size: int) -> bytes:
    """Read the next bytes, at least one and none beyond the size."""
    try:
        if chunk := response.read(min(_CHUNK, size - done)):
            return chunk
        why = "closed by the server"
    except (OSError, HTTPException) as error:
        why = str(error)
    problem = f"the connection broke after {done} of {size} bytes ({why})"
    raise InputError(f"{url}: {problem}: run the same command to resume")


def _answer(url: str, done: int) -> tuple[HTTPResponse, int]:
    """The server's response, and how many bytes of the file come before it: `done`, or 0 if it sends the whole file."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: must be a url that begins with https:// or http://")
    headers = {"User-Agent": "dividemix", "Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
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
        raise InputError(f"{url}: the server sends a part of the file instead of all of it: {_REMEDY}")
    return _answer(url, 0)


_REMEDY = "check the network and the url, or give another url"


def _unpack(archive: Archive, packed: Path, folder: Path) -> None:
    """Unpack the archive's files with known names into `folder`; its paths, links and modes have no effect."""
    # Always the same name, so that the rest of a killed process is removed.
    temporary = folder.with_name(f".{folder.name}.tmp")
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
            raise InputError(f"{packed}: could not be unpacked ({problem}): run the same command again")
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _problem(archive: Archive, folder: Path) -> str | None:
    """The first problem of an unpacked folder; None if it is the official one."""
    for name, expected in archive.md5.items():
        if not (folder / name).is_file():
            return f"no file {name}"
        if _checksum(folder / name, "md5") != expected:
            return f"wrong checksum of {name}"
    return None


def _checksum(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """Lock the folder. It is created if it does not exist, and removed again if it stays empty."""
    made = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(root, "another process is fetching into this folder: wait until it ends"):
            yield
    finally:
        if made:
            with suppress(OSError):
                root.rmdir()


@contextmanager
def _one_line_errors(root: Path) -> Iterator[None]:
    """Turn errors of the file system into InputError that names the file."""
    try:
        yield
    except OSError as error:
        advice = ": free some space, then run the same command to resume" if error.errno == errno.ENOSPC else ""
        raise InputError(f"{error.filename or root}: {error.strerror or error}{advice}") from error
