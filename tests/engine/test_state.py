"""The state of a training. Oracle of saving and loading: the training that was never interrupted, bit for bit."""

import math
import time
from typing import Any

import pytest
import torch
from tiny import TinyData, tiny_nets
from torch import Tensor
from torch.optim import SGD

from dividemix.algorithm.dividemix import fit
from dividemix.config import Config
from dividemix.engine.progress import Progress
from dividemix.engine.state import State, learning_rate, under
from dividemix.errors import DivergedError

FIELDS: dict[str, Any] = {
    "epochs": 4,
    "warmup_epochs": 1,
    "batch_size": 4,
    "loss_window": 2,
    "keep_plausible": True,
    "rampup_epochs": 2,
}


def start(config: Config, data: TinyData, *, dropout: float = 0.3, scale_loss: bool = False) -> State:
    return State.start(tiny_nets(dropout=dropout), len(data.labels), config, scale_loss=scale_loss)


def train(state: State, data: TinyData, config: Config, num_epochs: int) -> list[dict[str, list[float]]]:
    epochs = fit(state, data, config)
    return [next(epochs).losses for _ in range(num_epochs)]


def copied(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in named.items()}


def assert_same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert tensor.dtype == b[name].dtype, name
        assert torch.equal(tensor, b[name]), name


@pytest.mark.parametrize(
    ("num_before", "dropout", "momentum"), [(2, 0.0, 0.9), (0, 0.3, 0.9), (1, 0.3, 0.9), (2, 0.3, 0.9), (3, 0.3, 0.0)]
)
def test_stopping_and_loading_changes_no_bit(num_before: int, dropout: float, momentum: float) -> None:
    """Also at the very start (no momentum yet) and at the end of warm-up (no loss history yet)."""
    config, data = Config(**FIELDS, momentum=momentum), TinyData()
    straight = start(config, data, dropout=dropout)
    expected = train(straight, data, config, 4)

    first = start(config, data, dropout=dropout)
    losses = train(first, data, config, num_before)
    saved, epoch = copied(first.tensors()), first.epoch
    second = State.start(list(reversed(tiny_nets(dropout=dropout))), len(data.labels), config)  # other weights
    torch.manual_seed(num_before)  # and another process's global generator
    second.load(saved, epoch)
    assert_same(second.tensors(), saved)
    losses += train(second, data, config, 4 - num_before)

    assert losses == expected
    assert second.epoch == straight.epoch == 4
    assert_same(second.tensors(), straight.tensors())


def test_the_scale_of_the_loss_is_saved_and_loaded() -> None:
    config, data = Config(**FIELDS), TinyData()
    straight, first, second = (start(config, data, scale_loss=True) for _ in range(3))
    for state in (straight, first):
        scaler = state.scalers[0]
        scaler.load_state_dict(scaler.state_dict() | {"scale": 1024.0})  # as it is after some overflows
    train(straight, data, config, 4)
    train(first, data, config, 2)
    second.load(copied(first.tensors()), first.epoch)
    assert [scaler.get_scale() for scaler in second.scalers] == [1024.0, 65536.0]
    train(second, data, config, 2)
    assert_same(second.tensors(), straight.tensors())


def test_tensors_name_everything_that_training_moves() -> None:
    config, data = Config(**FIELDS), TinyData()
    state = start(config, data)
    before = copied(state.tensors())
    assert sum(name.startswith("momentum.") for name in before) == 0
    train(state, data, config, 3)
    after = state.tensors()
    num_parameters = len(list(state.nets[0].parameters()))
    for k in range(2):
        assert len(under(f"momentum.{k}.", after)) == num_parameters
        assert under(f"nets.{k}.", after).keys() == state.nets[k].state_dict().keys()
    assert after["loss_history"].shape == (2, 2, len(data.labels))
    assert after["plausibility_history"].shape == (2, len(data.labels))
    assert after["loss_history"].dtype == after["plausibility_history"].dtype == torch.float64
    unmoved = [name for name in before if torch.equal(before[name], after[name])]
    assert unmoved == []


def test_loading_takes_copies() -> None:
    """Training on from a loaded state leaves what it was loaded from as it was."""
    config, data = Config(**FIELDS), TinyData()
    first = start(config, data)
    train(first, data, config, 2)
    kept = copied(first.tensors())
    second = start(config, data)
    given = copied(first.tensors())
    second.load(given, first.epoch)
    train(second, data, config, 2)
    assert_same(given, kept)

    third = start(config, data)
    third.load(first.tensors(), first.epoch)
    train(third, data, config, 2)
    assert_same(first.tensors(), kept)
    assert_same(third.tensors(), second.tensors())


def test_start_builds_sgd_as_configured() -> None:
    config, data = Config(**FIELDS, lr=0.3, momentum=0.7, weight_decay=0.01), TinyData()
    state = start(config, data)
    for net, optimizer in zip(state.nets, state.optimizers, strict=True):
        assert type(optimizer) is SGD
        (group,) = optimizer.param_groups
        assert (group["lr"], group["momentum"], group["weight_decay"]) == (0.3, 0.7, 0.01)
        assert not group["nesterov"]
        assert group["dampening"] == 0
        assert [id(p) for p in group["params"]] == [id(p) for p in net.parameters()]
    assert state.epoch == 0
    assert state.loss_history.shape == (2, 0, len(data.labels))
    assert state.plausibility_history.shape == (0, len(data.labels))


@pytest.mark.parametrize("keep_plausible", [False, True])
def test_plausibilities_are_saved_where_they_are_used_and_only_there(keep_plausible: bool) -> None:
    config, data = Config(**FIELDS | {"keep_plausible": keep_plausible}), TinyData()
    state = start(config, data)
    train(state, data, config, 3)
    assert ("plausibility_history" in state.tensors()) == keep_plausible


def test_one_net_that_is_its_own_peer_judges_plausibility_alone() -> None:
    config, data = Config(**FIELDS, co_training=False), TinyData()
    state = State.start(tiny_nets(num_nets=1), len(data.labels), config)
    train(state, data, config, 3)
    assert state.plausibility_history.shape == (2, len(data.labels))
    assert ((state.plausibility_history > 0) & (state.plausibility_history < 1)).all()


def test_the_seed_decides_the_training() -> None:
    data = TinyData()
    runs = [train(start(config, data), data, config, 2) for config in (Config(**FIELDS, seed=s) for s in (1, 1, 2))]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", ["head.weight", "norm.running_var"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_check_finite_names_the_net_and_the_tensor(name: str, value: float) -> None:
    state = start(Config(**FIELDS), TinyData())
    state.check_finite()
    state.nets[1].state_dict()[name].flatten()[0] = value
    with pytest.raises(DivergedError, match=f"epoch 1: {name} of net 2") as stop:
        state.check_finite()
    assert "\n" not in str(stop.value)


def test_step_schedule_divides_by_ten_after_the_drop_epoch() -> None:
    config = Config(epochs=300, lr_drop_epoch=150, lr=0.02)
    rates = [learning_rate(epoch, config) for epoch in range(300)]  # rates[e - 1] is in force in epoch e
    assert rates == pytest.approx([0.02] * 150 + [0.002] * 150)


def test_cosine_schedule_falls_from_the_rate_to_zero() -> None:
    config = Config(epochs=20, lr=0.02, lr_schedule="cosine")
    rates = [learning_rate(epoch, config) for epoch in range(21)]
    assert rates == pytest.approx([0.01 + 0.01 * math.cos(math.pi * epoch / 20) for epoch in range(21)])
    assert rates[0] == 0.02
    assert rates[20] == pytest.approx(0, abs=1e-15)
    assert rates == sorted(rates, reverse=True)


def test_under_strips_the_prefix() -> None:
    one, two = torch.ones(1), torch.zeros(1)
    assert under("a.", {"a.x.a.": one, "ab.x": two, "b.a.": two}) == {"x.a.": one}


def test_laps_add_up_to_the_time_of_the_epoch() -> None:
    progress = Progress()
    before = time.perf_counter()
    progress.start_clock(torch.device("cpu"))
    for part in ("mixmatch", "forward_backward", "mixmatch"):
        time.sleep(0.002)
        progress.lap(part)
    seconds = progress.stop_clock()
    assert seconds.keys() == {"mixmatch", "forward_backward"}
    assert seconds["mixmatch"] >= 0.004
    assert sum(seconds.values()) <= time.perf_counter() - before
    progress.start_clock(torch.device("cpu"))
    assert progress.stop_clock() == {}


def test_on_a_gpu_laps_are_marked_by_the_gpu_and_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With made-up events of a GPU that takes 5 ms for each: nothing waits for it before the epoch ends."""
    done: list[str] = []

    class GpuEvent:
        def __init__(self, *, enable_timing: bool):
            assert enable_timing

        def record(self, stream: str) -> None:
            assert stream == "stream"
            done.append("mark")
            self.at = 5.0 * len(done)

        def elapsed_time(self, other: "GpuEvent") -> float:
            assert done[-1] == "wait"
            return other.at - self.at

    monkeypatch.setattr(torch.cuda, "Event", GpuEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "stream")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: done.append("wait"))
    progress = Progress()
    progress.start_clock(torch.device("cuda"))
    for part in ("mixmatch", "forward_backward", "mixmatch"):
        progress.lap(part)
    assert progress.stop_clock() == pytest.approx({"mixmatch": 0.010, "forward_backward": 0.005})
    assert done == ["mark"] * 4 + ["wait"]


def test_progress_counts_finished_steps() -> None:
    progress = Progress()
    seen = [(progress.doing, progress.step, progress.num_steps) for _ in progress.watch("net 1", "abc", 3)]
    assert seen == [("net 1", 0, 3), ("net 1", 1, 3), ("net 1", 2, 3)]
    assert progress.step == 3
