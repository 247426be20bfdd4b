"""A tiny net, tiny data, and trainings of them that are watched: what each net is asked, when and with which weights.

Nets are smooth and compute in float64; everything random comes from a seed. The oracle of a step applies the loops of
oracles.py to the recorded views and logits; mixup's partners and lambda are found from the mixed images.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import oracles
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from dividemix.engine.state import State
from dividemix.methods import loop
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets

NUM_CLASSES = 3
IMAGE_SHAPE = (1, 2, 3)

Weights = dict[str, Tensor]


class TinyNet(nn.Module):
    """Two linear layers with BatchNorm and tanh between: no kink, so finite differences give its gradient."""

    def __init__(self, seed: int, *, dropout: float = 0.0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body = nn.Linear(6, 8, dtype=torch.float64)
            self.norm = nn.BatchNorm1d(8, dtype=torch.float64)
            self.drop = nn.Dropout(dropout)
            self.head = nn.Linear(8, NUM_CLASSES, dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C)."""
        logits: Tensor = self.head(self.drop(torch.tanh(self.norm(self.body(images.flatten(1))))))
        return logits


class TinyData:
    """Noisy labels on separable images; Augment adds a little noise. Remembers every batch it was asked for."""

    def __init__(self, num_samples: int = 40, *, seed: int = 0, noise: float = 0.3):
        generator = torch.Generator().manual_seed(seed)
        true = torch.arange(num_samples) % NUM_CLASSES
        wrong = torch.rand(num_samples, generator=generator) < noise
        self.labels = torch.where(wrong, (true + 1) % NUM_CLASSES, true)
        self.at_once = 512
        centres = torch.randn(NUM_CLASSES, *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
        spread = torch.randn(num_samples, *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
        self.images = centres[true] + 0.5 * spread
        self.asked: list[Tensor] = []  # index batches given to augmented(), in order
        self.views: list[Tensor] = []  # what it gave for them
        self.num_passes = 0  # calls of plain()

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """Each row with noise of its own."""
        for index in batches:
            jitter = torch.randn(len(index), *IMAGE_SHAPE, generator=generator, dtype=torch.float64)
            views = self.images[index] + 0.1 * jitter
            self.asked.append(index.clone())
            self.views.append(views.clone())
            yield views

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The images as they are."""
        self.num_passes += 1
        for index in batches:
            yield self.images[index]


def tiny_nets(*, dropout: float = 0.0, num_nets: int = 2) -> list[nn.Module]:
    """Nets with different weights."""
    return [TinyNet(seed=10 + k, dropout=dropout) for k in range(num_nets)]


def start(
    method: Method, s: MethodSettings, data: TinyData, *, nets: list[nn.Module] | None = None, scale_loss: bool = False
) -> State:
    """A state before the first epoch; of tiny nets unless others are given."""
    nets = tiny_nets(num_nets=method.num_nets(s)) if nets is None else nets
    state = State.start(nets, s, scale_loss=scale_loss)
    loop.start(method, state, sets_for(method, data), s)
    return state


def fit(method: Method, state: State, data: TinyData, s: MethodSettings) -> Iterator[EpochReport]:
    """Train from the state on."""
    return loop.fit(method, state, sets_for(method, data), s)


def sets_for(method: Method, data: TinyData) -> TrainingSets:
    """The data, and six samples with trusted labels if the method needs some."""
    return TrainingSets(data, TinyData(6, seed=1, noise=0.0) if method.needs_trusted else None)


def copied(named: Weights) -> Weights:
    """A copy of named tensors."""
    return {name: tensor.detach().clone() for name, tensor in named.items()}


def weights_of(net: nn.Module) -> Weights:
    """A copy of the parameters and the BatchNorm buffers."""
    return copied(net.state_dict())


def same(a: Weights, b: Weights) -> bool:
    """Whether all tensors are equal."""
    return all(torch.equal(a[name], b[name]) for name in a)


def assert_finite(state: State) -> None:
    """Every weight is a number."""
    for net in state.nets:
        assert all(tensor.isfinite().all() for tensor in net.state_dict().values())


def assert_trains(method: Method, state: State, data: TinyData, s: MethodSettings) -> list[EpochReport]:
    """All epochs, every loss a number, every weight finite."""
    reports = list(fit(method, state, data, s))
    assert len(reports) == s.epochs
    for report in reports:
        assert all(math.isfinite(value) for values in report.losses.values() for value in values)
    assert_finite(state)
    return reports


class Undecided(nn.Module):
    """A net that predicts the same for every image."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """Zeros, but with a gradient."""
        logits: Tensor = self.net(images)
        return 0.0 * logits


def losses_of(report: EpochReport) -> list[oracles.Row]:
    """Each net's losses of the samples that were divided."""
    assert report.sample_losses is not None
    return [losses.tolist() for losses in report.sample_losses]


@dataclass
class Call:
    """One forward of net k: what went in and out, the mode, and both nets' weights just before."""

    k: int
    x: Tensor
    training: bool
    with_grad: bool
    lr: float
    weights: list[Weights]
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def kind(self) -> tuple[int, int, str, str]:
        """Which net, how many rows, in which mode, for what."""
        return self.k, len(self.x), "train" if self.training else "eval", "grad" if self.with_grad else "no grad"


def record(state: State, epochs: Iterator[EpochReport]) -> tuple[EpochReport, list[Call]]:
    """The next epoch's report, and every forward in it."""
    calls: list[Call] = []

    def before(k: int, net: nn.Module, x: Tensor) -> None:
        weights = [weights_of(each) for each in state.nets]
        lr = state.learners[k].optimizer.param_groups[0]["lr"]
        calls.append(Call(k, x.clone(), net.training, torch.is_grad_enabled(), lr, weights))

    def after(logits: Tensor) -> None:
        calls[-1].logits = logits.detach().clone()

    def before_net(k: int) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        return lambda net, args: before(k, net, args[0])

    handles = []
    for k, net in enumerate(state.nets):
        handles.append(net.register_forward_pre_hook(before_net(k)))
        handles.append(net.register_forward_hook(lambda net, args, out: after(out)))
    try:
        return next(epochs), calls
    finally:
        for handle in handles:
            handle.remove()


@dataclass
class Step:
    """A step of net k: its index rows and views, its forwards, the weights of net k after it.

    A net alone guesses without a peer.
    """

    k: int
    number: int
    num_steps: int
    index: Tensor
    views: Tensor
    guess: Call
    peer_guess: Call | None
    learn: Call
    weights_after: Weights

    @property
    def by_peer(self) -> Call:
        """The peer's forward, of a step that has one."""
        assert self.peer_guess is not None
        return self.peer_guess


@dataclass
class MixEpoch:
    """A recorded epoch of the mix phase, the `epoch`-th counted from 0."""

    s: DivideMixSettings
    data: TinyData
    state: State
    epoch: int
    report: EpochReport
    co_divide: list[Call]
    steps: list[list[Step]]  # for each net
    weights_before: list[Weights]
    weights_after: list[Weights]


def mix_epoch(method: Method, s: DivideMixSettings, *, epoch: int = 3, noise: float = 0.3) -> MixEpoch:
    """Train `epoch` epochs unwatched, then watch one."""
    data = TinyData(noise=noise)
    state = start(method, s, data)
    epochs = fit(method, state, data, s)
    for _ in range(epoch):
        next(epochs)
    data.asked.clear()
    data.views.clear()
    weights_before = [weights_of(net) for net in state.nets]
    report, calls = record(state, epochs)
    weights_after = [weights_of(net) for net in state.nets]

    K = len(state.nets)
    steps: list[list[Step]] = [[] for _ in range(K)]
    streams = zip(data.asked, data.views, strict=True)
    position = K
    for k in range(K):
        num_steps = math.ceil(len(report.divisions[k].labeled) / s.batch_size)
        for number, (index, views) in enumerate(itertools.islice(streams, num_steps)):
            guess, *by_peer, learn = calls[position : position + K + 1]
            position += K + 1
            peer_guess = by_peer[0] if by_peer else None
            later = [call.weights[k] for call in calls[position : position + 1]] or [weights_after[k]]
            steps[k].append(Step(k, number, num_steps, index, views, guess, peer_guess, learn, later[0]))
    assert position == len(calls)
    assert not list(streams)
    return MixEpoch(s, data, state, epoch, report, calls[:K], steps, weights_before, weights_after)


# The oracle of a step (lines 17 to 27).


def mixing(views: Tensor, mixed: Tensor) -> tuple[list[int], list[float]]:
    """For each mixed row the partner and the lambda' that made it, found by trying every partner."""
    partners, lams = [], []
    for r, row in enumerate(mixed):
        if torch.allclose(row, views[r], rtol=0, atol=1e-12):
            partners.append(r)
            lams.append(math.nan)  # mixed with itself: any lambda gives this
            continue
        fits = []
        for j in range(len(views)):
            apart = (views[r] - views[j]).flatten()
            if j != r:
                lam = float(((row - views[j]).flatten() @ apart) / (apart @ apart))
                fits.append((float((lam * views[r] + (1 - lam) * views[j] - row).abs().max()), j, lam))
        off, partner, lam = min(fits)
        assert off < 1e-9
        partners.append(partner)
        lams.append(lam)
    return partners, lams


def targets_of(epoch: MixEpoch, step: Step) -> oracles.Rows:
    """The target of every view before mixing, by loops from the recorded logits (lines 17 to 24)."""
    M, B, T = epoch.s.num_views, epoch.s.batch_size, epoch.s.temperature

    def view_probs(logits: Tensor) -> list[oracles.Rows]:
        rows = [[math.exp(entry) for entry in oracles.log_softmax(row)] for row in logits.tolist()]
        return [rows[m * B : (m + 1) * B] for m in range(M)]

    own = step.guess.logits
    samples = step.index[:B].tolist()
    labels = [int(epoch.data.labels[i]) for i in samples]
    w = [float(epoch.report.divisions[step.k].clean_prob[i]) for i in samples]
    y_hat = [[float(c == label) for c in range(NUM_CLASSES)] for label in labels]
    if epoch.s.refine_labels:
        y_hat = oracles.co_refine(labels, w, view_probs(own[: M * B]), T)
    if step.peer_guess is None:
        q = oracles.self_guess(view_probs(own[M * B :]), T)
    else:
        q = oracles.co_guess(view_probs(own[M * B :]), view_probs(step.peer_guess.logits), T)
    return y_hat * M + q * M


def step_oracle(epoch: MixEpoch, step: Step) -> tuple[oracles.Rows, float]:
    """The mixed targets (one for each row that learns) and the share of lambda_u that ramp-up gives."""
    targets = targets_of(epoch, step)
    partners, lams = mixing(step.views, step.learn.x)
    assert len(set(partners)) == len(partners)
    known = [lam for lam in lams if not math.isnan(lam)]
    assert all(0.5 <= lam <= 1 for lam in known)
    is_one_draw = max(known) - min(known) < 1e-9
    assert is_one_draw != epoch.s.mixup_per_sample
    mixed = []
    for r, (partner, lam) in enumerate(zip(partners, lams, strict=True)):
        lam = 1.0 if math.isnan(lam) else lam
        mixed.append([lam * a + (1 - lam) * b for a, b in zip(targets[r], targets[partner], strict=True)])
    gone = epoch.epoch + step.number / step.num_steps - epoch.s.warmup_epochs
    ramp = 1.0 if epoch.s.rampup_epochs == 0 else min(1.0, gone / epoch.s.rampup_epochs)
    return mixed, ramp


def loss_terms(epoch: MixEpoch, logits: oracles.Rows, targets: oracles.Rows) -> tuple[float, float, float]:
    """L_X, L_U and L_reg; L_U is 0 without unlabeled rows."""
    rows = epoch.s.num_views * epoch.s.batch_size
    l_u = oracles.loss_u(logits[rows:], targets[rows:]) if len(logits) > rows else 0.0
    return oracles.loss_x(logits[:rows], targets[:rows]), l_u, oracles.loss_reg(logits)


def assert_steps_descend(epoch: MixEpoch, lambda_u: float) -> None:
    """Every step is -lr times the gradient of L_X + lambda_u L_U + lambda_r L_reg, with lambda_u ramped up.

    The oracle's loss is differentiated by finite differences at the recorded weights. The report has the terms' means,
    and that of the weights which lambda_u had.
    """
    generator = torch.Generator().manual_seed(0)
    means, weights = [], []
    for k, steps in enumerate(epoch.steps):
        names = [name for name, _ in epoch.state.nets[k].named_parameters()]
        terms = []
        for step in steps:
            targets, ramp = step_oracle(epoch, step)
            weights.append(ramp * lambda_u)

            def logits_at(offset: float, way: Weights, step: Step = step, k: int = k) -> oracles.Rows:
                moved = {name: tensor.clone() for name, tensor in step.learn.weights[k].items()}
                for name, tensor in way.items():
                    moved[name] += offset * tensor
                logits: Tensor = functional_call(epoch.state.nets[k].train(), moved, (step.learn.x,))
                rows: oracles.Rows = logits.tolist()
                return rows

            def total_at(offset: float, way: Weights, targets: oracles.Rows = targets, ramp: float = ramp) -> float:
                l_x, l_u, l_reg = loss_terms(epoch, logits_at(offset, way), targets)
                return l_x + ramp * lambda_u * l_u + epoch.s.lambda_r * l_reg

            terms.append(loss_terms(epoch, step.learn.logits.tolist(), targets))
            moved = {name: step.weights_after[name] - step.learn.weights[k][name] for name in names}
            length = math.sqrt(sum(float((tensor**2).sum()) for tensor in moved.values()))
            downhill = {name: tensor / length for name, tensor in moved.items()}
            anywhere = {
                name: torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
                for name, tensor in moved.items()
            }
            for way in (downhill, anywhere):
                slope = (total_at(1e-5, way) - total_at(-1e-5, way)) / 2e-5
                along = sum(float((way[name] * moved[name]).sum()) for name in names)
                assert along == pytest.approx(-epoch.s.lr * slope, rel=1e-5, abs=1e-5 * length)
        means.append([math.fsum(column) / len(steps) for column in zip(*terms, strict=True)])
    assert epoch.report.figures["lambda_u"] == pytest.approx(math.fsum(weights) / len(weights), rel=1e-12)
    for name, per_net in zip(("loss_x", "loss_u", "loss_reg"), zip(*means, strict=True), strict=True):
        assert epoch.report.losses[name] == pytest.approx(list(per_net), rel=1e-5, abs=1e-7)
