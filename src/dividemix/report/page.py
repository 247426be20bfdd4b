"""The report as one HTML file that needs nothing else: no server, no network, no second file."""

import base64
import hashlib
import html
import json
from collections.abc import Callable
from importlib import resources
from string import Template
from typing import Any

from dividemix.report.content import PageContent
from dividemix.report.payload import payload

_SCRIPTS = (
    "dom.js",
    "charts.js",
    "training.js",
    "losses.js",
    "noise.js",
    "decisions.js",
    "choose.js",
    "gallery.js",
    "review.js",
    "main.js",
)


def render(content: PageContent, thumbnail: Callable[[int], bytes]) -> str:
    """The page; `thumbnail(i)` gives sample i as a JPEG, PNG or WebP file (b"" where there is no picture)."""
    style = _read("page.css")
    script = '"use strict";\n' + "\n".join(_read(name) for name in _SCRIPTS)
    return Template(_read("page.html")).substitute(
        title=html.escape(content.title.encode("utf-8", "replace").decode()),
        policy=_policy(style, script),
        style=style,
        script=script,
        data=to_script_json(payload(content, thumbnail)),
    )


def to_script_json(value: Any) -> str:
    """JSON that can stand inside a script element whatever text it holds: ASCII, without <, > and &."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # only inside strings, where JSON allows the escape
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, script: str) -> str:
    """A content security policy under which this style and this script work, and nothing is loaded from anywhere."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _read(name: str) -> str:
    return (resources.files("dividemix.report") / "static" / name).read_text(encoding="utf-8")
