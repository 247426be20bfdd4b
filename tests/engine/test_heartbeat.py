"""Signs of life between processes, over real sockets of this machine. What ends a process is caught by the test."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest

from dividemix.engine import heartbeat
from dividemix.engine.heartbeat import Heartbeat, Listener, connect
from dividemix.errors import InputError

# The test ends the thread instead of the process.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

_MANY = 400  # rounds of a test: a few seconds at most


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The exit codes with which processes would have ended. Rounds are short."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise SystemExit  # of the thread

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(heartbeat, "_PAUSE", 0.01)
    return codes


def _until(happened: Callable[[], object]) -> bool:
    for _ in range(_MANY):
        if happened():
            return True
        time.sleep(0.01)
    return False


def test_processes_that_answer_go_on_until_both_stop(ended: list[int]) -> None:
    here, there = socket.socketpair()
    first, second = Heartbeat({1: here}, 2), Heartbeat({0: there}, 2)
    time.sleep(1.0)  # three times the rounds of a silence that ends
    first.stop()
    second.stop()
    assert ended == []


def test_silence_ends_the_process_with_one_line(ended: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    here, there = socket.socketpair()
    beat = Heartbeat({3: here}, 4)
    assert _until(lambda: ended)
    beat.stop()
    there.close()
    assert ended == [2]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dividemix: error: process 3 of 4 has not answered for ")
    assert line.endswith("dividemix resume continues the run")


def test_a_closed_connection_ends_the_process_sooner(ended: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    here, there = socket.socketpair()
    there.close()
    beat = Heartbeat({1: here}, 2)
    assert _until(lambda: ended)
    beat.stop()
    assert "process 1 of 2 has ended" in capsys.readouterr().err


def test_of_several_processes_on_a_machine_one_says_that_the_first_is_lost(
    ended: list[int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    here, there = socket.socketpair()
    there.close()
    beat = Heartbeat({0: here}, 4)
    assert _until(lambda: ended)
    beat.stop()
    assert capsys.readouterr().err == ""


def test_only_who_has_the_ticket_is_taken_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger that was silent for a minute, or hung up, ended the training before it began."""
    monkeypatch.setattr(heartbeat, "_SPEAKING", 0.05)
    listener = Listener()
    port = int(listener.ticket.partition(":")[0])
    silent, rude = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
    rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets the connection
    rude.close()
    stranger = socket.create_connection(("127.0.0.1", port))
    stranger.sendall(b"x" * 20)
    gone = socket.create_connection(("127.0.0.1", port))
    gone.close()
    others = [threading.Thread(target=connect, args=("127.0.0.1", listener.ticket, number)) for number in (1, 2)]
    for thread in others:
        thread.start()
    found = listener.accept(2)
    for thread in others:
        thread.join()
    assert sorted(found) == [1, 2]
    stranger.settimeout(5)
    assert stranger.recv(1) == b""
    for peer in (*found.values(), stranger, silent):
        peer.close()


def test_a_process_that_does_not_come_or_cannot_connect_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_JOINING", 0.05)
    listener = Listener()
    with pytest.raises(InputError, match="only 0 of 1 processes connected"):
        listener.accept(1)
    with pytest.raises(InputError, match=r"cannot connect to the first process at 127\.0\.0\.1"):
        connect("127.0.0.1", listener.ticket, 1)
