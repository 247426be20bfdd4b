"""A million small JPEG files in .tar shards: the index, the memory, and the images per second against a DataLoader.

Usage, from the root of the repository: python -m benchmarks.many_images [--number 1000000] [--folder DIR] [--size 32]

The shards are made once, in DIR: 1,000 different images, each file with a comment of its own, so no two have the same
bytes. Each measurement runs in a process of its own. The DataLoader has the same shards, index, batches and number of
workers; it opens each image by Pillow, converts it and resizes it, as one would write it. Both read random batches.
"""

import argparse
import io
import json
import os
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.console import Console

from benchmarks.memory import peak_bytes

_DIFFERENT, _PER_SHARD, _SIDE, _CLASSES = 1000, 10_000, 128, 100
_BATCH = 128
GOAL = 1.5


def make_shards(folder: Path, number: int) -> None:
    """Write the shards that do not exist yet."""
    rng = np.random.default_rng(0)
    originals = [_jpeg(rng) for _ in range(_DIFFERENT)]
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, number, _PER_SHARD):
        path = folder / f"images-{first // _PER_SHARD:05d}.tar"
        if path.exists():
            continue
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            for i in range(first, min(first + _PER_SHARD, number)):
                original = originals[i * 7 % _DIFFERENT]
                comment = f"image {i}".encode()
                content = b"".join(
                    (original[:2], b"\xff\xfe", struct.pack(">H", len(comment) + 2), comment, original[2:])
                )
                for name, data in ((f"{i:08d}.jpg", content), (f"{i:08d}.cls", str(i % _CLASSES).encode())):
                    about = tarfile.TarInfo(name)
                    about.size = len(data)
                    file.write(about.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512))
            file.write(bytes(1024))
        unfinished.rename(path)


def _member(name: str, content: bytes) -> bytes:
    """A file in an archive, ten times as fast as tarfile makes it."""
    header = _HEADER.copy()
    header[: len(name)] = name.encode()
    header[124:135] = b"%011o" % len(content)
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


_HEADER = bytearray(tarfile.TarInfo().tobuf(tarfile.USTAR_FORMAT))
_HEADER[148:156] = b" " * 8  # the checksum counts as spaces


def _jpeg(rng: np.random.Generator) -> bytes:
    """A picture with large and small structures, as photographs have."""
    layers = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (n, n, 3), dtype=np.uint8)).resize((_SIDE, _SIDE), 3), float)
        for n in (4, 16, 64)
    ]
    mixed = np.clip(0.6 * layers[0] + 0.3 * layers[1] + 0.1 * layers[2], 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(mixed).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def _index(folder: Path, size: int) -> dict[str, float]:
    """Seconds to make the index, to read it again, and to the source; and the memory that all of it takes."""
    from dividemix.data.readers import read_source
    from dividemix.data.readers.shard_sets import find_shards
    from dividemix.data.readers.shards import list_shards

    with tempfile.TemporaryDirectory() as cache:
        os.environ["DIVIDEMIX_CACHE"] = cache
        before = peak_bytes()
        shards = find_shards(str(folder))
        assert shards is not None
        began = time.perf_counter()
        number = len(list_shards(shards)[0].files)
        made = time.perf_counter()
        list_shards(shards)
        again = time.perf_counter()
        source = read_source(str(folder), image_size=size, memory_gb=0)
        ready = time.perf_counter()
    assert len(source.train_images) == number
    return {
        "images": number,
        "index_seconds": made - began,
        "second_seconds": again - made,
        "source_seconds": ready - again,
        "memory_mb": (peak_bytes() - before) / 1e6,
    }


def _batches(number: int, how_many: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(number, size=(how_many, _BATCH))


def _ours(folder: Path, size: int, how_many: int, rounds: int) -> dict[str, Any]:
    """Images per second of our reader in each round, and its memory after the first and after the last."""
    from dividemix.data.readers import read_source

    images = read_source(str(folder), image_size=size, memory_gb=0).train_images
    speeds, peaks = [], []
    for seed in range(rounds):
        batches = _batches(len(images), how_many, seed)
        began = time.perf_counter()
        for batch in images.batches(batches):  # type: ignore[union-attr]
            assert batch.shape == (_BATCH, size, size, 3)
        speeds.append(batches.size / (time.perf_counter() - began))
        peaks.append(peak_bytes() / 1e6)
    return {"speeds": speeds, "peaks": peaks}


def _loader(folder: Path, size: int, how_many: int, rounds: int, workers: int) -> dict[str, Any]:
    """Images per second of a torch DataLoader in each round."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    from dividemix.data.readers.shard_sets import find_shards
    from dividemix.data.readers.tar_shards import index_tar

    class Shards(Dataset[Any]):
        def __init__(self) -> None:
            found = find_shards(str(folder))
            assert found is not None
            self.files = list(found.train.values())
            indices = [index_tar(file, "label") for file in self.files]
            self.starts = np.cumsum([0, *map(len, indices)])
            self.offsets = np.concatenate([one.offsets for one in indices])
            self.sizes = np.concatenate([one.sizes for one in indices])
            self.labels = np.array([int(label or 0) for one in indices for label in one.labels])
            self.opened: dict[int, Any] = {}

        def __len__(self) -> int:
            return len(self.offsets)

        def __getitem__(self, i: int) -> tuple[Any, int]:
            shard = int(np.searchsorted(self.starts, i, side="right")) - 1
            if shard not in self.opened:
                self.opened[shard] = self.files[shard].open()
            self.opened[shard].seek(int(self.offsets[i]))
            content = self.opened[shard].read(int(self.sizes[i]))
            with Image.open(io.BytesIO(content)) as image:
                small = image.convert("RGB")
                if small.size != (size, size):
                    small = small.resize((size, size), Image.Resampling.BICUBIC)
                return torch.from_numpy(np.array(small)), int(self.labels[i])

    data = Shards()
    speeds = []
    for seed in range(rounds):
        batches = _batches(len(data), how_many, seed)
        loader = DataLoader(data, batch_sampler=batches.tolist(), num_workers=workers, prefetch_factor=2)
        stream = iter(loader)
        next(stream)  # the workers have started
        began = time.perf_counter()
        for images, _ in stream:
            assert images.shape == (_BATCH, size, size, 3)
        speeds.append((batches.size - _BATCH) / (time.perf_counter() - began))
    return {"speeds": speeds}


def _child(work: str, folder: Path, size: int, *more: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.many_images", "--child", work, "--folder", str(folder)]
    command += ["--size", str(size), "--more", *map(str, more)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Make the shards, measure, and print a line for each; returns 1 if the ratio is below the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "dividemix-many-images")
    parser.add_argument("--size", type=int, nargs="+", default=[32, 64, _SIDE], help="sides that images get")
    parser.add_argument("--batches", type=int, default=40, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", choices=("index", "ours", "loader"), help=argparse.SUPPRESS)
    parser.add_argument("--more", type=int, nargs="*", default=[], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work: Any = {"index": _index, "ours": _ours, "loader": _loader}[arguments.child]
        print(json.dumps(work(arguments.folder, arguments.size[0], *arguments.more)))
        return 0
    console = Console(highlight=False)
    began = time.perf_counter()
    make_shards(arguments.folder, arguments.number)
    console.print(f"shards made in {time.perf_counter() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    found = _child("index", arguments.folder, 32)
    console.print("  ".join(f"{name} {value:,.1f}" for name, value in found.items()), soft_wrap=True)
    worst = float("inf")
    for size in arguments.size:
        speeds: dict[str, list[float]] = {"ours": [], "loader": []}
        peaks: list[float] = []
        for _ in range(arguments.rounds):  # in turn, so that a machine that drifts does so under both
            ours = _child("ours", arguments.folder, size, arguments.batches, 2)
            loader = _child("loader", arguments.folder, size, arguments.batches, 2, arguments.workers)
            speeds["ours"].append(max(ours["speeds"]))
            speeds["loader"].append(max(loader["speeds"]))
            peaks += ours["peaks"]
        ratio = statistics.median(a / b for a, b in zip(speeds["ours"], speeds["loader"], strict=True))
        worst = min(worst, ratio)
        shown = ", ".join(f"{name} {statistics.median(values):,.0f}/s" for name, values in speeds.items())
        console.print(
            f"{_SIDE} to {size} pixels: {shown}: {ratio:.2f} x; peaks {min(peaks):.0f} to {max(peaks):.0f} MB",
            soft_wrap=True,
        )
    return 0 if worst >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
