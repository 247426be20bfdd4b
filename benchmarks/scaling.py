"""What an epoch of co-divide and training costs against the number of samples, of classes and of views.

A small net on small images, half of the samples labeled, so that the number of steps is the number of samples / 2 B.
"""

from dataclasses import replace

import torch

from benchmarks.contract import Options, Outcome, Row
from benchmarks.subject import array_data, draw_images, two_nets
from benchmarks.timing import Work, medians, readable, timed
from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import co_divide, train_epoch
from dividemix.engine.state import State
from dividemix.methods.dividemix import DivideMixSettings

# Batches of 50 divide all sizes: no size pays for a last batch that is filled up.
_CONFIG = DivideMixSettings(net="small_cnn", net_width=8, batch_size=50, crop_padding=2)
_SIDE = 16
_SAMPLES, _QUICK_SAMPLES = (1_000, 5_000, 20_000, 50_000), (1_000, 10_000)
_CLASSES = (2, 10, 100, 1_000)
_VIEWS = (1, 2, 3, 4)
_FEWEST_TIMED = 2_000  # samples; smaller data is passed through more than once


def run(options: Options) -> Outcome:
    """Seconds per sample of each case, and how the last of each kind relates to the first."""
    repeats = 1 if options.quick else 5
    sizes = _QUICK_SAMPLES if options.quick else _SAMPLES
    samples = medians({size: _epoch(num_samples=size) for size in sizes}, repeats=repeats)
    classes = medians({number: _epoch(num_classes=number) for number in _CLASSES}, repeats=repeats)
    views = medians({number: _epoch(num_views=number) for number in _VIEWS}, repeats=repeats)
    per_view = {m: seconds / m for m, seconds in views.items()}
    rows: list[Row] = []
    figures: dict[str, float] = {}
    for kind, unit, seconds, goal in (
        ("samples", "a sample", samples, "0.90 to 1.10"),
        ("classes", "a sample", classes, ""),
        ("views", "a sample and view", per_view, ""),
    ):
        first, *_, last = seconds
        ratio = seconds[last] / seconds[first]
        listed = ", ".join(readable(value) for value in seconds.values())
        cases = ", ".join(f"{case:,}" for case in seconds)
        rows.append(Row(f"{unit}, with {cases} {kind}; last to first", "", listed, f"{ratio:.2f}", goal))
        figures[f"scaling_{kind}"] = ratio
        figures |= {f"scaling_{kind}_{case}_us": 1e6 * value for case, value in seconds.items()}
    return Outcome(rows, figures)


def _epoch(*, num_samples: int = 1_000, num_classes: int = 10, num_views: int = 2) -> Work:
    """Seconds per sample of a co-divide and a training of one net."""
    config = replace(_CONFIG, num_views=num_views)
    images, labels = draw_images(num_samples, num_classes=num_classes, side=_SIDE)
    data = array_data(images, labels, config)
    nets = [
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for net in two_nets(config, num_classes=num_classes, side=_SIDE)
    ]
    state = State.start(nets, config)
    state.epoch = config.warmup_epochs
    index = torch.randperm(num_samples)
    half = num_samples // 2
    division = Division(index[:half], index[half:], torch.rand(num_samples, dtype=torch.float64))
    num_epochs = max(1, _FEWEST_TIMED // num_samples)

    def work() -> None:
        for _ in range(num_epochs):
            co_divide(state, data, config)
            train_epoch(state, 0, division, data, config)

    return lambda: timed(work)() / (num_samples * num_epochs)
