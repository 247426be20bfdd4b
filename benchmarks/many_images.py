"""A million small JPEG files in .tar shards: the index, the memory, and the images per second against a DataLoader.

Usage, from the root of the repository: python -m benchmarks.many_images [--number 1000000] [--folder DIR] [--size 32]

The shards are made once, in DIR: 1,000 different images, each file with a comment of its own, so no two have the same
bytes. The DataLoader has the same index, batches and number of workers; it opens each image by Pillow, converts it and
resizes it, as one would write it. Both read random batches in turn, so that other work on the machine slows both.
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
from collections.abc import Iterator
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


def _index(folder: Path) -> dict[str, float]:
    """Seconds and CPU seconds to make the index, to read it again, and to the source; and the memory of all of it."""
    from dividemix.data.readers import read_source
    from dividemix.data.readers.shard_sets import find_shards
    from dividemix.data.readers.shards import list_shards

    with tempfile.TemporaryDirectory() as cache:
        os.environ["DIVIDEMIX_CACHE"] = cache
        before, figures = peak_bytes(), {}
        shards = find_shards(str(folder))
        assert shards is not None
        began, cpu = time.perf_counter(), time.process_time()
        for what, work in (
            ("index", lambda: list_shards(shards)),
            ("second", lambda: list_shards(shards)),
            ("source", lambda: read_source(str(folder), image_size=32, memory_gb=0)),
        ):
            work()
            figures[f"{what}_s"], figures[f"{what}_cpu_s"] = time.perf_counter() - began, time.process_time() - cpu
            began, cpu = time.perf_counter(), time.process_time()
    return figures | {"memory_mb": (peak_bytes() - before) / 1e6}


def _batches(number: int, how_many: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(number, size=(how_many, _BATCH))


def _speed(folder: Path, sizes: list[int], how_many: int, rounds: int, workers: int) -> dict[str, Any]:
    """Images per second, and CPU microseconds of an image, of both in turn; and our memory after each round."""
    from dividemix.data.listed import find_listed
    from dividemix.data.readers.shard_sets import find_shards
    from dividemix.data.readers.shards import list_shards

    before = peak_bytes() / 1e6
    shards = find_shards(str(folder))
    assert shards is not None
    listing, _ = list_shards(shards)
    found: dict[str, Any] = {"ours": {}, "loader": {}, "memory_mb": [before, peak_bytes() / 1e6]}
    for size in sizes:
        images = find_listed(listing, (size, size, 3)).images
        for seed in range(rounds):
            batches = _batches(len(images), how_many, seed)
            for name, stream in (
                ("ours", lambda: images.batches(batches)),  # noqa: B023 (called at once)
                ("loader", lambda: _loader(listing.files, size, batches, workers)),  # noqa: B023
            ):
                began, cpu = time.perf_counter(), _cpu_seconds()
                for batch in stream():
                    assert batch.shape == (_BATCH, size, size, 3)
                seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
                found[name].setdefault(str(size), []).append((batches.size / seconds, cpu / batches.size * 1e6))
                if name == "ours":
                    found["memory_mb"].append(peak_bytes() / 1e6)
    return found


def _cpu_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def _loader(contents: Any, size: int, batches: np.ndarray[Any, np.dtype[np.int64]], workers: int) -> Iterator[Any]:
    """The batches as a torch DataLoader gives them, whose workers are processes."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset[Any]):
        def __len__(self) -> int:
            return len(contents)

        def __getitem__(self, i: int) -> Any:
            with Image.open(io.BytesIO(contents[i])) as image:
                small = image.convert("RGB")
                if small.size != (size, size):
                    small = small.resize((size, size), Image.Resampling.BICUBIC)
                return torch.from_numpy(np.array(small))

    return iter(DataLoader(Pictures(), batch_sampler=batches.tolist(), num_workers=workers, prefetch_factor=2))


def _child(work: str, arguments: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.many_images", "--child", work, "--folder", str(arguments.folder)]
    command += ["--size", *map(str, arguments.size), "--batches", str(arguments.batches)]
    command += ["--rounds", str(arguments.rounds), "--workers", str(arguments.workers)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> int:
    """Make the shards, measure, and print a line for each; returns 1 if the ratio at a size is too low."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "dividemix-many-images")
    parser.add_argument("--size", type=int, nargs="+", default=[32, 64, 96, _SIDE], help="sides that images get")
    parser.add_argument("--batches", type=int, default=40, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--child", choices=("index", "speed"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "index":
        print(json.dumps(_index(arguments.folder)))
        return 0
    if arguments.child == "speed":
        about = arguments.size, arguments.batches, arguments.rounds, arguments.workers
        print(json.dumps(_speed(arguments.folder, *about)))
        return 0
    console = Console(highlight=False)
    began = time.perf_counter()
    make_shards(arguments.folder, arguments.number)
    console.print(f"shards made in {time.perf_counter() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    found = _child("index", arguments)
    console.print("  ".join(f"{name} {value:,.1f}" for name, value in found.items()), soft_wrap=True)
    found = _child("speed", arguments)
    ratios = []
    for size in map(str, arguments.size):
        rounds = list(zip(found["ours"][size], found["loader"][size], strict=True))
        ratios.append(statistics.median(ours[0] / loader[0] for ours, loader in rounds))
        cpu = statistics.median(loader[1] / ours[1] for ours, loader in rounds)
        shown = ", ".join(
            f"{name} {statistics.median(one[0] for one in found[name][size]):,.0f}/s and"
            f" {statistics.median(one[1] for one in found[name][size]):,.0f} us"
            for name in ("ours", "loader")
        )
        console.print(f"{_SIDE} to {size} pixels: {shown}: {ratios[-1]:.2f} x, by CPU {cpu:.2f} x", soft_wrap=True)
    memory = found["memory_mb"]
    peaks = ", ".join(f"{one:.0f}" for one in memory)
    console.print(
        f"memory before, with the index, and after each round: {peaks} MB; load {os.getloadavg()[0]:.1f}",
        soft_wrap=True,
    )
    return 0 if min(ratios) >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
