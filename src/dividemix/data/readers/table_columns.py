"""Which column of a table has what, as the user names them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dividemix.data.column_types import RowColumns
from dividemix.data.readers.vote_columns import VoteColumns


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """The columns of a table: those of the samples, and those of the labels."""

    path_column: str = "path"  # the image files
    label_column: str = "label"
    image_root: Path | None = None  # the folder that paths start from; None: that of the table
    features_column: str | None = None  # the vectors; None: the only column that has lists of numbers
    text_column: str | None = None  # the texts, if they are the samples
    rows: RowColumns | None = None  # what each column is, if the rows are the samples
    votes: VoteColumns | None = None  # the labels of several annotators

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "TableColumns":
        """From settings by name, as those of a job; one that is missing or None has its default.

        Raises InputError if they contradict each other.
        """
        names = ("path_column", "label_column", "features_column", "text_column")
        root = settings.get("image_root")
        rows = {name: settings.get(name) for name in ("key", "numeric", "categorical")}
        return cls(
            **{name: settings[name] for name in names if settings.get(name) is not None},
            image_root=None if root is None else Path(root),
            rows=RowColumns.of(settings.get("target"), drop=settings.get("drop_columns"), **rows),
            votes=VoteColumns.of(settings.get("annotators"), settings.get("annotator_column")),
        )

    @property
    def of_images(self) -> dict[str, Any]:
        """What the readers of tables of images take."""
        return {
            "path_column": self.path_column,
            "label_column": self.label_column,
            "image_root": self.image_root,
            "votes": self.votes,
        }
