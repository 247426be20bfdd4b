"""Ways to train, behind one shape: `fit(state, data, config)`, a generator with one report an epoch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dividemix.algorithm import dividemix
from dividemix.algorithm.dividemix import EpochReport
from dividemix.algorithm.state import State
from dividemix.algorithm.training_data import TrainingData
from dividemix.config import Config
from dividemix.methods import cross_entropy


@dataclass(frozen=True)
class Method:
    """How many nets a method trains, and its fit()."""

    num_nets: int
    fit: Callable[[State, TrainingData, Config], Iterator[EpochReport]]


METHODS: dict[str, Method] = {
    "dividemix": Method(2, dividemix.fit),
    "cross_entropy": Method(1, cross_entropy.fit),
}
