"""The server of the review, asked over a socket as a browser, another page or an attacker would."""

import dataclasses
import http.client
import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from invented import invented_content
from PIL import Image

from dividemix.errors import InputError
from dividemix.relabel.corrections import read_corrections
from dividemix.relabel.stored_review import Sample, StoredReview
from dividemix.report import review_server
from dividemix.report.content import PageContent
from dividemix.report.pictures import Pictures
from dividemix.report.review_server import ReviewServer

NUM = 60


def content() -> PageContent:
    paths = tuple(f"{i}.png" for i in range(NUM))
    whole = invented_content(np.arange(NUM) % 2, ("a", "b"), paths=paths)
    return dataclasses.replace(whole, sample_rows=np.arange(NUM) * 2, is_issue=np.arange(NUM) < 30)


class Client:
    """A server of sixty samples, of which the first has a file, and requests to it."""

    def __init__(self, folder: Path):
        Image.new("RGB", (600, 400), (9, 9, 9)).save(folder / "0.png")
        (folder / "secret.txt").write_text("secret")
        whole = content()
        samples = {2 * i: Sample(f"{i}.png", "ab"[whole.labels[i]], "a") for i in range(NUM)}
        self.file = folder / "c.csv"
        review = StoredReview(self.file, samples, ("a", "b"), can_add_classes=False)
        files = {0: folder / "0.png", 1: folder / "secret.txt"}
        pictures = Pictures(files, lambda i: np.full((8, 8, 1), i, np.uint8) if i < 50 else None)
        self.server = ReviewServer(whole, pictures, review, {"saved_to": "c.csv", "apply": "apply"})
        self.home = re.sub("http://[^/]*", "", self.server.url)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(
        self, place: str, *, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=20)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, place, body, names)
        answer = connection.getresponse()
        result = answer.status, answer.read(), answer.headers
        connection.close()
        return result

    def decide(self, *changes: Any, **headers: str) -> tuple[int, bytes]:
        body = json.dumps({"changes": changes}).encode()
        kind = {"Content_Type": "application/json"} | headers
        status, text, _ = self.ask(f"{self.home}decisions", method="POST", body=body, **kind)
        return status, text


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    one = Client(tmp_path)
    yield one
    one.server.shutdown()
    one.server.server_close()


def test_the_page_has_all_suspects_and_its_policy(client: Client) -> None:
    status, page, headers = client.ask(client.home)
    assert status == 200
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert b"img-src &#x27;self&#x27;" in page or b"img-src 'self'; connect-src 'self'" in page
    found = re.search(rb'type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data = json.loads(found[1])
    assert {sample["index"] for sample in data["suspects"]} == set(range(0, 2 * NUM, 2))
    shown = {sample["index"]: sample["shown"] for sample in data["suspects"]}
    assert shown[0] == {"kind": "image", "small": "small/0", "large": "large/0", "original": "original/0"}
    assert shown[4]["original"] is None
    assert shown[2 * 59] is None


def test_pictures_are_served_by_index(client: Client) -> None:
    for place, size in (("small/0", (256, 171)), ("large/0", (600, 400)), ("small/4", (8, 8))):
        status, picture, headers = client.ask(client.home + place)
        assert (status, headers["Content-Type"]) == (200, "image/webp")
        assert Image.open(io.BytesIO(picture)).size == size
    status, picture, headers = client.ask(f"{client.home}original/0")
    assert (status, headers["Content-Type"]) == (200, "image/png")
    assert "sandbox" in headers["Content-Security-Policy"]
    assert Image.open(io.BytesIO(picture)).size == (600, 400)


def test_a_huge_original_is_not_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever follows an image in its file would be read into memory."""
    monkeypatch.setattr(review_server, "_MAX_ORIGINAL", 100)
    assert client.ask(f"{client.home}original/0")[0] == 404


@pytest.mark.parametrize(
    "place",
    [
        "original/2",  # a file that is no image
        "original/4",  # no file
        "original/1",  # no sample
        "small/118",  # no picture
        "small/-2",
        "small/0/",
        "small/0x0",
        "small/" + "9" * 30,
        "../secret.txt",
        "original/../secret.txt",
        "original/%2e%2e/secret.txt",
        "secret.txt",
        "static/page.html",
        "/",
        "//etc/passwd",
        "decisions/",
    ],
)
def test_nothing_else_is_served(client: Client, place: str) -> None:
    status, text, _ = client.ask(client.home + place)
    assert status == 404
    assert b"secret" not in text


@pytest.mark.parametrize("home", ["/", "", "/wrong/", "//", "/TOKEN", "/%00/", "http://127.0.0.1/"])
def test_without_the_token_there_is_nothing(client: Client, home: str) -> None:
    home = home.replace("TOKEN", client.home.strip("/")[:-1])
    for place in ("", "decisions", "small/0"):
        assert client.ask(home + place or "/")[0] in (400, 403, 404)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:PORT"},
        {"Host": "evil.example:PORT"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_hosts_and_other_pages_are_refused(client: Client, headers: dict[str, str]) -> None:
    """A name that is bound to 127.0.0.1 after the page was loaded still names itself as the host."""
    given = {name: value.replace("PORT", str(client.server.server_port)) for name, value in headers.items()}
    for place in ("", "decisions", "small/0"):
        assert client.ask(client.home + place, method="GET", body=None, **given)[0] == 403
    assert client.decide([0, "keep", ""], **given)[0] == 403
    assert not client.file.exists()


def test_localhost_is_the_same_place(client: Client) -> None:
    own = f"localhost:{client.server.server_port}"
    assert client.ask(client.home, Host=own, Origin=f"http://{own}", Sec_Fetch_Site="same-origin")[0] == 200


def test_a_request_with_two_hosts_is_refused(client: Client) -> None:
    port = client.server.server_port
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        hosts = f"Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"
        raw.sendall(f"GET {client.home} HTTP/1.1\r\n{hosts}\r\n".encode())
        assert raw.recv(100).split()[1] == b"403"


def test_it_listens_on_this_machine_only(client: Client) -> None:
    assert client.server.server_address[0] == "127.0.0.1"


def test_decisions_of_two_pages_are_all_on_the_disk(client: Client) -> None:
    assert client.decide([0, "keep", "a"]) == (200, b'{"revision": 1}')
    assert client.decide([2, "delete", ""], [4, "ambiguous", ""]) == (200, b'{"revision": 2}')
    assert client.decide([0, None, ""]) == (200, b'{"revision": 3}')
    assert [(one.index, one.action) for one in read_corrections(client.file)] == [(2, "delete"), (4, "ambiguous")]
    status, text, _ = client.ask(f"{client.home}decisions")
    assert (status, json.loads(text)) == (200, {"revision": 3, "decisions": [[2, "delete", ""], [4, "ambiguous", ""]]})


@pytest.mark.parametrize(
    "change",
    [
        [1, "keep", ""],
        [0, "burn", ""],
        [0, "choose", "wolf"],
        [0],
        "keep",
        [True, "keep", ""],
        ["0", "keep", ""],
        [0, 1, ""],
    ],
)
def test_a_change_that_makes_no_sense_is_refused(client: Client, change: Any) -> None:
    assert client.decide([4, "keep", ""], change)[0] == 400
    assert not client.file.exists()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{", {"Content_Type": "application/json"}),
        (b"[" * 10_000, {"Content_Type": "application/json"}),
        (b"[]", {"Content_Type": "application/json"}),
        (b'{"changes": []}', {"Content_Type": "text/plain"}),  # what a form of another page could send
        (None, {"Content_Type": "application/json", "Content_Length": "99999999999"}),
        (None, {"Content_Type": "application/json", "Content_Length": "-1"}),
        (None, {"Content_Type": "application/json", "Content_Length": "9" * 5000}),
        (b'{"\\ud800": 5}', {"Content_Type": "application/json"}),
    ],
)
def test_a_body_of_another_form_is_refused(client: Client, body: bytes | None, headers: dict[str, str]) -> None:
    assert client.ask(f"{client.home}decisions", method="POST", body=body, **headers)[0] == 400
    assert not client.file.exists()


def test_other_methods_are_refused(client: Client) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert client.ask(client.home, method=method)[0] == 501


def test_a_full_disk_is_an_answer_and_the_server_goes_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("dividemix.atomic.write_text", full)
        assert client.decide([0, "keep", ""]) == (500, b"No space left on device")
    assert client.decide([0, "keep", ""])[0] == 200


def test_many_suspects_are_on_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_server, "PAGE_SIZE", 25)
    found: list[int] = []
    for first in (0, 25, 50):
        page = client.ask(f"{client.home}?first={first}")[1]
        data = json.loads(re.search(rb'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
        assert (data["first"], len(data["pages"])) == (first, 3)
        found += [sample["index"] for sample in data["suspects"]]
    assert sorted(found) == list(range(0, 2 * NUM, 2))
    flagged = set(range(0, 60, 2))
    assert set(found[:30]) == flagged


def test_a_port_that_is_taken_is_an_error(client: Client) -> None:
    whole = content()
    review = StoredReview(client.file, {}, (), can_add_classes=True)
    with pytest.raises(OSError, match="in use"):
        ReviewServer(whole, Pictures({}, lambda i: None), review, {}, client.server.server_port)
    with pytest.raises(InputError):
        review.change([(0, "keep", "")])


def test_long_texts_are_on_several_pages_and_none_is_lost(tmp_path: Path) -> None:
    whole = invented_content(np.arange(600) % 2, ("a", "b"))
    review = StoredReview(tmp_path / "c.csv", {}, ("a", "b"), can_add_classes=False)
    found = []
    with ReviewServer(whole, ["\U0001f600" * 5000] * 600, review, {"saved_to": "", "apply": ""}) as server:
        home = re.sub("http://[^/]*", "", server.url)
        for first in (0, 249, 498):
            page = server.get(f"{home}?first={first}" if first else home).content.decode()
            data = json.loads(page.partition('id="data"')[2].partition(">")[2].partition("</script>")[0])
            assert [one["first"] for one in data["pages"]] == [0, 249, 498]
            found += [one["index"] for one in data["suspects"]]
    assert sorted(found) == list(range(600))
