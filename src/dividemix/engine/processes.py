"""The processes of one training: who they are, and how they speak to each other. No torch import.

`torchrun` starts the processes and tells each its number by the environment. All of them hold the same state and make
the same steps; `engine/shared_net.py` divides the work of the nets. The first process alone writes and prints. Without
`torchrun`, and outside of `joined`, there is one process and everything here does nothing.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from dividemix.engine.heartbeat import Heartbeat, Listener, connect
from dividemix.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_T = TypeVar("_T")
_is_joined = False
_is_together = False


def started_by_torchrun() -> bool:
    """Whether this process is one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def rank() -> int:
    """The number of this process, from 0; that of the process which writes and prints is 0."""
    return int(os.environ["RANK"]) if started_by_torchrun() else 0


def num_joined() -> int:
    """The number of processes that can compute together."""
    return int(os.environ["WORLD_SIZE"]) if _is_joined else 1


def count() -> int:
    """The number of processes that compute together now."""
    return num_joined() if _is_together else 1


def own_number() -> int:
    """The number of this process among those that compute together now."""
    return rank() if _is_together else 0


def own_gpu() -> int | None:
    """The number of the GPU that belongs to this process; None: it may use any."""
    return int(os.environ.get("LOCAL_RANK", "0")) if _is_joined else None


@contextmanager
def joined() -> Iterator[None]:
    """While inside, the processes that torchrun started can compute together."""
    global _is_joined
    if _is_joined or not started_by_torchrun():
        yield
        return
    import torch
    import torch.distributed as dist

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    # The first process may read and encode data for hours: not a time-out but the heartbeat tells of a lost process.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(days=7))
    _is_joined = True
    try:
        heartbeat = _start_heartbeat()
        try:
            yield
            wait()  # a process that leaves early would break the last words of another
        finally:
            heartbeat.stop()
    finally:
        _is_joined = False
        dist.destroy_process_group()


def _start_heartbeat() -> Heartbeat:
    """Connect all processes to the first. Raises InputError in all of them if one cannot be reached."""
    listener = Listener() if rank() == 0 else None
    ticket, problem = from_first(listener.ticket if listener else None), None
    try:
        peers = (
            listener.accept(num_joined() - 1) if listener else connect(os.environ["MASTER_ADDR"], str(ticket), rank())
        )
    except InputError as error:
        problem = str(error)
    agree(problem)
    return Heartbeat(peers, num_joined())


@contextmanager
def together() -> Iterator[None]:
    """While inside, all joined processes make the same steps and share the work of the nets."""
    global _is_together
    before, _is_together = _is_together, _is_joined
    try:
        yield
    finally:
        _is_together = before


@contextmanager
def alone() -> Iterator[None]:
    """While inside, this process computes everything itself, also within `together`."""
    global _is_together
    before, _is_together = _is_together, False
    try:
        yield
    finally:
        _is_together = before


def announce(what: str | None) -> None:
    """Say in the first process what comes next, to those that wait in `from_first`: a run directory; None: the end.

    The others have to call `agree` then, unless it is the end.

    Raises:
        InputError: if another process cannot take part.
    """
    if _is_joined:
        from_first(what)
        if what is not None:
            agree(None)


def agree(problem: str | None) -> None:
    """Wait for all processes. Raises InputError in each of them if any has a problem, which it names."""
    problems = [problem]
    if _is_joined:
        import torch.distributed as dist

        problems = [None] * num_joined()
        dist.all_gather_object(problems, problem)
    for number, one in enumerate(problems):
        if one is not None:
            raise InputError(f"process {number} of {len(problems)}: {one}")


def wait() -> None:
    """Wait until every process is here."""
    agree(None)


def from_first(value: _T) -> _T:
    """The value that the first process has, in all joined processes. The others wait for it."""
    if not _is_joined:
        return value
    import torch.distributed as dist

    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def take_from_first(tensors: Mapping[str, "Tensor"]) -> None:
    """Give the named tensors, in place, the values that they have in the first process."""
    if count() == 1:
        return
    import torch.distributed as dist

    for name in sorted(tensors):  # a state that was loaded has another order
        tensor = tensors[name]
        dense = tensor.contiguous()  # a collective sends memory as it is
        dist.broadcast(dense, src=0)
        if dense is not tensor:
            tensor.copy_(dense)


def is_lost_process(error: BaseException) -> bool:
    """Whether the error says that another process has ended or cannot be reached."""
    import sys

    if "torch.distributed" not in sys.modules or not started_by_torchrun():
        return False
    import torch.distributed as dist

    words = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
    known = isinstance(error, dist.DistError)
    return known or (isinstance(error, RuntimeError) and any(word in str(error) for word in words))
