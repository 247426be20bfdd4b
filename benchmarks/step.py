"""One training step of net k, batch 64 + 64, two views: plain, ours, ours with lambda_u = 0, and the arithmetic limit.

The limit is the time of the step's convolutions alone at the rate that torch reaches on them: each layer by itself, in
channels_last, with no BatchNorm, no activation and no loss. Where the convolutions are ours, and faster, a step can be
above it. Each of the four has a process of its own, which is asked in turn.
"""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks import plain
from benchmarks.contract import Options, Outcome, Row
from benchmarks.subject import array_data, draw_images, fast_nets, two_nets
from benchmarks.timing import Work, apart, medians, readable, timed
from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import train_epoch
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.state import State
from dividemix.methods.dividemix import DivideMixSettings

_GOALS = {
    64: {"ratio": ">= 1.35 x", "lambda0_ratio": ">= 2 x", "limit": ">= 95 %"},
    16: {"ratio": ">= 1.4 x", "lambda0_ratio": "", "limit": ""},
}

Layer = tuple[nn.Conv2d, torch.Size, torch.Size]  # a convolution, the shapes of one image's input and output


def run(options: Options) -> Outcome:
    """Both widths."""
    wide = _measure(64, batch_size=8 if options.quick else 64, num_steps=1, repeats=1 if options.quick else 3)
    narrow = _measure(16, batch_size=64, num_steps=1 if options.quick else 3, repeats=1 if options.quick else 9)
    return Outcome(wide.rows + narrow.rows, wide.figures | narrow.figures)


def _measure(width: int, *, batch_size: int, num_steps: int, repeats: int) -> Outcome:
    config = DivideMixSettings(net_width=width, batch_size=batch_size)
    shortcut = replace(config, lambda_u=0.0, labeled_only=True)
    works = {
        "plain": apart(partial(_plain, config)),
        "ours": apart(partial(_ours, config, num_steps)),
        "lambda0": apart(partial(_ours, shortcut, num_steps)),
        "limit": apart(partial(_limit, config)),
    }
    seconds = medians(works, repeats=repeats)
    name = f"step_w{width}"
    figures = {f"{name}_{way}_s": value for way, value in seconds.items()} | {
        f"{name}_ratio": seconds["plain"] / seconds["ours"],
        f"{name}_lambda0_ratio": seconds["plain"] / seconds["lambda0"],
        f"{name}_limit": seconds["limit"] / seconds["ours"],
    }
    what, goals = f"width {width}, batch {batch_size} + {batch_size}", _GOALS[width]
    shown = {way: readable(value) for way, value in seconds.items()}
    rows = [
        Row(what, shown["plain"], shown["ours"], f"{figures[f'{name}_ratio']:.2f} x", goals["ratio"]),
        Row(
            f"{what}, lambda_u = 0, labeled only",
            shown["plain"],
            shown["lambda0"],
            f"{figures[f'{name}_lambda0_ratio']:.2f} x",
            goals["lambda0_ratio"],
        ),
        Row(
            f"{what}: share of the limit, its convolutions by torch ({shown['limit']})",
            "",
            shown["ours"],
            f"{figures[f'{name}_limit']:.0%}",
            goals["limit"],
        ),
    ]
    return Outcome(rows, figures)


def _plain(config: DivideMixSettings) -> Work:
    """A plain step on batches that are decoded already."""
    net, peer = two_nets(config)
    optimizer = torch.optim.SGD(
        net.parameters(), lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay
    )
    x_views, u_views = ([torch.randn(config.batch_size, 3, 32, 32) for _ in range(2)] for _ in range(2))
    labels, clean_prob = torch.randint(10, (config.batch_size,)), torch.rand(config.batch_size)
    net.train()
    peer.eval()
    return timed(
        lambda: plain.train_step(
            net,
            peer,
            optimizer,
            x_views,
            labels,
            clean_prob,
            u_views,
            lambda_u=config.lambda_u,
            config=config,
        )
    )


def _ours(config: DivideMixSettings, num_steps: int) -> Work:
    """A step of ours, its augmentation included, in a process that is set up as a run's is."""
    keep_freed_memory()
    num_labeled = config.batch_size * num_steps
    data = array_data(*draw_images(2 * num_labeled), config)
    state = State.start(fast_nets(config), config)
    state.epoch = config.warmup_epochs + config.rampup_epochs
    index = torch.arange(2 * num_labeled)
    division = Division(index[:num_labeled], index[num_labeled:], torch.rand(2 * num_labeled, dtype=torch.float64))
    return lambda: timed(lambda: train_epoch(state, 0, division, data, config))() / num_steps


def _limit(config: DivideMixSettings) -> Work:
    """The convolutions of a step: 4 B and 2 B rows forward (own net, peer), 4 B rows forward and backward."""
    keep_freed_memory()
    net = two_nets(config)[0].to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    layers = _convolutions(net)
    B = config.batch_size

    def seconds() -> float:
        total = 0.0
        for position, (conv, shape_in, shape_out) in enumerate(layers):
            with torch.inference_mode():
                for num_rows in (4 * B, 2 * B):
                    total += timed(partial(conv, _draw(num_rows, shape_in)))()
            x, gradient = _draw(4 * B, shape_in), _draw(4 * B, shape_out)
            x.requires_grad_(position > 0)  # the first layer's input is the image
            conv.weight.grad = None
            total += timed(partial(_forward_backward, conv, x, gradient))()
        return total

    return seconds


def _convolutions(net: nn.Module) -> list[Layer]:
    """Every convolution of the net in the order in which an image passes them."""
    layers: list[Layer] = []

    def record(conv: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        assert isinstance(conv, nn.Conv2d)
        layers.append((conv, inputs[0].shape[1:], output.shape[1:]))

    hooks = [module.register_forward_hook(record) for module in net.modules() if isinstance(module, nn.Conv2d)]
    with torch.no_grad():
        net(torch.zeros(2, 3, 32, 32))
    for hook in hooks:
        hook.remove()
    return layers


def _draw(num_rows: int, shape: torch.Size) -> Tensor:
    return torch.rand(num_rows, *shape).contiguous(memory_format=torch.channels_last)


def _forward_backward(conv: nn.Conv2d, x: Tensor, gradient: Tensor) -> None:
    conv(x).backward(gradient)
