"""Methods that know only the training samples warn if they judge others. Oracle: the opinion by the losses."""

import pytest
import torch
from tiny import TinyData, tiny_nets

from dividemix.engine.state import State
from dividemix.errors import OtherOpinionWarning
from dividemix.methods import METHODS, loop
from dividemix.methods.evaluation import judge_by_loss
from dividemix.methods.method import TrainingSets


@pytest.mark.parametrize("name", ["pencil", "joint_optim", "forward_correction"])
def test_other_samples_are_judged_by_the_losses_with_a_warning(name: str) -> None:
    method, data, more = METHODS[name], TinyData(40), TinyData(50)
    s = method.settings(epochs=8, batch_size=4, lr=0.05)
    state = State.start(tiny_nets(num_nets=1), s)
    sets = TrainingSets(data)
    loop.start(method, state, sets, s)
    list(loop.fit(method, state, sets, s))
    expected = judge_by_loss(state, more).clean_prob
    with pytest.warns(OtherOpinionWarning, match="samples are held out"):
        judged = method.judge(state, more, s)
    assert torch.equal(judged.clean_prob, expected)
