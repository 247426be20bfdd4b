"""Work by threads. Oracle: the same function in a plain loop."""

import threading
import time
from collections.abc import Iterator

import pytest

from dividemix.data.threads import map_ahead, map_each


def test_results_come_in_order_whatever_thread_is_first() -> None:
    def slow_at_first(number: int) -> int:
        time.sleep(0.01 if number < 3 else 0)
        return number * number

    batches = [[0, 1, 2], [], [3, 4], [5]]
    assert list(map_ahead(slow_at_first, batches)) == [[0, 1, 4], [], [9, 16], [25]]
    assert list(map_each(str, range(300))) == [str(number) for number in range(300)]
    assert list(map_each(str, [])) == []


def test_only_a_few_batches_are_taken_ahead() -> None:
    taken = []

    def batches() -> Iterator[list[int]]:
        for number in range(100):
            taken.append(number)
            yield [number]

    results = map_ahead(str, batches())
    assert next(results) == ["0"]
    assert len(taken) == 3
    assert next(results) == ["1"]
    assert len(taken) == 4


def test_an_error_comes_out_where_its_batch_is_taken_and_the_threads_end() -> None:
    def fails(number: int) -> int:
        if number == 3:
            raise KeyError(number)
        return number

    before = threading.active_count()
    results = map_ahead(fails, [[number] for number in range(50)])
    assert [next(results) for _ in range(3)] == [[0], [1], [2]]
    with pytest.raises(KeyError):
        next(results)
    assert threading.active_count() == before
