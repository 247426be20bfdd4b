"""Methods behind one door, and the loop that they share.

Oracles: the training that was never interrupted, rates and phases by hand.
"""

import math
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from method_checks import assert_phases_add_up
from tiny import TinyData, record, same, tiny_nets, weights_of
from torch import Tensor, nn

from dividemix.engine.state import State
from dividemix.errors import DivergedError, InputError
from dividemix.methods import METHODS, find_method, loop
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.planning.job import own_fields
from dividemix.settings import fields_of

SHORT: dict[str, Any] = {"epochs": 4, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 3}
TINY: dict[str, Any] = {
    "epochs": 6,
    "warmup_epochs": 2,
    "batch_size": 4,
    "lr": 0.05,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "rampup_epochs": 4,
    "seed": 3,
}
DIVIDEMIX = METHODS["dividemix"]
TWO_NETS = {"decoupling", "co_teaching", "co_teaching_plus", "incv"}  # and those whose setting co_training says so


def settings_of(**fields: Any) -> DivideMixSettings:
    return DivideMixSettings(**{**TINY, **fields})


def start(s: DivideMixSettings, data: TinyData, *, nets: list[nn.Module] | None = None) -> State:
    return tiny.start(DIVIDEMIX, s, data, nets=nets)


def fit(state: State, data: TinyData, s: DivideMixSettings) -> Iterator[EpochReport]:
    return tiny.fit(DIVIDEMIX, state, data, s)


# METHODS.


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize(
    ("name", "fields", "num_nets"),
    [
        ("dividemix", {"warmup_epochs": 1}, 2),
        ("dividemix", {"warmup_epochs": 1, "co_training": False}, 1),
        ("robust", {}, 2),
        ("robust", {"co_training": False}, 1),
        *(
            (name, {}, 1 if name not in TWO_NETS else 2)
            for name, method in METHODS.items()
            if name not in ("dividemix", "robust") and not method.needs_vectors
        ),
    ],
)
def test_each_method_trains_its_number_of_nets(name: str, fields: dict[str, Any], num_nets: int) -> None:
    method, data = METHODS[name], TinyData()
    s = method.settings(**SHORT, **fields)
    assert method.num_nets(s) == num_nets
    state = tiny.start(method, s, data)
    reports = list(tiny.fit(method, state, data, s))
    assert [report.epoch for report in reports] == [1, 2, 3, 4]
    assert all(len(values) == num_nets for values in reports[-1].losses.values())
    judged = method.judge(state, data, s)
    assert judged.pred_probs.shape == (len(data.labels), tiny.NUM_CLASSES)
    assert judged.losses.shape == judged.clean_prob.shape == (num_nets, len(data.labels))
    assert ((judged.clean_prob >= 0) & (judged.clean_prob <= 1)).all()


def test_each_file_with_a_method_is_a_method_of_that_name() -> None:
    """Oracle: the files."""
    files = Path(str(find_method.__globals__["__file__"])).parent.glob("*.py")
    assert set(METHODS) == {file.stem for file in files if re.search(r"^METHOD\b.* = ", file.read_text(), re.MULTILINE)}
    for name, method in METHODS.items():
        assert import_module(f"dividemix.methods.{name}").METHOD is method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_the_defaults_of_the_settings_that_every_method_has(name: str) -> None:
    """The help shows one default for all methods; a preset may set other values."""
    own, common = (fields_of(settings) for settings in (METHODS[name].settings, MethodSettings))
    assert {field: own[field].default for field in common} == {field: common[field].default for field in common}


@pytest.mark.parametrize("name", METHODS)
def test_the_phases_of_a_method_have_all_its_epochs(name: str) -> None:
    """A plan fits warmup_epochs to the epochs; all other settings have their defaults."""
    assert_phases_add_up(METHODS[name], **({"warmup_epochs": 1} if "warmup_epochs" in own_fields(name) else {}))


def test_the_phases_of_dividemix_are_warm_up_and_mix_and_only_mix_selects() -> None:
    warm_up, mix = DIVIDEMIX.phases(DivideMixSettings(epochs=30, warmup_epochs=10))
    assert (warm_up.name, warm_up.num_epochs, warm_up.selects) == ("warmup", 10, False)
    assert (mix.name, mix.num_epochs, mix.selects) == ("mix", 20, True)
    assert mix.cost > warm_up.cost == 1


# find_method.


def test_a_method_of_the_package_is_found_by_its_name() -> None:
    for name, method in METHODS.items():
        assert find_method(name) is method


@pytest.mark.parametrize("name", ["", "magic", "dividemix.methods.dividemix.METHOD"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError) as refusal:
        find_method(name)
    line = str(refusal.value)
    assert line.startswith(f"unknown method {name!r}: the methods are dividemix, robust, cross_entropy")
    assert "package.module:OBJECT" in line
    assert "\n" not in line


@pytest.mark.parametrize("name", ["dividmix", "DivideMix"])
def test_a_name_that_is_nearly_a_methods_is_suggested(name: str) -> None:
    with pytest.raises(InputError, match=rf"^unknown method '{name}': did you mean dividemix\?$"):
        find_method(name)


FOREIGN = """
from dividemix.methods.method import EpochReport, Method

class Still(Method):
    def epoch(self, state, sets, s):
        return EpochReport({"loss": [0.0]})

STILL = Still()

class Half:
    settings = needs_trusted = double_backward = num_nets = phases = start = epoch = None

HALF = Half()
NUMBER = 3
"""


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user in the working directory."""
    name = f"methods_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(FOREIGN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def test_your_own_method_is_imported_and_trains(foreign: str) -> None:
    method, data = find_method(f"{foreign}:STILL"), TinyData()
    s = method.settings(epochs=2)
    assert s == MethodSettings(epochs=2)
    reports = list(tiny.fit(method, tiny.start(method, s, data), data, s))
    assert [(report.epoch, report.phase, report.losses) for report in reports] == [
        (1, "train", {"loss": [0.0]}),
        (2, "train", {"loss": [0.0]}),
    ]


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ("Still", "is a class: name an object of it"),
        ("HALF", "has no judge: inherit from dividemix.methods.method.Method"),
        ("NUMBER", "has no settings: inherit from dividemix.methods.method.Method"),
        ("NOTHING", "cannot be imported: AttributeError"),
    ],
)
def test_what_is_no_method_is_refused_in_one_line(foreign: str, named: str, line: str) -> None:
    with pytest.raises(InputError) as refusal:
        find_method(f"{foreign}:{named}")
    assert str(refusal.value).startswith(f"method '{foreign}:{named}' {line}")
    assert "\n" not in str(refusal.value)


def test_a_module_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"^method 'no_such_package\.module:METHOD' cannot be imported: "):
        find_method("no_such_package.module:METHOD")


# The loop: phases.


PHASES = (Phase("a", 2, selects=False), Phase("none", 0), Phase("b", 1), Phase("c", 3))


def test_the_phase_of_an_epoch_is_counted_off_by_hand() -> None:
    assert [loop.phase_at(PHASES, epoch).name for epoch in range(6)] == ["a", "a", "b", "c", "c", "c"]


@pytest.mark.parametrize("epoch", [6, 7])
def test_there_is_no_phase_after_the_last_one(epoch: int) -> None:
    with pytest.raises(ValueError, match="the phases end"):
        loop.phase_at(PHASES, epoch)


@dataclass
class Phased(Method):
    """A method with the phases above, which counts its epochs and reports what the test wants."""

    loss: float = 1.0
    needs_trusted: bool = False

    def phases(self, s: MethodSettings) -> tuple[Phase, ...]:
        """Those above."""
        return PHASES

    def start(self, state: State, sets: TrainingSets, s: MethodSettings) -> None:
        """Count from 0."""
        state.samples["epochs"] = torch.zeros(len(sets.train.labels), dtype=torch.int64)

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """Count one more."""
        assert int(state.samples["epochs"][0]) == state.epoch
        state.samples["epochs"] += 1
        return EpochReport({"loss": [self.loss]}, figures={"rate": state.learners[0].optimizer.param_groups[0]["lr"]})


def test_reports_carry_the_phase_of_their_epoch_and_whether_it_selects() -> None:
    method, s, data = Phased(), MethodSettings(epochs=6), TinyData()
    reports = list(tiny.fit(method, tiny.start(method, s, data), data, s))
    assert [(report.epoch, report.phase, report.selects) for report in reports] == [
        (1, "a", False),
        (2, "a", False),
        (3, "b", True),
        (4, "c", True),
        (5, "c", True),
        (6, "c", True),
    ]


def test_the_methods_that_use_trusted_labels_say_so() -> None:
    """Oracle: the source of each, which asks for the samples."""
    sources = {
        name: Path(str(import_module(type(one).__module__).__file__)).read_text() for name, one in METHODS.items()
    }
    asking = {name for name, source in sources.items() if "trusted_samples(" in source or "sets.trusted" in source}
    assert {name for name, one in METHODS.items() if one.uses_trusted is not None or one.needs_trusted} == asking
    for name in asking:
        assert (METHODS[name].uses_trusted or {}).keys() <= fields_of(METHODS[name].settings).keys()


def test_a_method_that_needs_trusted_labels_is_refused_without_them() -> None:
    method, s, data = Phased(needs_trusted=True), MethodSettings(epochs=6), TinyData()
    state = State.start(tiny_nets(num_nets=1), s)
    with pytest.raises(InputError, match="the method needs samples with trusted labels"):
        loop.start(method, state, TrainingSets(data), s)
    assert state.samples == {}
    loop.start(method, state, TrainingSets(data, trusted=TinyData(6)), s)
    assert state.samples.keys() == {"epochs"}


# The loop: rates, epochs, randomness, divergence.


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_every_epoch_has_the_rate_of_the_schedule(schedule: str) -> None:
    """Oracle: the two rules by hand."""
    method, data = Phased(), TinyData()
    fields: dict[str, Any] = {"lr_schedule": schedule}
    s = MethodSettings(epochs=6, lr=0.02, lr_drop_epoch=4, **fields)
    rates = [report.figures["rate"] for report in tiny.fit(method, tiny.start(method, s, data), data, s)]
    steps = [0.02] * 4 + [0.002] * 2
    cosine = [0.01 + 0.01 * math.cos(math.pi * epoch / 6) for epoch in range(6)]
    assert rates == pytest.approx(steps if schedule == "step" else cosine)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_the_epoch(loss: float) -> None:
    method, s, data = Phased(loss), MethodSettings(epochs=6), TinyData()
    state = tiny.start(method, s, data)
    with pytest.raises(
        DivergedError, match=r"^training diverged in epoch 1: the loss is not finite; try a smaller lr$"
    ):
        next(tiny.fit(method, state, data, s))
    assert state.epoch == 0


def test_a_weight_that_is_not_finite_stops_the_epoch() -> None:
    method, s, data = Phased(), MethodSettings(epochs=6), TinyData()
    state = tiny.start(method, s, data)
    epochs = tiny.fit(method, state, data, s)
    next(epochs)
    next(state.nets[0].parameters()).data[0] = math.nan
    with pytest.raises(DivergedError, match=r"epoch 2: body\.weight of net 1 is infinite or NaN"):
        next(epochs)
    assert state.epoch == 1


@pytest.mark.parametrize(("co_training", "nets"), [(False, 2), (True, 1)])
def test_other_numbers_of_nets_are_refused(co_training: bool, nets: int) -> None:
    """Two nets that should train alone would train together, and nobody would notice."""
    s, data = settings_of(co_training=co_training), TinyData()
    with pytest.raises(InputError, match=f"the state has {nets}"):
        start(s, data, nets=tiny_nets(num_nets=nets))


def test_learning_rate_drops_after_lr_drop_epoch() -> None:
    s, data = settings_of(epochs=5, lr_drop_epoch=3, lr=0.02), TinyData()
    state = start(s, data)
    epochs = fit(state, data, s)
    rates = []
    for _ in range(s.epochs):
        _, calls = record(state, epochs)
        (rate,) = {call.lr for call in calls if call.with_grad}
        rates.append(rate)
    assert rates == pytest.approx([0.02, 0.02, 0.02, 0.002, 0.002])


def test_fit_gives_one_report_after_each_epoch_and_moves_only_when_asked() -> None:
    s, data = settings_of(), TinyData()
    state = start(s, data)
    untouched = [weights_of(net) for net in state.nets]
    epochs = fit(state, data, s)
    assert all(same(weights_of(net), then) for net, then in zip(state.nets, untouched, strict=True))
    for number in range(1, s.epochs + 1):
        report = next(epochs)
        assert report.epoch == state.epoch == number
        assert report.phase == ("warmup" if number <= s.warmup_epochs else "mix")
        assert report.selects == (report.phase == "mix")
    assert next(epochs, None) is None
    assert list(fit(state, data, s)) == []


def test_fit_continues_from_the_epoch_of_the_state_as_if_it_had_not_stopped() -> None:
    s, data = settings_of(), TinyData()
    straight, halted = start(s, data), start(s, data)
    expected = [report.losses for report in fit(straight, data, s)]
    epochs = fit(halted, data, s)
    losses = [next(epochs).losses for _ in range(3)]
    assert isinstance(epochs, Generator)
    epochs.close()
    later = list(fit(halted, data, s))
    assert [report.epoch for report in later] == [4, 5, 6]
    assert losses + [report.losses for report in later] == expected
    assert all(same(weights_of(a), weights_of(b)) for a, b in zip(straight.nets, halted.nets, strict=True))


def test_the_global_generator_is_neither_read_nor_moved() -> None:
    s, data = settings_of(), TinyData()
    results = []
    for seed in (1, 2):
        state = start(s, data, nets=tiny_nets(dropout=0.3))
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        results.append([report.losses for report in fit(state, data, s)])
        assert torch.equal(torch.get_rng_state(), before)
    assert results[0] == results[1]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_bad_pixels_stop_the_first_epoch(value: float) -> None:
    s, data = settings_of(), TinyData()
    data.images[5] = value
    state = start(s, data)
    with pytest.raises(DivergedError, match="epoch 1") as stop:
        next(fit(state, data, s))
    assert "\n" not in str(stop.value)
    assert state.epoch == 0


class Astray(nn.Module):
    """A net whose logits are NaN while its weights are finite."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """NaN everywhere."""
        logits: Tensor = self.net(images)
        return math.nan * logits


@pytest.mark.parametrize("scale_loss", [False, True])
def test_bad_losses_stop_warm_up(scale_loss: bool) -> None:
    """A loss that is scaled skips its bad steps, so the weights stay finite: the loss itself must be checked."""
    s, data = settings_of(), TinyData()
    state = tiny.start(DIVIDEMIX, s, data, nets=[Astray(net) for net in tiny_nets()], scale_loss=scale_loss)
    with pytest.raises(DivergedError, match="epoch 1"):
        next(fit(state, data, s))


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_a_rate_far_too_high_stops_with_a_clear_line() -> None:
    s, data = settings_of(lr=1e29, weight_decay=1e29), TinyData()  # of float64
    state = start(s, data)
    with pytest.raises(DivergedError, match=r"try a smaller lr$"):
        list(fit(state, data, s))
