"""The page as text: nothing it holds can leave its place, nothing is loaded from elsewhere, it stays small.

The oracle for what a browser would see is the standard library's HTML parser.
"""

import base64
import dataclasses
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from invented import fashion_content, fashion_shown, invented_content

from dividemix.report import comparison_page
from dividemix.report import page as page_module
from dividemix.report.page import render, to_script_json
from dividemix.report.shown import image
from dividemix.report.thumbnails import encode

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!-- <script>",
    "&lt;b&gt; \"double\" 'single' \\ ${x} $title",
    "line\u2028separator\u2029 \0 \x07",
    "🐱‍👓 emoji",
    "قط أسود",
    "\u202eoverride",
    "long " * 40,
    "lone \udc80 surrogate",
)


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text of its title, scripts and styles."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """As the parser asks."""
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in ("script", "style", "title"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        """As the parser asks."""
        if self._inside in ("script", "style", "title"):
            self.texts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        """As the parser asks."""
        self._inside = ""


def hostile_page() -> str:
    content = invented_content(
        np.arange(200) % len(HOSTILE), HOSTILE, paths=tuple(f"{HOSTILE[i % 10]}/{i}.png" for i in range(200))
    )
    content = dataclasses.replace(
        content,
        title=HOSTILE[1],
        facts=[(name, name) for name in HOSTILE],
        choices=[(name, name, name) for name in HOSTILE],
    )
    return render(content, lambda i: image(encode(np.zeros((8, 8, 1), np.uint8))))


def test_hostile_names_stay_text() -> None:
    page = hostile_page()
    page.encode()  # no lone surrogate is left bare
    tame = Reader(render(invented_content(np.arange(200) % 3, ("a", "b", "c")), lambda i: None))
    hostile = Reader(page)
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in tame.elements]
    title, _, data, _ = hostile.texts
    assert title.startswith(HOSTILE[1])
    assert json.loads(data)["classes"] == list(HOSTILE)
    assert json.loads(data)["facts"] == [[name, name] for name in HOSTILE]


def test_json_in_a_script_has_nothing_a_parser_could_stumble_on() -> None:
    text = to_script_json({name: name for name in HOSTILE})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {name: name for name in HOSTILE}


def test_the_policy_allows_this_style_and_this_script_alone() -> None:
    reader = Reader(hostile_page())
    policy = next(
        attributes["content"]
        for tag, attributes in reader.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    _, style, _, script = reader.texts
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in (style, script)
    ]
    assert policy == (
        f"default-src 'none'; img-src data: file:; style-src {hashes[0]}; script-src {hashes[1]}; "
        "base-uri 'none'; form-action 'none'"
    )


def test_nothing_comes_from_elsewhere() -> None:
    reader = Reader(render(fashion_content(4), fashion_shown))
    for _, attributes in reader.elements:
        assert not {"src", "srcset", "action", "background", "style"} & attributes.keys()
        assert (attributes.get("href", "#") or "").startswith("#")
    _, style, _, script = reader.texts
    assert "@import" not in style
    assert re.findall(r"url\((.*?)\)", style) == ["#hatch"]
    assert set(re.findall(r"https?://[^\"'` ]*", script)) == {"http://www.w3.org/2000/svg"}, "not even in a comment"
    for word in ("fetch(", "XMLHttpRequest", "import(", "innerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in script, f"no script may have {word}"


@pytest.mark.parametrize("page", ["report", "review", "comparison"])
def test_no_name_of_a_script_is_defined_twice(page: str) -> None:
    """All scripts of a page share one scope, where a second function replaces the first without a word."""
    before, after = page_module._BEFORE, page_module._AFTER
    scripts = {
        "report": (*before, "stored_in_browser", *after),
        "review": (*before, "stored_on_server", *after),
        "comparison": comparison_page._SCRIPTS,
    }
    text = "".join(page_module._read(f"{name}.js") for name in scripts[page])
    names = re.findall(r"^(?:(?:async )?function|const|let|class) (\w+|\$)", text, re.MULTILINE)
    assert {"h", "table", "lineChart"} <= set(names)
    assert [name for name, number in Counter(names).items() if number > 1] == []


def test_every_id_is_there_once_and_every_reference_finds_one() -> None:
    elements = Reader(render(invented_content(np.arange(20) % 2, ("a", "b")), lambda i: None)).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in elements:
        for key in ("aria-labelledby", "aria-controls"):
            assert attributes.get(key, ids[0]) in ids
        assert (attributes.get("href", f"#{ids[0]}") or "")[1:] in ids


def test_the_review_comes_early_and_each_section_is_linked_in_its_order() -> None:
    elements = Reader(render(fashion_content(4), fashion_shown)).elements
    sections = [attributes["id"] for tag, attributes in elements if tag == "section"]
    assert sections[:2] == ["overview", "review"], "a new section comes later"
    assert sections[-1] == "settings", "a new section comes before the settings"
    links = [attributes["href"] for tag, attributes in elements if tag == "a" and "class" not in attributes]
    assert links == [f"#{name}" for name in sections[1:]], "the navigation has the sections in their order"


@pytest.mark.slow
def test_fifty_thousand_samples_of_noise_stay_under_15_mb() -> None:
    """Thumbnails of pure noise are the largest there can be."""
    rng = np.random.default_rng(0)
    content = invented_content(
        np.arange(50_000) % 100,
        tuple(f"class {label}" for label in range(100)),
        num_epochs=300,
        paths=tuple(f"folder/with/a/long/name/{i:09d}.jpeg" for i in range(50_000)),
        with_truth=True,
    )
    page = render(content, lambda i: image(encode(rng.integers(0, 256, (600, 800, 3), dtype=np.uint8))))
    assert len(page.encode()) < 15e6
