"""Ways to train, behind one shape: `fit(state, data, config)`, a generator with one report an epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dividemix.algorithm import dividemix
from dividemix.algorithm.dividemix import EpochReport
from dividemix.config import Config
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.methods import cross_entropy


@dataclass(frozen=True)
class Method:
    """How many nets a method trains, and its fit()."""

    num_nets: Callable[[Config], int]
    fit: Callable[[State, TrainingData, Config], Iterator[EpochReport]]


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        InputError: if there is none; the message lists those that there are.
    """
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}: known are {', '.join(METHODS)}")
    return METHODS[name]


METHODS: dict[str, Method] = {
    "dividemix": Method(dividemix.num_nets, dividemix.fit),
    "cross_entropy": Method(cross_entropy.num_nets, cross_entropy.fit),
}
