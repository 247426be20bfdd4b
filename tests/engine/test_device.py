"""Choosing the device against torch's own answers, some of them put in its mouth."""

import pytest
import torch

from dividemix.engine.device import choose_device
from dividemix.errors import InputError


def test_a_name_gives_that_device() -> None:
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(False, False, "cpu"), (False, True, "cpu"), (True, False, "cuda"), (True, True, "cuda")],
)
def test_auto_takes_a_cuda_gpu_where_there_is_one_and_never_mps(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == torch.device(expected)


@pytest.mark.parametrize("name", ["cuda:99", "xla"])
def test_a_device_that_cannot_train_here_is_an_error_of_one_line(name: str) -> None:
    with pytest.raises(InputError, match="try auto or cpu") as caught:
        choose_device(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["gpu", "", "cuda:-1", "cpu cpu", "Auto", "meta"])
def test_a_name_of_no_device_is_an_error_with_the_names(name: str) -> None:
    with pytest.raises(InputError) as caught:
        choose_device(name)
    assert str(caught.value) == f"unknown device {name!r}: use auto, cpu, cuda, cuda:1 or mps"
