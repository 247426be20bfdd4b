"""The planner. Oracles: proportions worked out by hand, and what was asked for, which is never overruled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import NUM_CLASSES, save_toy, toy_arrays, toy_job, trained

from dividemix.data.readers.arrays import read_arrays
from dividemix.data.source import Source
from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.methods.method import MethodSettings
from dividemix.methods.robust import RobustSettings
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job, read_settings
from dividemix.planning.plan import Plan, make_draft, make_plan
from dividemix.planning.presets import PRESETS, Preset, preset_values
from dividemix.runs.run import Run
from dividemix.settings import fields_of


def draft_of(preset: str, **given: Any) -> Plan:
    draft = make_draft({"data": "photos"} | given, preset=preset)
    name = draft.preset
    assert draft.preset == name == preset
    return draft


def refusal(given: dict[str, Any], **more: Any) -> str:
    """The line with which a request is refused."""
    with pytest.raises(InputError) as caught:
        make_plan({"data": "photos"} | given, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def in_memory() -> Source:
    arrays = toy_arrays()
    return read_arrays(arrays["x_train"], arrays["y_train"])


def test_lengths_that_are_not_given_follow_a_given_number_of_epochs() -> None:
    """Table 7 has 10 and 16 of 300 epochs, and a drop after 150."""
    draft = draft_of("cifar10-sym-50", epochs=30)
    assert draft.choices == (
        Choice("warmup_epochs", 1, "10 of 300 epochs"),
        Choice("rampup_epochs", 2, "16 of 300 epochs"),
        Choice("lr_drop_epoch", 15, "150 of 300 epochs"),
    )
    values = draft.job.values()
    assert {name: values[name] for name in ("epochs", "warmup_epochs", "rampup_epochs", "lr_drop_epoch")} == {
        "epochs": 30,
        "warmup_epochs": 1,
        "rampup_epochs": 2,
        "lr_drop_epoch": 15,
    }
    longer = draft_of("cifar100-sym-50", epochs=600)
    assert [choice.value for choice in longer.choices] == [60, 32, 300]


def test_the_lengths_of_a_preset_are_in_proportion_to_its_own_epochs() -> None:
    draft = draft_of("clothing1m", epochs=8)
    assert draft.choices[0] == Choice("warmup_epochs", 1, "1 of 80 epochs")  # a tenth, but one epoch at least
    assert draft.choices[2] == Choice("lr_drop_epoch", 4, "40 of 80 epochs")


def test_a_given_length_is_left_alone() -> None:
    draft = draft_of("cifar10-sym-50", epochs=30, warmup_epochs=7, lr_drop_epoch=29)
    assert [choice.name for choice in draft.choices] == ["rampup_epochs"]
    values = draft.job.values()
    assert (values["warmup_epochs"], values["lr_drop_epoch"]) == (7, 29)


@pytest.mark.parametrize("epochs", [1, 2, 3, 1000])
@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("preset", PRESETS)
def test_any_number_of_epochs_fits_every_preset(preset: str, method: str | None, epochs: int) -> None:
    """A preset's own warm-up of ten epochs must not refuse three epochs."""
    given = {"epochs": epochs} | ({} if method is None else {"method": method})
    assert draft_of(preset, **given).job.settings.epochs == epochs


@pytest.mark.parametrize("given", [{}, {"epochs": 300}, {"lr": 0.1}])
def test_without_another_number_of_epochs_nothing_is_scaled(given: dict[str, Any]) -> None:
    draft = draft_of("cifar10-sym-50", **given)
    assert draft.choices == ()
    assert draft.job == Job.of(preset_values("cifar10-sym-50") | {"data": "photos"} | given)


def test_a_length_of_zero_stays_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "at_once", Preset("this test", {"epochs": 100, "rampup_epochs": 0}))
    draft = draft_of("at_once", epochs=10)
    assert Choice("rampup_epochs", 0, "0 of 100 epochs") in draft.choices


def test_a_method_gets_only_the_lengths_that_it_has() -> None:
    draft = draft_of("cifar10-sym-50", epochs=30, method="cross_entropy")
    assert draft.choices == (Choice("lr_drop_epoch", 15, "150 of 300 epochs"),)


@pytest.mark.parametrize(
    ("epochs", "message"), [(0, "epochs is 0"), (-3, "epochs is -3"), ("many", "epochs is 'many'")]
)
def test_a_number_of_epochs_out_of_range_is_refused_as_such(epochs: Any, message: str) -> None:
    assert message in refusal({"epochs": epochs}, preset="cifar10-sym-50")


def origin(settings: type, name: str) -> type | None:
    """The class that introduces this field; others may only change its default."""
    return next((one for one in reversed(settings.__mro__) if name in vars(one).get("__annotations__", {})), None)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_what_a_preset_sets_and_the_method_lacks_is_dropped(preset: str, method: str) -> None:
    """So is what the method means otherwise: a field of the same name from another class keeps its default."""
    draft = draft_of(preset, method=method)
    settings, of_preset = METHODS[method].settings, METHODS[PRESETS[preset].method].settings
    assert type(draft.job.settings) is settings
    for name, value in PRESETS[preset].fields.items():
        if origin(settings, name) is None:
            assert name not in draft.job.values()
        else:
            is_shared = origin(settings, name) is origin(of_preset, name)
            assert draft.job.values()[name] == (value if is_shared else fields_of(settings)[name].default), name


@pytest.mark.parametrize(("method", "alpha"), [("mixup", 32.0), ("m_correction", 32.0), ("selfmix", 0.75)])
def test_the_alpha_of_another_method_is_not_that_of_the_preset(method: str, alpha: float) -> None:
    assert PRESETS["webvision"].fields["alpha"] == 0.5
    assert draft_of("webvision", method=method).job.values()["alpha"] == alpha


def test_the_preset_has_a_method_and_a_given_one_wins() -> None:
    assert draft_of("default").job.method == "robust_history"
    assert draft_of("default", lambda_u=5.0).job.method == "robust"  # a setting that only this method has
    assert type(draft_of("default", lambda_u=5.0).job.settings) is RobustSettings
    assert draft_of("cifar10-sym-20").job.method == "dividemix"
    assert draft_of("cifar10-sym-20", method="robust").job.method == "robust"


def test_data_has_a_preset() -> None:
    draft = make_draft({"data": "cifar10", "noise": "symmetric:0.9"})
    preset = draft.preset
    assert draft.preset == preset == "cifar10-sym-90"
    assert make_draft({"data": "photos"}).preset == "default"


@pytest.mark.parametrize("preset", ["default", "cifar10-sym-50"])
def test_a_given_setting_that_the_method_lacks_is_refused_in_one_line(preset: str) -> None:
    given = {"method": "cross_entropy", "lambda_u": 25.0}
    expected = (
        "method cross_entropy has no setting lambda_u: leave it out; it has only the settings that every method has"
    )
    assert refusal(given, preset=preset) == expected
    line = refusal({"method": "dividemix", "keep_plausible": True}, preset=preset)
    assert line.startswith(
        "method dividemix has no setting keep_plausible: leave it out; its own settings: warmup_epochs, "
    )
    assert "keep_all_up_to" not in line
    assert "unknown setting 'lamda_u': did you mean lambda_u?" in refusal({"lamda_u": 1}, preset=preset)


@pytest.mark.parametrize(
    ("given", "preset", "other"),
    [
        ({}, "cifar10-sym-50", "preset cifar10-sym-50: remove one of them"),
        ({"data": "fashion"}, None, "preset fashion: remove one of them"),
        ({"epochs": 5}, None, "epochs: remove one of them"),
        ({"epochs": 5}, "default", "epochs: remove one of them"),
    ],
)
def test_minutes_are_for_the_preset_default_without_epochs(
    given: dict[str, Any], preset: str | None, other: str
) -> None:
    assert refusal(given, preset=preset, minutes=3.0) == f"minutes cannot be used with {other}"


def test_an_unknown_preset_or_method_is_refused() -> None:
    assert "unknown preset 'magic': the presets are default, " in refusal({}, preset="magic")
    assert "unknown method 'magic': the methods are dividemix, " in refusal({"method": "magic"})
    assert "method is 5" in refusal({"method": 5})


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"data": "fashion", "noise": "symmetric:0.5"}, "fashion-symmetric-0.5-dividemix-seed1"),
        ({"data": "some where/my cats.npz", "seed": 7, "method": "robust"}, "my-cats-robust-seed7"),
        ({"data": "none", "noise": "none"}, "none-dividemix-seed1"),
        ({"data": "a/photos/", "noise": "file:b/c d.json"}, "photos-file-b-c-d.json-dividemix-seed1"),
    ],
)
def test_a_plan_has_the_name_of_its_data_noise_method_and_seed(values: dict[str, Any], name: str) -> None:
    assert Plan(Job.of(values), "default").name == name


def test_with_the_preset_default_the_rest_is_chosen_to_fit_the_data(tmp_path: Path) -> None:
    given = {"data": str(save_toy(tmp_path)), "device": "cpu", "epochs": 6, "method": "robust"}
    plan = make_plan(given)
    assert plan.preset == "default"
    assert plan.source is not None
    assert all(choice.reason for choice in plan.choices)
    chosen = {choice.name: choice.value for choice in plan.choices}
    assert {"net", "net_width", "batch_size", "holdout", "warmup_epochs", "rampup_epochs"} <= chosen.keys()
    assert not given.keys() & chosen.keys()
    assert plan.job == Job.of(preset_values("default") | given | chosen)


@pytest.mark.parametrize(("epochs", "warmup"), [(1, 1), (3, 1), (12, 2), (60, 5)])
def test_the_lengths_of_a_named_method_fit_the_epochs_for_data_of_your_own(
    tmp_path: Path, epochs: int, warmup: int
) -> None:
    """Three epochs are fewer than the paper's ten of warm-up. Oracle: a sixth, 5 at most on a CPU, by hand."""
    given = {"data": str(save_toy(tmp_path)), "device": "cpu", "epochs": epochs, "method": "dividemix"}
    plan = make_plan(given)
    assert plan.job.values()["warmup_epochs"] == warmup
    assert [choice.value for choice in plan.choices if choice.name == "warmup_epochs"] == [warmup]


def test_what_is_chosen_for_a_method_it_has(tmp_path: Path) -> None:
    """Classes that differ in size would give lambda_r, which ordinary training lacks."""
    y_train = np.array([0] * 25 + [1] * 10 + [2] * 5)
    given = {"data": str(save_toy(tmp_path, y_train=y_train)), "device": "cpu", "method": "cross_entropy"}
    plan = make_plan(given)
    chosen = {choice.name for choice in plan.choices}
    assert {"net", "epochs", "batch_size"} <= chosen
    assert not {"warmup_epochs", "rampup_epochs", "lambda_r"} & chosen
    assert type(plan.job.settings) is MethodSettings
    assert "lambda_r" in {choice.name for choice in make_plan(given | {"method": "robust"}).choices}


def test_with_another_preset_the_data_is_not_read() -> None:
    plan = make_plan({"data": "nowhere.npz"}, preset="cifar10-sym-50")
    assert plan.source is None


@pytest.mark.parametrize("preset", ["default", "fashion"])
def test_data_in_memory_is_limited_once(tmp_path: Path, preset: str) -> None:
    """The run keeps a copy of what is left of the data, to which no limit applies again."""
    given = {"data": "data.npz", "limit_train": 12, "device": "cpu", "epochs": 2, "net_width": 2}
    plan = make_plan(given, preset=preset, source=in_memory())
    assert plan.source is not None
    assert np.bincount(plan.source.train_labels).tolist() == [12 // NUM_CLASSES] * NUM_CLASSES
    assert plan.job.limit_train is None
    run = Run.create(tmp_path / "run", plan.job, source=plan.source, choices=plan.choices, keep_data=True)
    assert len(run.material.everything.labels) == 12
    again = Run.load(tmp_path / "run")
    np.testing.assert_array_equal(again.material.rows, run.material.rows)
    assert again.material.digest == run.material.digest


def test_data_in_memory_is_planned_as_it_is() -> None:
    source = in_memory()
    plan = make_plan({"data": "data.npz", "device": "cpu"}, source=source)
    assert plan.source is source


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_the_file_of_a_run_plans_the_same_run(tmp_path: Path, method: str) -> None:
    job = toy_job(tmp_path, method=method, kernels="torch")
    trained(tmp_path / "run", job, num_epochs=1)
    plan = make_plan(read_settings(tmp_path / "run" / "config.yaml"))
    assert plan.job == job
    assert plan.choices == ()
