"""What the page shows of rows. The oracle is the definition, cell by cell."""

import numpy as np

from dividemix.data.table_rows import as_rows
from dividemix.report.row_cells import RowCells


def test_a_cell_is_unusual_among_the_rows_with_its_given_label() -> None:
    rng = np.random.default_rng(0)
    size = rng.normal(size=200) + np.repeat([0.0, 100.0], 100)
    size[3], size[4] = 100.0, np.nan  # as in the other class; missing
    colours = ["red"] * 100 + ["blue"] * 100
    colours[5] = "blue"
    rows, labels = as_rows({"size": size, "colour": colours}), np.repeat([0, 1], 100)
    cells = RowCells.of(rows, labels)
    for i in range(200):
        own = rows[labels == labels[i]]
        low, high = np.nanquantile(own["size"], [0.025, 0.975])
        missing = np.isnan(size[i]) and np.isnan(own["size"]).mean() < 0.025
        expected = [size[i] < low or size[i] > high or missing, (own["colour"] == colours[i]).mean() < 0.025]
        assert cells.is_unusual[i].tolist() == expected
    assert cells.is_unusual[[3, 4, 5]].any(axis=1).all()
    assert cells.shown(4) == {"kind": "row", "cells": [["size", "", True], ["colour", "red", False]]}
    assert cells.shown(3)["cells"][0] == ["size", "100", True]


def test_few_rows_tell_nothing() -> None:
    rows = as_rows({"x": np.arange(39.0)})
    assert not RowCells.of(rows, np.zeros(39, dtype=np.int64)).is_unusual.any()
