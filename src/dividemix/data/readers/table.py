"""Read a .csv or .tsv file with a path and a label in each row."""

from pathlib import Path

from dividemix.data.classes import label_name
from dividemix.data.listing import Listing
from dividemix.data.readers.rows import Row, list_rows
from dividemix.data.readers.vote_columns import VoteColumns
from dividemix.data.text_table import Record, read_text_table
from dividemix.errors import InputError
from dividemix.meant import nearest

TRUE_LABEL, SPLIT = "true_label", "split"


def list_table(
    table: Path,
    *,
    path_column: str = "path",
    label_column: str = "label",
    image_root: Path | None = None,
    votes: VoteColumns | None = None,
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if a column `split` names any, those to test on.

    The first line names the columns. Paths are absolute, or relative to `image_root`, or to the table's folder without
    one. With `votes`, the labels are the consensus of several annotators. A column `true_label` is for scoring only.
    Raises InputError, naming the line, if the file is not such a table.
    """
    if path_column == label_column:
        raise InputError(f"{table}: path_column and label_column are both {path_column!r}: name two columns")
    with_labels = (label_column,) if votes is None else votes.needed(label_column)
    text = read_text_table(table, {path_column, *with_labels})
    others = [name[:50] for name in text.columns if name not in (path_column, *with_labels)]
    for name, what in ((path_column, "path"), *((name, "label") for name in with_labels)):
        other = nearest(what, others)
        remedy = f"name the column of {what}s, for example {what}_column {other or next(iter(others), 'NAME')!r}"
        if what == "path" and (column := nearest("text", others)):
            remedy = f"if the samples are texts, name their column, for example text_column {column!r}"
        elif what == "path" and other is None:
            remedy = (
                "for images set path_column NAME, for texts set text_column NAME, for rows name the labels by target"
            )
        text.column(name, remedy if votes is None or what == "path" else "name the columns of the annotators")
    for name in (path_column, *with_labels, TRUE_LABEL, SPLIT):
        if text.columns.count(name) > 1:
            raise InputError(f"{table}: {text.columns.count(name)} columns are called {name!r}: rename all but one")
    rows = [_row(record, text.columns, path_column, label_column, votes) for record in text.rows()]
    decided, found = (rows, None) if votes is None else votes.decided(rows)
    has_truth, has_splits = TRUE_LABEL in text.columns, SPLIT in text.columns
    return list_rows(decided, table, has_truth=has_truth, has_splits=has_splits, image_root=image_root, votes=found)


def _row(record: Record, columns: list[str], path_column: str, label_column: str, votes: VoteColumns | None) -> Row:
    num_fields = len(record.fields)
    values = dict(zip(columns, (field.strip() or None for field in record.fields), strict=False))
    return Row(
        position=f"line {record.line}",
        path=values.get(path_column),
        label=label_name(values.get(label_column)),
        true_label=label_name(values.get(TRUE_LABEL)),
        split=values.get(SPLIT),
        votes=None if votes is None else votes.of_row(lambda name: label_name(values.get(name)), label_column),
        problem=None if num_fields == len(columns) else f"{num_fields} fields, the header has {len(columns)}",
        is_blank=record.is_blank,
    )
