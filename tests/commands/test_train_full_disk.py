"""A disk that fills up under dividemix train, against a training that had space."""

import contextlib
import errno
import itertools
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from injected import full_disk
from toys import settled, tree
from workshop import QUICK, WITHOUT_WARMUP, succeed, the_line, tree_here

from dividemix.cli import main

pytestmark = pytest.mark.usefixtures("workshop")


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fills_up_at_any_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str], step: int) -> None:
    """Whatever write fails, there is one line, no half file, and with space again the run continues to the same end."""
    arguments = [*WITHOUT_WARMUP, "--method", "cross_entropy", "--noise", "symmetric:0.4"]
    succeed(*arguments, "--out", "straight")
    expected = settled(tmp_path / "straight")
    for at in itertools.count(step=step):
        out = tmp_path / f"run{at}"
        capsys.readouterr()
        with full_disk(tmp_path, at) as fault:
            code = main(["train", *arguments, "--out", out.name])
        if not fault.happened:
            break
        error = capsys.readouterr().err
        assert code == 2
        assert error.startswith("dividemix: error: ")
        assert "No space left on device" in error
        assert out.name in error, "the line does not say where"
        assert error.count("\n") == 1
        left = tree(tmp_path)
        assert not [name for name in left if name.endswith((".tmp", ".partial"))]
        for line in (left.get(f"run{at}/metrics.jsonl") or b"").splitlines():
            json.loads(line)
        succeed(*arguments, "--out", out.name, "--resume")
        assert settled(out) == expected
    assert at > 20


@contextlib.contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """The kernel lets no file grow beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("num_bytes", [100, 1000, 8000])
def test_a_limit_of_the_kernel_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], num_bytes: int
) -> None:
    before = tree(tmp_path)
    with largest_file(num_bytes):
        code = main(["train", *QUICK, "--out", "run"])
    error = capsys.readouterr().err
    assert code == 2
    assert os.strerror(errno.EFBIG) in the_line(error, before)


def test_a_full_disk_leaves_the_run_that_was_to_be_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    before = tree_here()
    capsys.readouterr()
    with largest_file(1000):
        assert main(["train", *QUICK, "--out", "run", "--overwrite"]) == 2
    the_line(capsys.readouterr().err, before)
