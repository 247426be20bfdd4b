"""The published figures against the paper's own regularities and against sums read off its source by a script."""

import pytest

from dividemix.experiments import TABLES
from dividemix.experiments.published import PUBLISHED, read_table

# Number of figures and their sum, from the numbers between \\begin{tabular} and \\end{tabular} in the paper's source.
FINGERPRINTS = {
    "table1": (144, 8100.9),
    "table2": (16, 1395.1),
    "table3": (8, 576.43),
    "table4": (28, 2066.4),
    "table5": (108, 8127.8),
    "table6": (30, 2181.8),
    "table8": (4, 24.1),
    "table9": (3, 45.7),
}


def test_every_table_of_results_is_there() -> None:
    assert tuple(PUBLISHED) == tuple(TABLES) == tuple(FINGERPRINTS)


@pytest.mark.parametrize("name", TABLES)
def test_figures_are_as_many_and_sum_to_what_the_source_has(name: str) -> None:
    values = PUBLISHED[name].values.values()
    num_figures, total = FINGERPRINTS[name]
    assert len(values) == num_figures
    assert sum(values) == pytest.approx(total)


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4", "table5", "table6"])
def test_dividemix_is_the_best_row_of_every_column(name: str) -> None:
    """As the bold type of the paper says, where one method is compared with others."""
    table = PUBLISHED[name]
    for column in table.columns:
        for kind in table.kinds:
            column_values = [table.values[key] for key in table.values if key[1:] == (column, kind)]
            assert table.values["DivideMix", column, kind] == max(column_values)


@pytest.mark.parametrize("name", ["table1", "table2", "table5"])
def test_no_mean_of_the_last_epochs_is_above_the_best_epoch(name: str) -> None:
    table = PUBLISHED[name]
    for method, column, kind in table.values:
        assert table.values[method, column, "last"] <= table.values[method, column, "best"], (method, column, kind)


def test_the_ablations_start_from_the_rows_of_tables_1_and_2() -> None:
    main = {key: value for key, value in PUBLISHED["table5"].values.items() if key[0] == "DivideMix"}
    known = dict(PUBLISHED["table1"].values) | dict(PUBLISHED["table2"].values)
    assert main == {key: known[key] for key in main}


def test_some_figures_stand_where_the_paper_has_them() -> None:
    """Typed a second time, from the printed tables."""
    assert PUBLISHED["table1"].values["Cross-Entropy", "CIFAR-10 sym. 50 %", "last"] == 57.9
    assert PUBLISHED["table1"].values["M-correction", "CIFAR-100 sym. 90 %", "best"] == 24.3
    assert PUBLISHED["table4"].values["Co-teaching", "ILSVRC12", "top-5"] == 84.70
    assert PUBLISHED["table5"].values["Divide and MixMatch", "CIFAR-10 asym. 40 %", "best"] == 86.5
    assert PUBLISHED["table6"].values["D2L", "CIFAR-10 sym. 60 %", "accuracy"] == 72.8
    assert ("D2L", "CIFAR-10 sym. 80 %", "accuracy") not in PUBLISHED["table6"].values
    assert PUBLISHED["table9"].values["DivideMix", "Data MixMatch", "seconds"] == 16.0


BLOCK = """\
Table 0: made up
a, b
First | best | 1.0 2.0
First | last | 0.5   -
Other | best | 3.0 4.0
Other | last | 2.5 3.5"""


def test_a_block_of_lines_is_a_table() -> None:
    """Written out by hand."""
    table = read_table(BLOCK)
    assert (table.name, table.title, table.columns) == ("table0", "Table 0: made up", ("a", "b"))
    assert (table.methods, table.kinds) == (("First", "Other"), ("best", "last"))
    assert [table.values[method, "a", kind] for method in table.methods for kind in table.kinds] == [1.0, 0.5, 3.0, 2.5]
    assert [table.values.get((method, "b", "last")) for method in table.methods] == [None, 3.5]
    assert len(table.values) == 7


@pytest.mark.parametrize(
    ("part", "damaged"),
    [
        ("2.0", ""),  # too few figures
        ("2.0", "2.0 5.0"),  # too many
        ("2.0", "2,0"),
        ("2.0", "-2.0"),
        ("2.0", "nan"),
        ("2.0", "20"),  # the paper gives decimals throughout: a point is missing
        (" | best | 1.0", " best | 1.0"),
        ("1.0 2.0", "1.0 | 2.0"),
        ("Other | best", "First | best"),  # twice
        ("Other | best", "Othre | best"),
        ("Other | last | 2.5 3.5", ""),  # cut short
        ("a, b", "a, a"),
    ],
)
def test_a_damaged_table_is_refused_by_its_title(part: str, damaged: str) -> None:
    assert BLOCK.count(part) == 1
    with pytest.raises(ValueError, match=r"^Table 0: made up: "):
        read_table(BLOCK.replace(part, damaged))
