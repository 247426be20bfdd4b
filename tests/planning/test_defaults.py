"""The preset `default`. Oracles: what the data is like, and what the user has said, which is never overruled."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from official_trees import make_clothing1m
from PIL import Image
from torch import Tensor, nn
from toys import save_toy

from dividemix.engine import processes
from dividemix.errors import InputError
from dividemix.nets.given import named_for_now
from dividemix.planning.budget import Budget
from dividemix.planning.choices import Choice
from dividemix.planning.defaults import choose
from dividemix.planning.job import Job
from dividemix.planning.pace import Pace, PhasePace
from dividemix.planning.plan import make_draft, make_plan
from dividemix.runs.run import Run
from dividemix.time_left import estimate


def job_for(data: object, **given: Any) -> tuple[Job, dict[str, Any]]:
    settings = {"data": str(data), "device": "cpu"} | given
    return make_draft(settings, preset="default").job, settings


def chosen(data: object, **given: Any) -> dict[str, Any]:
    _, choices = choose(*job_for(data, **given))
    assert all(choice.reason for choice in choices)
    return {choice.name: choice.value for choice in choices}


def test_what_is_chosen_makes_a_job_that_can_be_trained(tmp_path: Path) -> None:
    plan = make_plan({"data": str(save_toy(tmp_path)), "device": "cpu", "epochs": 3, "lambda_r": 1.0})
    job, source, choices = plan.job, plan.source, plan.choices
    run = Run.create(tmp_path / "run", job, source=source, choices=choices)
    assert len(list(run.epochs())) == 3
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())["choices"]
    expected = [(choice.name, choice.value) for choice in choices]
    assert [(choice["name"], choice["value"]) for choice in stored][: len(expected)] == expected
    assert [choice["name"] for choice in stored][len(expected) :] == [
        "lambda_u"
    ]  # which only the training could choose


def test_what_the_user_has_given_is_left_alone(tmp_path: Path) -> None:
    given = {"net": "preact_resnet18", "net_width": 8, "epochs": 7, "batch_size": 5, "holdout": 0.2, "crop_padding": 0}
    assert not chosen(save_toy(tmp_path), **given).keys() & given.keys()


def test_images_get_one_network_and_its_method_unless_the_user_wants_another(tmp_path: Path) -> None:
    data = str(save_toy(tmp_path))
    for given, method, net in (
        ({}, "robust_history", "small_vgg"),
        ({"history_decay": 0.5, "method": "robust_history"}, "robust_history", "small_vgg"),
        ({"method": "cross_entropy"}, "cross_entropy", "small_vgg"),
        ({"method": "robust"}, "robust", "small_cnn"),
        ({"lambda_u": 5.0}, "robust", "small_cnn"),
        ({"warmup_epochs": 2, "net": "small_vgg"}, "robust", "small_vgg"),
    ):
        plan = make_plan({"data": data, "device": "cpu"} | given)
        assert (plan.job.method, plan.job.settings.net) == (method, net)
        assert plan.name == f"toy-{method}-seed1"


def test_a_shorter_type_is_chosen_where_it_saves_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = save_toy(tmp_path)
    for can, most, given, expected in (
        (True, 100, {}, "bfloat16"),
        (True, 10_000_000, {}, None),
        (False, 100, {}, None),
        (True, 100, {"reproducible": True}, None),
        (True, 100, {"precision": "float32"}, None),
    ):
        monkeypatch.setattr("dividemix.planning.defaults.computes_in_bfloat16", lambda can=can: can)
        monkeypatch.setattr("dividemix.planning.defaults._MANY_PIXELS", most)
        assert chosen(data, **given).get("precision") == expected


def test_views_fit_the_crops_that_are_trained_on(tmp_path: Path) -> None:
    data = save_toy(tmp_path)  # 8 x 8 pixels
    assert (chosen(data)["cutout"], chosen(data, crop_size=4)["cutout"]) == (2, 1)


def test_small_networks_get_rates_of_their_own(tmp_path: Path) -> None:
    data = save_toy(tmp_path)
    assert chosen(data)["lr"] == chosen(data, net="small_vgg")["lr"] == 0.1
    assert chosen(data, method="robust")["lr"] == chosen(data, net="small_cnn")["lr"] == 0.04
    assert "lr" not in chosen(data, net="preact_resnet18")
    assert "lr" not in chosen(data, lr=0.01)


def test_nothing_is_held_out_of_data_with_validation_images(tmp_path: Path) -> None:
    make_clothing1m(tmp_path)
    _, choices = choose(*job_for("clothing1m", root=str(tmp_path), image_size=16))
    assert Choice("holdout", 0.0, "the data has its own validation images") in choices


def test_small_data_gets_more_epochs_and_smaller_batches(tmp_path: Path) -> None:
    few = chosen(save_toy(tmp_path))
    many = chosen("fashion")
    assert few["epochs"] == many["epochs"] == 40  # the most
    assert few["batch_size"] < many["batch_size"]
    assert few["holdout"] == 0.0
    assert many["holdout"] == 0.1
    assert 1 <= chosen("fashion", method="robust")["warmup_epochs"] < 40


def test_many_test_images_are_tested_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded set has 6,000 images and 2,000 more to test on."""
    assert "test_epochs" not in chosen("fashion")  # few
    monkeypatch.setattr("dividemix.planning.defaults._MANY", 1_000)
    assert "test_epochs" not in chosen("fashion")  # a third of the training images
    assert chosen("fashion", limit_train=3000)["test_epochs"] is False
    assert "test_epochs" not in chosen("fashion", limit_train=3000, test_epochs=True)
    assert "test_epochs" not in chosen("fashion", limit_train=3000, holdout=0.0)  # the test chooses the epoch


def test_the_regulariser_is_left_out_where_classes_differ_in_size(tmp_path: Path) -> None:
    assert "lambda_r" not in chosen(save_toy(tmp_path))
    assert chosen(save_toy(tmp_path, y_train=np.array([0] * 25 + [1] * 10 + [2] * 5)))["lambda_r"] == 0.0


def test_large_images_on_a_cpu_are_made_small_unless_a_size_is_given(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(3):
            pixels = rng.integers(0, 255, (120, 150, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    source, choices = choose(*job_for(tmp_path / "photos"))
    assert ("image_size", 64) in [(choice.name, choice.value) for choice in choices]
    assert source.train_samples.shape[1:] == (64, 64, 3)
    assert "image_size" not in chosen(tmp_path / "photos", image_size=32)


def test_images_that_are_read_as_large_are_known_as_large(tmp_path: Path) -> None:
    """A median side of 96.5 pixels: what is read and what is recorded must not disagree."""
    for name, side in (("a", 96), ("b", 97)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (side, side)).save(tmp_path / "photos" / name / "1.png")
    source, choices = choose(*job_for(tmp_path / "photos"))
    assert source.train_samples.shape[1:] == (64, 64, 3)
    assert ("image_size", 64) in [(choice.name, choice.value) for choice in choices]


def test_minutes_choose_the_number_of_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second for a warm-up epoch and two for a mix epoch: n of them, w warm-up, take w + 2 (n - w) s."""
    phases = {"warmup": PhasePace(1 / 40), "mix": PhasePace(0.0, kept=2 / 40 / 0.85)}
    pace = Pace(phases, evaluate=0.0, num_train=40, num_test=0)
    monkeypatch.setattr("dividemix.planning.defaults.measure", lambda *_, **__: pace)
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    job, given = job_for(save_toy(tmp_path), method="robust")
    own_warmup = {"warmup_epochs": 20}
    cases: tuple[tuple[float, dict[str, int], int], ...] = (
        (0.5, {}, 16),
        (2.0, {}, 62),
        (2.0, own_warmup, 70),
        (99.0, {}, 300),
    )
    for minutes, more, expected in cases:
        _, choices = choose(job, given | more, budget=Budget.of(minutes))
        assert {choice.name: choice.value for choice in choices}["epochs"] == expected
    with pytest.raises(InputError, match="70 epochs take about 2 minutes here"):
        choose(job, given | {"warmup_epochs": 70}, budget=Budget.of(1.0))
    for minutes, message in (
        (0.1, "5 epochs take about 1 minutes here"),
        (0.0, "minutes is 0: it must be a number > 0"),
        (-1.0, "minutes is -1: it must be a number > 0"),
    ):
        with pytest.raises(InputError, match=message):
            choose(job, given, budget=Budget.of(minutes))


def test_vectors_get_the_recipe_for_vectors_unless_the_user_wants_another(tmp_path: Path) -> None:
    for num_features, net in ((6, "fourier"), (200, "linear")):
        path = tmp_path / f"{num_features}.npz"
        np.savez(path, features=np.random.default_rng(0).normal(size=(90, num_features)), labels=np.arange(90) % 3)
        plan = make_plan({"data": str(path), "device": "cpu"})
        assert (plan.job.method, plan.job.settings.net, plan.job.holdout) == ("robust_vectors", net, 0.0)
        assert plan.job.settings.epochs == 16
        assert "method" in {choice.name for choice in plan.choices}
        assert make_plan({"data": str(path), "device": "cpu", "epochs": 6}).job.settings.epochs == 6
        with pytest.raises(InputError, match="has no setting given_share"):
            make_plan({"data": str(path), "device": "cpu", "given_share": 0.5})
        for given in ({"method": "robust"}, {"lambda_u": 5.0}, {"net": "mlp"}):
            plan = make_plan({"data": str(path), "device": "cpu"} | given)
            assert (plan.job.method, plan.job.settings.net) == ("robust", "mlp")


@pytest.mark.parametrize("kind", ["vectors", "rows"])
def test_a_method_that_time_does_not_limit_says_so(tmp_path: Path, kind: str) -> None:
    """It once promised for vectors that the run ends before, and took 41 s of 0.6; for rows it said nothing."""
    rng, labels = np.random.default_rng(0), np.arange(90) % 3
    given: dict[str, Any] = {"data": str(tmp_path / "data.npz"), "device": "cpu"}
    if kind == "vectors":
        np.savez(tmp_path / "data.npz", features=rng.normal(size=(90, 6)), labels=labels)
    else:
        rows = "\n".join(f"{rng.normal()},{label}" for label in labels)
        (tmp_path / "data.csv").write_text(f"size,risk\n{rows}\n")
        given |= {"data": str(tmp_path / "data.csv"), "target": "risk"}
    plan = make_plan(given, minutes=0.01)
    [reason] = [choice.reason for choice in plan.choices if choice.name == "epochs"]
    assert reason.endswith(f"minutes is no limit for method {plan.job.method}, which always has this many epochs")
    assert plan.budget is None
    assert "minutes" not in "".join(choice.reason for choice in make_plan(given).choices)
    run = Run.create(tmp_path / "run", plan.job, source=plan.source)
    assert estimate(run) is None  # a step on a few samples says nothing of it


class Convolutions(nn.Module):
    """A net whose last layer is a convolution."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__()
        self.body, self.head = nn.Conv2d(in_channels, 4, 3, padding=1), nn.Conv2d(4, num_classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(torch.relu(self.body(x))).mean((2, 3))
        return logits


class FrozenHead(Convolutions):
    """A net that keeps its last linear layer from training."""

    def __init__(self, num_classes: int, in_channels: int):
        super().__init__(num_classes, in_channels)
        self.last = nn.Linear(num_classes, num_classes).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.last(super().forward(x))
        return logits


@pytest.mark.parametrize(
    ("net_class", "problem"),
    [(Convolutions, "has no nn.Linear"), (FrozenHead, "has frozen its last nn.Linear, last")],
)
def test_the_last_layer_is_trained_alone_only_if_it_is_linear_and_may_change(
    tmp_path: Path, net_class: type[nn.Module], problem: str
) -> None:
    """Training stopped with "element 0 of tensors does not require grad"."""
    data, weights = save_toy(tmp_path), str(tmp_path / "weights.pt")
    with named_for_now(net_class) as net:
        for name, expected in ((net, None), ("small_cnn", 1)):
            given = {"method": "cross_entropy", "net": name, "weights": weights, "epochs": 2}
            assert chosen(data, **given).get("head_epochs") == expected
        job = Job.of({"data": str(data), "net": net, "head_epochs": 1, "epochs": 2, "method": "cross_entropy"})
        with pytest.raises(InputError, match=f"^head_epochs is 1: the net {problem}, .*: set head_epochs to 0$"):
            Run.create(tmp_path / "run", job)
    assert not (tmp_path / "run").exists()


def test_several_processes_train_all_layers_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset chose head_epochs, which several processes refuse, and the run directory was there already."""
    given = {"net": "small_cnn", "method": "cross_entropy", "epochs": 2}
    data = save_toy(tmp_path)
    monkeypatch.setattr(processes, "num_joined", lambda: 2)
    assert "head_epochs" not in chosen(data, **given, weights=str(tmp_path / "weights.pt"))
    with pytest.raises(
        InputError, match=r"^head_epochs is 1: this method, or several processes, cannot use it: set 0$"
    ):
        Run.create(tmp_path / "run", Job.of(given | {"data": str(data), "head_epochs": 1}))
    assert not (tmp_path / "run").exists()
