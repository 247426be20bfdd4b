"""Meta-Cleaner (Zhang, Wang, Qiao, CVPR 2019): K images of one class make one clean feature.

A step has n groups of K images with the same given label. A small net sees the K features of a group together and gives
each image a weight; the weighted mean of the features goes to the classifier in place of the images:
    a = softmax(MLP([v_1; ...; v_K]))    v = sum_k a_k v_k    L = CE(W v + b, label)
Predictions are made without the small net: W v + b for each image.

Re-implemented from the description: there is no public code. Certain are the concatenated features, the weighted sum
before the classifier and the training end to end. K = 5, one hidden layer of 256 units, softmax, classes drawn equally
often, and a last layer that starts at 0, so that the first v is the plain mean, are ours.

Shapes: n groups of K images, D features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

# Nothing is published but results, on Clothing1M: this is DivideMix's schedule for it.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "clothing1m": {"epochs": 80, "batch_size": 32, "lr": 0.002, "lr_drop_epoch": 40, "weight_decay": 1e-3}
}

_HIDDEN = 256
LAYERS = ("hidden_weight", "hidden_bias", "last_weight", "last_bias")  # State.buffers: the small net


@dataclass(frozen=True, kw_only=True)
class MetaCleanerSettings(MethodSettings):
    """One setting."""

    group_size: int = setting(5, "K: images of one class that make one feature", low=1, high=1024)


class MetaCleaner(Method):
    """Training on weighted means of features. The optimiser of the net trains the small net, too."""

    settings = MetaCleanerSettings
    double_backward = True  # no second derivatives, but a compiled net would not see the layer before its classifier

    def start(self, state: State, sets: TrainingSets, s: MetaCleanerSettings) -> None:
        """Add the small net."""
        from dividemix.methods.last_layer import last_linear

        weight = last_linear(state.nets[0]).weight
        K, D = s.group_size, weight.shape[1]
        bound = (K * D) ** -0.5
        shapes = (_HIDDEN, K * D), (_HIDDEN,)
        hidden = [(2 * torch.rand(shape, generator=state.draws) - 1) * bound for shape in shapes]
        for name, layer in zip(LAYERS, (*hidden, torch.zeros(K, _HIDDEN), torch.zeros(K)), strict=True):
            state.buffers[name] = layer.to(weight).requires_grad_()
        state.learners[0].optimizer.add_param_group({"params": small_net(state)})

    def epoch(self, state: State, sets: TrainingSets, s: MetaCleanerSettings) -> EpochReport:
        """An epoch of steps of n K samples."""
        from dividemix.engine.processes import alone
        from dividemix.methods.last_layer import last_linear

        data, learner = sets.train, state.learners[0]
        net, layers = learner.net.train(), small_net(state)
        batches = grouped_batches(data, s, state.draws)
        total = torch.zeros((), device=data.labels.device)
        hook = last_linear(net).register_forward_pre_hook(
            lambda _, inputs: (cleaned(inputs[0].unflatten(0, (-1, s.group_size)), layers),)
        )
        try:
            steps = zip(batches, data.augmented(batches, state.views), strict=True)
            for index, x in state.progress.watch("meta-cleaner", steps, len(batches)):
                with alone():  # of several processes each computes all groups: the net mixes rows
                    logits = net(x)
                loss = F.cross_entropy(logits, data.labels[index[:: s.group_size]])
                learner.descend(loss)
                total += loss.detach()
                state.progress.lap("forward_backward")
        finally:
            hook.remove()
        return EpochReport({"loss": [(total / len(batches)).item()]})


def cleaned(features: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """The weighted mean (n, D) of the features (n, K, D) of each group."""
    return (group_weights(features, layers)[..., None] * features).sum(dim=1)


def group_weights(features: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """The weight (n, K) of each image in its group, by the small net; the sum of a group's is 1."""
    weight, bias, last_weight, last_bias = layers
    hidden = F.relu(F.linear(features.flatten(1), weight, bias))
    return F.softmax(F.linear(hidden, last_weight, last_bias), dim=1)


def small_net(state: State) -> list[Tensor]:
    """The layers of the small net."""
    return [state.buffers[name] for name in LAYERS]


def grouped_batches(data: TrainingData, s: MetaCleanerSettings, generator: torch.Generator) -> Tensor:
    """Batches (number, n K) of whole groups, K samples of one class each; classes come equally often.

    A class with fewer than K samples repeats them. An epoch draws as many samples as an ordinary one.
    """
    from dividemix.data.draw import draw

    K, labels = s.group_size, data.labels.cpu()
    num_groups = max(2 * s.batch_size // K, 1)
    num_batches = s.balanced_batches or -(-len(labels) // (num_groups * K))
    classes = draw(labels.unique(), num_batches, num_groups, generator)
    batches = torch.empty(num_batches, num_groups, K, dtype=torch.int64)
    for label in classes.unique():
        places = classes == label
        batches[places] = draw((labels == label).nonzero().squeeze(1), int(places.sum()), K, generator)
    return batches.flatten(1)


METHOD = MetaCleaner()
