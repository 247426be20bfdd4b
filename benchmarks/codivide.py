"""Co-divide: the losses of all samples by both nets, and a mixture over each net's."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from torch import Tensor

from benchmarks.contract import Options, Outcome, Row
from benchmarks.epoch import CONFIG
from benchmarks.plain import Plain, write_files
from benchmarks.subject import array_data, fast_nets, pictures, restore, two_nets, warmed_up
from benchmarks.timing import Work, apart, medians, readable, timed
from dividemix.algorithm.dividemix import co_divide
from dividemix.engine.memory import keep_freed_memory
from dividemix.engine.state import State, under


def run(options: Options) -> Outcome:
    """Ours, in a process set up as a run's is, against the plain one, from the same weights, which do not move."""
    given, saved = pictures(options), warmed_up(options, CONFIG)
    nets = two_nets(CONFIG)
    for k, net in enumerate(nets):
        net.load_state_dict(under(f"nets.{k}.", saved))
    ours = apart(partial(_ours, options, dict(saved)))
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), "train", given.train_images, given.train_labels)
        plain = Plain.start(nets, Path(name), CONFIG)
        seconds = medians({"plain": timed(plain.co_divide), "ours": ours}, repeats=1 if options.quick else 5)
    ratio = seconds["plain"] / seconds["ours"]
    row = Row(
        f"{len(given.train_labels):,} {given.name}, both nets",
        readable(seconds["plain"]),
        readable(seconds["ours"]),
        f"{ratio:.2f} x",
        ">= 2.2 x",
    )
    return Outcome(
        [row], {"codivide_plain_s": seconds["plain"], "codivide_ours_s": seconds["ours"], "codivide_ratio": ratio}
    )


def _ours(options: Options, saved: Mapping[str, Tensor]) -> Work:
    keep_freed_memory()
    given = pictures(options)
    data = array_data(given.train_images, given.train_labels, CONFIG)
    state = State.start(fast_nets(CONFIG), CONFIG)
    restore(state, saved, CONFIG)
    return timed(lambda: co_divide(state, data, CONFIG))
