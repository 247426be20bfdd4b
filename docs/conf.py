"""The documentation site: sphinx-build -W docs site (needs the extra docs)."""

import re
from typing import Any

from dividemix.version import __version__

project = "dividemix"
author = "The DivideMix package authors"
version = release = __version__
html_title = f"{project} {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
default_role = "literal"  # docstrings write `name`
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False

myst_heading_anchors = 4  # links such as data.md#tables, as GitHub makes them

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

# Pages of the site that include a file of the root. Elsewhere, links lead to that file.
_INCLUDED = {"../LOG.md": "log.md", "../CHANGELOG.md": "changelog.md"}


def setup(app: Any) -> None:
    """Let links to included files lead to their pages."""
    app.connect("source-read", _link_to_pages)


def _link_to_pages(_app: Any, docname: str, source: list[str]) -> None:
    up = "../" * docname.count("/")
    for file, page in _INCLUDED.items():
        source[0] = re.sub(rf"\]\({re.escape(up + file)}\)", f"]({up}{page})", source[0])
