"""Files of object stores, by fsspec (an extra): s3://, gs://, hf:// and others. Only known protocols are opened."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from dividemix.errors import InputError

# Protocol -> the package that it needs. A run's config.yaml may name the data: it must not make Python import others.
PROTOCOLS = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "hf": "huggingface_hub",
    "az": "adlfs",
    "abfs": "adlfs",
    "http": "aiohttp",
    "https": "aiohttp",
    "file": "fsspec",
    "memory": "fsspec",
}
_TIMES = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")  # what tells versions apart
_BLOCK = 8 << 20  # bytes that are fetched at a time when a whole file is read


def is_remote(data: str) -> bool:
    """Whether a name is an address such as s3://bucket/shards."""
    return "://" in data


class RemoteShard:
    """A file of an object store, which is read in parts."""

    waits = True

    def __init__(self, files: Any, path: str, name: str):
        self._files, self._path, self.name = files, path, name

    def stamp(self) -> list[Any]:
        """The address, the size, and what the store knows of its version."""
        about = self._about()
        return [self.name, self.num_bytes(), *(str(about[name]) for name in _TIMES if about.get(name) is not None)]

    def num_bytes(self) -> int:
        """Its size."""
        size = self._about().get("size")
        if not isinstance(size, int):
            raise InputError(f"{self.name}: its size is unknown, so it cannot be read in parts")
        return size

    def _about(self) -> dict[str, Any]:
        with refusing(self.name):
            return dict(self._files.info(self._path))

    def open(self) -> BinaryIO:
        """The file, fetched in large blocks."""
        with refusing(self.name):
            return cast(BinaryIO, self._files.open(self._path, "rb", block_size=_BLOCK))

    def read(self, offset: int, size: int) -> bytes:
        """A part of the content."""
        with refusing(self.name):
            content = bytes(self._files.cat_file(self._path, start=offset, end=offset + size))
        if len(content) < size:
            raise InputError(f"{self.name}: shorter than at the start: leave the data unchanged")
        return content


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """While inside, whatever goes wrong becomes an InputError of one line that begins with the name."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file or folder") from error
    except Exception as error:  # the packages of the stores raise anything
        words = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{name}: cannot be read: {words}") from error


def file_system(data: str) -> tuple[Any, str]:
    """The store of an address, and the path in it. Raises InputError if the protocol is unknown or needs a package."""
    protocol = data.partition("://")[0]
    if protocol not in PROTOCOLS or "::" in data:
        known = ", ".join(f"{name}://" for name in PROTOCOLS)
        raise InputError(f"{data}: unknown kind of address: must begin with one of {known}")
    try:
        fsspec = importlib.import_module("fsspec")
        files, path = fsspec.core.url_to_fs(data)
    except Exception as error:  # a broken installation raises anything
        words = " ".join(str(error).split())[:150]
        needs = f"pip install 'dividemix[remote]' {PROTOCOLS[protocol]}"
        raise InputError(f"{data}: cannot be opened ({words}): it needs {needs}, and your access to it") from error
    return files, str(path)


def find_files(data: str) -> dict[str, RemoteShard]:
    """The files of a folder and of its folders, by their names relative to it."""
    files, folder = file_system(data)
    with refusing(data):
        found = files.find(folder, maxdepth=2)
    start = folder.rstrip("/") + "/"
    names = [path.removeprefix(start) for path in found if path.startswith(start)]
    return {name: RemoteShard(files, start + name, f"{data.rstrip('/')}/{name}") for name in names}


def named_file(data: str) -> RemoteShard:
    """The file of an address. Raises InputError if there is none."""
    files, path = file_system(data)
    with refusing(data):
        if not files.isfile(path):
            raise InputError(f"{data}: no such file: a shard is missing; get it, or leave it out")
    return RemoteShard(files, path, data)
