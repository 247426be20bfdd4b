"""The structure of Algorithm 1, watched from outside: what each net is asked, when, in which mode, with which weights.

Oracles: the loops of oracles.py, applied to the recorded views and logits; the step that was taken is compared with
finite differences of the oracle's total loss (tiny.py).
"""

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import oracles
import pytest
import tiny
import torch
from tiny import (
    NUM_CLASSES,
    MixEpoch,
    TinyData,
    Undecided,
    assert_finite,
    assert_steps_descend,
    assert_trains,
    copied,
    losses_of,
    mixing,
    record,
    same,
    step_oracle,
    tiny_nets,
    weights_of,
)
from torch import nn
from torch.func import functional_call

from dividemix.algorithm.dividemix import make_targets
from dividemix.algorithm.sample_losses import sample_losses
from dividemix.engine.state import State
from dividemix.errors import DegenerateDivisionWarning, DivergedError, InputError
from dividemix.methods.dividemix import METHOD, DivideMixSettings
from dividemix.methods.method import EpochReport

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


def settings_of(**fields: Any) -> DivideMixSettings:
    return DivideMixSettings(**{**TINY, **fields})


def start(s: DivideMixSettings, data: TinyData, *, nets: list[nn.Module] | None = None) -> State:
    return tiny.start(METHOD, s, data, nets=nets)


def fit(state: State, data: TinyData, s: DivideMixSettings) -> Iterator[EpochReport]:
    return tiny.fit(METHOD, state, data, s)


def mix_epoch(*, noise: float = 0.3, **fields: Any) -> MixEpoch:
    return tiny.mix_epoch(METHOD, settings_of(**fields), noise=noise)


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
    for losses, call in zip(losses_of(watched.report), watched.co_divide, strict=True):
        rows = call.logits.tolist()
        expected = [-oracles.log_softmax(row)[label] for row, label in zip(rows, labels, strict=True)]
        assert losses == pytest.approx(expected, rel=1e-9)


def test_sample_losses_keep_their_place_when_they_take_several_batches() -> None:
    s, data = settings_of(), TinyData(1025)
    state = start(s, data)
    losses = sample_losses(state, data, torch.arange(len(data.labels)))
    assert losses.shape == (2, 1025)
    for k, net in enumerate(state.nets):
        for i in (0, 1, 341, 342, 511, 512, 1023, 1024):
            row, label = net.eval()(data.images[i : i + 1])[0].tolist(), int(data.labels[i])
            assert float(losses[k, i]) == pytest.approx(-oracles.log_softmax(row)[label], rel=1e-9)


def test_each_net_gets_the_division_that_the_other_ones_losses_make(watched: MixEpoch) -> None:
    for k, division in enumerate(watched.report.divisions):
        others = oracles.low_posterior(oracles.min_max(losses_of(watched.report)[1 - k]))
        assert division.clean_prob.tolist() == pytest.approx(others, abs=1e-6)
        labeled = [i for i, w in enumerate(others) if w >= watched.s.clean_threshold]
        assert division.labeled.tolist() == labeled
        assert sorted(labeled + division.unlabeled.tolist()) == list(range(len(others)))


def test_divisions_tell_what_they_were_made_of(watched: MixEpoch) -> None:
    """What the report draws: the other net's normalised losses, and the one mixture over all of them."""
    for k, division in enumerate(watched.report.divisions):
        assert division.values is not None
        losses = oracles.min_max(losses_of(watched.report)[1 - k])
        assert division.values.tolist() == pytest.approx(losses, abs=1e-12)
        ((share, mixture),) = division.mixtures
        assert share == 1.0
        assert torch.equal(mixture.low_prob(division.values), division.clean_prob)


def test_each_net_trains_on_its_own_division(watched: MixEpoch) -> None:
    rows = watched.s.num_views * watched.s.batch_size
    for division, steps in zip(watched.report.divisions, watched.steps, strict=True):
        for sides, half in ((division.labeled, slice(None, rows)), (division.unlabeled, slice(rows, None))):
            assert {i for step in steps for i in step.index[half].tolist()} <= set(sides.tolist())
        # ceil(labeled / B) full batches pass every labeled sample at least once.
        assert {i for step in steps for i in step.index[:rows].tolist()} == set(division.labeled.tolist())


@pytest.mark.parametrize("window", [1, 3])
def test_loss_window_averages_the_last_normalised_losses(window: int) -> None:
    s, data = settings_of(epochs=7, loss_window=window), TinyData()
    state = start(s, data)
    past: list[list[list[float]]] = [[], []]  # for each net the normalised losses of each epoch
    for report in fit(state, data, s):
        if report.phase == "warmup":
            continue
        for k in range(2):
            past[k].append(oracles.min_max(losses_of(report)[k]))
            recent = past[k][-window:]
            averaged = [math.fsum(losses) / len(recent) for losses in zip(*recent, strict=True)]
            expected = oracles.low_posterior(averaged)
            assert report.divisions[1 - k].clean_prob.tolist() == pytest.approx(expected, abs=1e-6)
    if window == 1:
        assert state.samples == {}
    else:
        assert state.samples["losses"].shape == (len(data.labels), 2, window)
        newest = torch.tensor([past[k][-1] for k in range(2)], dtype=torch.float64)
        torch.testing.assert_close(state.samples["losses"][..., -1], newest.T, rtol=0, atol=1e-12)


# One net after the other (line 6).


def test_the_peer_is_fixed_while_a_net_trains(watched: MixEpoch) -> None:
    for k, steps in enumerate(watched.steps):
        fixed = steps[0].guess.weights[1 - k]  # parameters and BatchNorm buffers
        for step in steps:
            for call in (step.guess, step.by_peer, step.learn):
                assert same(call.weights[1 - k], fixed)
        assert not same(steps[0].guess.weights[k], steps[-1].weights_after)
    assert same(watched.weights_after[0], watched.steps[1][0].guess.weights[0])
    assert same(watched.weights_before[1], watched.steps[0][-1].learn.weights[1])


def test_the_second_net_guesses_with_the_first_one_already_trained(watched: MixEpoch) -> None:
    assert not same(watched.weights_before[0], watched.weights_after[0])
    for step in watched.steps[1]:
        assert step.by_peer.k == 0
        assert same(step.by_peer.weights[0], watched.weights_after[0])


def test_batch_statistics_move_with_each_forward_of_the_net_that_trains(watched: MixEpoch) -> None:
    for k, steps in enumerate(watched.steps):
        counts = [
            int(call.weights[k]["norm.num_batches_tracked"]) for step in steps for call in (step.guess, step.learn)
        ]
        assert counts == list(range(counts[0], counts[0] + 2 * len(steps)))


# A step (lines 10 to 27).


@pytest.mark.parametrize("num_views", [1, 2, 3])
@pytest.mark.parametrize("labeled_only", [False, True])
def test_a_step_is_three_forwards_of_full_batches(num_views: int, labeled_only: bool) -> None:
    epoch = mix_epoch(num_views=num_views, labeled_only=labeled_only, lambda_u=0.0)
    rows = num_views * epoch.s.batch_size
    for k, steps in enumerate(epoch.steps):
        assert len(steps) == math.ceil(len(epoch.report.divisions[k].labeled) / epoch.s.batch_size) > 0
        for step in steps:
            assert [call.kind for call in (step.guess, step.by_peer, step.learn)] == [
                (k, 2 * rows, "train", "no grad"),
                (1 - k, rows, "eval", "no grad"),
                (k, rows if labeled_only else 2 * rows, "train", "grad"),
            ]


def test_views_are_those_of_one_batch_of_each_kind(watched: MixEpoch) -> None:
    M, B = watched.s.num_views, watched.s.batch_size
    for step in itertools.chain(*watched.steps):
        for half in step.index.split(M * B):
            assert all(torch.equal(view, half[:B]) for view in half.split(B))
        assert torch.equal(step.guess.x, step.views)
        assert torch.equal(step.by_peer.x, step.views[M * B :])
        assert not torch.equal(step.views[:B], step.views[B : 2 * B])  # the views of a sample differ


STEP_CONFIGS = [
    {},
    {"num_views": 3, "temperature": 0.3, "mixup_per_sample": True, "alpha": 1.0},
    {"labeled_only": True, "lambda_u": 0.0, "lambda_r": 0.5},
    {"rampup_epochs": 0, "lambda_u": 3.0, "num_views": 1},
    {"lambda_r": 0.0, "rampup_epochs": 1},
    {"co_training": False},
    {"refine_labels": False, "num_views": 1},
    {"co_training": False, "refine_labels": False},
    {"mixture": "beta"},
]


@pytest.mark.parametrize("fields", STEP_CONFIGS, ids=str)
def test_every_step_descends_the_total_loss(fields: dict[str, Any]) -> None:
    """L_X + lambda_u L_U + lambda_r L_reg of the oracle, differentiated by finite differences at the recorded weights.

    lambda_u is ramped up here: the epoch is the second of the mix phase, of which the ramp takes 4 (or 1, or none).
    """
    epoch = mix_epoch(**fields)
    assert_steps_descend(epoch, epoch.s.lambda_u)


# The ablations of Table 5, and lambda_u by the estimated noise.


def test_without_co_training_one_net_divides_for_itself_and_guesses_alone() -> None:
    epoch = mix_epoch(co_training=False)
    assert len(epoch.state.nets) == len(epoch.report.divisions) == 1
    num_samples, rows = len(epoch.data.labels), epoch.s.num_views * epoch.s.batch_size
    assert [call.kind for call in epoch.co_divide] == [(0, num_samples, "eval", "no grad")]
    own = oracles.low_posterior(oracles.min_max(losses_of(epoch.report)[0]))
    assert epoch.report.divisions[0].clean_prob.tolist() == pytest.approx(own, abs=1e-6)
    for step in epoch.steps[0]:
        assert step.guess.kind == (0, 2 * rows, "train", "no grad")
        assert step.peer_guess is None
        assert step.learn.kind == (0, 2 * rows, "train", "grad")
    counts = [
        int(call.weights[0]["norm.num_batches_tracked"]) for step in epoch.steps[0] for call in (step.guess, step.learn)
    ]
    assert counts == list(range(counts[0], counts[0] + 2 * len(epoch.steps[0])))


def test_without_co_training_a_net_that_is_resumed_continues_as_before() -> None:
    s, data = settings_of(co_training=False, loss_window=2, momentum=0.9), TinyData()
    straight, first, second = (start(s, data) for _ in range(3))
    expected = [report.losses for report in fit(straight, data, s)]
    epochs = fit(first, data, s)
    losses = [next(epochs).losses for _ in range(4)]
    second.load(copied(first.tensors()), first.epoch)
    assert losses + [report.losses for report in fit(second, data, s)] == expected


@pytest.mark.parametrize("co_training", [True, False])
@pytest.mark.parametrize("refine_labels", [True, False])
def test_labels_are_refined_or_exactly_the_given_ones(refine_labels: bool, co_training: bool) -> None:
    """The guesses of the unlabeled rows are the same either way."""
    s, data = settings_of(refine_labels=refine_labels, co_training=co_training), TinyData()
    nets = start(s, data).nets
    M, B = s.num_views, s.batch_size
    views = torch.cat([data.images[:B]] * M + [data.images[B : 2 * B]] * M)
    labels, clean_prob = data.labels[:B], torch.full((B,), 0.7, dtype=torch.float64)
    nets[-1].eval()
    targets = make_targets(nets[0].train(), nets[-1], views, labels, clean_prob, s)
    one_hot = torch.eye(NUM_CLASSES, dtype=torch.float64)[labels].repeat(M, 1)
    assert torch.equal(targets[: M * B], one_hot) != refine_labels
    other = settings_of(refine_labels=not refine_labels, co_training=co_training)
    again = make_targets(nets[0], nets[-1], views, labels, clean_prob, other)
    assert torch.equal(targets[M * B :], again[M * B :])


def test_given_labels_are_mixed_as_they_are() -> None:
    """Rows of two labeled views: lambda' of one given label and 1 - lambda' of the other, nothing else."""
    epoch = mix_epoch(refine_labels=False)
    rows = epoch.s.num_views * epoch.s.batch_size
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


def test_the_beta_mixture_divides() -> None:
    """Oracle: the loops of its EM, on the other net's losses."""
    epoch = mix_epoch(mixture="beta")
    for k, made in enumerate(epoch.report.divisions):
        values = oracles.min_max(losses_of(epoch.report)[1 - k])
        expected = oracles.beta_low_posterior(oracles.beta_expectation_maximisation(values), values)
        assert made.clean_prob.tolist() == pytest.approx(expected, abs=1e-6)


def test_the_report_names_lambda_u_and_nothing_that_the_paper_does_not_have(watched: MixEpoch) -> None:
    """Oracle: the ramp-up of each step of both nets, written out."""
    s, report, weights = watched.s, watched.report, []
    for division in report.divisions:
        num_iters = math.ceil(len(division.labeled) / s.batch_size)
        for step in range(num_iters):
            time = report.epoch - 1 + step / num_iters
            weights.append(s.lambda_u * min(max((time - s.warmup_epochs) / s.rampup_epochs, 0), 1))
    assert report.figures == {"lambda_u": pytest.approx(sum(weights) / len(weights))}


# Warm-up (line 2).


@pytest.mark.parametrize("confidence_penalty", [False, True])
def test_warm_up_is_cross_entropy_in_batches_of_2b(confidence_penalty: bool) -> None:
    s, data = settings_of(confidence_penalty=confidence_penalty, num_views=3), TinyData()
    state = start(s, data)
    report, calls = record(state, fit(state, data, s))
    batch_size = 2 * s.batch_size
    num_steps = math.ceil(len(data.labels) / batch_size)
    assert [call.kind for call in calls] == [
        (k, batch_size, "train", "grad") for k in range(2) for _ in range(num_steps)
    ]
    assert report.phase == "warmup"
    assert report.divisions == []
    assert report.sample_losses is None
    assert report.figures == {}
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
    s, data = settings_of(confidence_penalty=confidence_penalty), TinyData()
    state = start(s, data)
    _, calls = record(state, fit(state, data, s))
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

    assert length == pytest.approx(-s.lr * (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5, rel=1e-5)


# Reports.


def test_reports_say_what_the_parts_of_an_epoch_took() -> None:
    s, data = settings_of(), TinyData()
    for report in fit(start(s, data), data, s):
        parts = {"forward_backward"} if report.phase == "warmup" else {"co_divide", "mixmatch", "forward_backward"}
        assert report.seconds.keys() == parts
        assert all(seconds > 0 for seconds in report.seconds.values())


def test_per_sample_state_is_indexed_by_sample(watched: MixEpoch) -> None:
    num_samples = len(watched.data.labels)
    assert watched.report.sample_losses is not None
    assert watched.report.sample_losses.shape == (2, num_samples)
    for division in watched.report.divisions:
        assert division.clean_prob.shape == (num_samples,)


# Degenerate training: continues with a warning, or stops with DivergedError; never a traceback, never NaN.


@pytest.mark.filterwarnings("ignore:every sample passes:dividemix.errors.DegenerateDivisionWarning")
def test_equal_losses_keep_every_label() -> None:
    s, data = settings_of(), TinyData()
    state = start(s, data, nets=[Undecided(net) for net in tiny_nets()])
    with pytest.warns(DegenerateDivisionWarning, match="all losses are equal"):
        reports = assert_trains(METHOD, state, data, s)
    for made in reports[-1].divisions:
        assert made.labeled.tolist() == list(range(len(data.labels)))
        assert made.clean_prob.tolist() == [1.0] * len(data.labels)


def test_one_undecided_net_leaves_the_other_ones_division_alone() -> None:
    s, data = settings_of(), TinyData()
    first, second = tiny_nets()
    state = start(s, data, nets=[Undecided(first), second])
    with pytest.warns(DegenerateDivisionWarning):
        reports = assert_trains(METHOD, state, data, s)
    of_second, of_first = reports[-1].divisions
    assert len(of_first.unlabeled) == 0
    assert len(of_second.unlabeled) > 0


def test_without_unlabeled_samples_a_step_is_two_forwards_of_the_net_itself() -> None:
    s, data = settings_of(clean_threshold=0.0), TinyData()
    state = start(s, data)
    epochs = fit(state, data, s)
    next(epochs)
    next(epochs)
    with pytest.warns(DegenerateDivisionWarning, match="every sample passes for clean"):
        report, calls = record(state, epochs)
    rows = s.num_views * s.batch_size
    num_steps = math.ceil(len(data.labels) / s.batch_size)
    assert [call.kind for call in calls[2:]] == [
        (k, rows, "train", grad) for k in range(2) for _ in range(num_steps) for grad in ("no grad", "grad")
    ]
    assert report.losses["loss_u"] == [0.0, 0.0]
    with pytest.warns(DegenerateDivisionWarning):
        assert len(list(epochs)) == 3
    assert_finite(state)


@pytest.mark.parametrize("labeled_only", [False, True])
def test_without_labeled_samples_the_most_likely_batch_is_taken(labeled_only: bool) -> None:
    s, data = settings_of(clean_threshold=1.0, labeled_only=labeled_only, lambda_u=0.0), TinyData()
    state = start(s, data)
    with pytest.warns(DegenerateDivisionWarning, match="most likely ones are taken"):
        reports = assert_trains(METHOD, state, data, s)
    for report in reports[2:]:
        for division in report.divisions:
            chosen = set(division.labeled.tolist())
            ranked = sorted(range(len(data.labels)), key=lambda i: -float(division.clean_prob[i]))
            if division.clean_prob.max() < 1:
                assert len(chosen) == s.batch_size
                least = min(float(division.clean_prob[i]) for i in chosen)
                assert least >= float(division.clean_prob[ranked[s.batch_size]])


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("num_samples", [2, 3, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_fewer_samples_than_a_batch(num_samples: int, threshold: float) -> None:
    """Every batch is full all the same: samples come more than once."""
    s = settings_of(batch_size=8, clean_threshold=threshold)
    data = TinyData(num_samples)
    state = start(s, data)
    assert_trains(METHOD, state, data, s)
    warm_up_batches = data.asked[:4]  # two nets, two epochs
    assert [len(index) for index in warm_up_batches] == [16] * 4
    mix_rows = {len(index) for index in data.asked[4:]}
    assert mix_rows <= {2 * 8, 4 * 8}


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_a_class_with_one_sample() -> None:
    s, data = settings_of(), TinyData()
    data.labels = torch.arange(len(data.labels)) % 2
    data.labels[7] = 2
    assert_trains(METHOD, start(s, data), data, s)


@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
def test_batches_of_one_train_or_are_refused() -> None:
    """BatchNorm takes no batch of one row: one view of one labeled sample, without unlabeled ones, would be that."""
    with contextlib.suppress(InputError):
        s = settings_of(batch_size=1, num_views=1, clean_threshold=0.0, epochs=3)
        data = TinyData(6)
        assert_trains(METHOD, start(s, data), data, s)


def test_bad_losses_stop_a_mix_epoch_before_any_net_moves() -> None:
    s, data = settings_of(loss_window=2), TinyData()
    state = start(s, data)
    epochs = fit(state, data, s)
    next(epochs)
    next(epochs)
    before = [weights_of(net) for net in state.nets]
    data.images[5] = math.nan
    with pytest.raises(DivergedError, match="epoch 3"):
        next(epochs)
    assert state.epoch == 2
    assert state.samples["losses"].shape == (len(data.labels), 2, 0)
    assert all(same(weights_of(net), then) for net, then in zip(state.nets, before, strict=True))
