"""Single-bit flips in the files that are read back: each is noticed in one line, or what is read is the same.

Few flips by default; `FAULTS=all pytest -s tests/faults` tries 600 for each kind of file and prints what held.
"""

import io
import os
import random
import shutil
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from other_samples import save_tables
from small_model import small_images, small_model
from tar_shards import write_shards
from toys import SETTINGS, save_toy, toy_arrays, toy_job, trained

from dividemix.api import train
from dividemix.data.mapped import map_npy
from dividemix.data.readers import read_source
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.shards import list_shards
from dividemix.data.source import Skipped
from dividemix.encoders.vector_cache import cached
from dividemix.engine.checkpoint import load_checkpoint
from dividemix.errors import DamagedCacheWarning, InputError
from dividemix.experiments.finished import read_epochs
from dividemix.experiments.plans import PlannedRun
from dividemix.judging.issue_table import read_issue_table
from dividemix.judging.run_classes import run_classes
from dividemix.model.model import Model
from dividemix.planning.choices import Choice
from dividemix.report.of_files import content_of_files
from dividemix.runs.comparison import compare
from dividemix.runs.directory import RunDirectory, skipped_csv
from dividemix.runs.run import Run

NUM_FLIPS = 600 if os.environ.get("FAULTS") == "all" else 40
IMAGES = small_images(4)

TIMES = ("seconds", "cpu_seconds", "profile")


def flip(path: Path, content: bytes, bit: int) -> None:
    """Write the content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)


def try_flips(
    path: Path,
    read: Callable[[], Any],
    same: Callable[[Any, Any], bool],
    num_flips: int = NUM_FLIPS,
    of: str = "",
) -> dict[str, int]:
    """What became of flips all over a file: how many were noticed, and how many changed nothing that is read.

    `of` says what the file is of, where others have its name.
    """
    content, whole = path.read_bytes(), read()
    draws, held, messages = random.Random(path.name), {"noticed": 0, "harmless": 0}, list[str]()
    bits = draws.sample(range(8 * len(content)), min(num_flips, 8 * len(content)))
    for bit in bits:
        flip(path, content, bit)
        try:
            found = read()
        except (InputError, DamagedCacheWarning) as error:
            held["noticed"] += 1
            messages.append(str(error))
        else:
            assert same(found, whole), f"bit {bit} of {path.name} changes what is read, and nothing is said"
            held["harmless"] += 1
    path.write_bytes(content)
    assert not [message for message in messages if "\n" in message]
    print(f"{path.name}{of and f' of {of}'}: {len(bits)} flips, {held['noticed']} noticed, {held['harmless']} harmless")
    return held


def same_checkpoint(a: tuple[dict[str, torch.Tensor], Any], b: tuple[dict[str, torch.Tensor], Any]) -> bool:
    """Whether two checkpoints have the same tensors and facts."""
    return a[1] == b[1] and a[0].keys() == b[0].keys() and all(torch.equal(a[0][name], b[0][name]) for name in a[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with held-out samples after two of four epochs."""
    folder = tmp_path_factory.mktemp("flips")
    return trained(folder / "run", toy_job(folder, holdout=0.2, warmup_epochs=1), num_epochs=2).directory.path


@pytest.mark.parametrize("which", ["last", "best"])
@pytest.mark.parametrize("file", ["*.safetensors", "checkpoint.json"])
def test_a_flipped_bit_in_a_checkpoint(run: Path, which: str, file: str) -> None:
    """Row 2: the digest in a checkpoint's name was never compared."""
    folder = run / "checkpoints" / which
    (path,) = folder.glob(file)
    held = try_flips(path, lambda: load_checkpoint(folder), same_checkpoint)
    if file != "checkpoint.json":  # which has white space
        assert held["harmless"] == 0


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_flipped_bit_in_a_model(tmp_path: Path, file: str) -> None:
    """Row 2: 539 of 600 flips loaded silently; one bit took `evaluate` from 68.8 % to 10.0 %."""
    small_model().save_pretrained(tmp_path)

    def read() -> tuple[Any, Any]:
        model = Model.from_pretrained(tmp_path, device="cpu")
        return {**model.describe(), "versions": None}, model.predict_proba(IMAGES)

    held = try_flips(tmp_path / file, read, lambda a, b: a[0] == b[0] and np.array_equal(a[1], b[1]))
    if file != "config.json":
        assert held["harmless"] == 0


@pytest.mark.parametrize("file", ["metrics.jsonl", "config.yaml", "env.json"])
def test_a_flipped_bit_in_the_other_files_of_a_run(tmp_path: Path, file: str) -> None:
    """Row 8: four differences passed silently. Times, and where the data is, are not results."""
    save_toy(tmp_path)
    path = trained(tmp_path / "run", toy_job(tmp_path, noise="symmetric:0.4"), num_epochs=2).directory.path

    def read() -> tuple[Any, ...]:
        found = Run.load(path)
        rows = [{name: row[name] for name in row if name not in TIMES} for row in found.rows]  # type: ignore[literal-required]
        assert RunDirectory(path).read_environments() is not None
        return found.job.identity, rows, found.material.digest, found.state.epoch

    try_flips(path / file, read, lambda a, b: a == b)


@pytest.mark.parametrize("file", ["metrics.jsonl", "checkpoints/last/checkpoint.json"])
def test_a_flipped_bit_in_the_epochs_that_are_compared(tmp_path: Path, file: str) -> None:
    """`compare` and `reproduce` read them without loading the run, and compared no digest."""
    job = toy_job(tmp_path, method="cross_entropy", epochs=2)
    path, other = tmp_path / "run", tmp_path / "other"
    trained(path, job, num_epochs=2)
    shutil.copytree(path, other)

    def read() -> tuple[Any, ...]:
        rows = read_epochs(PlannedRun("run", job), tmp_path)
        curves = [run["curves"] for run in compare([path, other])["runs"]]
        return curves, [{name: row[name] for name in row if name not in TIMES} for row in rows]  # type: ignore[literal-required]

    try_flips(path / file, read, lambda a, b: a == b, of="a comparison")


def test_a_flipped_bit_in_the_choices_of_a_run(tmp_path: Path) -> None:
    """They are shown in the summary and the report, and had no digest."""
    job = toy_job(tmp_path)
    choices = [Choice("lr", 0.02, "a reason"), Choice("epochs", 4, "ten minutes")]
    path = Run.create(tmp_path / "run", job, choices=choices).directory.path
    try_flips(path / "choices.json", lambda: Run.load(path).choices, lambda a, b: a == b)


@pytest.mark.parametrize("file", ["skipped.csv", "notes.json"])
def test_a_flipped_bit_in_what_was_said_of_the_data_of_a_run(tmp_path: Path, file: str) -> None:
    """A run with its own copy of the data reads them back for its page, and they had no digest."""
    strange = 'a "word", =1+1\r\nof\0two lines\n'
    skipped = Skipped(f"{strange}.png", strange), Skipped("b", "")
    source = replace(read_source(str(save_toy(tmp_path))), skipped=skipped, notes=(strange, "another"))
    run = Run.create(tmp_path / "run", toy_job(tmp_path), source=source, keep_data=True)

    def read() -> tuple[Any, ...]:
        found = Run.load(run.directory.path).material
        return skipped_csv(found.skipped), found.notes

    try_flips(run.directory.path / file, read, lambda a, b: a == b)


@pytest.mark.parametrize("file", ["summary.json", "label_issues.csv"])
def test_a_flipped_bit_in_the_results_of_a_run(tmp_path: Path, file: str) -> None:
    """`compare` and `relabel --run` read them, and they had no digest. The time is not a result."""
    path = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1)).directory.path

    def read() -> tuple[Any, ...]:
        return {**RunDirectory(path).read_summary(), "seconds": 0}, read_issue_table(path)

    held = try_flips(path / file, read, lambda a, b: a == b)
    if file == "label_issues.csv":
        assert held["harmless"] == 0


def test_a_flipped_bit_in_the_data_of_a_run(tmp_path: Path) -> None:
    """A run on data from Python has its own copy, whose digest is in the checkpoint."""
    arrays = toy_arrays()
    run = train(arrays["x_train"], arrays["y_train"], out=tmp_path / "run", progress=False, **SETTINGS | {"epochs": 2})
    path = run.directory.path

    def read() -> tuple[Any, ...]:
        found = Run.load(path)
        pixels = found.material.everything.pixels(np.arange(len(found.material.labels)))
        return np.asarray(pixels).tobytes(), np.asarray(found.material.labels).tobytes(), found.material.classes

    try_flips(path / "data.npz", read, lambda a, b: a == b)


def test_a_flipped_bit_in_stored_noise(tmp_path: Path) -> None:
    """A run whose noise is from a file resumes from its own copy, noise.json; the digest of the data has its labels."""
    first = trained(tmp_path / "first", toy_job(tmp_path, method="cross_entropy"), num_epochs=1).directory.path
    job = toy_job(tmp_path, method="cross_entropy", noise=f"file:{first / 'noise.json'}")
    path = trained(tmp_path / "run", job, num_epochs=1).directory.path

    def read() -> tuple[Any, ...]:
        found = Run.load(path)
        return np.asarray(found.material.labels).tobytes(), found.material.digest

    try_flips(path / "noise.json", read, lambda a, b: a == b)


@pytest.mark.parametrize("file", ["pred_probs.npy", "model/config.json", "model/model.safetensors"])
def test_a_flipped_bit_in_what_a_review_shows(tmp_path: Path, file: str) -> None:
    """`review` and `share` took the probabilities and the classes as they were."""
    path = trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1)).directory.path

    def read() -> tuple[Any, ...]:
        shown = content_of_files(path)
        return shown.probs.tobytes(), shown.classes, run_classes(path)

    try_flips(path / file, read, lambda a, b: a == b, of="a review")


def _texts() -> dict[str, Any]:
    labels = ["ab"[number % 2] for number in range(24)]
    words = [f"thing {label} {number % 3}" for number, label in enumerate(labels)]
    return {"data": words, "labels": labels, "method": "cross_entropy", "epochs": 1}


def _rows() -> dict[str, Any]:
    rows = [{"size": number % 5 + 0.5, "shape": "xy"[number % 2], "kind": "ab"[number % 2]} for number in range(24)]
    return {"data": rows, "target": "kind", "learner": "extra_trees", "num_trees": 2, "epochs": 2}


@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_a_flipped_bit_in_texts_and_rows_of_a_run_and_in_their_models(tmp_path: Path, kind: str) -> None:
    """The copy of a program's texts or rows, the trees, and the terms of TF-IDF."""
    given = _texts() if kind == "texts" else _rows()
    samples = given["data"]
    path = train(out=tmp_path / "run", progress=False, device="cpu", **given).directory.path

    def read() -> tuple[Any, ...]:
        found = Run.load(path, to_train=False).material
        return found.digest, found.classes, np.asarray(found.labels).tobytes()

    def predict() -> tuple[Any, ...]:
        model = Model.from_pretrained(path / "model", device="cpu")
        return {**model.describe(), "versions": None}, model.predict_proba(samples).tobytes()

    try_flips(path / "data.npz", read, lambda a, b: a == b, of=kind)
    for file in ("model.safetensors", "config.json"):
        try_flips(path / "model" / file, predict, lambda a, b: a == b, of=kind)


def noticing(read: Callable[[], Any]) -> Callable[[], Any]:
    """The function, with the warning that something in the cache is damaged raised."""

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DamagedCacheWarning)
            return read()

    return run


def test_a_flipped_bit_in_the_index_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    folder = write_shards(tmp_path / "set", 12, 1)

    def read() -> tuple[Any, ...]:
        shards = find_shards(str(folder))
        assert shards is not None
        found, _ = list_shards(shards)
        return list(found.paths), found.labels, None if found.sizes is None else found.sizes.tobytes()

    read()
    (path,) = (tmp_path / "cache" / "shards").iterdir()
    try_flips(path, noticing(read), lambda a, b: a == b)


def test_a_flipped_bit_in_the_copied_images_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the size of the copy was compared."""
    monkeypatch.setenv("DIVIDEMIX_CACHE", str(tmp_path / "cache"))
    save_tables(tmp_path, 1)

    def read() -> bytes:
        return np.asarray(read_source(str(tmp_path / "tables")).train_samples[:]).tobytes()

    read()
    (path,) = (tmp_path / "cache" / "shards").glob("*.images")
    assert try_flips(path, read, lambda a, b: a == b)["harmless"] == 0


@pytest.mark.parametrize("file", ["vectors.npy", "chunks.json"])
def test_a_flipped_bit_in_cached_vectors(tmp_path: Path, file: str) -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)

    def read() -> bytes:
        return cached(tmp_path, 20, lambda chunks: [vectors[chunk.start : chunk.stop] for chunk in chunks]).tobytes()

    read()
    try_flips(tmp_path / file, noticing(read), lambda a, b: a == b, of="the cache")


def test_a_bracket_that_is_lost_in_the_header_of_an_array(tmp_path: Path) -> None:
    """NumPy reads the header as a word of Python, and its error is not one of those for other damage."""
    array = io.BytesIO()
    np.save(array, toy_arrays()["x_train"])
    content = array.getvalue().replace(b"}", b" ", 1)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x_train.npy", content)
    with pytest.raises(InputError, match=r"a\.npy: not an \.npy file, or cut short"):
        map_npy(tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"a\.npz"):
        read_source(str(tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }", "not an .npy file, or cut"),
        ("{'descr': [('a', '<f4', (3,))], 'fortran_order': False, 'shape': (2,), }", "has named fields: save numbers"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "has Python objects: save numbers"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': 4, }", "not an .npy file, or cut"),
    ],
)
def test_the_header_of_an_array_that_says_what_it_cannot_be(tmp_path: Path, header: str, message: str) -> None:
    """A digit that was changed made a shape too large for NumPy, and a bracket made rows with fields that are lists."""
    size = len(header.encode()).to_bytes(2, "little")
    content = b"\x93NUMPY\x01\x00" + size + header.encode() + bytes(64)
    (tmp_path / "vectors.npy").write_bytes(content)
    with pytest.raises(InputError, match=message):
        map_npy(tmp_path / "vectors.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("features.npy", content)
        archive.writestr("labels.npy", content)
    with pytest.raises(InputError, match=r"a\.npz"):
        read_source(str(tmp_path / "a.npz"))
