"""A training whose images stay in shards. Oracle: the same training with the images in memory, bit for bit."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from toys import FLAGS, SETTINGS, finish, settled, toy_arrays, trained

from dividemix.data import assemble
from dividemix.data.image_files import ImageFiles
from dividemix.methods import METHODS
from dividemix.planning.job import Job, known_to
from dividemix.runs.run import Run


def toy_shards(folder: Path) -> str:
    """The toy images in four shards of PNG files."""
    arrays = toy_arrays()
    folder.mkdir()
    for shard in range(4):
        with tarfile.open(folder / f"train-{shard}.tar", "w") as archive:
            for number in range(shard * 10, shard * 10 + 10):
                picture = io.BytesIO()
                Image.fromarray(arrays["x_train"][number]).save(picture, "PNG")
                for name, content in ((f"{number}.png", picture.getvalue()), (f"{number}.cls", b"%d" % (number % 4))):
                    about = tarfile.TarInfo(name)
                    about.size = len(content)
                    archive.addfile(about, io.BytesIO(content))
    return str(folder)


def shard_job(data: str, **changes: Any) -> Job:
    settings = known_to(changes.get("method", "dividemix"), SETTINGS)
    return Job.of({"data": data, "noise": "symmetric:0.4"} | settings | changes)


@pytest.fixture(params=["few", "many"])
def number(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether all images are examined at the start, or a sample of them."""
    if request.param == "many":
        monkeypatch.setattr(assemble, "MANY", 30)
        monkeypatch.setattr(assemble, "_SAMPLE", 20)
    return str(request.param)


@pytest.mark.usefixtures("number")
@pytest.mark.parametrize("method", ["dividemix", "cross_entropy"])
def test_training_from_shards_is_that_from_memory(tmp_path: Path, method: str) -> None:
    data = toy_shards(tmp_path / "set")
    inside = trained(tmp_path / "inside", shard_job(data, method=method, epochs=3))
    outside = trained(tmp_path / "outside", shard_job(data, method=method, epochs=3, memory_gb=0.0))
    assert isinstance(outside.material.everything.images, ImageFiles)  # type: ignore[union-attr]
    here, there = settled(tmp_path / "inside"), settled(tmp_path / "outside")
    assert here.keys() == there.keys()
    differing = {name for name in here if here[name] != there[name]}
    assert differing <= {"config.yaml", "model/README.md"}  # memory_gb
    assert inside.material.digest == outside.material.digest


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs_vectors])
def test_every_method_trains_from_shards_as_from_memory(tmp_path: Path, method: str) -> None:
    data, more = toy_shards(tmp_path / "set"), {}
    if METHODS[method].needs_trusted:
        more["trusted"] = toy_shards(tmp_path / "trusted")
    inside, outside = (
        trained(tmp_path / str(gb), shard_job(data, method=method, epochs=2, memory_gb=gb, **more), 2)
        for gb in (4.0, 0.0)
    )
    expected, found = inside.state.tensors(), outside.state.tensors()
    assert expected.keys() == found.keys()
    assert [name for name in expected if not torch.equal(expected[name], found[name])] == []


@pytest.mark.usefixtures("number")
def test_a_training_that_is_killed_within_an_epoch_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shard_job(toy_shards(tmp_path / "set"), memory_gb=0.0)
    trained(tmp_path / "whole", job)
    read, left = ImageFiles._read, iter(range(100))

    def counted(self: ImageFiles, at: int) -> Any:
        if next(left, None) is None:  # in the middle of the third epoch
            os.kill(os.getpid(), signal.SIGKILL)
        return read(self, at)

    if (child := os.fork()) == 0:
        for row in Run.create(tmp_path / "killed", job).epochs():
            if row["epoch"] == 2:
                monkeypatch.setattr(ImageFiles, "_read", counted)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    run = Run.load(tmp_path / "killed")
    assert run.state.epoch in (1, 2)  # a thread was saving the second epoch
    finish(run)
    assert settled(tmp_path / "killed") == settled(tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_that_divide_the_reading_train_the_run_of_one(tmp_path: Path) -> None:
    words = ["train", toy_shards(tmp_path / "set"), "--memory_gb=0", "--sync_batchnorm=true", "--method=dividemix"]
    words += [*FLAGS, "--epochs=3", "--lr=0.002", "--noise=symmetric:0.4"]
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    for name, before in (("one", []), ("two", several)):
        command = [sys.executable, *before, "-m", "dividemix", *words, f"--out={tmp_path / name}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
    one, two = ((tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "two"))
    for alone, shared in zip(map(json.loads, one), map(json.loads, two), strict=True):
        for name, values in alone["losses"].items():
            assert shared["losses"][name] == pytest.approx(values, rel=1e-4, abs=1e-4), (alone["epoch"], name)
