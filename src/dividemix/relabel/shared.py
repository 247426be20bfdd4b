"""What a run shares with other tools: its samples, what the networks think of them, and where their images are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from dividemix.data.builtin import BUILT_IN
from dividemix.data.images import ImageLike
from dividemix.data.readers.listings import list_data
from dividemix.errors import InputError
from dividemix.judging.issue_table import Issue, read_issue_table
from dividemix.judging.run_classes import run_classes
from dividemix.planning.job import Job, read_settings
from dividemix.planning.reading import columns_of

Content = bytes | Callable[[BinaryIO], None]  # of a file, or a function that writes it


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The samples of a run, worst first."""

    name: str  # of the run
    classes: tuple[str, ...]
    issues: list[Issue]
    data: str
    list_images: Callable[[], dict[int, ImageLike]]  # reads the data

    @cached_property
    def images(self) -> dict[int, ImageLike]:
        """The images by the sample's index; none for data without image files. Raises InputError without the data."""
        return self.list_images()

    def files(self, tool: str) -> dict[int, Path]:
        """The image files by the sample's index. Raises InputError, naming the tool, if a sample has none."""
        files = {index: image for index, image in self.images.items() if isinstance(image, Path)}
        if any(one.index not in files for one in self.issues):
            raise InputError(
                f"{self.data}: its images are not files, which {tool} needs: "
                "share them as datasets or datalab, or review them with dividemix review"
            )
        return files


def read_shared(run: Path, *, flagged_only: bool, data: str | None = None) -> Shared:
    """What a finished run shares: all samples, or the flagged ones; `data` is where its data is now, if it moved.

    The data is read only when its images are needed.

    Raises:
        InputError: if the run is not finished or damaged, or no label is flagged.
    """
    issues = [one for one in read_issue_table(run) if one.is_label_issue or not flagged_only]
    if not issues:
        raise InputError(f"{run}: no label is flagged: share all samples instead")
    classes = run_classes(run)
    values = read_settings(run / "config.yaml", of_run=True)
    columns = ("path_column", "label_column", "features_column", "annotators", "annotator_column")
    fields = ("data", "image_root", *columns)
    job = Job.of({name: values[name] for name in fields if name in values} | ({"data": data} if data else {}))
    is_own_copy = not data and (run / job.data).is_file()  # data.npz, of a run on arrays from Python
    has_images = not is_own_copy and values.get("text_column") is None and values.get("target") is None
    return Shared(
        name=run.resolve().name,
        classes=classes,
        issues=issues,
        list_images=partial(_images, job) if has_images else dict,
        data=job.data,
    )


def _images(job: Job) -> dict[int, ImageLike]:
    """The images of a run's data by their index in it, as the readers count; none for arrays."""
    if job.data not in BUILT_IN and not Path(job.data).exists():
        raise InputError(f"data is {job.data}: no such file or folder; name where the data of the run is now")
    listing = list_data(job.data, columns_of(job))
    if listing is None:
        return {}
    return dict(zip(listing.rows or range(len(listing.files)), listing.files, strict=True))
