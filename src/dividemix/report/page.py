"""The report as one HTML file that needs nothing else: no server, no network, no second file."""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Sequence
from importlib import resources
from string import Template
from typing import Any

from dividemix.report.content import PageContent
from dividemix.report.payload import payload

_SCRIPTS = ("dom", "charts", "training", "losses", "noise", "decisions", "choose", "gallery", "review", "main")


def render(content: PageContent, thumbnail: Callable[[int], bytes]) -> str:
    """The page. `thumbnail(i)` returns sample i as a JPEG, PNG or WebP file, or b"" if it has no picture."""
    return assemble("page.html", ("page.css",), _SCRIPTS, title=content.title, data=payload(content, thumbnail))


def assemble(template: str, styles: Sequence[str], scripts: Sequence[str], *, title: str, data: Any) -> str:
    """A page from files in static/: a template, its styles, its scripts by name; and the data that it shows."""
    style = "\n".join(map(_read, styles))
    script = '"use strict";\n' + "\n".join(_read(f"{name}.js") for name in scripts)
    return Template(_read(template)).substitute(
        title=html.escape(title.encode("utf-8", "replace").decode()),
        policy=_policy(style, script),
        style=style,
        script=script,
        data=to_script_json(data),
    )


def to_script_json(value: Any) -> str:
    """JSON that is safe inside a script element, whatever text is in it: ASCII, without <, > and &."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # they occur only inside strings, where JSON allows the escape
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, script: str) -> str:
    """A content security policy that allows this style and this script, and loads nothing from anywhere."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _read(name: str) -> str:
    return (resources.files("dividemix.report") / "static" / name).read_text(encoding="utf-8")
