"""The report as one HTML file that needs nothing else: no server, no network, no second file."""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from dividemix.report.content import PageContent
from dividemix.report.payload import payload
from dividemix.report.shown import Shown

_BEFORE = ("dom", "charts", "training", "losses", "overview", "noise", "map", "shown")
_AFTER = ("decisions", "choose", "gallery", "large", "bulk", "review", "main")
_STORING = (
    "This browser stores the decisions for this report until you clear them. <strong>Download corrections</strong> "
    "saves a file, and <code>dividemix relabel DATA corrections.csv</code> applies it."
)
_SAVING = (
    "Each decision is on the disk at once. Press Ctrl-C in the terminal to stop; the same command continues. "
    "<code>dividemix relabel DATA --run RUN</code> applies the decisions."
)
_OFFLINE = "img-src data: file:"  # the page of a file may show the images of your disk, and nothing of a network
_SERVED = "img-src 'self'; connect-src 'self'"


def render(content: PageContent, show: Callable[[int], Shown | None]) -> str:
    """The page as a file. `show(i)` is what its cards show of sample i (shown.py), or None."""
    return _page(payload(content, show), "stored_in_browser", _STORING, _OFFLINE)


def render_served(data: Mapping[str, Any]) -> str:
    """The page as `dividemix review` serves it, with this data; it saves decisions by asking its own server."""
    return _page(data, "stored_on_server", _SAVING, _SERVED)


def _page(data: Mapping[str, Any], store: str, storing: str, sources: str) -> str:
    scripts, title = (*_BEFORE, store, *_AFTER), data["title"]
    return assemble("page.html", ("page.css",), scripts, title=title, data=data, sources=sources, storing=storing)


def assemble(
    template: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    *,
    title: str,
    data: Any,
    sources: str = "img-src data:",
    **texts: str,
) -> str:
    """A page from files in static/: a template, its styles, its scripts by name; and the data that it shows.

    `sources` are what its policy allows to be loaded, `texts` other names of the template.
    """
    style = "\n".join(map(_read, styles))
    script = '"use strict";\n' + "\n".join(_read(f"{name}.js") for name in scripts)
    return Template(_read(template)).substitute(
        texts,
        title=html.escape(title.encode("utf-8", "replace").decode()),
        policy=_policy(style, script, sources),
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


def _policy(style: str, script: str, sources: str) -> str:
    """A content security policy that allows this style, this script and these sources of images, and nothing else."""
    return (
        f"default-src 'none'; {sources}; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _read(name: str) -> str:
    return (resources.files("dividemix.report") / "static" / name).read_text(encoding="utf-8")
