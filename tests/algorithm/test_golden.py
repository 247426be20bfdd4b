"""A golden trace: a seeded run on the CPU gives the numbers that golden.json holds.

The oracle is an earlier run of this very code: the trace shows that a change of the code left the method alone, and
the other tests show that the method is right. Nets compute in float64 and numbers are compared to 1e-5, so that
another processor passes. After a change that is *meant* to change numbers, rewrite the trace and say why in LOG.md:

    python tests/algorithm/test_golden.py
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dividemix.data.dataset import ArrayData
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.engine.state import State
from dividemix.methods import METHODS
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.loop import fit, start
from dividemix.methods.method import TrainingSets

GOLDEN = Path(__file__).with_name("golden.json")
CONFIG = DivideMixSettings(
    epochs=5,
    warmup_epochs=2,
    batch_size=8,
    lr=0.05,
    lr_drop_epoch=4,
    lambda_u=10.0,
    rampup_epochs=2,
    loss_window=2,
    confidence_penalty=True,
    crop_padding=1,
    seed=7,
)
NUM_SAMPLES, NUM_CLASSES = 96, 3


class DoubleData(ArrayData):
    """The package's own data and augmentation, handed on in float64."""

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """As ArrayData's."""
        for images in super().augmented(batches, generator):
            yield images.double()

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """As ArrayData's."""
        for images in super().plain(batches):
            yield images.double()


def made_data() -> DoubleData:
    """Images of 8 x 8: stripes, steeper for each class, disturbed by a fixed formula; every fifth label is wrong."""
    i, y, x = np.ogrid[:NUM_SAMPLES, :8, :8]
    classes = i % NUM_CLASSES
    stripes = 60 * (((classes + 1) * y + (2 - classes) * x + i) % 4)
    disturbance = (37 * i + 101 * y * y + 53 * x * i + 29 * x * y) % 61
    images = (stripes + disturbance).astype(np.uint8)[..., None]
    order = np.arange(NUM_SAMPLES)
    labels = (order + (order % 5 == 0)) % NUM_CLASSES
    mean, std = pixel_statistics(images)
    return DoubleData(images, labels, mean=mean, std=std, crop_padding=CONFIG.crop_padding, flip=CONFIG.flip)


def made_net(k: int) -> nn.Module:
    """Two convolutions with BatchNorm, weights by a fixed formula that differs for the two nets."""
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, stride=2, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(6 * 2 * 2, NUM_CLASSES, bias=False),
    ).double()
    for parameter in net.parameters():
        if parameter.ndim > 1:
            waves = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64) * (1.7 + k) + k)
            parameter.data = (waves / parameter[0].numel() ** 0.5).view(parameter.shape)
    return net


def trace() -> list[dict[str, Any]]:
    """For each epoch its loss terms, sizes of the labeled sets, and sums over losses, probabilities and weights."""
    method, sets = METHODS["dividemix"], TrainingSets(made_data())
    state = State.start([made_net(k) for k in range(2)], CONFIG)
    start(method, state, sets, CONFIG)
    rows = []
    for report in fit(method, state, sets, CONFIG):
        row: dict[str, Any] = {"epoch": report.epoch, "phase": report.phase, **report.losses}
        if report.sample_losses is not None:
            row["num_labeled"] = [len(division.labeled) for division in report.divisions]
            row["sample_losses"] = [float(losses.sum()) for losses in report.sample_losses]
            row["clean_prob"] = [float(division.clean_prob.sum()) for division in report.divisions]
        row["weights"] = [size_of(net) for net in state.nets]
        rows.append(row)
    return rows


def size_of(net: nn.Module) -> float:
    """Sum of the absolute values of all weights and BatchNorm statistics."""
    return sum(float(tensor.abs().sum()) for tensor in net.state_dict().values() if tensor.is_floating_point())


@pytest.fixture
def one_thread() -> Iterator[None]:
    """The order of a sum depends on how many threads share it."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.mark.usefixtures("one_thread")
def test_the_trace_is_the_golden_one() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    rows = trace()
    assert len(rows) == len(golden) == CONFIG.epochs
    for row, expected in zip(rows, golden, strict=True):
        assert row.keys() == expected.keys()
        for name, value in row.items():
            if name in ("epoch", "phase", "num_labeled"):
                assert value == expected[name], f"epoch {row['epoch']}: {name}"
            else:
                assert value == pytest.approx(expected[name], rel=1e-5, abs=1e-8), f"epoch {row['epoch']}: {name}"


def test_the_trace_divides_and_mixes() -> None:
    """A trace that never divides in two, or never ramps up, would watch over nothing."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [row["phase"] for row in golden] == ["warmup"] * 2 + ["mix"] * 3
    for row in golden[2:]:
        assert all(0 < num_labeled < NUM_SAMPLES for num_labeled in row["num_labeled"])
        assert all(value > 0 for value in row["loss_u"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    GOLDEN.write_text(json.dumps(trace(), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {GOLDEN}")
