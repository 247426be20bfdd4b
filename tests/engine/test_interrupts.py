"""Interrupts against signals that the test sends to itself."""

import os
import signal
import threading

import pytest

from dividemix.engine.interrupts import SIGNALS, Interrupted, Interrupts

ALL = pytest.mark.parametrize("number", SIGNALS)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@ALL
def test_a_signal_stops_the_block_at_once(number: signal.Signals) -> None:
    reached = []

    def block() -> None:
        with Interrupts():
            send(number)
            reached.append("after")

    with pytest.raises(Interrupted, match=number.name) as caught:
        block()
    assert caught.value.number == number
    assert not reached


@ALL
def test_the_handlers_from_before_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with Interrupts():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before
    with pytest.raises(Interrupted), Interrupts():
        send(number)
    assert signal.getsignal(number) == before


def test_another_thread_continues() -> None:
    """Saves are written by a thread, which must not be cut short."""
    go_on, done = threading.Event(), []

    def work() -> None:
        go_on.wait(5)
        done.append("saved")

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(Interrupted), Interrupts():
        send(signal.SIGTERM)
    go_on.set()
    thread.join()
    assert done == ["saved"]


def test_code_that_only_knows_ctrl_c_sees_one() -> None:
    """A library's `except Exception` must not swallow the wish to stop."""
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


def test_a_second_signal_does_not_disturb_the_saving() -> None:
    """A cluster may send SIGUSR2 at a time limit and SIGTERM a moment later."""
    saved = []

    def block() -> None:
        with Interrupts():
            try:
                send(signal.SIGUSR2)
            finally:
                send(signal.SIGTERM)
                saved.append("saved")

    with pytest.raises(Interrupted, match="SIGUSR2"):
        block()
    assert saved == ["saved"]


def test_a_lost_process_is_the_only_reason_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchrun sends SIGTERM to the other processes a moment after one was lost. Oracle: only Ctrl-C still counts."""
    import torch.distributed  # noqa: F401

    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        with pytest.raises(RuntimeError, match="peer"), Interrupts():
            raise RuntimeError("gloo: Connection closed by peer")
        ignored = {number for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN}
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ignored == set(SIGNALS) - {signal.SIGINT}
