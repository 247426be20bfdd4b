"""Write the label issues of a run in the format of another tool."""

from pathlib import Path
from pkgutil import resolve_name

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.relabel.shared import Content, read_shared
from dividemix.relabel.tools import TOOLS


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
        raise InputError(f"image_url is {image_url!r}: {tool} takes no addresses of images: leave it out")
    shared = read_shared(run, flagged_only=chosen.flagged_only and not every, data=data)
    contents: dict[str, Content] = resolve_name(chosen.write)(shared, image_url)
    first = next(iter(contents))
    out = run / f"{tool}{first}" if out is None else out
    if out.suffix.lower() != first:
        raise InputError(f"out is {out}: for {tool} a {first} file is written: change the extension")
    if not out.parent.is_dir():
        raise InputError(f"out is {out}: no folder {out.parent}: create it, or choose another")
    files = {out.with_suffix(suffix): content for suffix, content in contents.items()}
    for path, content in files.items():
        if path.is_dir() or (path.is_file() and not overwrite and not _is(path, content)):
            raise InputError(f"out is {out}: {path} exists with another content: choose another out, or add overwrite")
    for path, content in files.items():
        with atomic.replacing(path) as file:
            file.write(content) if isinstance(content, bytes) else content(file)
    return list(files), len(shared.issues)


def _is(path: Path, content: Content) -> bool:
    """Whether a file has a content that is known before it is written."""
    return isinstance(content, bytes) and path.read_bytes() == content
