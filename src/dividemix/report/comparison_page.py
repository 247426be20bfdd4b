"""The comparison of runs as one HTML file that needs nothing else."""

from pathlib import Path
from typing import Any

from dividemix import atomic
from dividemix.report.page import assemble
from dividemix.runs.comparison import CURVES, Comparison

_SCRIPTS = ("dom", "charts", "comparison")


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the page, whole or not at all."""
    data: dict[str, Any] = {**comparison, "headings": CURVES}
    title = f"{len(comparison['runs'])} runs compared"
    page = assemble("comparison.html", ("page.css", "comparison.css"), _SCRIPTS, title=title, data=data)
    atomic.write_text(path, page)
