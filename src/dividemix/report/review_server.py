"""The server of `dividemix review`: one run, on this machine only, for whoever has its token. Standard library only.

Every address begins with a secret token. A request is refused unless it names this server as its host, so that no
name of the internet can be bound to it, and unless it comes from its own page. Nothing is looked up by a path: a
picture is asked for by the index of a sample.
"""

import hmac
import json
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dividemix.data.images import ImageLike, UnreadableImage, probe
from dividemix.errors import InputError
from dividemix.report.content import PageContent
from dividemix.report.page import render_served
from dividemix.report.payload import MAX_SHOWN_BYTES, payload, suspicion
from dividemix.report.pictures import Pictures
from dividemix.report.shown import Shown, image_at, text
from dividemix.stored import parse_json, read_bytes

PAGE_SIZE = 10_000  # suspects on a page
_MORE = 1000  # samples that are shown beyond the flagged ones
_MAX_BODY = 1 << 24
_MAX_ORIGINAL = 1 << 28  # bytes of a file that is shown as it is
_SECONDS = 30  # that a connection may stay silent
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# An original is shown as it is. Whatever its bytes are, they may not run, load or embed anything.
_SANDBOX = {"Content-Security-Policy": "default-src 'none'; sandbox"}
_KINDS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png", b"GIF8": "image/gif", b"BM": "image/bmp"}


class Review(Protocol):
    """Where decisions are stored (relabel/stored_review.py)."""

    def decisions(self) -> tuple[int, list[tuple[int, str, str]]]:
        """The revision, and all decisions: index, action, new label."""

    def change(self, changes: Sequence[tuple[int, str | None, str]]) -> int:
        """Store changes and return the revision. Raises InputError if one makes no sense."""


class Answer(NamedTuple):
    """A response: its status, its content and the kind of that."""

    status: HTTPStatus
    content: bytes
    kind: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = {}  # noqa: RUF012 (never changed)


class ReviewServer(ThreadingHTTPServer):
    """The server of one run; `url` is the address of its page. `words` are words for the page, by name.

    `samples` are the pictures of the samples, or their texts, or what is shown of each.
    """

    daemon_threads = True

    def __init__(
        self,
        content: PageContent,
        samples: Pictures | Sequence[str | Shown],
        review: Review,
        words: dict[str, str],
        port: int = 0,
    ):
        """Listen on 127.0.0.1. Raises OSError if the port is taken."""
        self._content, self._review, self._words = content, review, words
        self._shown = None if isinstance(samples, Pictures) else samples
        longest = max((len(json.dumps(_as_shown(one))) for one in self._shown or ()), default=1)
        self._max_shown = MAX_SHOWN_BYTES // longest  # on a page: the rest would not be shown
        self._pictures = samples if isinstance(samples, Pictures) else Pictures({}, lambda _: None)
        self._token = secrets.token_urlsafe(24)
        self._position = {int(row): i for i, row in enumerate(content.sample_rows)}
        self._num_suspects = min(len(content.labels), int(content.is_issue.sum()) + _MORE)
        self._order = suspicion(content)[: self._num_suspects]
        self._picture = lru_cache(maxsize=256)(self._encoded)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.server_port}/{self._token}/"

    def is_own(self, host: str | None, origin: str | None, site: str | None) -> bool:
        """Whether the headers of a request name this server, and no other page."""
        own = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        from_elsewhere = origin is not None and origin not in {f"http://{name}" for name in own}
        return host in own and not from_elsewhere and site in (None, "none", "same-origin")

    def handle_error(self, request: object, client_address: object) -> None:
        """Say in one line what failed in a request. A connection that broke is the business of its other end."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(" ".join(f"dividemix: a request failed: {error}".split())[:500] + "\n")

    def get(self, target: str) -> Answer:
        """The answer to GET."""
        path, _, query = target.partition("?")
        if path == "/favicon.ico":  # browsers ask for it by themselves
            return Answer(HTTPStatus.NO_CONTENT, b"")
        place = self._inside(path)
        if place == "":
            first = re.fullmatch(r"first=([0-9]{1,9})", query) if query else None
            return self._page(int(first[1]) if first else 0)
        if place == "decisions":
            revision, decisions = self._review.decisions()
            return _json({"revision": revision, "decisions": decisions})
        wanted = re.fullmatch(r"(small|large|original)/([0-9]{1,18})", place or "")
        i = self._position.get(int(wanted[2])) if wanted else None
        if wanted is None or i is None:
            return _NOT_FOUND
        return self._original(i) if wanted[1] == "original" else self._picture(i, wanted[1])

    def post(self, target: str, content: bytes) -> Answer:
        """The answer to POST: changes of decisions."""
        if self._inside(target) != "decisions":
            return _NOT_FOUND
        try:
            asked = parse_json(content, dict[str, list[list[int | str | None]]], "request")
            changes = [_change(one) for one in asked.get("changes", [])]
            return _json({"revision": self._review.change(changes)})
        except InputError as error:
            return Answer(HTTPStatus.BAD_REQUEST, str(error).encode("utf-8", "backslashreplace"))

    def _inside(self, path: str) -> str | None:
        """What follows the token; None if that is wrong."""
        _, token, place = path.split("/", 2) if path.count("/") >= 2 else ("", "", None)
        is_right = hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())
        return place if is_right else None

    def _page(self, first: int) -> Answer:
        """The page of the suspects from a position on."""
        size = min(PAGE_SIZE, self._max_shown)
        starts = range(0, self._num_suspects, size)
        first = first if first in starts else 0
        revision, decisions = self._review.decisions()
        ends = [min(start + size, self._num_suspects) for start in starts]
        data = payload(self._content, self._show, first=first, limit=min(size, self._num_suspects - first))
        pages = [
            {"first": start, "last": end, "url": f"?first={start}"} for start, end in zip(starts, ends, strict=True)
        ]
        data |= {"revision": revision, "decisions": decisions, "first": first, "pages": pages, **self._words}
        return Answer(HTTPStatus.OK, render_served(data).encode(), "text/html; charset=utf-8")

    def _show(self, i: int) -> Shown | None:
        if self._shown is not None:
            return _as_shown(self._shown[i])
        index = int(self._content.sample_rows[i])
        has_file = i in self._pictures.files
        if not has_file and self._pictures.pixels(i) is None:
            return None
        return image_at(f"small/{index}", f"large/{index}", f"original/{index}" if has_file else None)

    def _encoded(self, i: int, size: str) -> Answer:
        picture = self._pictures.small(i) if size == "small" else self._pictures.large(i)
        return Answer(HTTPStatus.OK, picture, "image/webp") if picture else _NOT_FOUND

    def _original(self, i: int) -> Answer:
        """The file of a sample as it is, if it is still an image."""
        file: ImageLike | None = self._pictures.files.get(i)
        try:
            if not isinstance(file, Path | bytes):
                return _NOT_FOUND
            probe(file)
            content = file if isinstance(file, bytes) else read_bytes(file, _MAX_ORIGINAL)
        except (UnreadableImage, InputError, OSError):
            return _NOT_FOUND
        kind = next((kind for start, kind in _KINDS.items() if content.startswith(start)), "application/octet-stream")
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            kind = "image/webp"
        return Answer(HTTPStatus.OK, content, kind, _SANDBOX)


def _change(one: list[int | str | None]) -> tuple[int, str | None, str]:
    """A change from JSON: [index, action or null, label]. Raises InputError if it has another form."""
    match one:
        case [int(index), str() | None as action, str(label)] if not isinstance(one[0], bool):
            return index, action, label
    raise InputError("a change must be [index, action, label]")


def _as_shown(sample: str | Shown) -> Shown:
    return text(sample) if isinstance(sample, str) else sample


def _json(value: Any) -> Answer:
    return Answer(HTTPStatus.OK, json.dumps(value).encode(), "application/json")


_NOT_FOUND = Answer(HTTPStatus.NOT_FOUND, b"not found")
_FORBIDDEN = Answer(HTTPStatus.FORBIDDEN, b"forbidden: open the address that dividemix review printed")


class _Handler(BaseHTTPRequestHandler):
    """HTTP: what is allowed at all; the server answers the rest."""

    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dividemix", ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer a request for a page, a picture or the decisions."""
        self._answer(lambda: self.server.get(self.path))

    def do_POST(self) -> None:
        """Answer a change of decisions."""
        length = self.headers.get("Content-Length", "")
        is_json = self.headers.get_content_type() == "application/json"
        if not is_json or not re.fullmatch("[0-9]{1,18}", length) or int(length) > _MAX_BODY:
            self._send(Answer(HTTPStatus.BAD_REQUEST, b"must be JSON of a known length"), close=True)
        else:
            self._answer(lambda: self.server.post(self.path, self.rfile.read(int(length))))

    def _answer(self, answer: Callable[[], Answer]) -> None:
        names = ("Host", "Origin", "Sec-Fetch-Site")
        given = {name: self.headers.get_all(name, []) for name in names}
        host, origin, site = (", ".join(given[name]) if given[name] else None for name in names)
        if not self.server.is_own(host, origin, site):
            self._send(_FORBIDDEN, close=True)
            return
        try:
            self._send(answer())
        except ConnectionError:  # the page has gone away
            self.close_connection = True
        except (OSError, InputError) as error:  # such as a full disk: the page says that the decision is not saved
            words = getattr(error, "strerror", None) or str(error)
            content = words.encode("utf-8", "backslashreplace")
            self._send(Answer(HTTPStatus.INTERNAL_SERVER_ERROR, content), close=True)

    def _send(self, answer: Answer, *, close: bool = False) -> None:
        self.close_connection = self.close_connection or close
        self.send_response(answer.status)
        sizes = {"Content-Type": answer.kind, "Content-Length": str(len(answer.content))}
        for name, value in (_HEADERS | answer.headers | sizes).items():
            self.send_header(name, value)
        if close:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is for the address and for errors."""
