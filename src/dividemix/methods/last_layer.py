"""The linear layer, or the head, that gives a net's logits: found, what goes into it, and given one more output.

Shapes: n images, N samples, D features.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.data.draw import sweep
from dividemix.data.training_data import TrainingData
from dividemix.engine.acceleration import in_type_of
from dividemix.engine.blocks import by_blocks
from dividemix.errors import InputError


def last_linear(net: nn.Module) -> nn.Linear:
    """The net's last nn.Linear, which gives the logits in all nets of the package.

    Raises:
        InputError: if it has none.
    """
    layers = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise InputError(f"the net {type(net).__name__} has no nn.Linear, whose features the method needs")
    return layers[-1]


@torch.no_grad()
def features(net: nn.Module, images: Tensor) -> Tensor:
    """The input (n, D) of the net's last linear layer for these images."""
    seen: list[Tensor] = []
    hook = last_linear(net).register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    try:
        type(net).forward(net, images)  # not net(images): a compiled net ignores new hooks
    finally:
        hook.remove()
    return seen[0]


def head_of(net: nn.Module) -> nn.Module:
    """The part that turns what the net knows of a sample into logits: its member `head`, else its last linear layer."""
    head = getattr(net, "head", None)
    return head if isinstance(head, nn.Module) else last_linear(net)


def head_input(net: nn.Module, x: Tensor) -> Tensor:
    """The input (n, D) of the net's head for these samples, with its gradient.

    It is what net(x) gives while the head returns what it gets: in the net's precision, shared by several processes.
    """
    head = head_of(net)
    head.forward = _unchanged
    try:
        with torch.compiler.set_stance("force_eager"):  # a compiled net has the head as it was
            sentences: Tensor = net(x)
    finally:
        del head.forward
    return sentences


def head_logits(net: nn.Module, sentences: Tensor) -> Tensor:
    """The logits (n, C) of the net's head for what it gets (n, D), in the net's precision."""
    return in_type_of(net, head_of(net))(sentences)


def _unchanged(x: Tensor) -> Tensor:
    return x


def features_of_all(net: nn.Module, data: TrainingData) -> Tensor:
    """The features (N, D) float16 of every sample without augmentation, on the CPU.

    Leaves the net in evaluation mode.
    """
    num_samples = len(data.labels)
    net.eval()
    batches = data.plain(sweep(num_samples, data.at_once))
    return torch.cat([features(net, x).half().cpu() for x in batches])[:num_samples].clone()


def add_output(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Give a linear layer one more output, of weight (1, D) and bias (1,), in training mode only.

    The layer's own parameters, and so its names in a checkpoint and its predictions, stay as they are.
    """
    plain: Callable[[Tensor], Tensor] = layer.forward

    def forward(features: Tensor) -> Tensor:
        logits = plain(features)
        return torch.cat([logits, by_blocks(F.linear, features, weight, bias)], dim=1) if layer.training else logits

    layer.forward = forward
