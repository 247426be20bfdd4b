"""Peak memory of a training above its data, parameters, optimiser state and one step's activations.

Two processes: one makes a few steps on hardly any data, the other trains whole epochs on many images, with the same
net and the same batches. What the second has above the first, its images (uint8, once) taken off, is overhead.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from benchmarks.contract import Options, Outcome, Row
from benchmarks.subject import array_data, two_nets
from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import train_epoch
from dividemix.engine.state import State
from dividemix.methods.dividemix import METHOD, DivideMixSettings
from dividemix.methods.loop import fit
from dividemix.methods.method import TrainingSets

# A narrow net, so that tens of thousands of images take seconds.
_CONFIG = DivideMixSettings(net="small_cnn", net_width=8, warmup_epochs=1, epochs=6)
_IMAGE_BYTES = 32 * 32 * 3
_MB = 1e6


def run(options: Options) -> Outcome:
    """Overhead after an epoch of warm-up and five more, and what the last two of them added."""
    num_images = 5_000 if options.quick else 50_000
    (base,) = _child("steps", 2 * _CONFIG.batch_size)
    peaks = _child("epochs", num_images)
    above = (peaks[-1] - base - num_images * _IMAGE_BYTES) / _MB
    growth = (peaks[-1] - peaks[-3]) / _MB  # the first few epochs fill the pools of the allocator
    listed = ", ".join(f"{peak / _MB:.0f}" for peak in peaks)
    rows = [
        Row(f"above one step's {base / _MB:.0f} MB and {num_images:,} images", "", f"{above:.0f} MB", "", "< 300 MB"),
        Row(f"growth in the last two epochs (peaks: {listed} MB)", "", f"{growth:.1f} MB", "", "none"),
    ]
    figures = {
        "memory_above_mb": above,
        "memory_growth_mb": growth,
        "memory_step_mb": base / _MB,
        "memory_peak_mb": peaks[-1] / _MB,
    }
    return Outcome(rows, figures)


def _child(work: str, num_images: int) -> list[int]:
    """The peaks in bytes that a new process reports."""
    command = [sys.executable, "-m", "benchmarks.memory", work, str(num_images)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peaks: list[int] = json.loads(done.stdout)
    return peaks


def _measure(work: str, num_images: int) -> list[int]:
    """The peak of this process after a step of each net, or after each epoch of a training."""
    rng = np.random.default_rng(1)
    images = rng.integers(256, size=(num_images, 32, 32, 3), dtype=np.uint8)
    data = array_data(images, rng.integers(10, size=num_images), _CONFIG)
    nets = [net.to(memory_format=torch.channels_last) for net in two_nets(_CONFIG)]  # type: ignore[call-overload]
    state = State.start(nets, _CONFIG)
    if work == "epochs":
        return [peak_bytes() for _ in fit(METHOD, state, TrainingSets(data), _CONFIG)]
    half = num_images // 2
    division = Division(
        torch.arange(half), torch.arange(half, num_images), torch.full((num_images,), 0.5, dtype=torch.float64)
    )
    for k in range(2):
        train_epoch(state, k, division, data, _CONFIG)
    return [peak_bytes()]


def peak_bytes() -> int:
    """The most memory this process has held; Linux's own count, as rusage there starts at the parent's size."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
