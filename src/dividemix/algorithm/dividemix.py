"""Algorithm 1 of the paper: DivideMix.

Shapes: N samples, B of each kind in a step, M views of each, C classes; R = M B rows of labeled views, as many
unlabeled. `net` is theta(k), the one being trained; `peer` the other, which is fixed meanwhile.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.algorithm.batchnorm import counted_as
from dividemix.algorithm.divide import Division, clean_probability, divide, keep_all, noise_rate, normalise
from dividemix.algorithm.losses import loss_reg, loss_u, loss_x, negative_entropy, noise_weight, ramp_up
from dividemix.algorithm.mixmatch import co_guess, co_refine, mixup
from dividemix.algorithm.plausibility import plausibility
from dividemix.algorithm.sample_losses import sample_losses
from dividemix.config import Config
from dividemix.data.draw import draw, epoch_samples
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State, learning_rate
from dividemix.errors import DivergedError, InputError


@dataclass(frozen=True)
class EpochReport:
    """What one epoch did. `losses` holds the mean of each loss term for each net; divisions[k] trained net k."""

    epoch: int
    phase: str
    losses: dict[str, list[float]]
    seconds: dict[str, float]  # of the parts: co_divide, mixmatch, forward_backward (the paper's Table 9)
    divisions: list[Division] = field(default_factory=list)
    sample_losses: Tensor | None = None  # (K, n)
    noise_rate: float | None = None  # estimated share of wrong labels, mean over the divisions
    lambda_u: float | None = None  # in force in this epoch, before its ramp-up


def num_nets(config: Config) -> int:
    """K: two, or one that is its own peer (the ablation without co-training)."""
    return 2 if config.co_training else 1


def fit(state: State, data: TrainingData, config: Config) -> Iterator[EpochReport]:
    """Train on from `state`, which each epoch moves; yields a report after every epoch.

    Raises:
        DivergedError: if a loss or a weight stops being finite.
    """
    while state.epoch < config.epochs:
        # Layers that draw for themselves (dropout) do so from the global generator: each epoch gives it a seed.
        device = data.labels.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, (), generator=state.generator)))
            report = _epoch(state, data, config)
        state.epoch += 1
        yield report


def _epoch(state: State, data: TrainingData, config: Config) -> EpochReport:
    epoch = state.epoch + 1
    state.progress.start_clock(data.labels.device)
    for optimizer in state.optimizers:
        optimizer.param_groups[0]["lr"] = learning_rate(state.epoch, config)
    if state.epoch < config.warmup_epochs:  # line 2
        terms = [warm_up(state, k, data, config) for k in range(len(state.nets))]
        report = EpochReport(epoch, "warmup", _by_term(terms), state.progress.stop_clock())
    else:
        losses, divisions = co_divide(state, data, config)  # lines 4 to 8
        noise = sum(division.noise_rate for division in divisions) / len(divisions)
        if config.lambda_u_auto:
            config = replace(config, lambda_u=config.lambda_u * noise_weight(noise))
        terms = [train_epoch(state, k, divisions[k], data, config) for k in range(len(state.nets))]
        seconds = state.progress.stop_clock()
        report = EpochReport(epoch, "mix", _by_term(terms), seconds, divisions, losses, noise, config.lambda_u)
    if not all(math.isfinite(value) for values in report.losses.values() for value in values):
        raise DivergedError(f"training diverged in epoch {epoch}: the loss is not finite; try a smaller --lr")
    state.check_finite()
    return report


def warm_up(state: State, k: int, data: TrainingData, config: Config) -> dict[str, Tensor]:
    """An epoch of ordinary training of net k on all samples: cross-entropy, with the confidence penalty if asked."""
    net = state.nets[k].train()
    batch_size = 2 * config.batch_size
    samples = epoch_samples(data.labels, config.balanced_batches * batch_size, state.generator)
    num_iters = config.balanced_batches or math.ceil(len(samples) / batch_size)
    batches = draw(samples, num_iters, batch_size, state.generator)
    total = torch.zeros((), device=data.labels.device)
    images = data.augmented(batches, state.generator)
    for index, x in state.progress.watch(f"warm-up {k + 1}", zip(batches, images, strict=True), num_iters):
        logits = net(x)
        loss = F.cross_entropy(logits, data.labels[index])
        if config.confidence_penalty:
            loss = loss + negative_entropy(logits)
        state.descend(k, loss)
        total += loss.detach()
        state.progress.lap("forward_backward")
    return {"loss": total / num_iters}


def co_divide(state: State, data: TrainingData, config: Config) -> tuple[Tensor, list[Division]]:
    """All nets' losses (K, n) on the epoch's samples, and the divisions: net k gets the one by the *other* net.

    What is plausible, where that is asked, both nets judge together.
    """
    if len(state.nets) != num_nets(config):
        raise InputError(f"co_training needs {num_nets(config)} net(s) as it is set: the state has {len(state.nets)}")
    samples = epoch_samples(data.labels, config.balanced_batches * config.batch_size, state.generator)
    # To the CPU: a few numbers a sample, and not every accelerator has float64.
    losses, rivals, rival_losses = (each.cpu() for each in sample_losses(state, data, samples))
    if not losses.isfinite().all():
        raise DivergedError(f"epoch {state.epoch + 1}: per-sample losses are not finite; try a smaller --lr")
    labels, divisions = data.labels.cpu()[samples], []
    normalised = torch.stack([normalise(net_losses) for net_losses in losses])
    state.loss_history = torch.cat([state.loss_history, normalised[:, None]], dim=1)[:, -config.loss_window :]
    if config.keep_plausible:
        plausible = plausibility(losses, rivals, rival_losses, labels)
        state.plausibility_history = torch.cat([state.plausibility_history, plausible[None]])[-config.loss_window :]
    for k in reversed(range(len(state.nets))):  # the last net's losses are for the first net
        values = state.loss_history[k].mean(dim=0)
        w, mixtures = clean_probability(values, labels, division=config.division, mixture=config.mixture)
        if config.keep_plausible:
            w = torch.maximum(w, state.plausibility_history.mean(dim=0))
        predictions = torch.where(rival_losses[k] < losses[k], rivals[k], labels)
        noise = noise_rate(w, predictions, labels)
        if noise < config.keep_all_up_to:
            division = keep_all(len(w))
        else:
            division = divide(w, config.clean_threshold, config.batch_size)
        division = replace(division, values=values, mixtures=mixtures, noise_rate=noise)
        divisions.append(division.among(samples, len(data.labels)))
    state.progress.lap("co_divide")
    return losses, divisions


def train_epoch(state: State, k: int, division: Division, data: TrainingData, config: Config) -> dict[str, Tensor]:
    """An epoch of semi-supervised training of net k on its division (lines 9 to 27)."""
    peer, net = state.nets[k - 1].eval(), state.nets[k].train()  # in this order: they may be one
    M, B = config.num_views, config.batch_size
    R = M * B
    num_iters = math.ceil(len(division.labeled) / B)
    x_batches = draw(division.labeled, num_iters, B, state.generator)  # line 11
    u_batches = draw(division.unlabeled, num_iters, B, state.generator)  # line 12
    rows = torch.cat([x_batches.repeat(1, M), u_batches.repeat(1, M)], dim=1)
    images = data.augmented(rows, state.generator)  # lines 13 to 16
    clean_prob = division.clean_prob.to(data.labels.device, torch.float32)
    totals = torch.zeros(3, device=data.labels.device)
    for step, (index, views) in enumerate(
        state.progress.watch(f"net {k + 1}", zip(x_batches, images, strict=True), num_iters)
    ):
        targets = make_targets(net, peer, views, data.labels[index], clean_prob[index], config)
        with torch.no_grad():
            mixed, targets = mixup(
                views, targets, alpha=config.alpha, per_sample=config.mixup_per_sample, generator=state.generator
            )
        if config.labeled_only and not config.lambda_u:
            mixed, targets = mixed[:R], targets[:R]
        state.progress.lap("mixmatch")
        logits = net(mixed)
        l_x = loss_x(logits[:R], targets[:R])
        l_u = loss_u(logits[R:], targets[R:]) if len(logits) > R else torch.zeros_like(l_x)
        l_reg = loss_reg(logits)
        lambda_u = config.lambda_u * ramp_up(state.epoch + step / num_iters, config.warmup_epochs, config.rampup_epochs)
        state.descend(k, l_x + lambda_u * l_u + config.lambda_r * l_reg)  # lines 26, 27
        totals += torch.stack([l_x, l_u, l_reg]).detach()
        state.progress.lap("forward_backward")
    return dict(zip(("loss_x", "loss_u", "loss_reg"), totals / num_iters, strict=True))


@torch.no_grad()
def make_targets(
    net: nn.Module, peer: nn.Module, views: Tensor, labels: Tensor, clean_prob: Tensor, config: Config
) -> Tensor:
    """Refined labels of the labeled views and guessed ones of the unlabeled views (2 R, C) (lines 17 to 24).

    `views` holds M views of the B labeled samples, then M views of the unlabeled ones (or none).
    """
    M = config.num_views
    R = M * config.batch_size
    with counted_as(net, num_forwards=len(views) // config.batch_size if config.norm_per_view else 1):
        own = F.softmax(net(views), dim=1)
    if config.refine_labels:
        y_hat = co_refine(labels, clean_prob, own[:R].unflatten(0, (M, -1)), config.temperature)
    else:
        y_hat = F.one_hot(labels, own.shape[1]).to(own.dtype)
    if len(views) == R:
        return y_hat.repeat(M, 1)
    peers = own[R:] if peer is net else F.softmax(peer(views[R:]), dim=1)
    q = co_guess(own[R:].unflatten(0, (M, -1)), peers.unflatten(0, (M, -1)), config.temperature)
    return torch.cat([y_hat.repeat(M, 1), q.repeat(M, 1)])


def _by_term(terms: list[dict[str, Tensor]]) -> dict[str, list[float]]:
    """Each loss term with its value for each net, read off the device once an epoch."""
    return {name: [net_terms[name].item() for net_terms in terms] for name in terms[0]}
