"""Rows and columns chosen by name: against the whole table, of which they are a part."""

import pytest

from dividemix.errors import InputError
from dividemix.experiments.plans import make_plan
from dividemix.experiments.tables import fill


def test_a_part_of_a_table_trains_the_same_runs_and_has_a_file_of_its_own() -> None:
    whole = make_plan("table1", "mini", num_seeds=2)
    part = make_plan("table1", "mini", num_seeds=2, rows=["mixup", "Cross-Entropy"], columns=["sym. 50 %"])
    keys = [(row, "CIFAR-10 sym. 50 %", kind) for row in ("Cross-Entropy", "Mixup") for kind in ("best", "last")]
    assert [cell.key for cell in fill(part, {})] == keys
    assert part.sources == {key: whole.sources[key] for key in keys}
    assert part.stem == "table1-mini-fashion-mixup-cross_entropy-sym_50"
    assert whole.stem == "table1-mini-fashion"


def test_the_better_one_of_two_variants_brings_both() -> None:
    part = make_plan("table2", "mini", rows=["M-correction"])
    assert part.rows == ("M-correction", "M-correction, hard", "M-correction, soft")
    assert len(part.runs) == 2


def test_a_text_chooses_every_column_that_contains_it() -> None:
    part = make_plan("table1", "paper", columns=["CIFAR-100 sym. 90", "80 %"])
    assert part.columns == ("CIFAR-10 sym. 80 %", "CIFAR-100 sym. 80 %", "CIFAR-100 sym. 90 %")


@pytest.mark.parametrize(
    ("name", "chosen", "message"),
    [
        ("table1", {"rows": ["Mix"]}, "--row 'Mix': table1 has no such row; its rows are: Cross-Entropy; "),
        ("table1", {"columns": ["CIFAR-100"]}, "--column 'CIFAR-100': table1 has no such column"),
        ("figure2", {"rows": ["Mixup"]}, "figure2 has no rows and columns to choose"),
    ],
)
def test_a_wrong_name_is_refused(name: str, chosen: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_plan(name, "mini", rows=chosen.get("rows", ()), columns=chosen.get("columns", ()))
