"""Acceleration: the oracles are the net as it was, and a training that was never stopped."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from toys import SETTINGS, save_toy, settled

from dividemix.engine.acceleration import autocast_net, compile_net, copied, worth_compiling
from dividemix.engine.device import choose_dtype
from dividemix.engine.kernels.choice import KernelChoice
from dividemix.errors import CompilationWarning
from dividemix.planning import prepare
from dividemix.planning.job import Job
from dividemix.runs.run import Run

CPU = torch.device("cpu")


def small_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 5))


def test_a_compiler_that_fails_means_eager_and_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(forward: object, **_: object) -> Callable[[torch.Tensor], torch.Tensor]:
        def compiled(images: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no C++ compiler\nand many more lines")

        return compiled

    monkeypatch.setattr(torch, "compile", broken)
    net, images = small_net().eval(), torch.randn(3, 3, 8, 8)
    expected = net(images)
    compile_net(net)
    with pytest.warns(CompilationWarning, match=r"continues without it \(RuntimeError: no C\+\+ compiler\)$"):
        first = net(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = net(images)
    assert torch.equal(first, expected)
    assert torch.equal(second, expected)
    assert net.state_dict().keys() == small_net().state_dict().keys()


def test_out_of_memory_is_no_failure_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(images: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(torch, "compile", lambda forward, **_: full)
    net = small_net()
    compile_net(net)
    with pytest.raises(torch.OutOfMemoryError):
        net(torch.randn(3, 3, 8, 8))


def test_compiling_is_worth_it_by_the_arithmetic_alone() -> None:
    """The convolution takes 2 x 8 x 8 x 4 x 27 operations an image, the linear layer 2 x 256 x 5."""
    net, per_image = small_net().train(), 2 * 8 * 8 * 4 * 27 + 2 * 256 * 5
    assert worth_compiling(net, (8, 8, 3), 1.01e14 / per_image, CPU)
    assert not worth_compiling(net, (8, 8, 3), 0.99e14 / per_image, CPU)
    assert not worth_compiling(net, (8, 8, 3), 1e20, torch.device("meta"))
    assert net.training


def test_a_shorter_type_stays_close_and_gives_float32() -> None:
    net, images = small_net(), torch.randn(3, 3, 8, 8)
    expected = net(images)
    autocast_net(net, CPU, torch.bfloat16)
    logits = net(images)
    assert logits.dtype == torch.float32
    assert not torch.equal(logits, expected)
    torch.testing.assert_close(logits, expected, rtol=0.05, atol=0.05)


def test_a_copy_computes_in_the_same_type_with_weights_of_its_own() -> None:
    net, images = small_net(), torch.randn(3, 3, 8, 8)
    assert torch.equal(copied(net)(images), net(images))
    autocast_net(net, CPU, torch.bfloat16)
    copy, before = copied(net), net(images)
    assert torch.equal(copy(images), before)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(2)
    assert torch.equal(copied(copy)(images), before)
    assert not torch.equal(net(images), before)


def test_precision_is_float32_on_a_cpu_unless_asked() -> None:
    assert choose_dtype("auto", CPU) == torch.float32
    assert choose_dtype("bfloat16", CPU) == torch.bfloat16
    assert choose_dtype("float16", CPU) == torch.float16


def job(folder: Path, **fields: object) -> Job:
    return Job.of(SETTINGS | {"data": str(save_toy(folder)), "noise": "symmetric:0.4"} | fields)


def test_a_training_in_bfloat16_ends_with_finite_float32_weights(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", job(tmp_path, precision="bfloat16"))
    assert len(list(run.epochs())) == 4
    weights = [tensor for net in run.state.nets for tensor in net.parameters()]
    assert all(weight.dtype == torch.float32 and weight.isfinite().all() for weight in weights)


@pytest.mark.slow
def test_a_compiled_training_resumes_to_the_same_bytes_in_few_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond eight graphs of one function torch gives up compiling it: two nets have to share theirs.

    At this width our own kernels compute two of three convolutions.
    """
    monkeypatch.setattr(prepare, "choose_kernels", lambda *_, **__: KernelChoice("own"))
    compiled = job(tmp_path, compile="always", net_width=16)
    straight, stopped = (Run.create(tmp_path / name, compiled) for name in ("straight", "stopped"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompilationWarning)
        straight.train()
        epochs = stopped.epochs()
        next(epochs), next(epochs)
        epochs.close()
        Run.load(tmp_path / "stopped").train()
    assert settled(tmp_path / "stopped") == settled(tmp_path / "straight")
    counters = torch._dynamo.utils.counters
    assert 0 < counters["stats"]["unique_graphs"] <= 8
