"""Turn the rows of a table, each an image and its label, into lists of images to train on and to test on.

If a file occurs twice with the same label, the second row is skipped. With different labels both are skipped, because
either could be right. So no image is both in the training set and in the test set. Links are followed.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing
from dividemix.data.same_file import identity
from dividemix.data.source import Skipped
from dividemix.data.votes import Votes
from dividemix.errors import InputError

# The names of splits. Every split that is not for training is for testing.
TRAIN_NAMES = ("train", "training")
TEST_NAMES = ("test", "testing", "val", "valid", "validation", "eval", "dev")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row as written in the file; an empty field is None."""

    position: str  # Where the user finds it, such as "line 7"
    path: str | None  # The image file, absolute or relative to `image_root`; only a name if there is `content`
    content: "ImageLike | None" = None  # The image itself, if it is in the table
    label: str | None
    true_label: str | None = None
    split: str | None = None
    problem: str | None = None  # Why the row cannot be used, if the reader found a reason
    votes: Mapping[str, str] | None = None  # Annotator -> class, if several annotators label the image
    is_blank: bool = False  # Whether all its fields are empty: such a row is numbered, and skipped

    @property
    def name(self) -> str:
        """The name of the image as the user knows it: its path, else its position in the table."""
        return self.path or self.position


def list_rows(
    rows: Iterable[Row],
    table: Path,
    *,
    has_truth: bool,
    has_splits: bool,
    classes: Sequence[str] | None = None,
    image_root: Path | None = None,
    folder: Path | None = None,
    votes: Votes | None = None,
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if the rows have splits and any is not for training, those to test on.

    Paths are relative to `image_root`, else to `folder`, else to the table's folder. Rows without an image or a label
    are skipped and reported. `votes` are those behind the labels of the rows. Raises InputError for an unknown split,
    and for a training image without a true label if there is such a column.
    """
    if image_root is not None and not image_root.is_dir():
        raise InputError(f"image_root is {image_root}: no such folder; name the folder that the paths start from")
    listed, folder = list(rows), image_root or folder or table.parent
    files, problems = _files(listed, folder)
    parts: dict[bool, list[int]] = {True: [], False: []}
    for number, row in enumerate(listed):
        if not row.is_blank:
            parts[not has_splits or _is_train(row, table)].append(number)

    by_path = any(row.content is None for row in listed)

    def listing(part: list[int], truth: bool) -> Listing:
        used = [number for number in part if number not in problems]
        good = [listed[number] for number in used]
        bad = [(listed[number], problems[number]) for number in part if number in problems]
        if truth and (bare := next((row for row in good if row.true_label is None), None)):
            raise InputError(f"{table}: {bare.position} has no true label: fill in all of them, or remove the column")
        return Listing(
            where=str(table),
            files=[files[number] for number in used],
            paths=[row.name for row in good],
            labels=[row.label or "" for row in good],
            true_labels=[row.true_label or "" for row in good] if truth else None,
            classes=classes,
            rows=used,
            num_given=len(listed),
            votes=None if votes is None else votes.subset(used),
            notes=() if votes is None or part is not parts[True] else (votes.describe(),),
            skipped=[Skipped(row.name, f"{row.position}: {problem}") for row, problem in bad],
            remedy=f"; paths start from {folder}: set image_root to the folder they start from" if by_path else "",
        )

    return listing(parts[True], has_truth), listing(parts[False], False) if parts[False] else None


def _files(rows: Sequence[Row], folder: Path) -> tuple[dict[int, ImageLike], dict[int, str]]:
    """The image of each usable row, by row number, and the problem of each other row."""
    files: dict[int, ImageLike] = {}
    problems: dict[int, str] = {}
    first: dict[Hashable, int] = {}  # file -> the first row with it
    for number, row in enumerate(rows):
        if row.problem:
            problems[number] = row.problem
        elif row.label is None:
            problems[number] = "no label"
        elif row.content is not None:
            files[number] = row.content
        elif row.path is None:
            problems[number] = "no image"
        elif "\0" in row.path:
            problems[number] = "path with a NUL character"
        else:
            files[number] = path = folder / row.path
            earlier = first.setdefault(identity(path), number)
            if earlier != number:
                del files[number]
                _note_same(problems, rows, earlier, number)
    return files, problems


def _note_same(problems: dict[int, str], rows: Sequence[Row], earlier: int, later: int) -> None:
    """Note that two rows have the same image: the later one is not used, with different labels neither is."""
    if rows[earlier].label == rows[later].label:
        problems[later] = f"same image as {rows[earlier].position}"
    else:
        problems[later] = f"same image as {rows[earlier].position} with another label"
        problems.setdefault(earlier, f"same image as {rows[later].position} with another label")


def _is_train(row: Row, table: Path) -> bool:
    """Whether the row is for training; otherwise it is for testing."""
    split = (row.split or "").lower()
    known = TRAIN_NAMES + TEST_NAMES
    if split not in known and not row.problem:
        raise InputError(f"{table}: {row.position} has split {row.split!r}: must be one of {', '.join(known)}")
    return split not in TEST_NAMES
