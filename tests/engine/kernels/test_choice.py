"""The choice of kernels: the oracles are the rules in words, made-up measurements, and the net with torch's kernels."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
import torch
from convnets import assert_close, gradients, needs_compiler, own_convolutions, resnet
from torch import nn

from dividemix.engine.acceleration import autocast_net, compile_net
from dividemix.engine.kernels import choice as module
from dividemix.engine.kernels.choice import KernelChoice, choose_kernels, use_own_kernels
from dividemix.engine.kernels.library import load_library
from dividemix.engine.kernels.timing import KernelSeconds
from dividemix.errors import CompilationWarning, InputError

IMAGE, BATCH = (16, 16, 3), 8

Measured = Callable[[float, float], KernelSeconds]
CompiledBy = Callable[[str], None]
TorchCompiles = Callable[[Callable[[torch.Tensor], torch.Tensor] | None], None]


@pytest.fixture(params=["AVX2", "AVX512"])
def supported(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU that is supported, whatever the tests run on: the sums are right on all of them."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
    monkeypatch.setattr("sys.platform", "linux")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Put seconds in place of a measurement."""

    def put(seconds_torch: float, seconds_own: float) -> KernelSeconds:
        seconds = KernelSeconds(torch=seconds_torch, own=seconds_own)
        monkeypatch.setattr(module, "time_kernels", lambda layers, batch_size: seconds)
        return seconds

    return put


@pytest.fixture
def compiled_by(monkeypatch: pytest.MonkeyPatch) -> Iterator[CompiledBy]:
    """Let another program compile the C++."""

    def put(program: str) -> None:
        load_library.cache_clear()
        monkeypatch.setenv("CXX", program)

    yield put
    load_library.cache_clear()


@pytest.fixture
def torch_compiles(monkeypatch: pytest.MonkeyPatch) -> TorchCompiles:
    """Let torch compile as this function does."""
    return lambda compiled: monkeypatch.setattr(torch, "compile", lambda forward, **_: compiled or forward)


@pytest.fixture
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_anyway() -> None:
        pytest.fail("the C++ was compiled")

    monkeypatch.setattr(module, "load_library", compile_anyway)


def broken(images: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no compiler")


def choose(word: str, net: nn.Module, **options: bool) -> KernelChoice:
    return choose_kernels(word, net, IMAGE, BATCH, **options)


@needs_compiler
def test_each_word_gives_its_kernels(supported: None, measured: Measured) -> None:
    seconds = measured(2.0, 1.0)
    assert choose("torch", resnet()) == KernelChoice("torch")
    assert choose("own", resnet()) == KernelChoice("own")
    assert choose("auto", resnet()) == KernelChoice("own", seconds)


@needs_compiler
@pytest.mark.parametrize(
    ("own", "kernels"), [(0.5, "own"), (0.89, "own"), (0.91, "torch"), (1.0, "torch"), (3.0, "torch")]
)
def test_auto_wants_a_tenth_less_time_and_says_what_was_measured(
    supported: None, measured: Measured, own: float, kernels: Literal["torch", "own"]
) -> None:
    seconds = measured(1.0, own)
    assert choose("auto", resnet()) == KernelChoice(kernels, seconds)


def test_an_unknown_word_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^kernels is 'fast': it must be auto, torch or own$"):
        choose("fast", resnet())


@needs_compiler
@pytest.mark.parametrize("word", ["torch", "own", "auto"])
def test_choosing_changes_nothing(supported: None, word: str) -> None:
    """Neither the net nor the random numbers that come next; this one really measures."""
    net = resnet().train()
    before, state = torch.get_rng_state(), copy.deepcopy(net.state_dict())
    choose(word, net)
    assert torch.equal(torch.get_rng_state(), before)
    assert not own_convolutions(net)
    assert all(layer.training and not layer._forward_pre_hooks for layer in net.modules())
    assert all(torch.equal(tensor, state[name]) for name, tensor in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())


@pytest.mark.parametrize("word", ["torch", "auto"])
def test_nothing_is_compiled_where_it_is_not_worth_it(supported: None, nothing_is_compiled: None, word: str) -> None:
    assert choose(word, resnet(), worth_measuring=False) == KernelChoice("torch")


@pytest.mark.parametrize("capability", ["DEFAULT", "NO AVX", "SVE256"])
def test_other_processors_have_torchs(
    monkeypatch: pytest.MonkeyPatch, nothing_is_compiled: None, capability: str
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert choose("auto", resnet()) == KernelChoice("torch")
    with pytest.raises(InputError, match=r"needs Linux and an x86 CPU with AVX2 or AVX-512: use torch$"):
        choose("own", resnet())


def test_other_systems_have_torchs(supported: None, monkeypatch: pytest.MonkeyPatch, nothing_is_compiled: None) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert choose("auto", resnet()) == KernelChoice("torch")
    with pytest.raises(InputError, match="needs Linux"):
        choose("own", resnet())


def in_bfloat16() -> nn.Module:
    net = resnet()
    autocast_net(net, torch.device("cpu"), torch.bfloat16)
    return net


def narrow() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.ReLU())


@pytest.mark.parametrize("make", [narrow, in_bfloat16])
def test_a_net_in_which_nothing_suits_has_torchs(
    supported: None, nothing_is_compiled: None, make: Callable[[], nn.Module]
) -> None:
    assert choose("auto", make()) == KernelChoice("torch")
    with pytest.raises(InputError, match=r"needs a net with 3 x 3 convolutions of .*: use torch$"):
        choose("own", make())


def test_no_compiler_is_silent_for_auto_and_an_error_for_own(supported: None, compiled_by: CompiledBy) -> None:
    compiled_by("no-such-compiler")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose("auto", resnet()) == KernelChoice("torch")
    with pytest.raises(InputError, match=r"No such file or directory: 'no-such-compiler'\): install g\+\+") as caught:
        choose("own", resnet())
    assert "\n" not in str(caught.value)


def test_a_compiler_that_fails_leaves_torchs_kernels_and_says_so(
    supported: None, compiled_by: CompiledBy, tmp_path: Path
) -> None:
    program = tmp_path / "compiler"
    program.write_text("#!/bin/sh\nprintf 'one line\\nmany more lines' >&2\nexit 1\n")
    program.chmod(0o700)
    compiled_by(str(program))
    with pytest.warns(
        CompilationWarning, match=r"torch's are used \(.*compiler cannot compile .*: one line\)$"
    ) as caught:
        assert choose("auto", resnet()) == KernelChoice("torch")
    assert len(caught) == 1
    with pytest.raises(InputError, match=r"cannot be compiled \(.*: one line\): install") as refused:
        choose("own", resnet())
    assert "\n" not in str(refused.value)


def test_kernels_that_cannot_be_compiled_leave_the_net_as_it_was(compiled_by: CompiledBy) -> None:
    compiled_by("false")
    net = resnet()
    with pytest.raises(OSError, match="false cannot compile"):
        use_own_kernels(net)
    assert not own_convolutions(net)


def test_no_compiler_at_all_is_one_warning(
    supported: None, compiled_by: CompiledBy, torch_compiles: TorchCompiles
) -> None:
    compiled_by("no-such-compiler")
    torch_compiles(broken)
    net, images = resnet().eval(), torch.randn(2, 3, 16, 16)
    expected = net(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose("auto", net) == KernelChoice("torch")
        compile_net(net)
    with pytest.warns(CompilationWarning, match="continues without it") as caught:
        logits = net(images)
    assert torch.equal(logits, expected)
    assert len(caught) == 1


@needs_compiler
def test_a_net_that_torch_cannot_compile_is_as_it_was(compiled_by: CompiledBy, torch_compiles: TorchCompiles) -> None:
    compiled_by(os.environ.get("CXX", "g++"))
    torch_compiles(broken)
    net, images = resnet(), torch.randn(2, 3, 16, 16)
    other = copy.deepcopy(net)
    use_own_kernels(net)
    compile_net(net)
    assert len(own_convolutions(net)) == 13
    with pytest.warns(CompilationWarning, match="continues without it") as caught:
        ours = gradients(net, images)
    assert len(caught) == 1
    assert not own_convolutions(net)
    for one, theirs in zip(ours, gradients(other, images), strict=True):
        assert torch.equal(one, theirs)


@needs_compiler
def test_a_step_without_compilation_is_torchs(supported: None) -> None:
    """One step of training on an uncompiled net: the weights afterwards are torch's, within rounding."""
    nets, images = [resnet(), resnet()], torch.randn(4, 3, 16, 16)
    assert choose("own", nets[0]).kernels == "own"
    use_own_kernels(nets[0])
    for net in nets:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        net(images).square().sum().backward()
        optimizer.step()
    assert "forward" not in vars(nets[0])
    assert_close(*([weight.detach() for weight in net.parameters()] for net in nets))
