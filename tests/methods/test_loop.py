"""The loop that all methods share: which weights it lets a method train. The oracle is the net before the training."""

import tiny
import torch
from tiny import TinyData, TinyNet

from dividemix.methods import METHODS, loop
from dividemix.methods.method import MethodSettings, TrainingSets

CROSS_ENTROPY = METHODS["cross_entropy"]


def test_weights_that_a_net_keeps_from_training_stay_after_the_head_was_trained_alone() -> None:
    """The second epoch trained them, too."""
    net = TinyNet(1)
    net.body.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in net.named_parameters()}
    s = MethodSettings(epochs=2, head_epochs=1, batch_size=4, lr=0.05)
    data = TinyData()
    state = tiny.start(CROSS_ENTROPY, s, data, nets=[net])
    changed = []
    for _ in loop.fit(CROSS_ENTROPY, state, TrainingSets(data), s):
        changed.append({name for name, weight in net.named_parameters() if not torch.equal(weight, before[name])})
    assert changed == [{"head.weight", "head.bias"}, before.keys() - {"body.weight", "body.bias"}]
