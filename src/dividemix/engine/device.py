"""The device that a training runs on, and the floating-point type that suits it."""

import re

import torch

from dividemix.engine import processes
from dividemix.errors import InputError, shown


def choose_device(name: str) -> torch.device:
    """The device of that name, or InputError; "auto" is a CUDA GPU if the machine has one, or else the CPU.

    Of several processes each has its own GPU. "auto" never chooses MPS, which lacks the float64 of some methods.
    """
    if not isinstance(name, str):
        raise InputError(f"device is {shown(name)}: it must be text, such as auto or cpu")
    if name in ("auto", "cuda") and torch.cuda.is_available():
        gpu = processes.own_gpu()
        return torch.device("cuda") if gpu is None else torch.device("cuda", gpu)
    try:
        device = torch.device("cpu" if name == "auto" else name)
        torch.zeros(1, device=device).item()  # fails for "meta", whose tensors have no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if not re.fullmatch(r"(cpu|cuda|mps|xla|xpu)(:\d+)?", name):
            known = "use auto, cpu, cuda, cuda:1 or mps"
            raise InputError(f"unknown device {shown(name)}: {known}") from error
        raise InputError(f"device {name!r} is not available on this machine: try auto or cpu") from error
    return device


def choose_dtype(precision: str, device: torch.device) -> torch.dtype:
    """The floating-point type that nets compute in; "auto" is bfloat16 on a GPU that has it, and float32 elsewhere."""
    if precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[precision]
