"""The start of a training: the oracle is which convolutions are our own, and which forwards are compiled."""

import dataclasses
import os
import shlex
import shutil
import sys
from typing import Any, Literal

import pytest
import torch
from tiny import NUM_CLASSES, TinyData

from dividemix.engine.kernels.convolution import OwnConv2d
from dividemix.errors import InputError
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMix, DivideMixSettings
from dividemix.methods.method import TrainingSets
from dividemix.planning.prepare import start, with_kernels

CONFIG = DivideMixSettings(net="small_cnn", net_width=16, epochs=2, warmup_epochs=1, compile="never", device="cpu")

needs_compiler = pytest.mark.skipif(
    shutil.which(shlex.split(os.environ.get("CXX") or "g++")[0]) is None or not sys.platform.startswith("linux"),
    reason="there is no C++ compiler, or no Linux",
)


SHAPE: dict[str, Any] = {"num_classes": NUM_CLASSES, "shape": (8, 8, 1), "device": torch.device("cpu")}


def started(kernels: Literal["auto", "torch", "own"], *, to_train: bool = True) -> tuple[list[int], bool]:
    """The number of own convolutions of each net, and whether a forward was replaced."""
    s = dataclasses.replace(CONFIG, kernels=kernels)
    nets = start("dividemix", s, TrainingSets(TinyData()), **SHAPE, to_train=to_train).nets
    return [sum(isinstance(layer, OwnConv2d) for layer in net.modules()) for net in nets], "forward" in vars(nets[0])


@needs_compiler
def test_own_kernels_need_no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert started("own") == ([2, 2], False)
    assert started("torch") == ([0, 0], False)


def test_a_small_training_is_neither_measured_nor_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dividemix.engine.kernels.choice.time_kernels", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr("dividemix.engine.kernels.choice.load_library", lambda: pytest.fail("compiled"))
    assert with_kernels(METHODS["dividemix"], CONFIG, 40, **SHAPE).kernels == "torch"
    assert started("auto") == ([0, 0], False)


def test_a_net_that_is_not_trained_has_torchs_kernels_and_is_not_compiled() -> None:
    assert started("own", to_train=False) == ([0, 0], False)


def test_a_net_with_synchronised_batchnorm_is_not_compiled() -> None:
    s = dataclasses.replace(CONFIG, sync_batchnorm=True, compile="always")
    with pytest.raises(InputError, match="compile is always: with sync_batchnorm networks cannot be compiled"):
        start("dividemix", s, TrainingSets(TinyData()), **SHAPE)


def test_a_method_with_second_derivatives_has_torchs_kernels() -> None:
    class Doubly(DivideMix):
        double_backward = True

    assert with_kernels(Doubly(), CONFIG, 40, **SHAPE).kernels == "torch"
    with pytest.raises(InputError, match="second derivatives"):
        with_kernels(Doubly(), dataclasses.replace(CONFIG, kernels="own"), 40, **SHAPE)
