"""Small files, and settings, that ask for gigabytes: refused in one line before memory is taken.

Oracle: the most memory that a process ever had (VmHWM), of a child that does nothing else. getrusage will not do: its
figure for a child begins with the memory of the parent, and hides whatever takes less.
"""

import io
import os
import struct
import subprocess
import sys
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_model import small_model
from toys import save_toy, toy_arrays, toy_job
from workshop import QUICK, fail

from dividemix.data import images
from dividemix.data.budget import Budget
from dividemix.data.decoding_memory import decoding_bytes
from dividemix.data.eight_bits import eight_bits
from dividemix.data.images import UnreadableImage, read_image
from dividemix.data.readers.npz import read_npz
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.model.text_input import TextInput
from dividemix.planning.prepare import prepare

MEGABYTES = """
import re, sys
def used(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
{imports}
before = used()
try:
    {work}
except Exception as error:
    print(" ".join(str(error).split()))
print(used() - before)
"""


def megabytes(imports: str, work: str, *arguments: str) -> tuple[str, int]:
    """The error of some work, or "", and the megabytes that it took."""
    code = MEGABYTES.format(imports=imports, work=work)
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    *said, size = done.stdout.splitlines()
    return "".join(said), int(size)


def grey_png(side: int, depth: int) -> bytes:
    """A black PNG of side x side pixels, written without holding it in memory."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer, row = zlib.compressobj(9), bytes(1 + side * depth // 8)
    packed = b"".join([packer.compress(row) for _ in range(side)]) + packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, depth, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_a_file_over_its_limit_takes_no_memory(tmp_path: Path) -> None:
    """Row 5: as much as the limit was read, 1 GB of metrics.jsonl, of a file that takes no space on the disk."""
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 10**12)
    imports = "from pathlib import Path; from dividemix.stored import read_bytes"
    said, size = megabytes(imports, "read_bytes(Path(sys.argv[1]), 2**28)", str(tmp_path / "sparse"))
    assert "larger than 268 MB" in said
    assert size < 50


@pytest.mark.slow
def test_a_large_png_of_16_bits_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """Row 5: a 194 KB PNG took 3.2 GB in each decoding thread."""
    path = tmp_path / "bomb.png"
    path.write_bytes(grey_png(10_000, 16))
    assert path.stat().st_size < 250_000
    said, size = megabytes(
        "from pathlib import Path; from dividemix.data.images import read_image",
        "read_image(Path(sys.argv[1]), 8, 8, 1)",
        str(path),
    )
    assert said == "10000 x 10000 pixels of mode I;16 take 1.6 GB to decode, at most 1 GB are used"
    assert size < 100


BY_MODE = {("L", "png"): 8, ("RGB", "png"): 8, ("P", "png"): 8, ("RGBA", "png"): 16, ("LA", "png"): 16}
BY_MODE |= {("I;16", "png"): 16, ("I", "tif"): 16, ("F", "tif"): 16}
BY_MODE |= {("RGB", "jp2"): 20, ("RGBA", "jp2"): 29, ("RGB", "webp"): 17, ("RGBA", "webp"): 25}
BY_MODE |= {("RGB", "jpg"): 7, ("CMYK", "jpg"): 9}  # progressive, decoded at an eighth of the size


@pytest.mark.slow
def test_what_is_decoded_stays_within_its_budget(tmp_path: Path) -> None:
    """Row 5: the estimate of an image's memory is not below what it takes, in every mode, for every decoder."""
    for (mode, suffix), needed in BY_MODE.items():
        path = tmp_path / f"image.{suffix}"
        Image.new(mode, (3000, 3000)).save(path, progressive=True, method=0)
        with Image.open(path) as image:
            image.draft(None, (375, 375))
            assert needed - 1 < decoding_bytes(image) / 9e6 <= needed
        _, size = megabytes(
            "from pathlib import Path; from dividemix.data.images import read_image, image_suffixes; image_suffixes()",
            "read_image(Path(sys.argv[1]), 8, 8, 3)",
            str(path),
        )
        assert size <= 9 * needed + 15, (mode, suffix)  # 9 million pixels, and what Python itself needs


def test_grey_levels_are_the_same_however_many_rows_are_converted_at_a_time() -> None:
    """Row 5: 16-bit images are converted a few rows at a time. Oracle: the whole image at once, in float64."""
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 65536, (3, 700_000))
    assert np.array_equal(eight_bits(wide.astype(np.uint16)), np.rint(wide / 257).astype(np.uint8))
    signed = rng.integers(-70_000, 70_000, (3, 700_000)).astype(np.int32)
    low, high = float(signed.min()), float(signed.max())
    expected = np.rint((signed.astype(np.float64) - low) * (255 / (high - low))).astype(np.uint8)
    assert np.array_equal(eight_bits(signed), expected)


def test_threads_share_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 5: each of 16 threads had gigabytes of its own. Here two images fit at a time, and all are decoded."""
    budget = Budget(2 * 8 * 100 * 100)
    monkeypatch.setattr(images, "DECODING", budget)
    inside, most, lock = 0, 0, threading.Lock()
    flattened = images._flattened

    def watched(image: Image.Image, mode: str) -> Image.Image:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.01)
        with lock:
            inside -= 1
        return flattened(image, mode)

    monkeypatch.setattr(images, "_flattened", watched)
    file = io.BytesIO()
    Image.new("RGB", (100, 100), "red").save(file, "PNG")
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(read_image(file.getvalue(), 8, 8, 3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert most <= 2
    with pytest.raises(UnreadableImage, match="201 x 100 pixels of mode RGB take"):
        read_image(Image.new("RGB", (201, 100)), 8, 8, 3)


def npz_bomb(path: Path, num_images: int) -> None:
    """An .npz file of black images, written without holding them in memory."""
    header = io.BytesIO()
    shape = (num_images, 100, 100)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        with archive.open("x_train.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(num_images // 100):
                member.write(bytes(1_000_000))
        labels = io.BytesIO()
        np.save(labels, np.arange(num_images) % 2)
        archive.writestr("y_train.npy", labels.getvalue())


@pytest.mark.slow
def test_an_npz_file_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 5: a 27 MB file unpacked to 6.3 GB even with --limit_train 100."""
    npz_bomb(tmp_path / "bomb.npz", 60_000)
    assert (tmp_path / "bomb.npz").stat().st_size < 2_000_000
    said, size = megabytes(
        "from pathlib import Path; from dividemix.data.readers import read_source",
        "read_source(sys.argv[1], memory_gb=0.5)",
        str(tmp_path / "bomb.npz"),
    )
    assert "its arrays take 0.6 GB, memory_gb is 0.5: raise memory_gb, or use less data" in said
    assert size < 100
    monkeypatch.chdir(tmp_path)
    line = fail(capsys, ["train", "bomb.npz", "--limit_train", "100", "--memory_gb", "0.5"])
    assert "bomb.npz: its arrays take 0.6 GB" in line


def test_an_npz_header_that_claims_more_than_the_file_has_takes_no_memory(tmp_path: Path) -> None:
    """Row 5: the claim alone is refused, too."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**5)})
    labels = io.BytesIO()
    np.save(labels, np.arange(4) % 2)
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as archive:
        archive.writestr("x_train.npy", header.getvalue() + bytes(100))
        archive.writestr("y_train.npy", labels.getvalue())
    said, size = megabytes(
        "from pathlib import Path; from dividemix.data.readers.npz import read_npz",
        "read_npz(Path(sys.argv[1]), memory_gb=4.0)",
        str(tmp_path / "claim.npz"),
    )
    assert "claim.npz: damaged" in said
    assert size < 100
    assert len(read_npz(save_toy(tmp_path), memory_gb=1e-4).train_samples) == 40
    with pytest.raises(InputError, match="memory_gb is 1e-06"):
        read_npz(save_toy(tmp_path), memory_gb=1e-6)


def test_a_batch_is_bounded_by_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 5: --batch_size 100000 on 60 samples took 5.9 GB. Small batches may repeat samples, as ever."""
    save_toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    line = fail(capsys, ["train", *QUICK, "--batch_size", "100000"])
    assert "batch_size is 100000: it must be at most 1024, for 40 samples to train on" in line
    assert len(toy_arrays()["y_train"]) == 40
    prepare(toy_job(tmp_path, batch_size=1024))


def test_a_models_shapes_are_compared_before_memory_is_taken(tmp_path: Path) -> None:
    """Row 5: net_width 10000 in an untrusted config.json took 7.3 GB."""
    small_model().save_pretrained(tmp_path)
    config = (tmp_path / "config.json").read_text()
    without_digest = ",".join(part for part in config.split(",") if '"digest"' not in part) + "}"
    (tmp_path / "config.json").write_text(without_digest.replace('"net_width": 2', '"net_width": 10000'))
    said, size = megabytes(
        "from dividemix.model.model import Model", "Model.from_pretrained(sys.argv[1], device='cpu')", str(tmp_path)
    )
    assert "shape of nets.0" in said
    assert size < 200
    with pytest.raises(InputError, match=r"shape of nets\.0"):
        Model.from_pretrained(tmp_path)


def test_the_terms_of_a_model_are_counted_before_memory_is_taken() -> None:
    """100 terms and 16 million numbers of a vector, in a config.json of a kilobyte, took 6.7 GB."""
    values = {"encoder": "tfidf", "terms": ["a", "b"], "num_features": 257}
    with pytest.raises(ValueError, match="no model has so many"):
        TextInput.of(values)
    with pytest.raises(ValueError, match="no model has so many"):
        TextInput.of(values | {"num_features": 2, "terms": [str(number) for number in range(30_001)]})
    assert TextInput.of(values | {"num_features": 2}).shape == (2,)
