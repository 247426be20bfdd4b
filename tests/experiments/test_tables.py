"""Tables filled from made-up epochs, against sums done by hand and the texts that they must and must not hold."""

import csv
import io

import pytest
from epoch_rows import as_rows

from dividemix.experiments.plans import Plan, make_plan
from dividemix.experiments.tables import Cell, fill, to_csv, to_grid, to_markdown
from dividemix.judging.records import EpochRow

ASYM = "CIFAR-10 asym. 40 %"


def rows_of(*accuracies: float) -> list[EpochRow]:
    return as_rows(
        [{"phase": "mix", "test_acc": value, "test_acc_by_net": [value - 1, value - 2]} for value in accuracies]
    )


def filled(scale: str, *, num_seeds: int = 2, left_out: int = 0) -> tuple[Plan, list[Cell]]:
    """Table 2 with cross-entropy at 80 and 82 (seeds 1, 2) and DivideMix at 90 and 94, one epoch each."""
    plan = make_plan("table2", scale, num_seeds=num_seeds)
    accuracies = {("cross_entropy", 1): 80, ("cross_entropy", 2): 82, ("dividemix", 1): 90, ("dividemix", 2): 94}
    runs = [run for run in plan.runs if run.job.method in ("cross_entropy", "dividemix")]
    runs = runs[: len(runs) - left_out]
    return plan, fill(plan, {run.name: rows_of(accuracies[run.job.method, run.job.settings.seed]) for run in runs})


def lines_of(plan: Plan, cells: list[Cell]) -> list[list[str]]:
    return [line for line in to_grid(plan, cells)[1:] if line[1] == "best" and not line[0].startswith(("M", "F", "I"))]


def records(plan: Plan, cells: list[Cell]) -> dict[tuple[str, str], dict[str, str]]:
    reader = csv.DictReader(io.StringIO(to_csv(plan, cells)))
    return {(record["method"], record["kind"]): record for record in reader}


def test_paper_scale_subtracts_the_published_figure() -> None:
    plan, cells = filled("paper")
    assert to_grid(plan, cells)[0] == ["method", "figure", "of", ASYM, "seeds"]
    assert lines_of(plan, cells) == [
        ["Cross-Entropy", "best", "paper", "85.0", ""],
        ["Cross-Entropy", "best", "ours, paper", "81.00 ± 1.41", "2"],
        ["Cross-Entropy", "best", "difference", "-4.00", ""],
        ["P-correction", "best", "paper", "88.5", ""],
        ["P-correction", "best", "ours, paper", "incomplete", "0"],
        ["P-correction", "best", "difference", "-", ""],
        ["Joint-Optim", "best", "paper", "88.9", ""],
        ["Joint-Optim", "best", "ours, paper", "incomplete", "0"],
        ["Joint-Optim", "best", "difference", "-", ""],
        ["DivideMix", "best", "paper", "93.4", ""],
        ["DivideMix", "best", "ours, paper", "92.00 ± 2.83", "2"],
        ["DivideMix", "best", "difference", "-1.40", ""],
    ]


def test_mini_scale_compares_with_dividemix_at_each_scale_and_never_across() -> None:
    plan, cells = filled("mini")
    assert to_grid(plan, cells)[0] == ["method", "figure", "of", "asym. 40 %", "seeds"]
    assert lines_of(plan, cells) == [
        ["Cross-Entropy", "best", "paper, full scale", "85.0", ""],
        ["Cross-Entropy", "best", "ours, mini", "81.00 ± 1.41", "2"],
        ["Cross-Entropy", "best", "paper, to DivideMix", "-8.40", ""],
        ["Cross-Entropy", "best", "mini, to DivideMix", "-11.00", ""],
        ["P-correction", "best", "paper, full scale", "88.5", ""],
        ["P-correction", "best", "ours, mini", "incomplete", "0"],
        ["P-correction", "best", "paper, to DivideMix", "-4.90", ""],
        ["P-correction", "best", "mini, to DivideMix", "-", ""],
        ["Joint-Optim", "best", "paper, full scale", "88.9", ""],
        ["Joint-Optim", "best", "ours, mini", "incomplete", "0"],
        ["Joint-Optim", "best", "paper, to DivideMix", "-4.50", ""],
        ["Joint-Optim", "best", "mini, to DivideMix", "-", ""],
        ["DivideMix", "best", "paper, full scale", "93.4", ""],
        ["DivideMix", "best", "ours, mini", "92.00 ± 2.83", "2"],
    ]
    assert all(record["ours_minus_published"] == "" for record in records(plan, cells).values())
    assert all(record["scale"] == "mini" for record in records(plan, cells).values())
    assert {record["data"] for record in records(plan, cells).values()} == {"fashion"}


def test_rows_that_lack_seeds_are_compared_with_none() -> None:
    """The mean over two seeds less the mean over one of them says nothing of the methods."""
    plan, cells = filled("mini", left_out=1)  # DivideMix with seed 2
    assert ["Cross-Entropy", "best", "mini, to DivideMix", "-", ""] in to_grid(plan, cells)
    assert records(plan, cells)["Cross-Entropy", "best"]["ours_minus_dividemix"] == ""


def test_mini_tables_say_which_images_they_are_of() -> None:
    for root, stem, name in ((None, "fashion", "the embedded Fashion-MNIST set"), ("there", "cifar10", "CIFAR-10")):
        plan = make_plan("table2", "mini", root=root)
        assert plan.stem == f"table2-mini-{stem}"
        text = to_markdown(plan, fill(plan, {}), command="", remarks=[])
        assert text.splitlines()[0].endswith(f", mini scale on {name}")
        assert ("and of other images" in text) == (root is None)
    assert make_plan("table2", "paper").stem == "table2-paper"


def test_the_csv_has_a_line_for_each_figure() -> None:
    plan, cells = filled("paper")
    found = records(plan, cells)
    assert len(found) == 16 + 4  # and the two variants of M-correction
    ours = found["DivideMix", "best"]
    assert (ours["table"], ours["scale"], ours["column"], ours["status"]) == ("table2", "paper", ASYM, "done")
    assert [float(ours[name]) for name in ("published", "ours", "num_seeds")] == [93.4, 92.0, 2]
    assert float(ours["std"]) == pytest.approx(2**1.5, abs=1e-4)
    assert float(ours["ours_minus_published"]) == pytest.approx(-1.4)
    other = found["Joint-Optim", "last"]
    assert (other["published"], other["ours"], other["num_seeds"], other["status"]) == ("88.4", "", "0", "incomplete")


def test_runs_that_are_missing_show_as_such_and_are_not_counted() -> None:
    plan, cells = filled("paper", left_out=1)  # DivideMix with seed 2
    assert ["DivideMix", "best", "ours, paper", "90.00", "1"] in to_grid(plan, cells)
    assert records(plan, cells)["DivideMix", "best"]["status"] == "incomplete"
    plan, cells = filled("paper", num_seeds=1, left_out=1)
    assert ["DivideMix", "best", "ours, paper", "incomplete", "0"] in to_grid(plan, cells)


def test_a_run_without_the_measurement_has_no_figure() -> None:
    plan = make_plan("table3", "paper")
    cells = fill(plan, {run.name: rows_of(70.0) for run in plan.runs})  # rows without val_acc
    assert {cell.status for cell in cells if cell.key[0] == "DivideMix"} == {"no figure"}


def test_mini_tables_have_the_columns_with_ten_classes_only() -> None:
    plan = make_plan("table5", "mini")
    grid = to_grid(plan, fill(plan, {}))
    assert grid[0][3:-1] == ["sym. 20 %", "sym. 50 %", "sym. 80 %", "sym. 90 %", "asym. 40 %"]


def test_theta_1_has_figures_of_its_own() -> None:
    plan = make_plan("table5", "mini")
    cells = fill(plan, {run.name: rows_of(90.0) for run in plan.runs})
    means = {cell.key[0]: cell.mean for cell in cells}
    assert means["DivideMix"] == 90.0
    assert means["DivideMix with theta(1) test"] == 89.0


def test_tables_of_times() -> None:
    row = {"phase": "mix", "seconds": 72.0, "profile": {"co_divide": 1.0, "mixmatch": 2.0, "forward_backward": 3.0}}
    for name, expected in (("table8", ["0.0200"]), ("table9", ["1.00", "2.00", "3.00"])):
        plan = make_plan(name, "paper")
        grid = to_grid(plan, fill(plan, {run.name: as_rows([row]) for run in plan.runs}))
        assert [line[3:-1] for line in grid if line[2] == "ours, paper" and line[0] == "DivideMix"] == [expected]


def test_a_time_is_also_a_multiple_of_ordinary_trainings() -> None:
    """72 s against 36 s; with a run missing there is none."""
    plan = make_plan("table8", "mini")
    seconds = {run.name: 36.0 if run.job.method == "cross_entropy" else 72.0 for run in plan.runs}
    epochs = {name: as_rows([{"phase": "train", "seconds": value}]) for name, value in seconds.items()}
    cells = fill(plan, epochs)
    grid = to_grid(plan, cells)
    factors = {line[0]: line[3] for line in grid if line[2] == "ours, x Cross-Entropy"}
    assert factors.pop("Cross-Entropy") == "1.00"
    assert set(factors.values()) == {"2.00"}
    assert len(factors) == len(plan.runs) - 1
    assert records(plan, cells)["Mixup", "hours"]["ours_over_cross_entropy"] == "2"
    assert ["Mixup", "hours", "paper, full scale", "-", ""] not in grid  # a row that the paper does not have
    for run in plan.runs:  # in processor time 30 s against 10 s
        for row in epochs[run.name]:
            row["cpu_seconds"] = 10.0 if run.job.method == "cross_entropy" else 30.0
    assert records(plan, fill(plan, epochs))["Mixup", "hours"]["ours_over_cross_entropy"] == "3"
    del epochs[plan.runs[0].name]
    grid = to_grid(plan, fill(plan, epochs))
    assert [line[3] for line in grid if line[0] == "Co-teaching+" and line[2] == "ours, x Cross-Entropy"] == ["-"]


def test_a_row_of_two_variants_has_the_better_one_cell_by_cell() -> None:
    plan = make_plan("table1", "mini", num_seeds=2)
    means = {("hard", "symmetric:0.2"): 80.0, ("soft", "symmetric:0.2"): 70.0}
    epochs = {}
    for run in plan.runs:
        variant = str(run.job.values().get("correction"))
        epochs[run.name] = rows_of(means.get((variant, run.job.noise), 60.0 if variant == "soft" else 50.0))
    cells = {cell.key: cell for cell in fill(plan, epochs)}
    columns = [f"CIFAR-10 sym. {rate} %" for rate in (20, 50, 80, 90)]
    assert [cells["M-correction", column, "best"].mean for column in columns] == [80.0, 60.0, 60.0, 60.0]
    assert cells["M-correction", columns[0], "best"].published == 94.0
    assert cells["M-correction, soft", columns[0], "best"].mean == 70.0
    assert {cell.status for cell in cells.values()} == {"done"}
    (missing,) = (
        run.name
        for run in plan.runs
        if (run.job.noise, run.job.settings.seed) == ("symmetric:0.5", 1) and "soft" in run.job.values().values()
        if run.job.method == "m_correction"
    )
    del epochs[missing]
    cells = {cell.key: cell for cell in fill(plan, epochs)}
    assert cells["M-correction", columns[1], "best"].status == "incomplete"


def test_a_stand_in_for_trusted_images_is_named_in_its_row() -> None:
    plan = make_plan("table6", "mini")
    epochs = {}
    for run in plan.runs:
        figures = {"trusted_stand_in": 1.0} if run.job.method == "reweight" else {}
        epochs[run.name] = as_rows([{"phase": "train", "test_acc": 50.0, "figures": figures}])
    cells = fill(plan, epochs)
    of = {line[0]: line[2] for line in to_grid(plan, cells)[1:] if line[2].startswith("ours")}
    assert of.pop("Reweight") == "ours, mini, stand-in"
    assert set(of.values()) == {"ours, mini"}
    assert records(plan, cells)["Reweight", "accuracy"]["trusted"] == "stand-in"
    assert records(plan, cells)["D2L", "accuracy"]["trusted"] == ""


@pytest.mark.parametrize("scale", ["mini", "paper"])
def test_markdown_names_scale_command_and_machine_and_is_a_table(scale: str) -> None:
    plan, cells = filled(scale)
    text = to_markdown(plan, cells, command="dividemix reproduce table2", remarks=["Machine: a machine"])
    assert text.startswith(f"# Table 2: test accuracy (%) with 40 % asymmetric noise, {scale} scale")
    assert "- Command: `dividemix reproduce table2`\n" in text
    assert "- Machine: a machine\n" in text
    assert ("- Ours are at mini scale: 3,000 images of the embedded" in text) == (scale == "mini")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {6}
    assert len(table) == 1 + len(to_grid(plan, cells))
