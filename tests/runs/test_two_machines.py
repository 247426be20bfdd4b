"""One training by two machines: network namespaces with their own addresses and host names, joined by a cable.

Needs Linux, root and the command `ip`; elsewhere the tests are skipped. The oracle is one process.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TRAIN = (
    *("train", "fashion", "--noise=symmetric:0.4", "--limit_train=200", "--method=cross_entropy"),
    *("--net=small_cnn", "--net_width=2", "--batch_size=16", "--lr=0.002", "--sync_batchnorm=true"),
)
_ADDRESSES = {"a": "10.83.0.1", "b": "10.83.0.2"}


class Machines:
    """Two machines, a and b, and the cable between them."""

    def __init__(self) -> None:
        self.names = {machine: f"dm{os.getpid()}{machine}" for machine in _ADDRESSES}
        self._hosts = {machine: Path("/etc/netns") / name for machine, name in self.names.items()}

    def make(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {self.names[one]}" for one, address in _ADDRESSES.items())]
        for machine, name in self.names.items():
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
            self._hosts[machine].mkdir(parents=True)
            (self._hosts[machine] / "hosts").write_text("\n".join(lines) + "\n")
        a, b = self.names["a"], self.names["b"]
        _ip("link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b)
        for machine, address in _ADDRESSES.items():
            _ip("-n", self.names[machine], "address", "add", f"{address}/24", "dev", "cable")
        self.connect()

    def remove(self) -> None:
        for machine, name in self.names.items():
            self.kill(machine)
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
            shutil.rmtree(self._hosts[machine], ignore_errors=True)

    def connect(self) -> None:
        for name in self.names.values():
            _ip("-n", name, "link", "set", "cable", "up")

    def cut(self) -> None:
        """Nothing passes any more, and no connection is closed."""
        for name in self.names.values():
            _ip("-n", name, "link", "set", "cable", "down")

    def kill(self, machine: str) -> None:
        """Kill every process of the machine at once: torchrun and what it started."""
        listed = subprocess.run(
            ["ip", "netns", "pids", self.names[machine]], check=False, capture_output=True, text=True
        )
        for pid in listed.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def launch(self, *words: str) -> dict[str, "subprocess.Popen[str]"]:
        """Start torchrun on both machines."""
        rendezvous = ["--rdzv_backend=c10d", f"--rdzv_endpoint={self.names['a']}:29500"]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=1", *rendezvous]
        command = [*torchrun, "-m", "dividemix", *words]
        return {machine: self._start(name, command) for machine, name in self.names.items()}

    def _start(self, name: str, command: list[str]) -> "subprocess.Popen[str]":
        own_name = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]
        return subprocess.Popen(
            ["ip", "netns", "exec", name, *own_name, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def machines() -> Iterator[Machines]:
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("two machines need the commands ip and unshare of Linux")
    made = Machines()
    try:
        made.make()
    except (OSError, subprocess.CalledProcessError) as error:
        made.remove()
        pytest.skip(f"network namespaces cannot be made here: {error}")
    yield made
    made.remove()


def _rows(run: Path) -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def _wait_for_epoch(number: int, run: Path, sides: dict[str, "subprocess.Popen[str]"]) -> None:
    while len(_rows(run)) < number:
        assert all(side.poll() is None for side in sides.values())
        time.sleep(0.05)


@pytest.mark.slow
def test_a_cable_that_is_cut_for_some_seconds_changes_nothing(machines: Machines, tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    train = (*_TRAIN, "--epochs=4")
    subprocess.run([sys.executable, "-m", "dividemix", *train, f"--out={alone}"], check=True, capture_output=True)
    sides = machines.launch(*train, f"--out={both}")
    _wait_for_epoch(1, both, sides)
    machines.cut()
    time.sleep(4)
    machines.connect()
    said = {machine: side.communicate(timeout=240)[0] for machine, side in sides.items()}
    assert [side.returncode for side in sides.values()] == [0, 0], said
    assert sorted(words.count("epoch 4/4") for words in said.values()) == [0, 1]  # the first process prints, no other
    for one, two in zip(_rows(alone), _rows(both), strict=True):
        for name, values in one["losses"].items():
            assert two["losses"][name] == pytest.approx(values, rel=1e-4, abs=1e-4), (one["epoch"], name)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_machine_that_is_lost_ends_the_training_and_it_resumes(machines: Machines, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sides = machines.launch(*_TRAIN, "--epochs=12", f"--out={run}")
    _wait_for_epoch(1, run, sides)
    machines.kill("b")  # its system closes the connections: the other side ends within seconds
    killed = time.monotonic()
    said, _ = sides["a"].communicate(timeout=100)
    assert time.monotonic() - killed < 50, said
    assert sides["a"].returncode != 0
    assert said.count("another process of this training has ended: dividemix resume continues the run") == 1, said

    num_epochs = len(_rows(run))
    sides = machines.launch("resume", str(run))
    _wait_for_epoch(num_epochs + 1, run, sides)
    machines.cut()  # as if the current failed: only the silence tells
    machines.kill("b")
    said, _ = sides["a"].communicate(timeout=200)
    assert sides["a"].returncode != 0
    assert said.count("has not answered for 60 seconds: dividemix resume continues the run") == 1, said

    machines.connect()
    sides = machines.launch("resume", str(run))
    ends = {machine: side.communicate(timeout=240)[0] for machine, side in sides.items()}
    assert [side.returncode for side in sides.values()] == [0, 0], ends
    assert [row["epoch"] for row in _rows(run)] == list(range(1, 13))
