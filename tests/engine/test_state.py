"""The state of a training. Oracle of saving and loading: the training that was never interrupted, bit for bit."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
import tiny
import torch
from tiny import TinyData, copied, tiny_nets
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, Optimizer

from dividemix.engine.progress import Progress
from dividemix.engine.settings import ScheduleSettings
from dividemix.engine.state import Learner, State, net_tensors, under
from dividemix.errors import DivergedError
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.methods.robust import METHOD, RobustSettings

FIELDS: dict[str, Any] = {
    "epochs": 4,
    "warmup_epochs": 1,
    "batch_size": 4,
    "clean_threshold": 0.5,
    "loss_window": 2,
    "keep_plausible": True,
    "keep_all_up_to": 0.0,
    "rampup_epochs": 2,
}


def start(s: RobustSettings, data: TinyData, *, dropout: float = 0.3, scale_loss: bool = False) -> State:
    return tiny.start(METHOD, s, data, nets=tiny_nets(dropout=dropout), scale_loss=scale_loss)


def train(state: State, data: TinyData, s: RobustSettings, num_epochs: int) -> list[Mapping[str, list[float]]]:
    epochs = tiny.fit(METHOD, state, data, s)
    return [next(epochs).losses for _ in range(num_epochs)]


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
    s, data = RobustSettings(**FIELDS, momentum=momentum), TinyData()
    straight = start(s, data, dropout=dropout)
    expected = train(straight, data, s, 4)

    first = start(s, data, dropout=dropout)
    losses = train(first, data, s, num_before)
    saved, epoch = copied(first.tensors()), first.epoch
    second = tiny.start(METHOD, s, data, nets=list(reversed(tiny_nets(dropout=dropout))))  # other weights
    torch.manual_seed(num_before)  # and another process's global generator
    second.load(saved, epoch)
    assert_same(second.tensors(), saved)
    losses += train(second, data, s, 4 - num_before)

    assert losses == expected
    assert second.epoch == straight.epoch == 4
    assert_same(second.tensors(), straight.tensors())


def test_the_scale_of_the_loss_is_saved_and_loaded() -> None:
    s, data = RobustSettings(**FIELDS), TinyData()
    straight, first, second = (start(s, data, scale_loss=True) for _ in range(3))
    for state in (straight, first):
        scaler = state.learners[0].scaler
        scaler.load_state_dict(scaler.state_dict() | {"scale": 1024.0})  # as it is after some overflows
    train(straight, data, s, 4)
    train(first, data, s, 2)
    second.load(copied(first.tensors()), first.epoch)
    assert [learner.scaler.get_scale() for learner in second.learners] == [1024.0, 65536.0]
    train(second, data, s, 2)
    assert_same(second.tensors(), straight.tensors())


def test_tensors_name_everything_that_training_moves() -> None:
    s, data = RobustSettings(**FIELDS), TinyData()
    state = start(s, data)
    before = copied(state.tensors())
    assert sum(name.startswith("optimizer.") for name in before) == 0
    train(state, data, s, 3)
    after = state.tensors()
    num_parameters = len(list(state.nets[0].parameters()))
    for k in range(2):
        assert under(f"optimizer.{k}.", after).keys() == {f"{i}.momentum_buffer" for i in range(num_parameters)}
        assert under(f"nets.{k}.", after).keys() == state.nets[k].state_dict().keys()
    assert after["samples.losses"].shape == (len(data.labels), 2, 2)
    assert after["samples.plausibility"].shape == (len(data.labels), 2)
    assert after["samples.losses"].dtype == after["samples.plausibility"].dtype == torch.float64
    unmoved = [name for name in before if torch.equal(before[name], after[name])]
    assert unmoved == []


def test_loading_takes_copies() -> None:
    """Training on from a loaded state leaves what it was loaded from as it was."""
    s, data = RobustSettings(**FIELDS), TinyData()
    first = start(s, data)
    train(first, data, s, 2)
    kept = copied(first.tensors())
    second = start(s, data)
    given = copied(first.tensors())
    second.load(given, first.epoch)
    train(second, data, s, 2)
    assert_same(given, kept)

    third = start(s, data)
    third.load(first.tensors(), first.epoch)
    train(third, data, s, 2)
    assert_same(first.tensors(), kept)
    assert_same(third.tensors(), second.tensors())


def test_start_builds_sgd_as_set() -> None:
    s, data = RobustSettings(**FIELDS, lr=0.3, momentum=0.7, weight_decay=0.01), TinyData()
    state = start(s, data)
    for net, learner in zip(state.nets, state.learners, strict=True):
        assert type(learner.optimizer) is SGD
        (group,) = learner.optimizer.param_groups
        assert (group["lr"], group["momentum"], group["weight_decay"]) == (0.3, 0.7, 0.01)
        assert not group["nesterov"]
        assert group["dampening"] == 0
        assert [id(p) for p in group["params"]] == [id(p) for p in net.parameters()]
        assert learner.average is None
    assert state.epoch == 0
    assert state.optimizers == {}
    assert state.samples["losses"].shape == (len(data.labels), 2, 0)
    assert state.samples["plausibility"].shape == (len(data.labels), 0)


def test_a_new_state_has_nothing_of_any_method() -> None:
    state = State.start(tiny_nets(), ScheduleSettings())
    assert state.samples == {}
    assert state.optimizers == {}
    assert {name.partition(".")[0] for name in state.tensors()} == {"generators", "nets"}


@pytest.mark.parametrize("keep_plausible", [False, True])
def test_plausibilities_are_saved_where_they_are_used_and_only_there(keep_plausible: bool) -> None:
    s, data = RobustSettings(**FIELDS | {"keep_plausible": keep_plausible}), TinyData()
    state = start(s, data)
    train(state, data, s, 3)
    assert ("samples.plausibility" in state.tensors()) == keep_plausible


# What a method may add: other optimisers, running means, values per sample.


class Custom(Method):
    """Cross-entropy with a chosen optimiser, running means of the weights, a second optimiser, values per sample."""

    def __init__(self, make: Callable[[Iterable[Tensor]], Optimizer], *, average: bool = True):
        self.make = make
        self.average = average

    def num_nets(self, s: MethodSettings) -> int:
        """Two."""
        return 2

    def start(self, state: State, sets: TrainingSets, s: MethodSettings) -> None:
        """Add all of it."""
        for k, learner in enumerate(state.learners):
            learner.optimizer = self.make(learner.net.parameters())
            if self.average:
                learner.average = tiny_nets(num_nets=5 + k)[-1]
                learner.average.load_state_dict(learner.net.state_dict())
        num_samples = len(sets.train.labels)
        state.samples["weights"] = torch.ones(num_samples, dtype=torch.float64)
        state.samples["labels"] = torch.zeros(num_samples, 2, 3, dtype=torch.int64)
        state.optimizers["weights"] = self.make([state.samples["weights"].requires_grad_()])

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """Steps on random batches; the weights of samples learn, too, by the second optimiser."""
        total = 0.0
        (weights,) = state.optimizers["weights"].param_groups[0]["params"]
        for _ in range(4):
            batch = torch.randperm(len(sets.train.labels), generator=state.draws)[:8]
            (x,) = sets.train.augmented([batch], state.views)
            for learner in state.learners:
                losses = F.cross_entropy(learner.net.train()(x), sets.train.labels[batch], reduction="none")
                state.optimizers["weights"].zero_grad()
                learner.descend((losses * weights[batch]).mean())
                state.optimizers["weights"].step()
                if learner.average is not None:
                    for mean, now in zip(learner.average.parameters(), learner.net.parameters(), strict=True):
                        mean.data.lerp_(now.data, 0.1)
                total += float(losses.mean().detach())
        state.samples["weights"] = weights.detach().clone()
        state.samples["labels"] += 1
        return EpochReport({"loss": [total]})


OPTIMIZERS: dict[str, Callable[[Iterable[Tensor]], Optimizer]] = {
    "adam": lambda parameters: Adam(parameters, lr=0.01),
    "adam, fused": lambda parameters: Adam(parameters, lr=0.01, fused=True),
    "adam with the largest moments": lambda parameters: Adam(parameters, lr=0.01, amsgrad=True),
    "sgd, fused": lambda parameters: SGD(parameters, lr=0.01, momentum=0.9, fused=True),
    "sgd without momentum": lambda parameters: SGD(parameters, lr=0.01),
}


def custom_state(method: Custom, data: TinyData, s: MethodSettings, *, seed: int = 0) -> State:
    """A state whose nets differ by the seed."""
    return tiny.start(method, s, data, nets=tiny_nets(num_nets=2 + seed)[seed:])


@pytest.mark.parametrize("num_before", [0, 1, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whatever_a_method_adds_is_saved_and_loaded_without_the_loss_of_a_bit(name: str, num_before: int) -> None:
    """Oracle: the training of 4 epochs that was never interrupted."""
    method, s, data = Custom(OPTIMIZERS[name]), MethodSettings(epochs=4), TinyData()
    straight = custom_state(method, data, s)
    expected = [report.losses for report in tiny.fit(method, straight, data, s)]

    first = custom_state(method, data, s)
    epochs = tiny.fit(method, first, data, s)
    losses = [next(epochs).losses for _ in range(num_before)]
    saved = copied(first.tensors())
    second = custom_state(method, data, s, seed=3)
    second.load(saved, first.epoch)
    assert_same(second.tensors(), saved)
    hand_weights_over(second)
    losses += [report.losses for report in tiny.fit(method, second, data, s)]

    assert losses == expected
    assert second.epoch == 4
    assert_same(second.tensors(), straight.tensors())


def hand_weights_over(state: State) -> None:
    """Give the second optimiser the weights of samples that were loaded: they are what it changes."""
    (weights,) = state.optimizers["weights"].param_groups[0]["params"]
    weights.data.copy_(state.samples["weights"])


def test_tensors_name_all_moments_of_adam() -> None:
    method, s, data = Custom(OPTIMIZERS["adam"]), MethodSettings(epochs=2), TinyData()
    state = custom_state(method, data, s)
    list(tiny.fit(method, state, data, s))
    named = state.tensors()
    moments = {"step", "exp_avg", "exp_avg_sq"}
    for k, net in enumerate(state.nets):
        expected = {f"{i}.{moment}" for i in range(len(list(net.parameters()))) for moment in moments}
        assert under(f"optimizer.{k}.", named).keys() == expected
    assert under("optimizers.weights.", named).keys() == {f"0.{moment}" for moment in moments}
    assert float(named["optimizer.0.0.step"]) == 8.0
    assert float(named["optimizers.weights.0.step"]) == 16.0


def test_running_means_predict_in_place_of_their_nets_and_are_loaded_with_them() -> None:
    method, s, data = Custom(OPTIMIZERS["adam"]), MethodSettings(epochs=2), TinyData()
    state = custom_state(method, data, s)
    assert all(learner.average is not None for learner in state.learners)
    assert state.predictors == [learner.average for learner in state.learners]
    list(tiny.fit(method, state, data, s))
    only_nets = net_tensors(state.tensors())
    assert {name.partition(".")[0] for name in only_nets} == {"nets", "averages"}
    other = custom_state(method, data, s, seed=3)
    before = copied(other.tensors())
    other.load_nets(only_nets)
    after = other.tensors()
    assert_same(net_tensors(after), only_nets)
    assert_same(rest(after), rest(before))


def rest(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All but the nets and their means."""
    return {name: tensor for name, tensor in named.items() if name not in net_tensors(named)}


def test_without_a_running_mean_the_net_itself_predicts() -> None:
    method, s, data = Custom(OPTIMIZERS["adam"], average=False), MethodSettings(epochs=1), TinyData()
    state = custom_state(method, data, s)
    assert state.predictors == state.nets
    state.learners[1].average = mean = tiny_nets(num_nets=1)[0]
    assert state.predictors == [state.nets[0], mean]


def test_values_per_sample_keep_name_shape_type_and_content() -> None:
    state, other = (State.start(tiny_nets(num_nets=1), ScheduleSettings()) for _ in range(2))
    values = {
        "losses": torch.rand(5, 2, 3, dtype=torch.float64),
        "soft.labels": torch.rand(5, 4),
        "label": torch.arange(5),
        "kept": torch.tensor([True, False, True, True, False]),
        "empty": torch.zeros(5, 0),
    }
    state.samples |= copied(values)
    other.samples["gone"] = torch.ones(5)  # a load leaves only what was saved
    other.load(state.tensors(), 7)
    assert other.epoch == 7
    assert_same(other.samples, values)
    other.samples["label"] += 1
    assert_same(state.samples, values)  # copies


def test_a_learner_makes_the_step_of_its_optimiser() -> None:
    """Oracle: the same step by hand."""
    net, twin = tiny_nets(num_nets=1)[0], tiny_nets(num_nets=1)[0]
    learner = Learner.start(net, ScheduleSettings(lr=0.1, momentum=0.0, weight_decay=0.0))
    x = TinyData(6).images

    def loss_of(one: nn.Module) -> Tensor:
        logits: Tensor = one(x)
        return logits.pow(2).mean()

    learner.descend(loss_of(net))
    gradients = torch.autograd.grad(loss_of(twin), list(twin.parameters()))
    for parameter, start, gradient in zip(net.parameters(), twin.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter, start - 0.1 * gradient)


def test_the_seed_decides_the_training() -> None:
    data = TinyData()
    runs = [train(start(s, data), data, s, 2) for s in (RobustSettings(**FIELDS, seed=seed) for seed in (1, 1, 2))]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", ["head.weight", "norm.running_var"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_check_finite_names_the_net_and_the_tensor(name: str, value: float) -> None:
    state = start(RobustSettings(**FIELDS), TinyData())
    state.check_finite()
    state.nets[1].state_dict()[name].flatten()[0] = value
    with pytest.raises(DivergedError, match=f"epoch 1: {name} of net 2") as stop:
        state.check_finite()
    assert "\n" not in str(stop.value)


def test_step_schedule_divides_by_ten_after_the_drop_epoch() -> None:
    s = DivideMixSettings(epochs=300, lr_drop_epoch=150, lr=0.02)
    rates = [s.learning_rate(epoch) for epoch in range(300)]  # rates[e - 1] is in force in epoch e
    assert rates == pytest.approx([0.02] * 150 + [0.002] * 150)
    twice = dataclasses.replace(s, lr_second_drop=250)
    assert [twice.learning_rate(epoch) for epoch in range(300)] == pytest.approx(rates[:250] + [0.0002] * 50)


def test_cosine_schedule_falls_from_the_rate_to_zero() -> None:
    s = DivideMixSettings(epochs=20, lr=0.02, lr_schedule="cosine")
    rates = [s.learning_rate(epoch) for epoch in range(21)]
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


def test_a_methods_own_tensors_are_saved_and_loaded_in_place() -> None:
    """An optimiser, or a layer, may hold such a tensor: it must stay the same object."""
    first, second = (State.start(tiny_nets(num_nets=1), ScheduleSettings()) for _ in range(2))
    held = torch.zeros(2, requires_grad=True)
    first.buffers = {"row": torch.tensor([1.0, 2.0]), "curve": torch.arange(3)}
    second.buffers = {"row": held}
    second.load(copied(first.tensors()), 4)
    assert second.buffers["row"] is held
    assert held.tolist() == [1.0, 2.0]
    assert second.buffers["curve"].tolist() == [0, 1, 2]
    assert_same(copied(second.tensors()), copied(first.tensors()))
