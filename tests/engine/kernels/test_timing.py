"""Measuring: the oracles are the net's layers, counted by hand, and a clock that is set by hand."""

from collections.abc import Callable
from itertools import chain

import pytest
import torch
from convnets import needs_compiler, resnet
from torch import nn

from dividemix.engine.acceleration import autocast_net
from dividemix.engine.kernels import timing
from dividemix.engine.kernels.timing import suitable_layers, time_kernels

Clock = Callable[..., list[int]]


def layer(channels: int, side: int) -> tuple[torch.Size, torch.Size]:
    return torch.Size([channels, channels, 3, 3]), torch.Size([channels, side, side])


def test_the_layers_are_those_that_a_forward_calls() -> None:
    expected = [layer(16, 16)] * 4 + [layer(32, 8)] * 3 + [layer(64, 4)] * 3 + [layer(128, 2)] * 3
    net = resnet()
    assert suitable_layers(net, (16, 16, 3)) == expected
    autocast_net(net, torch.device("cpu"), torch.bfloat16)
    assert suitable_layers(net, (16, 16, 3)) == []
    assert suitable_layers(nn.Linear(4, 2), (4,)) == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Seconds that each call takes in turn, torch's and ours alternating; and how many images it had."""
    num_rows = []

    def put(*seconds: float) -> list[int]:
        left = iter(seconds)

        def measure(work: object, x: torch.Tensor, weight: torch.Tensor) -> float:
            num_rows.append(len(x))
            return next(left)

        monkeypatch.setattr(timing, "_seconds", measure)
        return num_rows

    return put


def test_medians_of_alternating_rounds_are_summed_over_all_layers(clock: Clock) -> None:
    """The first round is not counted, nor is an outlier. Seconds are those of a batch in all layers of a shape."""
    torchs, owns = [90, 1, 2, 3], [90, 7, 1, 1]
    small = list(chain(*zip(torchs, owns, strict=True)))
    clock(*small, *(10 * value for value in small))
    seconds = time_kernels([layer(16, 8), layer(32, 4), layer(16, 8)], batch_size=4)
    assert (seconds.torch, seconds.own) == (2 * 2 + 20, 2 * 1 + 10)


def test_a_large_layer_is_measured_on_a_part_of_the_batch(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 64 channels at side 32 takes 226 million operations an image, so three are enough for a thread."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    num_rows = clock(*[1.0] * 8)
    seconds = time_kernels([layer(64, 32)], batch_size=120)
    assert set(num_rows) == {3}
    assert (seconds.torch, seconds.own) == (40, 40)


@needs_compiler
def test_a_real_measurement_gives_seconds() -> None:
    seconds = time_kernels([layer(16, 4)], batch_size=2)
    assert 0 < seconds.torch < 10
    assert 0 < seconds.own < 10
