"""Time and memory of co-divide and label issues for many samples and classes: both should grow with the samples alone.

Usage, from the root of the repository: python -m benchmarks.many_labels [N ...] [--classes 1000] [--features 64]

Each N runs in a process of its own: two linear networks on vectors that are mapped from a file. It computes every
loss, divides the samples, judges every label, writes label_issues.csv, label_issues.parquet and pred_probs.npy, and
makes the page. Memory is the peak of what the process holds itself (RssAnon), above its state before. The
probabilities of a million samples and 1,000 classes, 4 GB, are in a file: the system keeps them in memory as far as
there is room, and `resident_gb` counts that as well. `limit_gb` is enforced: the process gets no more (RLIMIT_DATA).
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from rich.console import Console

from benchmarks.memory import peak_bytes

_LIMIT = 4e9


class _Watch(threading.Thread):
    """The most memory of its own that the process has had, looked up twenty times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.start_bytes = self.peak = held_bytes()

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, held_bytes())
            time.sleep(0.05)


def held_bytes(kind: str = "RssAnon") -> int:
    """What Linux counts for this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:"))


def _vectors(path: Path, num_samples: int, num_features: int, num_classes: int) -> Any:
    """Vectors around the centre of their class, written to a file; 30 % of the labels are wrong."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(num_classes, num_features)).astype(np.float32)
    true = rng.integers(num_classes, size=num_samples)
    vectors = open_memmap(path, "w+", np.float32, (num_samples, num_features))
    for first in range(0, num_samples, 10_000):
        rows = slice(first, first + 10_000)
        vectors[rows] = centres[true[rows]] + rng.standard_normal((len(true[rows]), num_features), dtype=np.float32)
    given = np.where(rng.random(num_samples) < 0.3, rng.integers(num_classes, size=num_samples), true)
    return centres, vectors, given


def _measure(num_samples: int, num_features: int, num_classes: int) -> dict[str, float]:
    import torch

    from dividemix.algorithm.divide import clean_probability, divide, normalise
    from dividemix.algorithm.sample_losses import sample_losses
    from dividemix.data.features import FeatureData
    from dividemix.engine.state import State
    from dividemix.judging.label_issues import find_issues
    from dividemix.methods.dividemix import METHOD, DivideMixSettings
    from dividemix.report.content import PageContent
    from dividemix.report.page import render
    from dividemix.runs.directory import RunDirectory

    s = DivideMixSettings(device="cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        centres, vectors, given = _vectors(folder / "vectors.npy", num_samples, num_features, num_classes)
        nets = [torch.nn.Linear(num_features, num_classes) for _ in range(2)]
        for net in nets:  # trained: each class by its centre
            net.weight.data = torch.from_numpy(centres)
            net.bias.data = -0.5 * net.weight.data.square().sum(dim=1)
        state = State.start(list[torch.nn.Module](nets), s)
        data = FeatureData(
            vectors, given, mean=np.zeros(num_features, np.float32), std=np.ones(num_features, np.float32), device="cpu"
        )
        watch = _Watch()
        watch.start()
        resource.setrlimit(resource.RLIMIT_DATA, (held_bytes("VmData") + int(_LIMIT),) * 2)
        resident, seconds, began = peak_bytes(), {}, time.process_time()

        def lap(what: str) -> None:
            nonlocal began
            seconds[f"{what}_cpu_s"], began = time.process_time() - began, time.process_time()

        losses = sample_losses(state, data, torch.arange(num_samples))
        num_labeled = 0
        for each in losses:
            clean_prob, _ = clean_probability(normalise(each), "gaussian")
            num_labeled += len(divide(clean_prob, 0.5, 64).labeled)
        lap("co_divide")
        issues = find_issues(
            METHOD.judge(state, data, s),
            given,
            classes=tuple(f"class {number}" for number in range(num_classes)),
            paths=tuple(f"shard-{row // 10_000:05d}.tar/{row:08d}.jpg" for row in range(num_samples)),
            rows=np.arange(num_samples),
        )
        found = int(issues.is_label_issue.sum())
        lap("judge")
        RunDirectory(folder).write_issues(issues)
        lap("write")
        page = render(_content(PageContent, issues, num_samples), lambda _: None)
        lap("page")
        sizes = {one.name: one.stat().st_size for one in folder.iterdir()}
    return {
        **seconds,
        "memory_gb": (watch.peak - watch.start_bytes) / 1e9,
        "resident_gb": (peak_bytes() - resident) / 1e9,
        "limit_gb": _LIMIT / 1e9,
        "csv_mb": sizes["label_issues.csv"] / 1e6,
        "parquet_mb": sizes.get("label_issues.parquet", 0) / 1e6,
        "page_mb": len(page) / 1e6,
        "labeled": num_labeled / 2 / num_samples,
        "flagged": found / num_samples,
    }


def _content(kind: Any, issues: Any, num_samples: int) -> Any:
    return kind(
        title="many labels",
        facts=[],
        choices=[],
        rows=[],
        divisions=[],
        classes=issues.classes,
        labels=issues.labels,
        probs=issues.pred_probs,
        label_score=issues.label_score.astype(np.float64),
        is_issue=issues.is_label_issue,
        clean_prob=issues.clean_prob,
        losses=issues.losses,
        noise_rate=issues.noise_rate,
        noise_matrix=issues.noise_matrix,
        paths=issues.paths,
        sample_rows=np.arange(num_samples),
        can_add_classes=False,
    )


def main() -> None:
    """Measure every N and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("numbers", type=int, nargs="*", metavar="N", default=[250_000, 500_000, 1_000_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    for number in arguments.numbers:
        if arguments.child:
            print(json.dumps(_measure(number, arguments.features, arguments.classes)))
            continue
        sizes = ["--features", str(arguments.features), "--classes", str(arguments.classes)]
        command = [sys.executable, "-m", "benchmarks.many_labels", str(number), *sizes, "--child"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures = "  ".join(f"{name} {value:.3g}" for name, value in json.loads(done.stdout).items())
        console.print(f"{number:,} x {arguments.classes} classes: {figures}", soft_wrap=True)


if __name__ == "__main__":
    main()
