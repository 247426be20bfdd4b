"""A small archive and a server on this machine that offers it, well or badly."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dividemix.data.archives import Archive


def packed(folder: str, files: dict[str, bytes]) -> bytes:
    """A .tar.gz with the files in the folder, and much that must not be unpacked."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        first = next(iter(files))
        others = (
            "readme.html",
            f"other/{first}",
            "../outside",
            f"{folder}/readme.html",
            f"{folder}/../outside",
            "/outside",
        )
        inside = {f"{folder}/{name}": content for name, content in files.items()}
        for name, content in (inside | dict.fromkeys(others, b"no")).items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o4777
            tar.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo(f"{folder}/{first}")
        link.type, link.linkname = tarfile.SYMTYPE, "../../outside"
        tar.addfile(link)
    return buffer.getvalue()


def describe(folder: str, files: dict[str, bytes], content: bytes, url: str) -> Archive:
    """The archive as the package would know it."""
    return Archive(
        url=url,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        folder=folder,
        md5={name: hashlib.md5(file).hexdigest() for name, file in files.items()},
    )


@dataclass
class Site:
    """What the server does, and what it was asked."""

    content: bytes
    ranges: bool = True
    """Whether a part can be asked for."""
    shift: int = 0
    """By how much a part that it sends begins too early."""
    length: bool = True
    """Whether it says how long the content is."""
    cut: int | None = None
    """The connection is closed after so many bytes, once."""
    total: int | None = None
    """How many bytes it says the whole has when it sends a part, if not the truth."""
    status: int = 200
    url: str = ""
    asked: list[str | None] = field(default_factory=list)
    """The Range header of each request."""


@contextmanager
def serving(content: bytes) -> Iterator[Site]:
    """A site that sends the content as numbers.tar.gz while the block runs."""
    site = Site(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.asked.append(wanted)
            if site.status != 200:
                self.send_error(site.status)
                return
            start = 0
            if wanted and site.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-")) - site.shift
                if start >= len(site.content):
                    self.send_error(416)
                    return
                self.send_response(206)
                total = len(site.content) if site.total is None else site.total
                self.send_header("Content-Range", f"bytes {start}-{len(site.content) - 1}/{total}")
            else:
                self.send_response(200)
            if site.length:
                self.send_header("Content-Length", str(len(site.content) - start))
            self.end_headers()
            end, site.cut = (None if site.cut is None else start + site.cut), None
            self.wfile.write(site.content[start:end])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}/numbers.tar.gz"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
