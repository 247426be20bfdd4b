"""A trial forward, to learn about a net before it is trained."""

import torch
from torch import nn


def try_forward(net: nn.Module, image_shape: tuple[int, ...]) -> None:
    """Pass two blank images of (H, W, channels), or vectors of (D,), through net; it stays as it was."""
    *size, channels = image_shape
    was_training = net.training
    with torch.no_grad():
        net.eval()(torch.zeros(2, channels, *size, device=next(net.parameters()).device))
    net.train(was_training)
