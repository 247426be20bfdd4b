"""Rows as vectors. The oracle is a loop over cells, written out here."""

import numpy as np
import pytest
import torch

from dividemix.data.table_rows import as_rows
from dividemix.encoders.columns import Column, ColumnsEncoder

ROWS = as_rows(
    {
        "age": np.array([10.0, np.nan, 30.0, 50.0]),
        "town": ["Ulm", "Bonn", None, "Ulm"],
        "big": np.array([1e308, -1e308, 1e308, 0.0]),
    }
)


def test_vectors_are_those_of_a_loop() -> None:
    encoder = ColumnsEncoder.fitted(ROWS)
    distance = float(np.mean([20, 0, 20]))  # from the median, 30, of what is known
    expected: list[list[float]] = [
        # age, is it missing, Bonn, Ulm, is it missing
        [-20 / distance, 0, 0, 1, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [20 / distance, 0, 0, 1, 0],
    ]
    vectors = encoder.encode(ROWS)
    assert vectors.dtype == torch.float32
    np.testing.assert_allclose(vectors[:, :5], expected, rtol=1e-6)
    assert vectors.isfinite().all()


def test_a_new_category_has_zeros_and_a_new_missing_value_the_median() -> None:
    encoder = ColumnsEncoder.fitted(ROWS)
    new = as_rows({"age": np.array([np.nan]), "town": ["Rome"], "big": np.array([np.nan])})
    assert encoder.encode(new)[0, :5].tolist() == [0, 1, 0, 0, 0]
    np.testing.assert_array_equal(encoder.numbers(new), [[np.nan, -1, np.nan]])


def test_rare_categories_are_taken_together() -> None:
    towns = ["a"] * 50 + ["b"] * 49 + ["rare"]
    encoder = ColumnsEncoder.fitted(as_rows({"town": towns}))
    assert encoder.columns[0].categories == ("a", "b")
    assert encoder.encode(as_rows({"town": ["rare", "b"]})).tolist() == [[0, 0], [0, 1]]


def test_columns_come_back_from_their_description() -> None:
    columns = ColumnsEncoder.fitted(ROWS).columns
    assert tuple(Column.of(column.describe()) for column in columns) == columns
    for wrong in ({"type": "text"}, {"name": 3}, {"has_missing": 1}, {"type": "categorical", "categories": [1]}):
        with pytest.raises(ValueError, match="column"):
            Column.of(columns[0].describe() | wrong)
