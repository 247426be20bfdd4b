"""A whole epoch after warm-up, its test included: width 16, 50 % symmetric noise, equal divisions for both sides."""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from benchmarks.contract import Options, Outcome, Row
from benchmarks.plain import Plain, write_files
from benchmarks.subject import array_data, fast_nets, pictures, restore, two_nets, warmed_up
from benchmarks.timing import apart, medians, readable, timed
from dividemix.algorithm.dividemix import co_divide
from dividemix.algorithm.ensemble import predict_probs
from dividemix.data.dataset import ArrayData
from dividemix.data.draw import sweep
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.state import State, under
from dividemix.methods.dividemix import METHOD, DivideMixSettings
from dividemix.methods.loop import fit
from dividemix.methods.method import TrainingSets

CONFIG = DivideMixSettings(net_width=16, warmup_epochs=1, epochs=2)


def run(options: Options) -> Outcome:
    """Ours through fit(), in a process that is set up as a run's is, against the plain epoch, from the same weights."""
    given, saved = pictures(options), warmed_up(options, CONFIG)
    data = array_data(given.train_images, given.train_labels, CONFIG)
    num_train, num_test = len(given.train_labels), len(given.test_labels)
    state = State.start(fast_nets(CONFIG), CONFIG)  # as ours has them: the same division to the bit
    restore(state, saved, CONFIG)
    _, divisions = co_divide(state, data, CONFIG)
    ours_apart = apart(partial(_ours, options, dict(saved)))
    shares: list[float] = []

    def ours() -> float:
        whole, parts = ours_apart()
        shares.append(sum(parts.values()) / whole)
        return whole

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, "train", given.train_images, given.train_labels)
        write_files(folder, "test", given.test_images, given.test_labels)

        def plain() -> float:
            nets = two_nets(CONFIG)
            for k, net in enumerate(nets):
                net.load_state_dict(under(f"nets.{k}.", saved))
            training = Plain.start(nets, folder, CONFIG)
            return timed(lambda: training.epoch(divisions, CONFIG.warmup_epochs))()

        seconds = medians({"plain": plain, "ours": ours}, repeats=1 if options.quick else 3, warmups=0)

    ratio, share = seconds["plain"] / seconds["ours"], statistics.median(shares)
    num_labeled = " and ".join(f"{len(division.labeled):,}" for division in divisions)
    rows = [
        Row(
            f"{num_train:,} {given.name} ({num_labeled} labeled), test on {num_test:,}",
            readable(seconds["plain"]),
            readable(seconds["ours"]),
            f"{ratio:.2f} x",
            ">= 2 x",
        ),
        Row("co-divide + MixMatch + forward-backward + test: share of it", "", "", f"{share:.1%}", "95 to 105 %"),
    ]
    figures = {
        "epoch_plain_s": seconds["plain"],
        "epoch_ours_s": seconds["ours"],
        "epoch_ratio": ratio,
        "epoch_parts_share": share,
    }
    return Outcome(rows, figures)


def _ours(options: Options, saved: Mapping[str, Tensor]) -> Callable[[], tuple[float, dict[str, float]]]:
    """An epoch of ours and its test, compiled by then, from the saved weights."""
    keep_freed_memory()
    given = pictures(options)
    data = array_data(given.train_images, given.train_labels, CONFIG)
    test = array_data(given.test_images, given.test_labels, CONFIG)
    nets = fast_nets(CONFIG)
    _rehearse(nets, data, test)
    state = State.start(nets, CONFIG)

    def epoch() -> tuple[float, dict[str, float]]:
        restore(state, saved, CONFIG)
        return _epoch(state, data, test)

    return epoch


def _epoch(state: State, data: ArrayData, test: ArrayData) -> tuple[float, dict[str, float]]:
    """Train an epoch and test; returns the whole's seconds and its parts'."""
    start = time.perf_counter()
    report = next(fit(METHOD, state, TrainingSets(data), CONFIG))
    trained = time.perf_counter()
    probs = predict_probs(state.nets, test).mean(dim=0)
    _accuracy(probs, test.labels)
    end = time.perf_counter()
    return end - start, {**report.seconds, "test": end - trained}


def _accuracy(probs: Tensor, labels: Tensor) -> float:
    return 100 * (probs.argmax(dim=1) == labels).float().mean().item()


def _rehearse(nets: list[nn.Module], data: ArrayData, test: ArrayData) -> None:
    """An epoch on few images, in which every graph is compiled: all batch sizes of the whole occur in it."""

    def few(images: ArrayData) -> ArrayData:
        kept = np.arange(sweep(len(images.labels), images.at_once).shape[1])
        return array_data(images.pixels(kept), images.labels[: len(kept)].numpy(), CONFIG)

    rehearsal = few(data)
    state = State.start(nets, CONFIG)
    state.epoch = CONFIG.warmup_epochs
    _epoch(state, rehearsal, few(test))
