"""The tools that label issues are shared with: each is one entry of `TOOLS`. No numpy or torch import.

Functions are named by references, "module:function", which `pkgutil.resolve_name` imports where they are called.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tool:
    """How a tool is served, and how its decisions are read."""

    title: str  # the name that its makers use
    write: str
    """Reference to a function from a Shared, and what comes before an image's path or None, to the contents of files by
    their extensions. The first is the file that the user names."""
    flagged_only: bool  # whether people of this tool look at every sample they are given
    takes_url: bool = True  # whether it takes addresses of images
    export: str | None = None
    """Reference to the module that reads its export: `is_export(content)` recognises it, and `decisions(file, content)`
    returns Corrections. None: decisions are in a table with a column corrected_label."""
    extension: str = ".json"
    """Of its export, in lower case; not that of a table. The content is JSON's value for .json, bytes for any other."""


TOOLS = {
    "label-studio": Tool(
        title="Label Studio",
        write="dividemix.relabel.label_studio:write_tasks",
        flagged_only=True,
        export="dividemix.relabel.label_studio",
    ),
    "fiftyone": Tool(
        title="FiftyOne",
        write="dividemix.relabel.fiftyone_samples:write_samples",
        flagged_only=False,
        export="dividemix.relabel.fiftyone_samples",
    ),
    "argilla": Tool(
        title="Argilla",
        write="dividemix.relabel.argilla_records:write_records",
        flagged_only=True,
        export="dividemix.relabel.argilla_records",
    ),
    "datasets": Tool(
        title="Hugging Face datasets",
        write="dividemix.relabel.hugging_face:write_dataset",
        flagged_only=False,
        takes_url=False,
    ),
    "datalab": Tool(
        title="cleanlab", write="dividemix.relabel.decision_table:write_datalab", flagged_only=False, takes_url=False
    ),
}
TITLES = tuple(tool.title for tool in TOOLS.values())
FLAGGED_ONLY = tuple(name for name, tool in TOOLS.items() if tool.flagged_only)


def listed(names: Iterable[str], word: str) -> str:
    """Names in a sentence, the word before the last: "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last
