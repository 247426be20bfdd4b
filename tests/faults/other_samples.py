"""Small inputs of every kind of samples: folders, rows, texts, vectors, shards, votes; and how to train on them."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sandbox import Call, quietly
from small_model import save_images, small_images
from tar_shards import write_shards
from toys import FLAGS, save_toy

from dividemix.cli import main

CLASSES = ("red", "green", "blue")
NUM = 36
_DEVICE = ["--device", "cpu", "--out", "run"]
_IMAGES = [word for i, word in enumerate(FLAGS) if "--warmup_epochs" not in (word, FLAGS[i - 1])]
_IMAGES += ["--method", "cross_entropy", "--epochs", "2", "--out", "run"]
_LINEAR = ["--method", "cross_entropy", "--epochs", "2", "--batch_size", "8", *_DEVICE]

ROWS = ["rows.csv", "--target", "label", "--learner", "extra_trees", "--num_trees", "3", "--epochs", "2", *_DEVICE]
TEXTS = ["texts.csv", "--text_column", "text", *_LINEAR]
VECTORS = ["vectors.npy", "--labels", "labels.npy", "--method", "robust_vectors", "--epochs", "3", *_DEVICE]
FOLDER = ["classes", *_IMAGES]
TAR = ["shards", *_IMAGES]
PARQUET = ["tables", *_IMAGES]
VOTES = ["votes.csv", "--annotators", "anna,ben,carl", *_IMAGES]
ENCODED = ["toy.npz", "--encoder", "other_samples:Brightness", *_LINEAR]


class Brightness:
    """An encoder: the mean brightness of each quarter of an image."""

    takes = "images"

    def encode(self, batch: Any) -> Any:
        """Vectors (R, 4) of images (R, 8, 8, channels)."""
        pixels = np.asarray(batch, dtype=np.float32)[:, :8, :8, 0]
        return pixels.reshape(len(pixels), 2, 4, 2, 4).mean(axis=(2, 4)).reshape(len(pixels), 4) / 255


def _labels() -> list[str]:
    return [CLASSES[number % 3] for number in range(NUM)]


def _write(path: Path, rows: Sequence[Sequence[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def save_rows(folder: Path) -> None:
    """rows.csv: a number, a category and missing values."""
    rng = np.random.default_rng(0)
    rows = [
        [f"{rng.normal():.3f}" if number % 7 else "", "ab"[number % 2], label] for number, label in enumerate(_labels())
    ]
    _write(folder / "rows.csv", [["size", "shape", "label"], *rows])


def save_texts(folder: Path) -> None:
    """texts.csv and texts.jsonl."""
    rows = [[f"the {label} thing, number {number % 5}", label] for number, label in enumerate(_labels())]
    _write(folder / "texts.csv", [["text", "label"], *rows])
    lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in rows]
    (folder / "texts.jsonl").write_text("".join(lines), encoding="utf-8")


def save_vectors(folder: Path) -> None:
    """vectors.npy and labels.npy."""
    np.save(folder / "vectors.npy", np.random.default_rng(0).normal(size=(NUM, 6)).astype(np.float32))
    np.save(folder / "labels.npy", np.arange(NUM) % 3)


def save_folder(folder: Path) -> None:
    """A folder with a subfolder of images for each class."""
    names = [f"classes/{label}/{number}.{'jpg' if number % 4 else 'png'}" for number, label in enumerate(_labels())]
    save_images(folder, small_images(12), names[:12])


def save_tar(folder: Path) -> None:
    """A folder of two .tar shards."""
    write_shards(folder / "shards", NUM, 2)


def save_tables(folder: Path, num_shards: int = 2) -> None:
    """A folder of .parquet shards in the layout of Hugging Face."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pictures import encoded, pixels

    layout = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(CLASSES)}}
    about = {"huggingface": json.dumps({"info": {"features": layout}})}
    (folder / "tables").mkdir()
    for shard in range(num_shards):
        numbers = range(shard * NUM // num_shards, (shard + 1) * NUM // num_shards)
        images = [{"bytes": encoded(pixels(number)), "path": f"{number}.png"} for number in numbers]
        table = pa.table({"image": images, "label": [number % 3 for number in numbers]})
        path = folder / "tables" / f"train-{shard:05d}-of-{num_shards:05d}.parquet"
        pq.write_table(table.replace_schema_metadata(about), path)


def save_votes(folder: Path) -> None:
    """votes.csv: three annotators, who disagree now and then; and its images."""
    names = [f"voted/{number}.png" for number in range(12)]
    save_images(folder, small_images(12), names)
    others = [CLASSES[(number + number // 5) % 3] for number in range(12)]
    rows = [[name, label, label, other] for name, label, other in zip(names, _labels(), others, strict=False)]
    _write(folder / "votes.csv", [["path", "anna", "ben", "carl"], *rows])


@dataclass(frozen=True)
class Samples:
    """A kind of samples: what saves them in a folder, and the words of `dividemix train` for them."""

    save: Callable[[Path], object]
    words: list[str]


SAMPLES = {
    "rows": Samples(save_rows, ROWS),
    "texts": Samples(save_texts, TEXTS),
    "vectors": Samples(save_vectors, VECTORS),
    "folder": Samples(save_folder, FOLDER),
    "tar shards": Samples(save_tar, TAR),
    "parquet shards": Samples(save_tables, PARQUET),
    "votes": Samples(save_votes, VOTES),
    "encoded": Samples(save_toy, ENCODED),
}


def save_every_kind(folder: Path) -> None:
    """All of the above."""
    for samples in SAMPLES.values():
        samples.save(folder)


def train_on(words: Sequence[str]) -> Call:
    """The command `dividemix train` with these words."""
    return lambda: main(["train", *words])


def trained_model(kind: str) -> Callable[[Path], object]:
    """A function that makes samples of a kind and, next to them, the model of a run on them."""

    def inputs(folder: Path) -> None:
        SAMPLES[kind].save(folder)
        assert quietly(train_on(SAMPLES[kind].words), folder) == 0
        (folder / "run" / "model").rename(folder / "model")

    return inputs
