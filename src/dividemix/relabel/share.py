"""Write the label issues of a run in the format of another tool."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.relabel.argilla_records import write_records
from dividemix.relabel.decision_table import write_datalab
from dividemix.relabel.fiftyone_samples import write_samples
from dividemix.relabel.hugging_face import write_dataset
from dividemix.relabel.label_studio import write_tasks
from dividemix.relabel.shared import Content, Shared, read_shared


@dataclass(frozen=True, kw_only=True)
class Tool:
    """How a tool is served: a function from samples, and what stands before an image's path, to files by extension."""

    write: Callable[[Shared, str | None], dict[str, Content]]
    flagged_only: bool  # whether people of this tool look at every sample they are given
    takes_url: bool = True


TOOLS = {
    "label-studio": Tool(write=write_tasks, flagged_only=True),
    "fiftyone": Tool(write=write_samples, flagged_only=False),
    "argilla": Tool(write=write_records, flagged_only=True),
    "datasets": Tool(write=write_dataset, flagged_only=False, takes_url=False),
    "datalab": Tool(write=write_datalab, flagged_only=False, takes_url=False),
}


def share(
    run: Path,
    tool: str,
    out: Path | None = None,
    *,
    every: bool = False,
    data: str | None = None,
    image_url: str | None = None,
    overwrite: bool = False,
) -> tuple[list[Path], int]:
    """Write a finished run's label issues for a tool of `TOOLS`; return the files, and the number of samples.

    `out` is by default a file in the run directory, with the name of the tool. Some tools get only flagged samples,
    unless `every`. `data` is where the run's data is now, if it moved; `image_url` comes before the path of each image.
    Raises InputError for a run, a tool or an `out` that cannot be used.
    """
    if tool not in TOOLS:
        raise InputError(f"{tool!r} is not a known tool: must be one of {', '.join(TOOLS)}")
    chosen = TOOLS[tool]
    if image_url is not None and not chosen.takes_url:
        raise InputError(f"image_url is {image_url!r}: {tool} has no addresses of images: leave it out")
    shared = read_shared(run, flagged_only=chosen.flagged_only and not every, data=data)
    contents = chosen.write(shared, image_url)
    first = next(iter(contents))
    out = run / f"{tool}{first}" if out is None else out
    if out.suffix.lower() != first:
        raise InputError(f"out is {out}: {tool} takes a {first} file: change the extension")
    if not out.parent.is_dir():
        raise InputError(f"out is {out}: no folder {out.parent}: create it, or choose another")
    files = {out.with_suffix(suffix): content for suffix, content in contents.items()}
    for path, content in files.items():
        if path.is_dir() or (path.is_file() and not overwrite and not _is(path, content)):
            raise InputError(f"out is {out}: {path} exists with another content: choose another out, or overwrite it")
    for path, content in files.items():
        with atomic.replacing(path) as file:
            file.write(content) if isinstance(content, bytes) else content(file)
    return list(files), len(shared.issues)


def _is(path: Path, content: Content) -> bool:
    """Whether a file has a content that is known before it is written."""
    return isinstance(content, bytes) and path.read_bytes() == content
