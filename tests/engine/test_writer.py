"""The writer against the order in which a list grows; events make sure that a save is still under way."""

import threading
from functools import partial

import pytest

from dividemix.engine.writer import Writer


def test_a_save_runs_while_the_caller_continues_and_leaving_waits_for_it() -> None:
    go_on, done = threading.Event(), []

    def save() -> None:
        go_on.wait(5)
        done.append(threading.current_thread())

    with Writer() as writer:
        writer.submit(save)
        assert not done
        go_on.set()
    assert done[0] is not threading.current_thread()


def test_saves_happen_one_at_a_time_in_order() -> None:
    log = []

    def save(number: int) -> None:
        log.extend([("begin", number), ("end", number)])

    with Writer() as writer:
        for number in range(50):
            writer.submit(partial(save, number))
            assert ("end", number - 1) in log or number == 0
    assert log == [(word, number) for number in range(50) for word in ("begin", "end")]


def fail() -> None:
    raise OSError("disk full")


def test_an_error_comes_up_at_the_next_save_which_does_not_happen() -> None:
    done = []
    writer = Writer()
    writer.submit(fail)
    with pytest.raises(OSError, match="disk full"):
        writer.submit(lambda: done.append(1))
    with writer:
        pass
    assert not done


def test_an_error_of_the_last_save_comes_up_on_leaving() -> None:
    with pytest.raises(OSError, match="disk full"), Writer() as writer:
        writer.submit(fail)


def test_an_interrupt_of_the_caller_lets_the_save_finish() -> None:
    done = []

    def stopped() -> None:
        with Writer() as writer:
            writer.submit(lambda: done.append(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert done == [1]
