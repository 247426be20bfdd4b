"""Plans against what they must share, and names against changes of single settings."""

import dataclasses

import pytest

from dividemix.config import Config
from dividemix.errors import InputError
from dividemix.experiments import FIGURES, TABLES
from dividemix.experiments.plans import make_plan, run_name, to_yaml
from dividemix.experiments.published import PUBLISHED
from dividemix.planning.job import Job

MINI = [name for name in (*TABLES, *FIGURES) if name not in ("table3", "table4")]
JOB = Job(data="cifar10", noise="symmetric:0.5", config=Config(lambda_u=150.0))


def names(experiment: str, scale: str, **options: int) -> set[str]:
    return {run.name for run in make_plan(experiment, scale, **options).runs}


@pytest.mark.parametrize("scale", ["mini", "paper"])
def test_tables_share_the_runs_that_are_the_same(scale: str) -> None:
    dividemix = {name for name in names("table1", scale) if "-dividemix-" in name}
    assert dividemix < names("table5", scale)
    assert {name for name in names("table2", scale) if "-dividemix-" in name} < names("table5", scale)
    assert names("figure3", scale) <= dividemix
    assert names("table8", scale) == names("table9", scale) <= dividemix


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
    for field in dataclasses.fields(Config):
        value = getattr(JOB.config, field.name)
        choices = [choice for choice in field.metadata.get("choices", ()) if choice != value]
        other = (
            not value if field.type is bool else choices[0] if choices else f"{value}x" if field.type is str else None
        )
        if other is None:
            other = (value or 1.0) / 2 if field.type is float else value + 1
        if field.name == "labeled_only":
            continue  # not allowed beside this lambda_u
        changed = run_name(
            dataclasses.replace(JOB, config=dataclasses.replace(JOB.config, **{field.name: other})), "paper"
        )
        assert (changed == name) == (field.name == "device"), field.name
        seen.add(changed)
    assert len(seen) == len(dataclasses.fields(Config)) - 1  # as many as fields: one is left out, device adds none
    for place in ({"root": "elsewhere"}, {"memory_gb": 1.0}, {"weights": "file"}):
        assert run_name(dataclasses.replace(JOB, **place), "paper") == name  # type: ignore[arg-type]
    assert run_name(dataclasses.replace(JOB, data="cifar100"), "paper") != name


def test_names_stay_as_they_are() -> None:
    """A golden name: where it changes, everybody's finished runs are repeated."""
    assert run_name(JOB, "paper") == "paper-cifar10-symmetric-0.5-dividemix-seed1-1f740dfa"


@pytest.mark.parametrize("name", TABLES)
def test_cells_are_planned_for_every_row_of_a_method_that_the_package_has(name: str) -> None:
    table, plan = PUBLISHED[name], make_plan(name, "paper")
    here = {method for method in table.methods if method.startswith(("DivideMix", "Divide and", "Cross-Entropy"))}
    assert set(plan.sources) == {key for key in table.values if key[0] in here}


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
    assert f"{make_plan('table8', 'mini').runs[0].name}: {{}}" in to_yaml(make_plan("table8", "mini"))
