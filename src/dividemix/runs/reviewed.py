"""The decisions that `dividemix review` stores in a run: nothing else may remove them."""

from pathlib import Path

from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError, counted


def review_file(run: Path) -> Path:
    """The file in which `dividemix review` stores the decisions on a run."""
    return run / "review" / "corrections.csv"


def refuse_reviewed(run: Path) -> None:
    """Raise InputError if there are decisions on the run, or a damaged file of them: replacing it would delete them."""
    file = review_file(run)
    if file.is_file() and (number := sum(not one.is_blank for one in read_text_table(file, set()).rows())):
        raise InputError(
            f"{run} has a review with {counted(number, 'decision')}, which would be deleted by overwrite: move {file}"
            " to another folder, or choose another out"
        )
