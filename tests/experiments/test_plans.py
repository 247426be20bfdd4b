"""Plans against what they must share, and names against changes of single settings."""

import dataclasses
import itertools
from typing import Any

import pytest

from dividemix.cli import _parser
from dividemix.commands import train
from dividemix.errors import InputError
from dividemix.experiments import FIGURES, TABLES
from dividemix.experiments.plans import make_plan, run_name, to_yaml
from dividemix.experiments.published import PUBLISHED
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.planning.job import Job
from dividemix.settings import Field, fields_of

MINI = [name for name in (*TABLES, *FIGURES) if name not in ("table3", "table4")]
JOB = Job(data="cifar10", noise="symmetric:0.5", settings=DivideMixSettings(lambda_u=150.0))


def names(experiment: str, scale: str) -> set[str]:
    return {run.name for run in make_plan(experiment, scale).runs}


@pytest.mark.parametrize("scale", ["mini", "paper"])
def test_tables_share_the_runs_that_are_the_same(scale: str) -> None:
    dividemix = {name for name in names("table1", scale) if "-dividemix-" in name}
    assert dividemix < names("table5", scale)
    assert {name for name in names("table2", scale) if "-dividemix-" in name} < names("table5", scale)
    assert names("figure3", scale) <= dividemix
    assert names("table9", scale) <= dividemix & names("table8", scale)


def test_theta_1_is_another_test_of_the_same_run() -> None:
    plan = make_plan("table5", "mini", num_seeds=2)
    column = "CIFAR-10 sym. 50 %"
    both, alone = (plan.sources[method, column, "last"] for method in ("DivideMix", "DivideMix with theta(1) test"))
    assert both.runs == alone.runs
    assert both.measure != alone.measure
    assert len(plan.runs) == 5 * 5 * 2  # five trainings, five kinds of noise, two seeds


@pytest.mark.parametrize("name", MINI)
def test_no_run_of_one_scale_is_named_as_one_of_the_other(name: str) -> None:
    assert all(run.startswith("mini-") for run in names(name, "mini"))
    assert all(run.startswith("paper-") for run in names(name, "paper"))


def test_a_name_depends_on_every_setting_but_on_no_place() -> None:
    name = run_name(JOB, "paper")
    seen = {name}
    fields = fields_of(DivideMixSettings)
    for field in fields.values():
        if field.name == "labeled_only":
            continue  # not allowed with this lambda_u
        changes: dict[str, Any] = {field.name: another(field)}
        settings = dataclasses.replace(JOB.settings, **changes)
        changed = run_name(dataclasses.replace(JOB, settings=settings), "paper")
        assert (changed == name) == (field.name in ("device", "kernels")), field.name
        seen.add(changed)
    assert len(seen) == len(fields) - 2  # one for each field and JOB's; one is skipped, two add none
    for place in ({"root": "elsewhere"}, {"memory_gb": 1.0}, {"weights": "file"}):
        assert run_name(dataclasses.replace(JOB, **place), "paper") == name
    assert run_name(dataclasses.replace(JOB, data="cifar100"), "paper") != name


def another(field: Field) -> object:
    """A value that the setting does not have in JOB."""
    value = getattr(JOB.settings, field.name)
    if field.words:
        return next(word for word in field.words if word != value)
    if field.name == "earlier_plans":
        return "1: epochs=2"  # not any text
    if field.kind is bool:
        return not value
    if field.kind is str:
        return f"{value}x"
    return value + 1 if field.kind is int else (value or 1.0) / 2


def planned_by_train(job: Job) -> Job:
    """What `dividemix train` plans for the job's flags."""
    words = ["train", *job.flags(), "--resume", "--out=elsewhere", "--print_config"]  # no file of the job exists
    [planned] = train._plan(_parser(words).parse_args(words))
    return planned.plan.job


@pytest.mark.parametrize("name", [*TABLES, *FIGURES])
def test_the_flags_of_every_run_give_exactly_its_job(name: str) -> None:
    """Whatever preset `train` takes for the data and the noise: the oracle is the planned job."""
    plans = [make_plan(name, "paper", root="a folder", weights="w.pth" if name in ("table3", "figure4") else None)]
    if name in MINI:
        plans += [make_plan(name, "mini"), make_plan(name, "mini", root="a folder")]
    for run in (run for plan in plans for run in plan.runs):
        assert planned_by_train(run.job) == run.job, run.name


def test_flags_win_over_the_preset_that_train_takes() -> None:
    """The preset of fashion has another method, net and length; almost no setting has its default."""
    fixed = ("labeled_only", "balanced_batches")  # not allowed with the others' values
    fields = (field for field in fields_of(DivideMixSettings).values() if field.name not in fixed)
    values: dict[str, Any] = {field.name: another(field) for field in fields}
    settings = DivideMixSettings(**values)
    job = Job(data="fashion", noise="symmetric:0.5", limit_train=70, holdout=0.25, settings=settings)
    assert planned_by_train(job) == job


def test_names_stay_as_they_are() -> None:
    """A golden name: where it changes, everybody's finished runs are repeated."""
    assert run_name(JOB, "paper") == "paper-cifar10-symmetric-0.5-dividemix-seed1-1f740dfa"


@pytest.mark.parametrize("name", TABLES)
def test_every_published_row_is_trained(name: str) -> None:
    table, plan = PUBLISHED[name], make_plan(name, "paper")
    trained = {key[0] for key in plan.sources if isinstance(key, tuple)}
    for row in table.methods:
        variants = [f"{row}, hard", f"{row}, soft"] if row == "M-correction" else [row]
        assert trained >= set(variants), row
    keys = set(itertools.product(trained, table.columns, table.kinds))
    assert set(plan.sources) == keys  # every column, also where the paper has no figure


def test_what_a_scale_does_not_have_is_refused_in_one_line() -> None:
    for name in ("table3", "table4"):
        with pytest.raises(InputError, match=f"^{name} has no mini scale"):
            make_plan(name, "mini")
    with pytest.raises(InputError, match=r"^--seeds 3: figure2 shows one run"):
        make_plan("figure2", "mini", num_seeds=3)


@pytest.mark.parametrize(("name", "scale"), [("table1", "mini"), ("table4", "paper"), ("figure4", "mini")])
def test_weights_are_for_clothing1m_alone(name: str, scale: str) -> None:
    """A run from other weights would carry the name of the paper's setting."""
    with pytest.raises(InputError, match=f"^--weights a.pth: {name} at {scale} scale starts from none"):
        make_plan(name, scale, weights="a.pth")
    for named in ("table3", "figure4"):
        assert all(run.job.weights == "a.pth" for run in make_plan(named, "paper", weights="a.pth").runs)


def test_the_embedded_set_is_never_given_a_root() -> None:
    assert all(run.job.root is None for run in make_plan("table1", "mini").runs)
    assert all(run.job.data == "cifar10" for run in make_plan("table1", "mini", root="somewhere").runs)


def test_the_yaml_of_a_plan_with_one_run_has_all_settings_in_common() -> None:
    assert f"{make_plan('table9', 'mini').runs[0].name}: {{}}" in to_yaml(make_plan("table9", "mini"))
