"""The other systems' settings, as a dry run prints them, against their sources, written out here once more."""

import re
from importlib import import_module
from typing import Any

import pytest
import yaml

from dividemix.cli import main
from dividemix.experiments.chosen import rows_of
from dividemix.experiments.plans import make_plan
from dividemix.experiments.provenance import ROW_NOTES, SETTINGS
from dividemix.experiments.published import PUBLISHED
from dividemix.experiments.systems import ADDED, BETTER_OF, ROWS
from dividemix.methods import METHODS
from dividemix.planning.job import own_fields

Settings = dict[str, Any]
TABLES = ("table1", "table2", "table3", "table4", "table6", "table8")

# What each system's own source says: (table, method, data) and the settings that must be printed. Two drops of the rate
# are (first, second). The rest is the common setting of Section 4.1 and Appendix B.
ARAZO = {"lr": 0.1, "weight_decay": 1e-4, "epochs": 300, "lr_drop_epoch": 100, "lr_second_drop": 250}
SOURCES: list[tuple[str, str, str, Settings]] = [
    ("table1", "bootstrap", "cifar10", ARAZO | {"variant": "soft", "beta": 0.95, "warmup_share": 0.35}),
    ("table1", "m_correction", "cifar10", ARAZO | {"alpha": 32.0, "warmup_share": 0.35}),
    ("table1", "m_correction", "cifar100", ARAZO | {"alpha": 32.0, "warmup_share": 0.35}),
    (
        *("table1", "mixup", "cifar100"),
        ARAZO | {"alpha": 32.0, "epochs": 200, "lr_drop_epoch": 100, "lr_second_drop": 150},
    ),
    # Two runs of 120 and of 150 epochs.
    (
        *("table1", "forward_correction", "cifar10"),
        {"epochs": 240, "lr_drop_epoch": 80, "lr_second_drop": 160, "lr": 0.1, "weight_decay": 1e-4},
    ),
    (
        *("table1", "forward_correction", "cifar100"),
        {"epochs": 300, "lr_drop_epoch": 160, "lr_second_drop": 240, "weight_decay": 1e-3, "outlier_share": 0.0},
    ),
    ("table1", "co_teaching_plus", "cifar10", {"ramp_share": 10 / 200, "co_teaching_share": 20 / 200, "lr": 0.02}),
    ("table1", "co_teaching_plus", "cifar100", {"ramp_share": 10 / 200, "co_teaching_share": 5 / 200}),
    (
        *("table1", "pencil", "cifar10"),
        {"epochs": 320, "lr": 0.03, "final_lr": 0.2, "label_lr": 300.0, "compatibility_weight": 0.1},
    ),
    ("table1", "mlnt", "cifar10", {"epochs": 120, "lr": 0.2, "inner_lr": 0.2, "meta_weight": 0.4 / 10}),
    ("table1", "mlnt", "cifar100", {"epochs": 300, "lr": 0.02, "rounds": 1}),  # nothing is published
    ("table2", "joint_optim", "cifar10", {"epochs": 320, "lr": 0.03, "prior_weight": 0.8, "entropy_weight": 0.4}),
    ("table2", "pencil", "cifar10", {"lr": 0.03, "compatibility_weight": 0.0, "entropy_weight": 0.4}),
    ("table2", "incv", "cifar10", {"num_rounds": 4, "round_share": 50 / 400, "noise_pattern": "estimated"}),
    ("table3", "mlnt", "clothing1m", {"rounds": 3, "inner_lr": 0.02, "lr": 8e-4, "balanced_batches": 0}),
    ("table3", "pencil", "clothing1m", {"epochs": 25, "compatibility_weight": 0.08, "balanced_batches": 0}),
    ("table3", "meta_cleaner", "clothing1m", {"epochs": 80, "lr": 0.002, "lr_drop_epoch": 40, "group_size": 5}),
    ("table3", "m_correction", "clothing1m", {"epochs": 80, "lr": 0.002, "alpha": 32.0}),  # not DivideMix's alpha
    ("table4", "co_teaching", "webvision", {"net": "inception_resnet_v2", "epochs": 100, "lr": 0.01}),
    ("table4", "mentornet", "webvision", {"curriculum": "predefined"}),
    (
        *("table6", "mentornet", "cifar100"),
        {"epochs": 100, "lr": 0.1, "weight_decay": 2e-4, "lr_drop_epoch": 50, "lr_second_drop": 64},
    ),
    (
        *("table6", "reweight", "cifar10"),
        {"epochs": 120, "lr_drop_epoch": 80, "lr_second_drop": 100, "weight_decay": 2e-4, "warmup_share": 0.1},
    ),
    ("table6", "d2l", "cifar10", {"epochs": 120, "lr": 0.1, "lr_drop_epoch": 40, "lr_second_drop": 80}),
    ("table6", "d2l", "cifar100", {"epochs": 200, "first_share": 60 / 200, "lid_window": 5, "lid_neighbours": 20}),
    ("table6", "abstention", "cifar10", {"learn_share": 20 / 200, "alpha_final": 1.0, "alpha_divisor": 64.0}),
]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Settings]:
    assert main(["reproduce", *arguments, "--dry-run"]) == 0
    content = yaml.safe_load(capsys.readouterr().out)
    return [content["common"] | own for own in content["runs"].values()]


@pytest.mark.parametrize(("table", "method", "data", "source"), SOURCES)
def test_a_dry_run_prints_the_published_settings(
    table: str, method: str, data: str, source: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [job for job in printed(capsys, table, "--scale", "paper") if (job["method"], job["data"]) == (method, data)]
    assert jobs
    for job in jobs:
        assert {name: job[name] for name in source} == source


COMMON = {"net", "epochs", "lr", "lr_drop_epoch", "lr_second_drop", "weight_decay", "batch_size", "limit_train"}


@pytest.mark.parametrize("table", ["table1", "table2", "table6", "table8"])
def test_mini_runs_share_data_network_and_schedule_and_keep_their_own_parameters(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the label_lr and final_lr of a published length are left to the method, which fits them to any length."""
    papers = [job for job in printed(capsys, table, "--scale", "paper") if job["data"] == "cifar10"]
    minis = printed(capsys, table)
    assert len({tuple(job[name] for name in sorted(COMMON)) for job in minis}) == 1
    others = [(mini, paper) for mini, paper in zip(minis, papers, strict=True) if mini["method"] != "dividemix"]
    for mini, paper in others:
        own = set(own_fields(mini["method"]))
        for name in own - {"label_lr", "final_lr"}:
            assert mini[name] == paper[name], (mini["method"], name)
        assert all(mini[name] is None for name in own & {"label_lr", "final_lr"})


# Those of the paper. A method with published settings is one of them; the others are ours.
SYSTEMS = {name for name in METHODS if hasattr(import_module(f"dividemix.methods.{name}"), "PUBLISHED")}
SYSTEMS |= {"dividemix", "cross_entropy"}


def test_every_system_of_the_paper_is_a_row_and_every_row_a_system() -> None:
    assert len(SYSTEMS) == 16 + 2
    assert {changes.get("method", "dividemix") for changes in ROWS.values()} == SYSTEMS


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_runs_and_notes_name_rows_that_exist(table: str) -> None:
    plan = make_plan(table, "paper")
    trained = {key[0] for key in plan.sources if isinstance(key, tuple)}
    rows = rows_of(table)
    assert rows[: len(PUBLISHED[table].methods)] == PUBLISHED[table].methods
    assert set(rows) - BETTER_OF.keys() == trained
    assert all(set(BETTER_OF[row]) <= trained for row in BETTER_OF.keys() & set(rows))
    assert not set(ADDED.get(table, ())) & set(PUBLISHED[table].methods)
    for note in ROW_NOTES[table]:
        assert str(note) in plan.notes
        assert note.about in ("", "All rows", "All rows but DivideMix") or {*note.about.split(", ")} <= {*rows}, note


@pytest.mark.parametrize("table", TABLES)
def test_a_part_of_a_table_has_the_notes_of_its_rows_alone(table: str) -> None:
    """The whole table once stood below each of its parts. The oracle: what a note names before its colon."""
    whole = make_plan(table, "paper")
    general = {str(note) for note in ROW_NOTES[table] if note.about in ("", "All rows")}
    for row in (row for row in rows_of(table) if row in ROWS):
        notes = make_plan(table, "paper", rows=[row]).notes
        assert set(notes) <= set(whole.notes)
        assert general <= set(notes)
        for note in set(notes) & {str(note) for note in ROW_NOTES[table]} - general:
            about = note.partition(":")[0]
            assert row in about.split(", ") or (about == "All rows but DivideMix" and row != "DivideMix"), note
        sources = [note for note in notes if note.startswith("Settings of ")]
        assert all(note.startswith(f"Settings of {row.partition(',')[0]}: ") for note in sources)


def test_a_note_on_columns_is_printed_with_them_alone() -> None:
    for columns, number in (["CIFAR-10 sym"], 0), (["CIFAR-100"], 1), ([], 1):
        notes = make_plan("table1", "paper", rows=["Mixup"], columns=columns).notes
        assert sum("the first ten classes only" in note for note in notes) == number
    assert not [note for note in make_plan("table1", "mini").notes if "the first ten classes only" in note]


def test_each_source_names_a_repository_or_says_that_there_is_none() -> None:
    for row, source in SETTINGS.items():
        is_named = re.search(r"\b[\w-]+/[\w-]+( at [0-9a-f]{7})?[:)]", source)
        assert is_named or source.startswith("none"), row
    for row in ("Joint-Optim", "Meta-Learning", "Decoupling"):  # part of what they have could not be read again
        assert "recalled" in SETTINGS[row]


def test_a_dry_run_names_the_source_of_every_systems_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "table6", "--scale", "paper", "--dry-run"]) == 0
    notes = yaml.safe_load(capsys.readouterr().out)["notes"]
    about = [note.removeprefix("Settings of ").partition(":")[0] for note in notes if note.startswith("Settings of ")]
    assert about == ["MentorNet", "D2L", "Reweight", "Abstention"]
    own = {row.partition(",")[0] for row, changes in ROWS.items() if "method" in changes} - {"Cross-Entropy"}
    assert own == SETTINGS.keys()
    assert not [note for note in make_plan("table6", "mini").notes if note.startswith("Settings of")]


def test_table_8_has_every_system_and_ordinary_training() -> None:
    methods = {run.job.method for run in make_plan("table8", "mini").runs}
    assert methods == SYSTEMS
