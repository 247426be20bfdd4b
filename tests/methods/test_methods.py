"""Methods behind one shape. Oracle of cross-entropy: DivideMix's own warm-up, which is that."""

import dataclasses

import pytest
import torch
from tiny import TinyData, tiny_nets

from dividemix.algorithm import dividemix
from dividemix.config import Config
from dividemix.engine.state import State
from dividemix.methods import METHODS

CONFIG = Config(epochs=4, warmup_epochs=1, batch_size=4, lr=0.05, lr_drop_epoch=3)


ALONE = dataclasses.replace(CONFIG, co_training=False)


@pytest.mark.parametrize(
    ("name", "config", "num_nets"),
    [("dividemix", CONFIG, 2), ("dividemix", ALONE, 1), ("cross_entropy", CONFIG, 1), ("cross_entropy", ALONE, 1)],
)
def test_each_method_trains_its_number_of_nets(name: str, config: Config, num_nets: int) -> None:
    method, data = METHODS[name], TinyData()
    assert method.num_nets(config) == num_nets
    state = State.start(tiny_nets(num_nets=num_nets), len(data.labels), config)
    reports = list(method.fit(state, data, config))
    assert [report.epoch for report in reports] == [1, 2, 3, 4]
    assert all(len(values) == num_nets for values in reports[-1].losses.values())


def test_every_method_is_tried() -> None:
    assert METHODS.keys() == {"dividemix", "cross_entropy"}


def test_cross_entropy_is_warm_up_to_the_end_without_a_penalty() -> None:
    data = TinyData()
    states = [State.start(tiny_nets(num_nets=1), len(data.labels), CONFIG) for _ in range(2)]
    asked = dataclasses.replace(CONFIG, confidence_penalty=True)
    reports = list(METHODS["cross_entropy"].fit(states[0], data, asked))
    assert {report.phase for report in reports} == {"warmup"}
    expected = list(dividemix.fit(states[1], data, dataclasses.replace(CONFIG, warmup_epochs=4)))
    assert [report.losses for report in reports] == [report.losses for report in expected]
    for a, b in zip(states[0].nets[0].parameters(), states[1].nets[0].parameters(), strict=True):
        assert torch.equal(a, b)
