"""What every method has to pass: it continues to the bit wherever it is stopped, and it trains on odd data."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import tiny
import torch
from tiny import NUM_CLASSES, TinyData, copied, tiny_nets

from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning
from dividemix.methods import loop
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets

SHORT: dict[str, Any] = {"epochs": 8, "batch_size": 4, "lr": 0.05, "lr_drop_epoch": 6, "seed": 3}


def started(method: Method, s: MethodSettings, sets: TrainingSets, *, dropout: float = 0.0) -> State:
    """A state of tiny nets before the first epoch."""
    state = State.start(tiny_nets(dropout=dropout, num_nets=method.num_nets(s)), s)
    loop.start(method, state, sets, s)
    return state


def facts(report: EpochReport) -> tuple[Any, ...]:
    """What two equal trainings report alike."""
    return report.epoch, report.phase, dict(report.losses), dict(report.figures)


def assert_resumes(method: Method, s: MethodSettings, sets: TrainingSets | None = None) -> State:
    """Stopped after any epoch, saved and loaded, it ends with the bits of the straight run, which is returned."""
    sets = sets or TrainingSets(TinyData())
    straight = started(method, s, sets, dropout=0.3)
    expected, saved = [], [copied(straight.tensors())]
    for report in loop.fit(method, straight, sets, s):
        expected.append(facts(report))
        saved.append(copied(straight.tensors()))
    assert len(expected) == s.epochs
    for epoch, tensors in enumerate(saved[:-1]):
        resumed = started(method, s, sets, dropout=0.3)
        torch.manual_seed(epoch)  # another process's global generator
        resumed.load(tensors, epoch)
        assert [facts(report) for report in loop.fit(method, resumed, sets, s)] == expected[epoch:], epoch
        at_end = resumed.tensors()
        assert at_end.keys() == saved[-1].keys()
        for name, tensor in saved[-1].items():
            assert torch.equal(at_end[name], tensor), (epoch, name)
    return straight


def odd_data() -> list[TinyData]:
    """A class with one sample, a class without any, one class alone, data smaller than a batch, images all alike."""
    lonely, absent, alone, alike = TinyData(), TinyData(), TinyData(5), TinyData()
    lonely.labels[lonely.labels == NUM_CLASSES - 1] = 0
    lonely.labels[7] = NUM_CLASSES - 1
    absent.labels[absent.labels == NUM_CLASSES - 1] = 0
    alone.labels[:] = 1
    alike.images[:] = alike.images[0]
    return [lonely, absent, alone, TinyData(3), alike]


def assert_trains_on_odd_data(method: Method, *, with_trusted: bool = False, **fields: Any) -> None:
    """It trains and judges whatever the data and however few the epochs; every number is finite."""
    odd_settings: list[dict[str, Any]] = [{"batch_size": 64}, {"balanced_batches": 2}, {"epochs": 1}, {"epochs": 2}]
    cases: list[tuple[TinyData, dict[str, Any]]] = [(data, {}) for data in odd_data()]
    cases += [(data, changes) for changes in odd_settings for data in (TinyData(), TinyData(5))]
    for data, changes in cases:
        s = method.settings(**{**SHORT, **fields, **changes})
        sets = TrainingSets(data, TinyData(5, seed=1, noise=0.0) if with_trusted else None)
        state = started(method, s, sets)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDivisionWarning)
            reports = list(loop.fit(method, state, sets, s))
            judged = method.judge(state, data, s)
        assert len(reports) == s.epochs
        for report in reports:
            assert all(math.isfinite(value) for values in report.losses.values() for value in values)
            assert all(math.isfinite(value) for value in report.figures.values())
        tiny.assert_finite(state)
        assert judged.pred_probs.shape == (len(data.labels), NUM_CLASSES)
        assert judged.pred_probs.isfinite().all()
        assert judged.clean_prob.shape == judged.losses.shape == (method.num_nets(s), len(data.labels))
        assert judged.clean_prob.dtype == judged.losses.dtype == torch.float64
        assert ((judged.clean_prob >= 0) & (judged.clean_prob <= 1)).all()


def assert_phases_add_up(method: Method, **fields: Any) -> None:
    """The phases have all epochs, however few, and an epoch of the last one may be kept."""
    for epochs in range(1, 400):
        phases = method.phases(method.settings(**{"epochs": epochs, **fields}))
        assert sum(phase.num_epochs for phase in phases) == epochs, f"{phases}: must have {epochs} epochs together"
        assert all(phase.num_epochs >= 0 for phase in phases), f"{phases}: a phase has a negative number of epochs"
        assert len({phase.name for phase in phases}) == len(phases), f"{phases}: two phases have the same name"
        assert phases[-1].selects, f"{phases}: no epoch of the last phase could be kept"


def assert_published_fit(method: Method, published: Mapping[str, Mapping[str, Any]]) -> None:
    """Every published setting is one of the method, with a value that is allowed."""
    assert published.keys() <= {"cifar10", "cifar100", "clothing1m", "webvision"}
    for fields in published.values():
        method.settings(**fields)
