"""The structure of Algorithm 1, watched from outside: what each net is asked, when, in which mode, with which weights.

Oracles: the loops of oracles.py, applied to the recorded views and logits; mixup's partners and lambda are found back
from the mixed images; the step that was taken is compared with finite differences of the oracle's total loss.
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import oracles
import pytest
import torch
from tiny import NUM_CLASSES, TinyData, tiny_nets
from torch import Tensor, nn
from torch.func import functional_call

from dividemix.algorithm.dividemix import EpochReport, co_divide, fit, make_targets, num_nets
from dividemix.algorithm.sample_losses import sample_losses
from dividemix.config import Config
from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, DivergedError, InputError

Weights = dict[str, Tensor]

# Plain gradient descent, so that a step is -lr times the gradient.
TINY: dict[str, Any] = {
    "epochs": 6,
    "warmup_epochs": 2,
    "batch_size": 4,
    "lr": 0.05,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "rampup_epochs": 4,
    "seed": 3,
}


def config_of(**fields: Any) -> Config:
    return Config(**{**TINY, **fields})


def start(config: Config, data: TinyData) -> State:
    return State.start(tiny_nets(num_nets=num_nets(config)), len(data.labels), config)


def weights_of(net: nn.Module) -> Weights:
    """A copy of the parameters and the BatchNorm buffers."""
    return {name: tensor.detach().clone() for name, tensor in net.state_dict().items()}


def same(a: Weights, b: Weights) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


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
        lr = state.optimizers[k].param_groups[0]["lr"]
        calls.append(Call(k, x.clone(), net.training, torch.is_grad_enabled(), lr, weights))

    def after(logits: Tensor) -> None:
        calls[-1].logits = logits.detach().clone()

    handles = []
    for k, net in enumerate(state.nets):
        handles.append(net.register_forward_pre_hook(lambda net, args, k=k: before(k, net, args[0])))
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


@dataclass
class MixEpoch:
    """A recorded epoch of the mix phase, the `epoch`-th counted from 0."""

    config: Config
    data: TinyData
    state: State
    epoch: int
    report: EpochReport
    co_divide: list[Call]
    steps: list[list[Step]]  # for each net
    weights_before: list[Weights]
    weights_after: list[Weights]


def mix_epoch(epoch: int = 3, *, noise: float = 0.3, **fields: Any) -> MixEpoch:
    """Train `epoch` epochs unwatched, then watch one."""
    config, data = config_of(**fields), TinyData(noise=noise)
    state = start(config, data)
    epochs = fit(state, data, config)
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
        num_steps = math.ceil(len(report.divisions[k].labeled) / config.batch_size)
        for number, (index, views) in enumerate(itertools.islice(streams, num_steps)):
            guess, *by_peer, learn = calls[position : position + K + 1]
            position += K + 1
            peer_guess = by_peer[0] if by_peer else None
            later = [call.weights[k] for call in calls[position : position + 1]] or [weights_after[k]]
            steps[k].append(Step(k, number, num_steps, index, views, guess, peer_guess, learn, later[0]))
    assert position == len(calls)
    assert not list(streams)
    return MixEpoch(config, data, state, epoch, report, calls[:K], steps, weights_before, weights_after)


@pytest.fixture(scope="module")
def watched() -> MixEpoch:
    epoch = mix_epoch()
    # The two divisions differ and have two sides, or the tests below would show nothing.
    first, second = epoch.report.divisions
    assert set(first.labeled.tolist()) != set(second.labeled.tolist())
    assert min(len(first.unlabeled), len(second.unlabeled)) > 0
    return epoch


# Co-divide (lines 4 to 8).


def test_both_divisions_are_made_before_either_net_moves(watched: MixEpoch) -> None:
    num_samples = len(watched.data.labels)
    assert [call.kind for call in watched.co_divide] == [(k, num_samples, "eval", "no grad") for k in range(2)]
    for call in watched.co_divide:
        assert torch.equal(call.x, watched.data.images)
        assert all(same(now, then) for now, then in zip(call.weights, watched.weights_before, strict=True))
    assert watched.data.num_passes == 2  # epochs 3 and 4: one pass each, for both nets
    first_step = watched.steps[0][0].guess
    assert all(same(now, then) for now, then in zip(first_step.weights, watched.weights_before, strict=True))


def test_sample_losses_are_each_nets_cross_entropy_with_the_given_label(watched: MixEpoch) -> None:
    labels = watched.data.labels.tolist()
    for losses, call in zip(watched.report.sample_losses, watched.co_divide, strict=True):
        rows = call.logits.tolist()
        expected = [-oracles.log_softmax(row)[label] for row, label in zip(rows, labels, strict=True)]
        assert losses.tolist() == pytest.approx(expected, rel=1e-9)


def test_sample_losses_keep_their_place_when_they_take_several_batches() -> None:
    config, data = config_of(), TinyData(1025)
    state = start(config, data)
    losses, rivals, rival_losses = sample_losses(state, data, torch.arange(len(data.labels)))
    assert losses.shape == rivals.shape == rival_losses.shape == (2, 1025)
    for k, net in enumerate(state.nets):
        for i in (0, 1, 341, 342, 511, 512, 1023, 1024):
            row, label, rival = net.eval()(data.images[i : i + 1])[0].tolist(), int(data.labels[i]), int(rivals[k, i])
            assert float(losses[k, i]) == pytest.approx(-oracles.log_softmax(row)[label], rel=1e-9)
            assert row[rival] == max(value for c, value in enumerate(row) if c != label)
            assert rival != label
            assert float(rival_losses[k, i]) == pytest.approx(-oracles.log_softmax(row)[rival], rel=1e-9)


def test_each_net_gets_the_division_that_the_other_ones_losses_make(watched: MixEpoch) -> None:
    for k, division in enumerate(watched.report.divisions):
        others = oracles.low_posterior(oracles.min_max(watched.report.sample_losses[1 - k].tolist()))
        assert division.clean_prob.tolist() == pytest.approx(others, abs=1e-6)
        labeled = [i for i, w in enumerate(others) if w >= watched.config.clean_threshold]
        assert division.labeled.tolist() == labeled
        assert sorted(labeled + division.unlabeled.tolist()) == list(range(len(others)))


def test_divisions_tell_what_they_were_made_of(watched: MixEpoch) -> None:
    """What the report draws: the other net's normalised losses, and the one mixture over all of them."""
    for k, division in enumerate(watched.report.divisions):
        assert division.values is not None
        losses = oracles.min_max(watched.report.sample_losses[1 - k].tolist())
        assert division.values.tolist() == pytest.approx(losses, abs=1e-12)
        ((share, mixture),) = division.mixtures
        assert share == 1.0
        assert torch.equal(mixture.low_prob(division.values), division.clean_prob)


def test_the_noise_rate_is_that_of_the_net_that_divides(watched: MixEpoch) -> None:
    """Its predictions are those of the co-divide pass: no forward is made for them."""
    labels, rates = watched.data.labels.tolist(), []
    for k, division in enumerate(watched.report.divisions):
        rows = watched.co_divide[1 - k].logits.tolist()
        predictions = [row.index(max(row)) for row in rows]
        rates.append(oracles.noise_rate(division.clean_prob.tolist(), predictions, labels))
        assert division.noise_rate == pytest.approx(rates[-1], rel=1e-9)
    assert rates[0] != rates[1]
    assert watched.report.noise_rate == pytest.approx(sum(rates) / 2, rel=1e-9)


def test_each_net_trains_on_its_own_division(watched: MixEpoch) -> None:
    rows = watched.config.num_views * watched.config.batch_size
    for division, steps in zip(watched.report.divisions, watched.steps, strict=True):
        for sides, half in ((division.labeled, slice(None, rows)), (division.unlabeled, slice(rows, None))):
            assert {i for step in steps for i in step.index[half].tolist()} <= set(sides.tolist())
        # ceil(labeled / B) full batches pass every labeled sample at least once.
        assert {i for step in steps for i in step.index[:rows].tolist()} == set(division.labeled.tolist())


@pytest.mark.parametrize("window", [1, 3])
def test_keep_plausible_leaves_a_label_at_least_what_both_nets_find_plausible(window: int) -> None:
    """Oracle: the mixture's posterior over the averaged losses, or the average plausibility where that is larger."""
    config, data = config_of(epochs=6, loss_window=window, keep_plausible=True), TinyData()
    state = start(config, data)
    labels = data.labels.tolist()
    losses: list[list[list[float]]] = [[], []]
    plausible: list[list[float]] = []  # of each net in each epoch
    epochs = fit(state, data, config)
    while state.epoch < config.epochs:
        report, calls = record(state, epochs)
        if report.phase == "warmup":
            continue
        for k in range(2):
            logits = next(call for call in calls if call.k == k and len(call.x) == len(labels)).logits.tolist()
            probs = [[math.exp(value) for value in oracles.log_softmax(row)] for row in logits]
            losses[k].append(oracles.min_max(report.sample_losses[k].tolist()))
            plausible.append(oracles.plausibility(probs, labels))
        least = [math.fsum(values) / len(values) for values in zip(*plausible[-2 * window :], strict=True)]
        for k, division in enumerate(report.divisions):
            recent = losses[1 - k][-window:]
            averaged = [math.fsum(values) / len(values) for values in zip(*recent, strict=True)]
            posteriors = oracles.low_posterior(averaged)
            expected = [max(pair) for pair in zip(posteriors, least, strict=True)]
            assert division.clean_prob.tolist() == pytest.approx(expected, abs=1e-6)
            assert expected != posteriors
    assert state.plausibility_history.shape == (window, len(labels))


@pytest.mark.parametrize("window", [1, 3])
def test_loss_window_averages_the_last_normalised_losses(window: int) -> None:
    config, data = config_of(epochs=7, loss_window=window), TinyData()
    state = start(config, data)
    past: list[list[list[float]]] = [[], []]  # for each net the normalised losses of each epoch
    for report in fit(state, data, config):
        if report.phase == "warmup":
            continue
        for k in range(2):
            past[k].append(oracles.min_max(report.sample_losses[k].tolist()))
            recent = past[k][-window:]
            averaged = [math.fsum(losses) / len(recent) for losses in zip(*recent, strict=True)]
            expected = oracles.low_posterior(averaged)
            assert report.divisions[1 - k].clean_prob.tolist() == pytest.approx(expected, abs=1e-6)
    assert state.loss_history.shape == (2, window, len(data.labels))


# One net after the other (line 6).


def test_the_peer_is_fixed_while_a_net_trains(watched: MixEpoch) -> None:
    for k, steps in enumerate(watched.steps):
        fixed = steps[0].guess.weights[1 - k]  # parameters and BatchNorm buffers
        for step in steps:
            for call in (step.guess, step.peer_guess, step.learn):
                assert same(call.weights[1 - k], fixed)
        assert not same(steps[0].guess.weights[k], steps[-1].weights_after)
    assert same(watched.weights_after[0], watched.steps[1][0].guess.weights[0])
    assert same(watched.weights_before[1], watched.steps[0][-1].learn.weights[1])


def test_the_second_net_guesses_with_the_first_one_already_trained(watched: MixEpoch) -> None:
    assert not same(watched.weights_before[0], watched.weights_after[0])
    for step in watched.steps[1]:
        assert step.peer_guess.k == 0
        assert same(step.peer_guess.weights[0], watched.weights_after[0])


def test_batch_statistics_move_with_each_forward_of_the_net_that_trains(watched: MixEpoch) -> None:
    for k, steps in enumerate(watched.steps):
        counts = [int(call.weights[k]["norm.num_batches_tracked"]) for s in steps for call in (s.guess, s.learn)]
        assert counts == list(range(counts[0], counts[0] + 2 * len(steps)))


# A step (lines 10 to 27).


@pytest.mark.parametrize("num_views", [1, 2, 3])
@pytest.mark.parametrize("labeled_only", [False, True])
def test_a_step_is_three_forwards_of_full_batches(num_views: int, labeled_only: bool) -> None:
    epoch = mix_epoch(num_views=num_views, labeled_only=labeled_only, lambda_u=0.0)
    rows = num_views * epoch.config.batch_size
    for k, steps in enumerate(epoch.steps):
        assert len(steps) == math.ceil(len(epoch.report.divisions[k].labeled) / epoch.config.batch_size) > 0
        for step in steps:
            assert [call.kind for call in (step.guess, step.peer_guess, step.learn)] == [
                (k, 2 * rows, "train", "no grad"),
                (1 - k, rows, "eval", "no grad"),
                (k, rows if labeled_only else 2 * rows, "train", "grad"),
            ]


def test_labeled_only_waits_until_the_estimated_noise_makes_lambda_u_zero() -> None:
    shares = set()
    for noise in (0.0, 0.5, 0.6):
        epoch = mix_epoch(labeled_only=True, lambda_u_auto=True, lambda_u=8.0, noise=noise)
        assert epoch.report.lambda_u is not None
        share = 2 if epoch.report.lambda_u > 0 else 1
        rows = share * epoch.config.num_views * epoch.config.batch_size
        assert {len(step.learn.x) for step in itertools.chain(*epoch.steps)} == {rows}
        shares.add(share)
    assert shares == {1, 2}


def test_views_are_those_of_one_batch_of_each_kind(watched: MixEpoch) -> None:
    M, B = watched.config.num_views, watched.config.batch_size
    for step in itertools.chain(*watched.steps):
        for half in step.index.split(M * B):
            assert all(torch.equal(view, half[:B]) for view in half.split(B))
        assert torch.equal(step.guess.x, step.views)
        assert torch.equal(step.peer_guess.x, step.views[M * B :])
        assert not torch.equal(step.views[:B], step.views[B : 2 * B])  # the views of a sample differ


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
    M, B, T = epoch.config.num_views, epoch.config.batch_size, epoch.config.temperature

    def view_probs(logits: Tensor) -> list[oracles.Rows]:
        rows = [[math.exp(entry) for entry in oracles.log_softmax(row)] for row in logits.tolist()]
        return [rows[m * B : (m + 1) * B] for m in range(M)]

    own = step.guess.logits
    samples = step.index[:B].tolist()
    labels = [int(epoch.data.labels[i]) for i in samples]
    w = [float(epoch.report.divisions[step.k].clean_prob[i]) for i in samples]
    y_hat = [[float(c == label) for c in range(NUM_CLASSES)] for label in labels]
    if epoch.config.refine_labels:
        y_hat = oracles.co_refine(labels, w, view_probs(own[: M * B]), T)
    if step.peer_guess is None:
        q = oracles.self_guess(view_probs(own[M * B :]), T)
    else:
        q = oracles.co_guess(view_probs(own[M * B :]), view_probs(step.peer_guess.logits), T)
    return y_hat * M + q * M


def step_oracle(epoch: MixEpoch, step: Step) -> tuple[oracles.Rows, float]:
    """The mixed targets (one for each row that learns) and lambda_u with its ramp-up."""
    targets = targets_of(epoch, step)
    partners, lams = mixing(step.views, step.learn.x)
    assert len(set(partners)) == len(partners)
    known = [lam for lam in lams if not math.isnan(lam)]
    assert all(0.5 <= lam <= 1 for lam in known)
    is_one_draw = max(known) - min(known) < 1e-9
    assert is_one_draw != epoch.config.mixup_per_sample
    mixed = []
    for r, (partner, lam) in enumerate(zip(partners, lams, strict=True)):
        lam = 1.0 if math.isnan(lam) else lam
        mixed.append([lam * a + (1 - lam) * b for a, b in zip(targets[r], targets[partner], strict=True)])
    gone = epoch.epoch + step.number / step.num_steps - epoch.config.warmup_epochs
    ramp = 1.0 if epoch.config.rampup_epochs == 0 else min(1.0, gone / epoch.config.rampup_epochs)
    return mixed, lambda_u_of(epoch) * ramp


def lambda_u_of(epoch: MixEpoch) -> float:
    """lambda_u as the config has it, or a share of it that grows from 25 % to 50 % estimated noise."""
    if not epoch.config.lambda_u_auto:
        return epoch.config.lambda_u
    assert epoch.report.noise_rate is not None
    return epoch.config.lambda_u * min(1.0, max(0.0, 4 * epoch.report.noise_rate - 1))


def loss_terms(epoch: MixEpoch, logits: oracles.Rows, targets: oracles.Rows) -> tuple[float, float, float]:
    rows = epoch.config.num_views * epoch.config.batch_size
    l_u = oracles.loss_u(logits[rows:], targets[rows:]) if len(logits) > rows else 0.0
    return oracles.loss_x(logits[:rows], targets[:rows]), l_u, oracles.loss_reg(logits)


STEP_CONFIGS = [
    {},
    {"num_views": 3, "temperature": 0.3, "mixup_per_sample": True, "alpha": 1.0},
    {"labeled_only": True, "lambda_u": 0.0, "lambda_r": 0.5},
    {"rampup_epochs": 0, "lambda_u": 3.0, "num_views": 1},
    {"lambda_r": 0.0, "rampup_epochs": 1},
    {"co_training": False},
    {"refine_labels": False, "num_views": 1},
    {"co_training": False, "refine_labels": False},
    {"mixture": "beta", "division": "per_class"},
    {"lambda_u_auto": True, "noise": 0.5, "rampup_epochs": 0},
]


@pytest.mark.parametrize("fields", STEP_CONFIGS, ids=str)
def test_every_step_descends_the_total_loss(fields: dict[str, Any]) -> None:
    """L_X + lambda_u L_U + lambda_r L_reg of the oracle, differentiated by finite differences at the recorded weights.

    lambda_u is ramped up here: the epoch is the second of the mix phase, of which the ramp takes 4 (or 1, or none).
    """
    epoch = mix_epoch(**fields)
    generator = torch.Generator().manual_seed(0)
    means = []
    for k, steps in enumerate(epoch.steps):
        names = [name for name, _ in epoch.state.nets[k].named_parameters()]
        terms = []
        for step in steps:
            targets, lambda_u = step_oracle(epoch, step)

            def logits_at(offset: float, way: Weights, step: Step = step, k: int = k) -> oracles.Rows:
                moved = {name: tensor.clone() for name, tensor in step.learn.weights[k].items()}
                for name, tensor in way.items():
                    moved[name] += offset * tensor
                return functional_call(epoch.state.nets[k].train(), moved, (step.learn.x,)).tolist()

            def total_at(
                offset: float, way: Weights, targets: oracles.Rows = targets, lambda_u: float = lambda_u
            ) -> float:
                l_x, l_u, l_reg = loss_terms(epoch, logits_at(offset, way), targets)
                return l_x + lambda_u * l_u + epoch.config.lambda_r * l_reg

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
                assert along == pytest.approx(-epoch.config.lr * slope, rel=1e-5, abs=1e-5 * length)
        means.append([math.fsum(column) / len(steps) for column in zip(*terms, strict=True)])
    for name, per_net in zip(("loss_x", "loss_u", "loss_reg"), zip(*means, strict=True), strict=True):
        assert epoch.report.losses[name] == pytest.approx(list(per_net), rel=1e-5, abs=1e-7)


# The ablations of Table 5, and lambda_u by the estimated noise.


def test_without_co_training_one_net_divides_for_itself_and_guesses_alone() -> None:
    epoch = mix_epoch(co_training=False)
    assert len(epoch.state.nets) == len(epoch.report.divisions) == 1
    num_samples, rows = len(epoch.data.labels), epoch.config.num_views * epoch.config.batch_size
    assert [call.kind for call in epoch.co_divide] == [(0, num_samples, "eval", "no grad")]
    own = oracles.low_posterior(oracles.min_max(epoch.report.sample_losses[0].tolist()))
    assert epoch.report.divisions[0].clean_prob.tolist() == pytest.approx(own, abs=1e-6)
    for step in epoch.steps[0]:
        assert step.guess.kind == (0, 2 * rows, "train", "no grad")
        assert step.peer_guess is None
        assert step.learn.kind == (0, 2 * rows, "train", "grad")
    counts = [int(call.weights[0]["norm.num_batches_tracked"]) for s in epoch.steps[0] for call in (s.guess, s.learn)]
    assert counts == list(range(counts[0], counts[0] + 2 * len(epoch.steps[0])))


def test_without_co_training_a_net_that_restarts_goes_on_as_before() -> None:
    config, data = config_of(co_training=False, loss_window=2, momentum=0.9), TinyData()
    straight, first, second = (start(config, data) for _ in range(3))
    expected = [report.losses for report in fit(straight, data, config)]
    epochs = fit(first, data, config)
    losses = [next(epochs).losses for _ in range(4)]
    second.load({name: tensor.clone() for name, tensor in first.tensors().items()}, first.epoch)
    assert losses + [report.losses for report in fit(second, data, config)] == expected


@pytest.mark.parametrize(("co_training", "nets"), [(False, 2), (True, 1)])
def test_other_numbers_of_nets_are_refused(co_training: bool, nets: int) -> None:
    """Two nets that were told to train alone would train together, and nobody would know."""
    config, data = config_of(co_training=co_training), TinyData()
    state = State.start(tiny_nets(num_nets=nets), len(data.labels), config)
    with pytest.raises(InputError, match=f"the state has {nets}"):
        list(fit(state, data, config))


@pytest.mark.parametrize("co_training", [True, False])
@pytest.mark.parametrize("refine_labels", [True, False])
def test_labels_are_refined_or_exactly_the_given_ones(refine_labels: bool, co_training: bool) -> None:
    """The guesses of the unlabeled rows are the same either way."""
    config, data = config_of(refine_labels=refine_labels, co_training=co_training), TinyData()
    nets = start(config, data).nets
    M, B = config.num_views, config.batch_size
    views = torch.cat([data.images[:B]] * M + [data.images[B : 2 * B]] * M)
    labels, clean_prob = data.labels[:B], torch.full((B,), 0.7, dtype=torch.float64)
    nets[-1].eval()
    targets = make_targets(nets[0].train(), nets[-1], views, labels, clean_prob, config)
    one_hot = torch.eye(NUM_CLASSES, dtype=torch.float64)[labels].repeat(M, 1)
    assert torch.equal(targets[: M * B], one_hot) != refine_labels
    other = config_of(refine_labels=not refine_labels, co_training=co_training)
    again = make_targets(nets[0], nets[-1], views, labels, clean_prob, other)
    assert torch.equal(targets[M * B :], again[M * B :])


def test_given_labels_are_mixed_as_they_are() -> None:
    """Rows of two labeled views: lambda' of one given label and 1 - lambda' of the other, nothing else."""
    epoch = mix_epoch(refine_labels=False)
    rows = epoch.config.num_views * epoch.config.batch_size
    num_checked = 0
    for step in itertools.chain(*epoch.steps):
        mixed, _ = step_oracle(epoch, step)
        partners, lams = mixing(step.views, step.learn.x)
        for r in range(rows):
            if partners[r] < rows and not math.isnan(lams[r]):
                labels = [int(epoch.data.labels[step.index[i]]) for i in (r, partners[r])]
                expected = [lams[r] * (c == labels[0]) + (1 - lams[r]) * (c == labels[1]) for c in range(NUM_CLASSES)]
                assert mixed[r] == pytest.approx(expected, abs=1e-12)
                num_checked += 1
    assert num_checked > 0


def test_every_label_is_kept_where_the_estimated_noise_is_low() -> None:
    """Oracle: the first division without it, whose estimate stays the same."""
    data, made = TinyData(noise=0.3), []
    for limit in (0.0, 0.01, 1.0):
        config = config_of(clean_threshold=0.99, keep_all_up_to=limit)
        state = start(config, data)
        epochs = fit(state, data, config)
        for _ in range(config.warmup_epochs):
            next(epochs)
        made.append(co_divide(state, data, config)[1])
    for plain, above, below in zip(*made, strict=True):
        assert plain.noise_rate > 0.01
        assert len(plain.unlabeled) > 0  # else this says nothing
        assert torch.equal(plain.clean_prob, above.clean_prob)  # noise above the limit: nothing is changed
        assert (below.clean_prob == 1).all()
        assert below.labeled.tolist() == list(range(len(data.labels)))
        assert below.noise_rate == plain.noise_rate


@pytest.mark.parametrize("division", ["global", "per_class"])
def test_the_beta_mixture_divides(division: str) -> None:
    """Oracle: the loops of its EM, on the other net's losses."""
    epoch = mix_epoch(mixture="beta", division=division)
    labels = epoch.data.labels.tolist()
    for k, made in enumerate(epoch.report.divisions):
        losses = oracles.min_max(epoch.report.sample_losses[1 - k].tolist())
        for c in range(NUM_CLASSES) if division == "per_class" else [None]:
            members = [i for i, label in enumerate(labels) if c in (None, label)]
            values = [losses[i] for i in members]
            expected = oracles.beta_low_posterior(oracles.beta_expectation_maximisation(values), values)
            assert [float(made.clean_prob[i]) for i in members] == pytest.approx(expected, abs=1e-6)


def test_lambda_u_follows_the_estimated_noise() -> None:
    shares = []
    for noise in (0.0, 0.5, 0.6):
        epoch = mix_epoch(lambda_u_auto=True, lambda_u=8.0, noise=noise)
        assert epoch.report.lambda_u == pytest.approx(lambda_u_of(epoch), rel=1e-9)
        shares.append(epoch.report.lambda_u / 8)
    assert shares[0] == 0.0
    assert any(0 < share < 1 for share in shares)


def test_lambda_u_is_the_configs_unless_asked(watched: MixEpoch) -> None:
    assert watched.report.lambda_u == watched.config.lambda_u


def test_lambda_u_by_noise_needs_no_state_of_its_own() -> None:
    """Oracle: the training that was never interrupted."""
    config, data = config_of(lambda_u_auto=True, loss_window=2), TinyData(noise=0.5)
    straight, first, second = (start(config, data) for _ in range(3))
    expected = [(report.lambda_u, report.losses) for report in fit(straight, data, config)]
    epochs = fit(first, data, config)
    found = [(report.lambda_u, report.losses) for report in itertools.islice(epochs, 4)]
    second.load({name: tensor.clone() for name, tensor in first.tensors().items()}, first.epoch)
    assert found + [(report.lambda_u, report.losses) for report in fit(second, data, config)] == expected


# Warm-up (line 2).


@pytest.mark.parametrize("confidence_penalty", [False, True])
def test_warm_up_is_cross_entropy_in_batches_of_2b(confidence_penalty: bool) -> None:
    config, data = config_of(confidence_penalty=confidence_penalty, num_views=3), TinyData()
    state = start(config, data)
    report, calls = record(state, fit(state, data, config))
    batch_size = 2 * config.batch_size
    num_steps = math.ceil(len(data.labels) / batch_size)
    assert [call.kind for call in calls] == [
        (k, batch_size, "train", "grad") for k in range(2) for _ in range(num_steps)
    ]
    assert report.phase == "warmup"
    assert report.divisions == []
    assert (report.sample_losses, report.noise_rate, report.lambda_u) == (None, None, None)
    assert data.num_passes == 0
    for k in range(2):
        here = slice(k * num_steps, (k + 1) * num_steps)
        losses, seen = [], set()
        for call, index, views in zip(calls[here], data.asked[here], data.views[here], strict=True):
            assert torch.equal(call.x, views)
            assert same(call.weights[1 - k], calls[k * num_steps].weights[1 - k])
            one_hot = [[float(c == label) for c in range(NUM_CLASSES)] for label in data.labels[index].tolist()]
            loss = oracles.loss_x(call.logits.tolist(), one_hot)
            losses.append(loss + confidence_penalty * oracles.negative_entropy(call.logits.tolist()))
            seen |= set(index.tolist())
        assert report.losses["loss"][k] == pytest.approx(math.fsum(losses) / num_steps, rel=1e-5)
        assert seen == set(range(len(data.labels)))


@pytest.mark.parametrize("confidence_penalty", [False, True])
def test_a_warm_up_step_descends_its_loss(confidence_penalty: bool) -> None:
    """Finite differences of the oracle's loss along the step that was taken."""
    config, data = config_of(confidence_penalty=confidence_penalty), TinyData()
    state = start(config, data)
    _, calls = record(state, fit(state, data, config))
    names = [name for name, _ in state.nets[0].named_parameters()]
    first, second = calls[:2]
    moved = {name: second.weights[0][name] - first.weights[0][name] for name in names}
    length = math.sqrt(sum(float((tensor**2).sum()) for tensor in moved.values()))
    one_hot = [[float(c == label) for c in range(NUM_CLASSES)] for label in data.labels[data.asked[0]].tolist()]

    def loss_at(offset: float) -> float:
        weights = {name: tensor.clone() for name, tensor in first.weights[0].items()}
        for name in names:
            weights[name] += offset * moved[name] / length
        logits = functional_call(state.nets[0].train(), weights, (first.x,)).tolist()
        return oracles.loss_x(logits, one_hot) + confidence_penalty * oracles.negative_entropy(logits)

    assert length == pytest.approx(-config.lr * (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5, rel=1e-5)


# fit() as a generator.


def test_learning_rate_drops_after_lr_drop_epoch() -> None:
    config, data = config_of(epochs=5, lr_drop_epoch=3, lr=0.02), TinyData()
    state = start(config, data)
    epochs = fit(state, data, config)
    rates = []
    for _ in range(config.epochs):
        _, calls = record(state, epochs)
        (rate,) = {call.lr for call in calls if call.with_grad}
        rates.append(rate)
    assert rates == pytest.approx([0.02, 0.02, 0.02, 0.002, 0.002])


def test_fit_gives_one_report_after_each_epoch_and_moves_only_when_asked() -> None:
    config, data = config_of(), TinyData()
    state = start(config, data)
    untouched = [weights_of(net) for net in state.nets]
    epochs = fit(state, data, config)
    assert all(same(weights_of(net), then) for net, then in zip(state.nets, untouched, strict=True))
    for number in range(1, config.epochs + 1):
        report = next(epochs)
        assert report.epoch == state.epoch == number
        assert report.phase == ("warmup" if number <= config.warmup_epochs else "mix")
    assert next(epochs, None) is None
    assert list(fit(state, data, config)) == []


def test_fit_goes_on_from_the_states_epoch_as_if_it_had_not_stopped() -> None:
    config, data = config_of(), TinyData()
    straight, halted = start(config, data), start(config, data)
    expected = [report.losses for report in fit(straight, data, config)]
    epochs = fit(halted, data, config)
    losses = [next(epochs).losses for _ in range(3)]
    epochs.close()
    later = list(fit(halted, data, config))
    assert [report.epoch for report in later] == [4, 5, 6]
    assert losses + [report.losses for report in later] == expected
    assert all(same(weights_of(a), weights_of(b)) for a, b in zip(straight.nets, halted.nets, strict=True))


def test_the_global_generator_is_neither_read_nor_moved() -> None:
    config, data = config_of(), TinyData()
    results = []
    for seed in (1, 2):
        state = State.start(tiny_nets(dropout=0.3), len(data.labels), config)
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        results.append([report.losses for report in fit(state, data, config)])
        assert torch.equal(torch.get_rng_state(), before)
    assert results[0] == results[1]


def test_reports_say_what_the_parts_of_an_epoch_took() -> None:
    config, data = config_of(), TinyData()
    for report in fit(start(config, data), data, config):
        parts = {"forward_backward"} if report.phase == "warmup" else {"co_divide", "mixmatch", "forward_backward"}
        assert report.seconds.keys() == parts
        assert all(seconds > 0 for seconds in report.seconds.values())


def test_per_sample_state_is_indexed_by_sample(watched: MixEpoch) -> None:
    num_samples = len(watched.data.labels)
    assert watched.report.sample_losses.shape == (2, num_samples)
    assert watched.state.loss_history.shape == (2, 1, num_samples)
    for division in watched.report.divisions:
        assert division.clean_prob.shape == (num_samples,)


# Degenerate training: goes on with a warning, or stops with DivergedError; never a traceback, never NaN.


def assert_finite(state: State) -> None:
    for net in state.nets:
        assert all(tensor.isfinite().all() for tensor in net.state_dict().values())


def assert_trains(state: State, data: TinyData, config: Config) -> list[EpochReport]:
    """All epochs, every loss a number, every weight finite."""
    reports = list(fit(state, data, config))
    assert len(reports) == config.epochs
    for report in reports:
        assert all(math.isfinite(value) for values in report.losses.values() for value in values)
    assert_finite(state)
    return reports


class Undecided(nn.Module):
    """A net that says the same about every image."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """Zeros, but with a gradient."""
        return 0.0 * self.net(images)


@pytest.mark.filterwarnings("ignore:every sample passes:dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
def test_equal_losses_keep_every_label(division: str) -> None:
    config, data = config_of(division=division), TinyData()
    state = State.start([Undecided(net) for net in tiny_nets()], len(data.labels), config)
    with pytest.warns(DegenerateDivisionWarning, match="all losses are equal"):
        reports = assert_trains(state, data, config)
    for made in reports[-1].divisions:
        assert made.labeled.tolist() == list(range(len(data.labels)))
        assert made.clean_prob.tolist() == [1.0] * len(data.labels)


def test_one_undecided_net_leaves_the_other_ones_division_alone() -> None:
    config, data = config_of(), TinyData()
    first, second = tiny_nets()
    state = State.start([Undecided(first), second], len(data.labels), config)
    with pytest.warns(DegenerateDivisionWarning):
        reports = assert_trains(state, data, config)
    of_second, of_first = reports[-1].divisions
    assert len(of_first.unlabeled) == 0
    assert len(of_second.unlabeled) > 0


def test_without_unlabeled_samples_a_step_is_two_forwards_of_the_net_itself() -> None:
    config, data = config_of(clean_threshold=0.0), TinyData()
    state = start(config, data)
    epochs = fit(state, data, config)
    next(epochs)
    next(epochs)
    with pytest.warns(DegenerateDivisionWarning, match="every sample passes for clean"):
        report, calls = record(state, epochs)
    rows = config.num_views * config.batch_size
    num_steps = math.ceil(len(data.labels) / config.batch_size)
    assert [call.kind for call in calls[2:]] == [
        (k, rows, "train", grad) for k in range(2) for _ in range(num_steps) for grad in ("no grad", "grad")
    ]
    assert report.losses["loss_u"] == [0.0, 0.0]
    with pytest.warns(DegenerateDivisionWarning):
        assert len(list(epochs)) == 3
    assert_finite(state)


@pytest.mark.parametrize("labeled_only", [False, True])
def test_without_labeled_samples_the_likeliest_batch_is_taken(labeled_only: bool) -> None:
    config, data = config_of(clean_threshold=1.0, labeled_only=labeled_only, lambda_u=0.0), TinyData()
    state = start(config, data)
    with pytest.warns(DegenerateDivisionWarning, match="likeliest"):
        reports = assert_trains(state, data, config)
    for report in reports[2:]:
        for division in report.divisions:
            chosen = set(division.labeled.tolist())
            likeliest = sorted(range(len(data.labels)), key=lambda i: -float(division.clean_prob[i]))
            if division.clean_prob.max() < 1:
                assert len(chosen) == config.batch_size
                least = min(float(division.clean_prob[i]) for i in chosen)
                assert least >= float(division.clean_prob[likeliest[config.batch_size]])


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
@pytest.mark.parametrize("num_samples", [2, 3, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_fewer_samples_than_a_batch(num_samples: int, division: str, threshold: float) -> None:
    """Every batch is full all the same: samples come more than once."""
    config = config_of(batch_size=8, clean_threshold=threshold, division=division)
    data = TinyData(num_samples)
    state = start(config, data)
    assert_trains(state, data, config)
    warm_up_batches = data.asked[:4]  # two nets, two epochs
    assert [len(index) for index in warm_up_batches] == [16] * 4
    mix_rows = {len(index) for index in data.asked[4:]}
    assert mix_rows <= {2 * 8, 4 * 8}


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("division", ["global", "per_class"])
def test_a_class_with_one_sample(division: str) -> None:
    config, data = config_of(division=division), TinyData()
    data.labels = torch.arange(len(data.labels)) % 2
    data.labels[7] = 2
    reports = assert_trains(start(config, data), data, config)
    if division == "per_class":  # one loss says nothing against its label
        assert all(made.clean_prob[7] == 1 for report in reports[2:] for made in report.divisions)


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_batches_of_one_train_or_are_refused() -> None:
    """BatchNorm takes no batch of one row: one view of one labeled sample, without unlabeled ones, would be that."""
    with contextlib.suppress(InputError):
        config = config_of(batch_size=1, num_views=1, clean_threshold=0.0, epochs=3)
        data = TinyData(6)
        assert_trains(start(config, data), data, config)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_bad_pixels_stop_the_first_epoch(value: float) -> None:
    config, data = config_of(), TinyData()
    data.images[5] = value
    state = start(config, data)
    with pytest.raises(DivergedError, match="epoch 1") as stop:
        next(fit(state, data, config))
    assert "\n" not in str(stop.value)
    assert state.epoch == 0


class Astray(nn.Module):
    """A net whose logits are no numbers while its weights are."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        """NaN everywhere."""
        return math.nan * self.net(images)


@pytest.mark.parametrize("scale_loss", [False, True])
def test_bad_losses_stop_warm_up(scale_loss: bool) -> None:
    """A loss that is scaled skips its bad steps, so the weights stay finite: the loss itself has to be looked at."""
    config, data = config_of(), TinyData()
    nets = [Astray(net) for net in tiny_nets()]
    state = State.start(nets, len(data.labels), config, scale_loss=scale_loss)
    with pytest.raises(DivergedError, match="epoch 1"):
        next(fit(state, data, config))


def test_bad_losses_stop_a_mix_epoch_before_any_net_moves() -> None:
    config, data = config_of(), TinyData()
    state = start(config, data)
    epochs = fit(state, data, config)
    next(epochs)
    next(epochs)
    before = [weights_of(net) for net in state.nets]
    data.images[5] = math.nan
    with pytest.raises(DivergedError, match="epoch 3"):
        next(epochs)
    assert state.epoch == 2
    assert state.loss_history.shape[1] == 0
    assert all(same(weights_of(net), then) for net, then in zip(state.nets, before, strict=True))


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_a_rate_far_too_high_stops_with_a_clear_line() -> None:
    config, data = config_of(lr=1e200, momentum=0.9), TinyData()
    state = start(config, data)
    with pytest.raises(DivergedError, match="smaller --lr"):
        list(fit(state, data, config))
