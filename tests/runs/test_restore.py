"""A run is loaded only if its job, its data and its files are what they were."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import SETTINGS, finish, save_toy, settled, toy_arrays, toy_job, trained, tree

from dividemix.api import train
from dividemix.cli import main
from dividemix.engine.checkpoint import load_checkpoint, save_checkpoint
from dividemix.errors import InputError
from dividemix.runs.run import Run
from dividemix.stored import digest_of


def with_other_images(path: Path) -> None:
    images = toy_arrays()["x_train"].copy()
    images[0, 0, 0] += 1
    save_toy(path, x_train=images)


def with_other_labels(path: Path) -> None:
    save_toy(path, y_train=toy_arrays()["y_train"][::-1].copy())


def with_fewer_samples(path: Path) -> None:
    save_toy(path, x_train=toy_arrays()["x_train"][:-4], y_train=toy_arrays()["y_train"][:-4])


@pytest.mark.parametrize("change", [with_other_images, with_other_labels, with_fewer_samples])
def test_changed_data_is_noticed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1)
    before = tree(tmp_path / "run")
    change(tmp_path)
    with pytest.raises(InputError, match="other data"):
        Run.load(tmp_path / "run")
    assert tree(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0.5),
        ("seed", 7),
        ("epochs", 5),
        ("net_width", 3),
        ("flip", False),
        ("noise", "symmetric:0.2"),
        ("method", "cross_entropy"),
        ("limit_train", 8),
        ("mixture", "beta"),
    ],
)
def test_another_configuration_is_refused_by_name(tmp_path: Path, name: str, value: Any) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1)
    with pytest.raises(InputError, match=rf"run: the run there has {name} \S+, not {value}"):
        Run.load(tmp_path / "run", toy_job(tmp_path, **{name: value}))


def test_another_setting_of_our_recipe_is_refused_by_name(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path, method="robust"), num_epochs=1)
    with pytest.raises(InputError, match="run: the run there has division global, not per_class"):
        Run.load(tmp_path / "run", toy_job(tmp_path, method="robust", division="per_class"))


def test_the_device_may_change(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1)
    assert Run.load(tmp_path / "run", toy_job(tmp_path, device="auto")).state.epoch == 1


@pytest.mark.parametrize("changes", [{"net_width": 3}, {"method": "cross_entropy"}, {"lr": 0.5}])
def test_a_checkpoint_of_another_configuration_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1)
    trained(tmp_path / "other", toy_job(tmp_path, **changes), num_epochs=1)
    for here, there in (("run", "other"), ("other", "run")):
        path = tmp_path / f"{here} with {there}"
        shutil.copytree(tmp_path / here, path)
        shutil.rmtree(path / "checkpoints")
        shutil.copytree(tmp_path / there / "checkpoints", path / "checkpoints")
        with pytest.raises(InputError, match=r"checkpoint|the run there has"):
            Run.load(path)


@pytest.mark.parametrize("line", ["", "format: 1\n"])
def test_a_run_directory_of_an_older_version_is_refused_in_one_line(tmp_path: Path, line: str) -> None:
    path = trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1).directory.path
    config = path / "config.yaml"
    assert config.read_text().startswith("format: 2\n")
    config.write_text(config.read_text().replace("format: 2\n", line))
    before = tree(path)
    with pytest.raises(InputError, match=r"config\.yaml: made by another version of dividemix; .* env\.json") as caught:
        Run.load(path)
    assert "\n" not in str(caught.value)
    assert main(["train", "--resume", "--out", str(path)]) != 0
    assert tree(path) == before


def test_trusted_samples_may_move_and_may_not_change(tmp_path: Path) -> None:
    arrays = toy_arrays()
    for name, labels in (("here", arrays["y_test"]), ("moved", arrays["y_test"]), ("other", arrays["y_test"][::-1])):
        np.savez(tmp_path / f"{name}.npz", x_train=arrays["x_test"], y_train=labels)
    job = toy_job(tmp_path, trusted=str(tmp_path / "here.npz"))
    trained(tmp_path / "run", job, num_epochs=1)
    (tmp_path / "here.npz").unlink()
    assert Run.load(tmp_path / "run", replace(job, trusted=str(tmp_path / "moved.npz"))).state.epoch == 1
    for trusted in (str(tmp_path / "other.npz"), None):
        with pytest.raises(InputError, match="other data"):
            Run.load(tmp_path / "run", replace(job, trusted=trusted))


def with_copies(folder: Path) -> None:
    """The toy data, four of whose images are there twice."""
    images = toy_arrays()["x_train"].copy()
    images[4:8] = images[:4]
    save_toy(folder, x_train=images)


def change_checkpoint(path: Path, change: Callable[[dict[str, Any], dict[str, torch.Tensor]], object]) -> None:
    tensors, facts = load_checkpoint(path / "checkpoints" / "last")
    change(facts, tensors)
    save_checkpoint(path / "checkpoints" / "last", tensors, tag=f"epoch-{facts['epoch']:04d}", facts=facts)


def with_other_split(facts: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    facts["split"] = "0" * 32


def without_split(facts: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    del facts["split"]


def with_fewer_values(facts: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    without_split(facts, tensors)
    tensors |= {name: values[1:] for name, values in tensors.items() if name.startswith("samples.")}


@pytest.mark.parametrize(
    ("prepare", "change"),
    [(save_toy, with_other_split), (with_copies, without_split), (save_toy, with_fewer_values)],
)
def test_a_run_that_held_out_other_samples_is_not_continued(
    tmp_path: Path, prepare: Callable[[Path], object], change: Callable[[Any, Any], object]
) -> None:
    prepare(tmp_path)
    trained(tmp_path / "run", toy_job(tmp_path, holdout=0.2, loss_window=2), num_epochs=3)
    assert Run.load(tmp_path / "run").state.samples
    change_checkpoint(tmp_path / "run", change)
    before = tree(tmp_path / "run")
    with pytest.raises(InputError, match=r"run: an earlier version held out other samples, .*start again") as caught:
        Run.load(tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert tree(tmp_path / "run") == before


def test_an_earlier_run_without_copies_is_continued(tmp_path: Path) -> None:
    job = toy_job(tmp_path, holdout=0.2)
    expected = settled(trained(tmp_path / "whole", job).directory.path)
    trained(tmp_path / "run", job, num_epochs=1)
    change_checkpoint(tmp_path / "run", without_split)
    finish(Run.load(tmp_path / "run"))
    assert settled(tmp_path / "run") == expected


def damaged_facts(path: Path) -> None:
    index = path / "checkpoints" / "last" / "checkpoint.json"
    content = json.loads(index.read_text())
    del content["facts"]["data"]
    tensors = (index.parent / content["tensors"]).read_bytes()
    index.write_text(json.dumps(content | {"digest": digest_of(tensors, content["facts"])}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda path: (path / "config.yaml").unlink(),
            "not a run directory: give the directory that dividemix train wrote",
        ),
        (lambda path: (path / "config.yaml").write_text("data: ["), "not YAML"),
        (lambda path: (path / "metrics.jsonl").unlink(), "metrics.jsonl has 0 of the 2 epochs"),
        (lambda path: (path / "metrics.jsonl").write_text("{\n{\n"), "metrics.jsonl"),
        (lambda path: shutil.rmtree(path / "checkpoints"), "no checkpoint here"),
        (damaged_facts, "damaged"),
    ],
)
def test_a_damaged_run_is_reported(tmp_path: Path, damage: Callable[[Path], object], message: str) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=2)
    damage(tmp_path / "run")
    with pytest.raises(InputError, match=message) as caught:
        Run.load(tmp_path / "run")
    assert str(tmp_path / "run") in str(caught.value)


def test_a_run_keeps_the_labels_of_a_noise_file(tmp_path: Path) -> None:
    noise = trained(tmp_path / "first", toy_job(tmp_path), num_epochs=1).directory.noise.rename(tmp_path / "noise.json")
    expected = settled(trained(tmp_path / "whole", toy_job(tmp_path, noise=f"file:{noise}")).directory.path)
    trained(tmp_path / "stopped", toy_job(tmp_path, noise=f"file:{noise}"), num_epochs=2)
    noise.unlink()
    finish(Run.load(tmp_path / "stopped"))
    assert settled(tmp_path / "stopped") == expected


def test_a_run_that_keeps_its_data_takes_no_other(tmp_path: Path) -> None:
    arrays = toy_arrays()
    run = train(arrays["x_train"], arrays["y_train"], out=tmp_path / "run", progress=False, **SETTINGS)
    with pytest.raises(InputError, match=r"has its own data, in data\.npz: do not name other\.npz"):
        Run.load(tmp_path / "run", replace(run.job, data="other.npz"))
    loaded = Run.load(tmp_path / "run")
    assert Run.load(tmp_path / "run", loaded.job).job == loaded.job
