"""Weights of somebody else's file. Oracle: the tensors that were saved, compared bit for bit with those in the net."""

import argparse
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from dividemix.errors import InputError
from dividemix.nets.weights import WeightsReport, load_weights


class Net(nn.Module):
    """Small, with the parts that matter: a plain layer, nested ones with BatchNorm, and a head named fc."""

    def __init__(self, num_classes: int = 3, in_channels: int = 3, num_blocks: int = 2):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 4, 3, bias=False)
        self.layer1 = nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)) for _ in range(num_blocks)))
        self.fc = nn.Linear(4, num_classes)


COUNTERS = {f"layer1.{i}.1.num_batches_tracked" for i in range(2)}
HEAD = {"fc.weight", "fc.bias"}


def net_of(seed: int, **arguments: int) -> Net:
    """A net with weights, statistics and counters of its own."""
    torch.manual_seed(seed)
    net = Net(**arguments)
    for tensor in net.state_dict().values():
        tensor.copy_(torch.rand(tensor.shape) + 0.5 if tensor.is_floating_point() else torch.tensor(seed))
    return net


def tensors_of(net: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def save(content: object, path: Path) -> Path:
    """The content in a file, as its name's ending says."""
    if path.suffix == ".safetensors":
        assert isinstance(content, dict)
        safetensors.torch.save_file(content, path)
    else:
        torch.save(content, path)
    return path


def check_taken(net: nn.Module, source: Mapping[str, Tensor], names: set[str], before: Mapping[str, Tensor]) -> None:
    """These tensors are the source's, and all others as they were before."""
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, source[name] if name in names else before[name]), name


def refused(net: nn.Module, path: Path) -> str:
    """The one line with which the file is refused, the net as it was."""
    before = tensors_of(net)
    with pytest.raises(InputError) as refusal:
        load_weights(net, path)
    check_taken(net, {}, set(), before)
    line = str(refusal.value)
    assert "\n" not in line
    assert str(path) in line
    return line


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth", "w.pt", "w.pth.tar"])
def test_a_file_of_the_same_net_is_taken_whole(tmp_path: Path, file: str) -> None:
    source, net = tensors_of(net_of(1)), net_of(2)
    path = save(source, tmp_path / file)
    report = load_weights(net, path)
    check_taken(net, source, set(source), {})
    assert report == WeightsReport(path=path, matched=17, head="fc", head_replaced=False, ignored=(), prefix="")
    assert str(report) == f"{path}: 17 tensors matched"


@pytest.mark.parametrize("wrapper", ["state_dict", "model", "model_state_dict"])
def test_weights_in_a_larger_file_are_found(tmp_path: Path, wrapper: str) -> None:
    source, net = tensors_of(net_of(1)), net_of(2)
    content = {"epoch": 7, "arch": "net", wrapper: source, "optimizer": {"state": {0: torch.ones(3)}}}
    assert load_weights(net, save(content, tmp_path / "w.pth")).matched == 17
    check_taken(net, source, set(source), {})


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("prefix", ["module.", "module.pre.", "backbone.", "model.layer1.0."])
def test_a_prefix_is_found_and_what_stands_outside_is_named(tmp_path: Path, file: str, prefix: str) -> None:
    source, net = tensors_of(net_of(1)), net_of(2)
    content = {prefix + name: tensor for name, tensor in source.items()} | {"projector.weight": torch.ones(2, 2)}
    report = load_weights(net, save(content, tmp_path / file))
    check_taken(net, source, set(source), {})
    assert (report.prefix, report.matched, report.ignored) == (prefix, 17, ("projector.weight",))
    assert str(report).endswith(f"{file}: 17 tensors matched under {prefix!r}; 1 (projector.weight) not used")


@pytest.mark.parametrize(
    "head",
    [
        {"fc.weight": torch.ones(1000, 4), "fc.bias": torch.ones(1000)},
        {},
        {"fc.weight": torch.ones(3, 4)},
        {"fc.0.weight": torch.ones(4, 4), "fc.0.bias": torch.ones(4), "fc.2.weight": torch.ones(3, 4)},
        {"classif.weight": torch.ones(9, 4), "classif.bias": torch.ones(9)},
    ],
    ids=["classes", "none", "no bias", "of two layers", "other name"],
)
@pytest.mark.parametrize("prefix", ["", "module.pre."])
def test_another_head_leaves_the_nets_own_as_it_is(tmp_path: Path, head: dict[str, Tensor], prefix: str) -> None:
    source, net = tensors_of(net_of(1)), net_of(2)
    before = tensors_of(net)
    body = {name: tensor for name, tensor in source.items() if name not in HEAD}
    content = {prefix + name: tensor for name, tensor in (body | head).items()}
    report = load_weights(net, save(content, tmp_path / "w.pth"))
    check_taken(net, source, set(body), before)
    assert report.head_replaced
    assert report.matched == len(body) == 15
    assert report.ignored == tuple(prefix + name for name in head)
    assert "; the head 'fc' is new" in str(report)


def test_counters_may_be_missing_or_too_many(tmp_path: Path) -> None:
    """Files older than the counters have none; a frozen BatchNorm may have kept one that the net has not."""
    source, net = tensors_of(net_of(1)), net_of(2)
    before = tensors_of(net)
    content = {name: tensor for name, tensor in source.items() if name not in COUNTERS}
    report = load_weights(net, save(content, tmp_path / "w.pth"))
    check_taken(net, source, set(content), before)
    assert (report.matched, report.ignored) == (15, ())

    extra = source | {"layer1.0.0.num_batches_tracked": torch.tensor(3)}
    report = load_weights(net, save(extra, tmp_path / "w.pth"))
    assert (report.matched, report.ignored) == (17, ("layer1.0.0.num_batches_tracked",))


def test_numbers_become_the_nets_type_and_layout(tmp_path: Path) -> None:
    source, net = tensors_of(net_of(1)), net_of(2)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in source.items()}
    load_weights(net, save(half, tmp_path / "w.safetensors"))
    assert torch.equal(net.conv1.weight, source["conv1.weight"].half().float())
    assert net.conv1.weight.is_contiguous(memory_format=torch.channels_last)


def test_a_net_without_a_linear_layer_has_no_head(tmp_path: Path) -> None:
    source, net = nn.Sequential(nn.Conv2d(3, 4, 1)), nn.Sequential(nn.Conv2d(3, 4, 1))
    report = load_weights(net, save(source.state_dict(), tmp_path / "w.pth"))
    assert (report.matched, report.head, report.head_replaced) == (2, "", False)
    assert "0.weight 5 x 3 x 1 x 1 where the net has 4 x 3 x 1 x 1" in refused(
        net, save(nn.Sequential(nn.Conv2d(3, 5, 1)).state_dict(), tmp_path / "v.pth")
    )


@pytest.mark.parametrize("prefix", ["", "module."])
def test_a_file_that_lacks_tensors_is_refused(tmp_path: Path, prefix: str) -> None:
    content = {prefix + name: tensor for name, tensor in tensors_of(net_of(1, num_blocks=1)).items()}
    line = refused(net_of(2), save(content, tmp_path / "w.pth"))
    assert (
        "do not fit the net Net: the file lacks 6 (layer1.1.0.weight, layer1.1.0.bias, layer1.1.1.weight, ...)" in line
    )
    assert "beyond" not in line


def test_a_file_of_a_deeper_net_is_refused(tmp_path: Path) -> None:
    line = refused(net_of(2), save(tensors_of(net_of(1, num_blocks=3)), tmp_path / "w.pth"))
    assert "the file has beyond the net 6 (layer1.2.0.weight, layer1.2.0.bias, layer1.2.1.weight, ...)" in line
    assert "lacks" not in line


def test_a_tensor_of_another_shape_is_refused(tmp_path: Path) -> None:
    line = refused(net_of(2), save(tensors_of(net_of(1, in_channels=1)), tmp_path / "w.pth"))
    assert "has in another shape 1 (conv1.weight 4 x 1 x 3 x 3 where the net has 4 x 3 x 3 x 3)" in line


def test_a_file_that_fits_twice_is_refused(tmp_path: Path) -> None:
    """As of a teacher and its student: to take either would be a guess."""
    content = {k + name: tensor for k in ("q.", "k.") for name, tensor in tensors_of(net_of(1)).items()}
    assert "under 'q.' and 'k.'" in refused(net_of(2), save(content, tmp_path / "w.pth"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"a.b": torch.ones(1), "c": torch.ones(1)}, "no tensor named as in the net: the file has 2 (a.b, c)"),
        ({"epoch": 3, 5: torch.ones(2)}, "the file has none"),
        ({}, "the file has none"),
        (torch.ones(3), "hold one Tensor and no named tensors"),
        ([torch.ones(3)], "hold one list and no named tensors"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: Any, says: str) -> None:
    assert says in refused(net_of(2), save(content, tmp_path / "w.pth"))


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth"])
def test_a_damaged_file_is_refused(tmp_path: Path, file: str) -> None:
    """Cut short anywhere, emptied, or something else under that name."""
    net, path = net_of(2), tmp_path / file
    whole = save(tensors_of(net_of(1)), path).read_bytes()
    pieces = [whole[: len(whole) * i // 12] for i in range(12)] + [whole[:-1]]
    for content in (*pieces, b"Not Found\n", b"\x00" * 500, b"\x80\x02}q\x00", bytes(range(256))):
        path.write_bytes(content)
        assert "damaged" in refused(net, path)


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth"])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, file: str) -> None:
    assert "cannot read weights" in refused(net_of(2), tmp_path / file)
    (tmp_path / file).mkdir()
    assert "cannot read weights" in refused(net_of(2), tmp_path / file)


class Intruder:
    """A pickle of it makes a directory as it is loaded."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    content = {"state_dict": tensors_of(net_of(1)), "extra": Intruder(tmp_path / "made")}
    for suffix in (".pth", ".safetensors"):
        torch.save(content, tmp_path / f"w{suffix}")
        (tmp_path / f"v{suffix}").write_bytes(pickle.dumps(content, protocol=2))
        for stem in "wv":
            refused(net_of(2), tmp_path / f"{stem}{suffix}")
    assert "save the state_dict alone" in refused(net_of(2), tmp_path / "w.pth")
    assert not (tmp_path / "made").exists()
    pickle.loads((tmp_path / "v.pth").read_bytes())  # the trap is a trap
    assert (tmp_path / "made").exists()


def test_options_kept_beside_the_weights_are_refused_with_the_way_out(tmp_path: Path) -> None:
    content = {"state_dict": tensors_of(net_of(1)), "args": argparse.Namespace(lr=0.1)}
    assert "save the state_dict alone" in refused(net_of(2), save(content, tmp_path / "w.pth"))
