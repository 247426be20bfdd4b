"""Small trees of the official layouts of Clothing1M, WebVision and ILSVRC12, with images that the tests make."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

SYNSETS = (
    *("n01440764 tench, Tinca tinca", "n01443537 goldfish, Carassius auratus", "n01484850 great white shark"),
    *("n01491361 tiger shark", "n01494475 hammerhead", "n01496331 electric ray", "n01498041 stingray"),
)


def write_image(path: Path, label: int, number: int, size: tuple[int, int] = (24, 30)) -> None:
    """A JPEG (height, width) whose colour tells its class, with noise that tells its number."""
    noise = np.random.default_rng([label, number]).integers(0, 60, (*size, 3))
    colour = np.array([20 + 12 * label, 180 - 12 * label, 40 * (label % 3)])
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((colour + noise).astype(np.uint8)).save(path, "JPEG")


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """A list, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def make_clothing1m(
    root: Path, *, num_train: int = 28, num_val: int = 14, num_test: int = 14, prefix: str = "images/"
) -> None:
    """Clothing1M: sample i of each split has label i % 14; names hold commas. Images lie below `prefix`."""
    keys: dict[str, list[str]] = {}
    for number, (split, count) in enumerate(
        (("noisy_train", num_train), ("clean_val", num_val), ("clean_test", num_test))
    ):
        keys[split] = [f"images/{number}/{i % 10:02d}/{1000 + i},{i}.jpg" for i in range(count)]
        for i, key in enumerate(keys[split]):
            write_image(root / key.replace("images/", prefix, 1), i % 14, 100 * number + i)
        write_lines(root / f"{split}_key_list.txt", keys[split])
    write_lines(root / "noisy_label_kv.txt", [f"{key} {i % 14}" for i, key in enumerate(keys["noisy_train"])])
    clean = [f"{key} {i % 14}" for split in ("clean_val", "clean_test") for i, key in enumerate(keys[split])]
    write_lines(root / "clean_label_kv.txt", clean[::-1])


def make_webvision(
    root: Path,
    *,
    num_train: int = 28,
    num_test: int = 14,
    num_ilsvrc12: int = 7,
    by_number: bool = False,
    val_folder: str = "val_images_256",
    size: tuple[int, int] = (24, 30),
) -> None:
    """WebVision of seven classes: sample i of each split has label i % 7. ILSVRC12's folders are numbers if asked."""
    write_lines(root / "info" / "synsets.txt", SYNSETS)
    train = [f"google/q{i % 7:04d}/{i}_a,b.jpg" for i in range(num_train)]
    test = [f"val{i:06d}.jpg" for i in range(num_test)]
    for i, name in enumerate(train):
        write_image(root / name, i % 7, i, size)
    for i, name in enumerate(test):
        write_image(root / val_folder / name, i % 7, 1000 + i, size)
    # Lines of other classes, whose images are not there.
    lines = [f"{name} {i % 7}" for i, name in enumerate(train)]
    write_lines(root / "info" / "train_filelist_google.txt", [*lines, "google/q0900/x.jpg 900"])
    write_lines(root / "info" / "val_filelist.txt", ["val999999.jpg 51", *(f"{n} {i % 7}" for i, n in enumerate(test))])
    for i in range(num_ilsvrc12):
        folder = str(i % 7) if by_number else SYNSETS[i % 7].split()[0]
        write_image(root / "imagenet" / "val" / folder / f"ILSVRC2012_val_{i:08d}.JPEG", i % 7, 2000 + i, size)
