"""Ordinary training, what the paper calls Cross-Entropy: one net, every label believed."""

from collections.abc import Iterator
from dataclasses import replace

from dividemix.algorithm import dividemix
from dividemix.algorithm.dividemix import EpochReport
from dividemix.config import Config
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State


def num_nets(config: Config) -> int:
    """One, whatever the config."""
    return 1


def fit(state: State, data: TrainingData, config: Config) -> Iterator[EpochReport]:
    """Train on from `state`: DivideMix's warm-up, to the last epoch and without the confidence penalty."""
    yield from dividemix.fit(state, data, replace(config, warmup_epochs=config.epochs, confidence_penalty=False))
