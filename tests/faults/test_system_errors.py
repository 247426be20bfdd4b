"""What the system refuses: files and memory; and weights that are no numbers."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from small_model import save_images, small_images, small_model
from toys import toy_job, trained
from workshop import spawn

from dividemix.cli import main
from dividemix.data.images import read_image
from dividemix.data.readers import read_source
from dividemix.engine.memory import is_out_of_memory
from dividemix.errors import InputError
from dividemix.experiments.finished import is_finished
from dividemix.experiments.plans import PlannedRun
from dividemix.model.model import Model


@contextmanager
def few_files() -> Iterator[None]:
    """While inside, the process can open no more files: all numbers below its limit are in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = list[int]()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_open_files_are_no_damaged_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Row 11: 60 of 120 images were skipped as damaged, exit code 0."""
    images = small_images(8)
    paths = save_images(tmp_path / "data", images, [f"{'ab'[number % 2]}/{number}.png" for number in range(8)])
    small_model().save_pretrained(tmp_path / "model")
    read_image(paths[0], 8, 8, 3)  # what Pillow loads on first use is there
    assert main(["predict", str(tmp_path / "model"), *map(str, paths)]) == 0
    capsys.readouterr()
    for read in (lambda: read_image(paths[0], 8, 8, 3), lambda: read_source(str(tmp_path / "data"))):
        with pytest.raises((OSError, InputError), match="Too many open files"), few_files():
            read()
    assert np.array_equal(
        np.asarray(read_source(str(tmp_path / "data")).train_samples), images[[0, 2, 4, 6, 1, 3, 5, 7]]
    )


def test_the_command_line_says_that_too_many_files_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 11: one line, exit code 2, and no file of predictions."""
    paths = save_images(tmp_path, small_images(4), [f"{number}.png" for number in range(4)])
    small_model().save_pretrained(tmp_path / "model")
    really_open = Path.open

    def refused(path: Path, mode: str = "r", *arguments: object, **options: object) -> object:
        if path == paths[2]:
            raise OSError(24, "Too many open files", str(path))
        return really_open(path, mode, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refused)
    out = tmp_path / "out.csv"
    assert main(["predict", str(tmp_path / "model"), *map(str, paths), "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"dividemix: error: {paths[2]}: cannot be read: Too many open files: allow more open files (ulimit -n)\n"
    )
    assert not out.exists()


def test_a_file_that_the_system_refuses_to_open_is_not_called_damaged(tmp_path: Path) -> None:
    """No advice to move or to make anything again: the files are whole."""
    planned = PlannedRun("run", toy_job(tmp_path, method="cross_entropy", epochs=1))
    directory = trained(tmp_path / "run", planned.job).directory
    directory.write_json("notes.json", ["a note"])
    reads: tuple[Callable[[], object], ...] = (
        lambda: is_finished(planned, tmp_path),
        directory.read_notes,
        lambda: Model.from_pretrained(directory.path, device="cpu"),
    )
    for read in reads:
        read()
        with pytest.raises(InputError, match=r"cannot be read: Too many open files$"), few_files():
            read()


def test_predictions_that_are_no_numbers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Row 11: `predict` wrote nan and exited with 0."""
    model = small_model()
    next(model.ensemble.nets[1].parameters()).data.fill_(float("nan"))
    model.save_pretrained(tmp_path / "model")
    (image,) = save_images(tmp_path, small_images(1), ["x.png"])
    assert main(["predict", str(tmp_path / "model"), str(image), "--out", str(tmp_path / "out.csv")]) == 2
    error = capsys.readouterr().err
    assert error == (
        "dividemix: error: the model's probabilities are not finite: its weights are damaged; train it again\n"
    )
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InputError, match="not finite"):
        model.predict_proba(small_images(2))


def test_one_dnns_lack_of_memory_is_recognised() -> None:
    """Row 11: two tracebacks. oneDNN's own messages; others of its messages are no lack of memory."""
    for words in ("could not create a primitive", "could not create a memory object", "could not execute a primitive"):
        assert is_out_of_memory(RuntimeError(words))
        assert not is_out_of_memory(ValueError(words))
    assert not is_out_of_memory(RuntimeError("could not create a primitive descriptor for a convolution"))


@pytest.mark.slow
def test_a_convolution_without_memory_is_recognised_wherever_it_fails() -> None:
    """Row 11: the address space is limited to a little more than a convolution has, at several amounts."""
    code = """
import resource, sys
import torch
from dividemix.engine.memory import is_out_of_memory
torch.set_num_threads(1)
net = torch.nn.Conv2d(64, 64, 3, padding=1)
x = torch.randn(16, 64, 64, 64).to(memory_format=torch.channels_last)
(used,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used * 1024 + int(sys.argv[1]) * 10**6,) * 2)
try:
    net(x).sum().backward()
    print("fine")
except (RuntimeError, MemoryError) as error:
    print(is_out_of_memory(error), error)
"""
    said = {spawn(code, str(megabytes)).stdout.split()[0] for megabytes in (1, 10, 17, 18, 19, 25, 40, 2000)}
    assert said == {"True", "fine"}
