"""Networks given as Python objects. Oracle: the weights that an object had; what another process is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import SETTINGS, toy_arrays
from workshop import fail

import dividemix
from dividemix.errors import InputError
from dividemix.nets.given import net_name, use_for
from dividemix.nets.small_cnn import SmallCNN

ARRAYS = toy_arrays()
QUICK: dict[str, Any] = {name: value for name, value in SETTINGS.items() if name not in ("net", "net_width")}
QUICK |= {"epochs": 2, "warmup_epochs": 1, "progress": False, "out": "run"}


class Own(nn.Module):
    """A network that is made for the toy's images."""

    def __init__(self, num_classes: int = 4):
        super().__init__()
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """One logit for each class."""
        logits: Tensor = self.head(x.flatten(1))
        return logits


@pytest.fixture
def _other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of the objects of this one."""
    monkeypatch.setattr("dividemix.foreign._objects", {})


def train(net: Any) -> dividemix.Run:
    return dividemix.train(ARRAYS["x_train"], ARRAYS["y_train"], net=net, **QUICK)


def local_factory() -> Any:
    def make(num_classes: int) -> nn.Module:
        return Own(num_classes)

    return make


@pytest.mark.usefixtures("workshop")
@pytest.mark.parametrize("make", [lambda: Own(), local_factory, lambda: lambda num_classes: Own(num_classes)])
def test_an_object_is_trained_and_asked_for_when_the_run_is_loaded(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net = make()
    run = train(net)
    assert all(isinstance(one, Own) for one in run.state.nets)
    probs = run.predict_proba(ARRAYS["x_test"])
    monkeypatch.setattr("dividemix.foreign._objects", {})  # as in another process
    asked = r"was an object of a Python program, .* give the object again, as net="
    with pytest.raises(InputError, match=asked):
        dividemix.Run.load("run")
    with pytest.raises(InputError, match=asked):
        dividemix.Run.load("run", trust_net=True)
    with pytest.raises(InputError, match=asked):
        dividemix.Model.from_pretrained("run")
    again = dividemix.Model.from_pretrained("run", net=net)
    np.testing.assert_array_equal(again.predict_proba(ARRAYS["x_test"]), probs)
    loaded = dividemix.Run.load("run", net=net)
    assert loaded.finished
    np.testing.assert_array_equal(loaded.predict_proba(ARRAYS["x_test"]), probs)


@pytest.mark.usefixtures("workshop")
def test_the_command_line_says_what_to_do(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    train(Own())
    monkeypatch.setattr("dividemix.foreign._objects", {})
    assert "give the object again, as net=" in fail(capsys, ["train", "--resume", "--out", "run", "--trust_net"])
    Path("image.png").write_bytes(b"")
    assert "give the object again, as net=" in fail(capsys, ["predict", "run", "image.png"])


@pytest.mark.usefixtures("workshop")
def test_a_network_keeps_the_weights_that_it_came_with() -> None:
    net = Own()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    run = dividemix.train(ARRAYS["x_train"], ARRAYS["y_train"], net=net, **QUICK | {"lr": 1e-30})
    for one in run.state.nets:
        for name, tensor in one.state_dict().items():
            torch.testing.assert_close(tensor, before[name])
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_what_can_be_imported_is_named_by_its_module() -> None:
    assert net_name(SmallCNN) == "dividemix.nets.small_cnn:SmallCNN"
    assert net_name("small_cnn") == "small_cnn"


@pytest.mark.usefixtures("_other_process")
def test_names_are_different_for_different_objects_and_stay_for_the_same() -> None:
    one, other = Own(), Own()
    assert [net_name(one), net_name(other), net_name(one)] == ["python:Own", "python:Own-2", "python:Own"]
    assert net_name(lambda num_classes: one) == "python:factory"


@pytest.mark.usefixtures("workshop")
@pytest.mark.parametrize(
    ("net", "message"),
    [
        (7, "net is 7: must be a name, a torch.nn.Module, or a function that makes one"),
        (Own(9), r"net 'python:Own.*' does not fit 4 classes of 8 x 8 x 1 images: .*\(2, 9\), not \(2, 4\)"),
        (lambda num_classes: None, "does not fit 4 classes.*the factory returned NoneType"),
    ],
)
def test_objects_that_make_no_network(net: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train(net)
    assert not Path("run").exists()


def test_a_stored_net_of_ours_takes_no_object() -> None:
    with pytest.raises(InputError, match="the stored net is 'small_cnn', which needs no object: leave net out"):
        use_for("small_cnn", Own())
