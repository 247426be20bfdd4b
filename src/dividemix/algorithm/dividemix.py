"""Algorithm 1 of the paper: DivideMix.

Shapes: N samples, n of them in an epoch, B of each kind in a step, M views of each, C classes, K nets; R = M B rows of
labeled views, as many unlabeled. `net` is theta(k), the one that is trained; `peer` is the other one, which is fixed.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.algorithm.batchnorm import counted_as
from dividemix.algorithm.divide import Division, clean_probability, divide, normalise, warn_of_equal_losses
from dividemix.algorithm.losses import loss_reg, loss_u, loss_x, negative_entropy, ramp_up
from dividemix.algorithm.mixmatch import co_guess, co_refine, mixup
from dividemix.algorithm.sample_losses import sample_losses
from dividemix.algorithm.settings import PaperSettings
from dividemix.algorithm.warm_up import warm_up
from dividemix.data.draw import draw, epoch_samples
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.errors import DivergedError

LOSSES = "losses"  # State.samples: (n, K, W) float64, the normalised losses of the last W divisions, newest last


def start(state: State, data: TrainingData, s: PaperSettings) -> None:
    """Make room for the losses of the last divisions, if they are averaged (the released code, at 90 % noise)."""
    if s.loss_window > 1:
        state.samples[LOSSES] = torch.zeros(len(data.labels), s.num_nets, 0, dtype=torch.float64)


def warm_up_epoch(state: State, data: TrainingData, s: PaperSettings) -> list[dict[str, Tensor]]:
    """Train each net on all samples, with the confidence penalty if set (line 2). Returns each net's mean loss."""

    def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
        loss = F.cross_entropy(logits, labels)
        return loss + negative_entropy(logits) if s.confidence_penalty else loss

    return [warm_up(state, k, data, s, loss_of) for k in range(len(state.learners))]


def co_divide(state: State, data: TrainingData, s: PaperSettings) -> tuple[Tensor, list[Division]]:
    """All nets' losses (K, n) and the divisions: net k gets the one by the *other* net (lines 4 to 8)."""
    samples = epoch_samples(data.labels, s.balanced_batches * s.batch_size, state.draws)
    losses = finite(sample_losses(state, data, samples), state)
    divisions = []
    for values in reversed(averaged(state, losses, s)):  # the last net's losses are for the first net
        clean_prob, mixture = clean_probability(values, s.mixture)
        if mixture is None:
            warn_of_equal_losses()
        division = divide(clean_prob, s.clean_threshold, s.batch_size)
        division = replace(division, values=values, mixtures=[] if mixture is None else [(1.0, mixture)])
        divisions.append(division.among(samples, len(data.labels)))
    state.progress.lap("co_divide")
    return losses, divisions


def finite(losses: Tensor, state: State) -> Tensor:
    """The losses, on the CPU. Raises DivergedError if one is not finite."""
    losses = losses.cpu()  # a few numbers a sample, and not every accelerator has float64
    if not losses.isfinite().all():
        raise DivergedError(f"epoch {state.epoch + 1}: per-sample losses are not finite; try a smaller lr")
    return losses


def averaged(state: State, losses: Tensor, s: PaperSettings) -> list[Tensor]:
    """Each net's normalised losses (n,), the mean over the last divisions; losses (K, n) are the newest."""
    normalised = [normalise(net_losses) for net_losses in losses]
    if s.loss_window == 1:
        return normalised
    newest = torch.stack(normalised, dim=1)[..., None]
    state.samples[LOSSES] = torch.cat([state.samples[LOSSES], newest], dim=2)[..., -s.loss_window :]
    return [history.mean(dim=0) for history in state.samples[LOSSES].permute(1, 2, 0).contiguous()]


def num_steps(division: Division, s: PaperSettings) -> int:
    """How many steps a net makes in an epoch on its division (line 10)."""
    return math.ceil(len(division.labeled) / s.batch_size)


def train_epoch(state: State, k: int, division: Division, data: TrainingData, s: PaperSettings) -> dict[str, Tensor]:
    """An epoch of semi-supervised training of net k on its division (lines 9 to 27)."""
    learner = state.learners[k]
    peer, net = state.nets[k - 1].eval(), learner.net.train()  # in this order: they may be one
    M, B = s.num_views, s.batch_size
    R = M * B
    num_iters = num_steps(division, s)
    x_batches = draw(division.labeled, num_iters, B, state.draws)  # line 11
    u_batches = draw(division.unlabeled, num_iters, B, state.draws)  # line 12
    rows = torch.cat([x_batches.repeat(1, M), u_batches.repeat(1, M)], dim=1)
    images = data.augmented(rows, state.views)  # lines 13 to 16
    clean_prob = division.clean_prob.to(data.labels.device, torch.float32)
    totals = torch.zeros(3, device=data.labels.device)
    for step, (index, views) in enumerate(
        state.progress.watch(f"net {k + 1}", zip(x_batches, images, strict=True), num_iters)
    ):
        targets = make_targets(net, peer, views, data.labels[index], clean_prob[index], s)
        with torch.no_grad():
            mixed, targets = mixup(views, targets, alpha=s.alpha, per_sample=s.mixup_per_sample, generator=state.draws)
        if s.labeled_only and not s.lambda_u:
            mixed, targets = mixed[:R], targets[:R]
        state.progress.lap("mixmatch")
        logits = net(mixed)
        l_x = loss_x(logits[:R], targets[:R])
        l_u = loss_u(logits[R:], targets[R:]) if len(logits) > R else torch.zeros_like(l_x)
        l_reg = loss_reg(logits)
        lambda_u = s.lambda_u * ramp_up(state.epoch + step / num_iters, s.warmup_epochs, s.rampup_epochs)
        learner.descend(l_x + lambda_u * l_u + s.lambda_r * l_reg)  # lines 26, 27
        totals += torch.stack([l_x, l_u, l_reg]).detach()
        state.progress.lap("forward_backward")
    return dict(zip(("loss_x", "loss_u", "loss_reg"), totals / num_iters, strict=True))


@torch.no_grad()
def make_targets(
    net: nn.Module, peer: nn.Module, views: Tensor, labels: Tensor, clean_prob: Tensor, s: PaperSettings
) -> Tensor:
    """Refined labels of the labeled views and guessed ones of the unlabeled views (2 R, C) (lines 17 to 24).

    `views` has M views of the B labeled samples, then M views of the unlabeled ones (or none).
    """
    M = s.num_views
    R = M * s.batch_size
    with counted_as(net, num_forwards=len(views) // s.batch_size if s.norm_per_view else 1):
        own = F.softmax(net(views), dim=1)
    if s.refine_labels:
        y_hat = co_refine(labels, clean_prob, own[:R].unflatten(0, (M, -1)), s.temperature)
    else:
        y_hat = F.one_hot(labels, own.shape[1]).to(own.dtype)
    if len(views) == R:
        return y_hat.repeat(M, 1)
    peers = own[R:] if peer is net else F.softmax(peer(views[R:]), dim=1)
    q = co_guess(own[R:].unflatten(0, (M, -1)), peers.unflatten(0, (M, -1)), s.temperature)
    return torch.cat([y_hat.repeat(M, 1), q.repeat(M, 1)])
