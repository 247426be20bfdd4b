"""Two processes of one thread each against one process of two threads: a step of net k, an epoch of the embedded set.

The nets are not compiled and use torch's kernels, so that both sides compute the same way. Communication is the time
inside collectives, which includes waiting for the other process. On a busy machine the ratio of processor seconds says
more than that of times: it counts what both processes do twice, and not the threads that have nothing to do.
"""

import atexit
import os
import socket
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.contract import Options, Outcome, Row
from benchmarks.subject import array_data, draw_images, two_nets
from benchmarks.timing import apart, readable
from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import train_epoch
from dividemix.engine import processes
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.shared_net import share_net
from dividemix.engine.state import State
from dividemix.methods import find_method
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.loop import train_one
from dividemix.planning.plan import make_plan
from dividemix.planning.prepare import prepare

_GOAL = ">= 95 %"
_THREADS = 2

Seconds = tuple[float, float, float]  # of the work, of the processor, and of communication
Make = Callable[[], Callable[[], object]]  # called in its process, it returns the work


def run(options: Options) -> Outcome:
    """Steps of both widths, and an epoch."""
    batch_size = 8 if options.quick else 64
    outcome = Outcome([], {})
    for width, repeats in ((64, 3), (16, 9)):
        make = partial(_step, width, batch_size)
        _compare(
            f"step_w{width}", f"step, width {width}, batch {batch_size} + {batch_size}", make, repeats, options, outcome
        )
    make = partial(_epoch, 300 if options.quick else 1500)
    _compare("epoch", "epoch of embedded images, preset fashion", make, 3, options, outcome)
    return outcome


def _compare(name: str, what: str, make: Make, repeats: int, options: Options, outcome: Outcome) -> None:
    """Add to the outcome what the work costs on both sides, in turns."""
    one, two = apart(partial(_alone, make)), _joined(make)
    one(), two()  # the first time does not count
    rounds = [(one(), two()) for _ in range(1 if options.quick else repeats)]
    times, processor = ([alone[i] / both[i] for alone, both in rounds] for i in (0, 1))
    share = statistics.median(both[2] / both[0] for _, both in rounds)
    by_one, by_two = (readable(statistics.median(each[side][0] for each in rounds)) for side in (0, 1))
    outcome.rows.append(Row(f"{what}: speed of two processes", by_one, by_two, _range(times), _GOAL))
    outcome.rows.append(Row(f"{what}: the same by processor seconds", ratio=_range(processor)))
    outcome.rows.append(Row(f"{what}: share of communication", ratio=f"{share:.1%}"))
    figures = {
        "ratio": statistics.median(times),
        "processor_ratio": statistics.median(processor),
        "communication": share,
    }
    outcome.figures.update({f"processes_{name}_{key}": value for key, value in figures.items()})


def _range(ratios: Sequence[float]) -> str:
    """Median, least and most, in percent."""
    return f"{statistics.median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


def _alone(make: Make) -> Callable[[], Seconds]:
    """The work in one process of two threads."""
    torch.set_num_threads(_THREADS)
    work = make()

    def once() -> Seconds:
        start, processor = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - start, time.process_time() - processor, 0.0

    return once


def _joined(make: Make) -> Callable[[], Seconds]:
    """The work in two processes of one thread each; they meet at the first call."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    members: list[Callable[[], Seconds]] = [apart(partial(_Member, number, port, make)) for number in range(_THREADS)]
    pool = ThreadPoolExecutor(_THREADS)

    def once() -> Seconds:
        answers = [answer.result() for answer in [pool.submit(member) for member in members]]
        seconds, processor, spoken = zip(*answers, strict=True)
        return max(seconds), sum(processor), statistics.fmean(spoken)

    return once


class _Member:
    """One of the processes that share the work."""

    def __init__(self, number: int, port: int, make: Make):
        torch.set_num_threads(1)
        own = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": _THREADS, "MASTER_ADDR": "127.0.0.1"}
        os.environ.update({name: str(value) for name, value in (own | {"MASTER_PORT": port}).items()})
        self._make = make
        self._work: Callable[[], object] | None = None
        self._joined = ExitStack()
        atexit.register(self._joined.close)
        self._spoken = 0.0

    def __call__(self) -> Seconds:
        if self._work is None:
            self._joined.enter_context(processes.joined())
            self._joined.enter_context(processes.together())
            self._work = self._make()
            for name in ("all_reduce", "all_gather"):
                setattr(dist, name, self._timed(getattr(dist, name)))
        self._spoken, start, processor = 0.0, time.perf_counter(), time.process_time()
        self._work()
        return time.perf_counter() - start, time.process_time() - processor, self._spoken

    def _timed(self, collective: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            start = time.perf_counter()
            result = collective(*arguments, **settings)
            self._spoken += time.perf_counter() - start
            return result

        return call


def _step(width: int, batch_size: int) -> Callable[[], object]:
    """A step of net 1, its augmentation included."""
    keep_freed_memory()
    config = DivideMixSettings(net_width=width, batch_size=batch_size)
    data = array_data(*draw_images(2 * batch_size), config)
    nets = two_nets(config)
    for net in nets:
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        share_net(net, sync_batchnorm=False)
    state = State.start(nets, config)
    state.epoch = config.warmup_epochs + config.rampup_epochs
    index = torch.arange(2 * batch_size)
    prob = torch.rand(2 * batch_size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    division = Division(index[:batch_size], index[batch_size:], prob)
    return lambda: train_epoch(state, 0, division, data, config)


def _epoch(num_images: int) -> Callable[[], object]:
    """The same epoch after warm-up again and again."""
    keep_freed_memory()
    given = {"data": "fashion", "noise": "symmetric:0.5", "limit_train": num_images, "epochs": 20, "compile": "never"}
    job, material, state = prepare(make_plan({**given, "kernels": "torch"}).job)
    method, s = find_method(job.method), job.settings
    while method.phases(s)[0].num_epochs > state.epoch:
        train_one(method, state, material.sets, s)
    saved = {name: tensor.clone() for name, tensor in state.tensors().items()}
    epoch = state.epoch

    def work() -> object:
        state.load({name: tensor.clone() for name, tensor in saved.items()}, epoch)
        return train_one(method, state, material.sets, s)

    return work
