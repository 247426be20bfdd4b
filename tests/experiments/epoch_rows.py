"""Rows of metrics.jsonl that hold only what a test is about."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dividemix.judging.records import EpochRow


def as_row(part: Mapping[str, Any]) -> EpochRow:
    """Part of a row, taken for a whole one."""
    return cast(EpochRow, part)


def as_rows(parts: Sequence[Mapping[str, Any]]) -> list[EpochRow]:
    """Parts of rows, taken for whole ones."""
    return [as_row(part) for part in parts]
