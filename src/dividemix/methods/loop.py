"""The loop that all methods share: epoch after epoch, each with its seed, its learning rate and its checks."""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from dividemix.engine import processes
from dividemix.engine.state import Learner, State
from dividemix.errors import DivergedError, InputError
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.nets.weights import find_head, has_trainable_head


def start(method: Method, state: State, sets: TrainingSets, s: MethodSettings) -> None:
    """Let the method add what it needs to a new state. Raises InputError if nets or trusted samples are missing."""
    if len(state.learners) != method.num_nets(s):
        raise InputError(f"the method trains {method.num_nets(s)} nets, the state has {len(state.learners)}")
    if method.needs_trusted and sets.trusted is None:
        raise InputError("the method needs samples with trusted labels: name them by trusted")
    check_head_epochs(method, state, s)
    method.start(state, sets, s.in_force(0))


def fit(method: Method, state: State, sets: TrainingSets, s: MethodSettings) -> Iterator[EpochReport]:
    """Train until `state` has s.epochs epochs, as `train_one`; yields a report after every epoch."""
    while state.epoch < s.epochs:
        yield train_one(method, state, sets, s)


def train_one(method: Method, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
    """Train for one epoch. Raises DivergedError if a loss or a weight stops being finite."""
    s = s.in_force(state.epoch)
    phase = phase_at(method.phases(s), state.epoch)
    if s.head_epochs:
        check_head_epochs(method, state, s)
        for learner in state.learners:
            train_head_only(learner, state.epoch < s.head_epochs)
    device = sets.train.labels.device
    state.progress.start_clock(device)
    for learner in state.learners:
        for group in learner.optimizer.param_groups:
            group["lr"] = s.learning_rate(state.epoch)
    # Layers that draw at random (dropout) use the global generator: each epoch seeds it, differently in each process.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(torch.randint(2**62, (), generator=state.views)) + processes.own_number())
        report = method.epoch(state, sets, s)
    number = state.epoch + 1
    if not all(math.isfinite(value) for values in report.losses.values() for value in values):
        raise DivergedError(f"training diverged in epoch {number}: the loss is not finite; try a smaller lr")
    for name, value in report.figures.items():
        if not math.isfinite(value):
            raise DivergedError(f"training diverged in epoch {number}: {name} is not finite; try a smaller lr")
    state.check_finite()
    state.epoch = number
    return replace(report, epoch=number, phase=phase.name, selects=phase.selects, seconds=state.progress.stop_clock())


def check_head_epochs(method: Method, state: State, s: MethodSettings) -> None:
    """Raise InputError if the last layer of the nets is to be trained alone at first, and that cannot be done."""
    if not s.head_epochs:
        return
    if method.double_backward or processes.num_joined() > 1:
        raise InputError(f"head_epochs is {s.head_epochs}: this method, or several processes, cannot use it: set 0")
    for net in state.nets:
        if not has_trainable_head(net):
            name, _ = find_head(net)
            problem = f"has frozen its last nn.Linear, {name}" if name else "has no nn.Linear"
            raise InputError(
                f"head_epochs is {s.head_epochs}: the net {problem}, so there is no last layer to train alone:"
                " set head_epochs to 0"
            )


def train_head_only(learner: Learner, only: bool) -> None:
    """Let training change the last linear layer of the net only, or all of it; frozen weights stay as they are."""
    head, _ = find_head(learner.net)
    moments = learner.optimizer.state
    trained = {name: weight for name, weight in learner.net.named_parameters() if name not in learner.frozen}
    for name, weight in trained.items():
        weight.requires_grad_(not only or name.startswith(f"{head}."))
    if not only and any(moment.get("momentum_buffer") is not None for moment in moments.values()):
        for weight in trained.values():  # a fused step needs all moments or none
            if moments[weight].get("momentum_buffer") is None:
                moments[weight]["momentum_buffer"] = torch.zeros_like(weight)


def phase_at(phases: tuple[Phase, ...], epoch: int) -> Phase:
    """The phase in force after `epoch` epochs."""
    for phase in phases:
        if epoch < phase.num_epochs:
            return phase
        epoch -= phase.num_epochs
    raise ValueError(f"the phases end {epoch + 1} epochs too early")
