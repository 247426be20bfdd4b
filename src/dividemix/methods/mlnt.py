"""Meta-Learning, or MLNT (Li, Wong, Zhao, Kankanhalli, CVPR 2019): steps that mislabelings cannot spoil.

Each step makes M synthetic mislabelings y^m of its batch: a share rho of the samples gets the label of one of its ten
nearest neighbours in the batch, by the features of a baseline net. theta^m = theta - a grad CE(f(x), y^m) is the net
after a step on one. The net must then still agree with its teacher, a running mean theta~ of its weights:
    L = CE(f(x), y) + kappa (1/M) sum_m KL(f_theta~(x) || f_theta^m(x))
With three rounds, the teacher of a round is the mentor of the next: labels that it finds less probable than tau do not
count, and its predictions are mixed into those of the new teacher. The teacher predicts.

Differences from the paper: one step on L, as in the released code, not two. Differences from that code: first-order
gradients, as in the paper (`second_order` for the code's); KL is a mean over samples alone; synthetic steps do not move
BatchNorm's running statistics; features and the mentor's predictions are those of images without augmentation; the
teacher's horizon is at most a tenth of the steps so far. Baseline and rounds share the epochs; each starts with the
first weights and has the whole schedule of the learning rate. The code has no rounds: their numbers are recalled from
the paper, and the mentor's weight is ours. Shapes: N samples, B in a batch, C classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods import cross_entropy
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor, nn

    from dividemix.engine.state import State

# CIFAR-10: a re-implementation that quotes the paper. Clothing1M: the released code. The KL of both is a mean over the
# classes, too: their weights of 0.4 and 1 are 0.04 and 1/14 of ours.
_CIFAR10 = {"epochs": 120, "lr_drop_epoch": 80, "batch_size": 64, "lr": 0.2, "weight_decay": 1e-4, "meta_weight": 0.04}
_CLOTHING1M = {"epochs": 4, "lr_drop_epoch": 2, "batch_size": 16, "balanced_batches": 0, "lr": 8e-4}
_CLOTHING1M |= {"weight_decay": 1e-3, "inner_lr": 0.02, "meta_weight": 1 / 14, "baseline_share": 0.75}
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": _CIFAR10, "clothing1m": _CLOTHING1M | {"second_order": True}}

FEATURES = "features"  # State.samples: (N, D) float16, of the baseline
MENTOR = "mentor"  # State.samples: (N, C) float32, predictions of the last round's teacher
_RAMP_SHARE = 1 / 6  # of a round: kappa grows until here


@dataclass(frozen=True, kw_only=True)
class MLNTSettings(MethodSettings):
    """The numbers of the paper."""

    rounds: int = setting(1, "rounds of training; the teacher of a round is the mentor of the next", low=1, high=3)
    baseline_share: float = setting(0.2, "share of the epochs that train the baseline for its features", low=0, high=1)
    num_branches: int = setting(10, "M: synthetic mislabelings in a step", low=1, high=1000)
    flip_share: float = setting(0.5, "rho: share of a batch's labels that a mislabeling replaces", low=0, high=1)
    num_neighbours: int = setting(10, "neighbours whose labels a mislabeling takes", low=1)
    inner_lr: float = setting(0.2, "a: learning rate of the synthetic steps", low=0)
    meta_weight: float = setting(0.07, "kappa: weight of the agreement with the teacher", low=0)
    teacher_decay: float = setting(0.999, "gamma: decay of the teacher's running mean", low=0, high=1)
    second_order: bool = setting(False, "differentiate through the synthetic steps (the released code); twice the time")
    mentor_threshold: float = setting(0.01, "tau: labels less probable to the mentor are dropped", low=0, high=1)
    mentor_weight: float = setting(0.5, "share of the mentor's predictions in the teacher's", low=0, high=1)


class MLNT(Method):
    """A baseline for its features, then rounds of meta-learning."""

    settings = MLNTSettings
    double_backward = True

    def phases(self, s: MLNTSettings) -> tuple[Phase, ...]:
        """The baseline, then each round; the last may be kept."""
        num_baseline = round(s.baseline_share * s.epochs)
        ends = [num_baseline + (s.epochs - num_baseline) * r // s.rounds for r in range(s.rounds + 1)]
        cost = s.num_branches * (2.8 if s.second_order else 1.2) + 1.5
        phases = [Phase("baseline", num_baseline, selects=False)]
        phases += [Phase(f"round {r + 1}", ends[r + 1] - ends[r], r + 1 == s.rounds, cost) for r in range(s.rounds)]
        return tuple(phase for phase in phases if phase.num_epochs)

    def start(self, state: State, sets: TrainingSets, s: MLNTSettings) -> None:
        """Add the teacher."""
        from dividemix.methods.weight_average import start_average

        start_average(state.learners[0])

    def epoch(self, state: State, sets: TrainingSets, s: MLNTSettings) -> EpochReport:
        """An epoch of the baseline or of a round."""
        from dividemix.algorithm.ensemble import predict_probs
        from dividemix.methods.last_layer import features_of_all
        from dividemix.methods.restart import keep_first_weights, restart, set_rate

        learner, position = state.learners[0], state.epoch
        for phase in self.phases(s):
            if position < phase.num_epochs:
                break
            position -= phase.num_epochs
        teacher = learner.average
        assert teacher is not None
        keep_first_weights(state)
        if position == 0:
            if phase.name != "baseline" and FEATURES not in state.samples:
                state.samples[FEATURES] = features_of_all(learner.net, sets.train)
            elif phase.name not in ("baseline", "round 1"):
                state.samples[MENTOR] = predict_probs([teacher], sets.train)[0].float().cpu().clone()
            restart(state)
        set_rate(state, s, position, phase.num_epochs)
        if phase.name == "baseline":
            report = cross_entropy.METHOD.epoch(state, sets, s)
            teacher.load_state_dict(learner.net.state_dict())
            return report
        return self._meta_epoch(state, sets, s, teacher, position, phase.num_epochs)

    def _meta_epoch(
        self, state: State, sets: TrainingSets, s: MLNTSettings, teacher: nn.Module, position: int, length: int
    ) -> EpochReport:
        from dividemix.methods.ordinary_epoch import ordinary_batches

        learner, data, mentor = state.learners[0], sets.train, state.samples.get(MENTOR)
        net, teacher = learner.net.train(), teacher.train()
        batches = ordinary_batches(state, data, s)
        totals = torch.zeros(3, device=data.labels.device)
        steps = zip(batches, data.augmented(batches, state.views), strict=True)
        for step, (index, x) in enumerate(state.progress.watch("meta", steps, len(batches))):
            labels, num_done = data.labels[index], position * len(batches) + step
            follow(teacher, net, min(s.teacher_decay, 1 - 10 / (10 + num_done)))
            kept = torch.ones_like(labels, dtype=x.dtype)
            with torch.no_grad():
                q = F.softmax(teacher(x), dim=1)
                if mentor is not None:
                    by_mentor = mentor[index].to(q)
                    kept = (by_mentor.gather(1, labels[:, None]).squeeze(1) >= s.mentor_threshold).to(kept)
                    q = torch.lerp(q, by_mentor, s.mentor_weight)
            near = neighbours(state.samples[FEATURES][index].to(x.device), s.num_neighbours)
            branches = [mislabeled(labels, near, s.flip_share, state.draws) for _ in range(s.num_branches)]
            logits = net(x)
            consistency, gradient = meta_gradient(net, x, logits, q, branches, s.inner_lr, s.second_order)
            loss = (kept * F.cross_entropy(logits, labels, reduction="none")).sum() / kept.sum().clamp(min=1)
            ramp = math.exp(-5 * (1 - min((num_done + 1) / (_RAMP_SHARE * length * len(batches)), 1)) ** 2)
            # The gradient of these products is that of the agreement with the teacher.
            products = [(each * part).sum() for each, part in zip(trained(net).values(), gradient, strict=True)]
            learner.descend(loss + s.meta_weight * ramp * torch.stack(products).sum())
            totals += torch.stack([loss.detach(), consistency, kept.mean()])
            state.progress.lap("forward_backward")
        loss, consistency, kept_share = (totals / len(batches)).tolist()
        figures = {} if mentor is None else {"kept_share": kept_share}
        return EpochReport({"loss": [loss], "consistency": [consistency]}, figures=figures)


def meta_gradient(
    net: nn.Module, x: Tensor, logits: Tensor, q: Tensor, branches: Sequence[Tensor], a: float, second_order: bool
) -> tuple[Tensor, list[Tensor]]:
    """(1/M) sum_m KL(q || f_theta^m(x)), and its gradient for each parameter that is trained; logits are f_theta(x).

    One branch after the other: the memory does not grow with their number.
    """
    parameters = trained(net)
    total, gradient = torch.zeros((), device=x.device), [torch.zeros_like(each) for each in parameters.values()]
    for labels in branches:
        inner = F.cross_entropy(logits, labels)
        steps = torch.autograd.grad(inner, list(parameters.values()), retain_graph=True, create_graph=second_order)
        moved = {name: parameters[name] - a * step for name, step in zip(parameters, steps, strict=True)}
        if not second_order:
            moved = {name: value.detach().requires_grad_() for name, value in moved.items()}
        buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
        log_probs = F.log_softmax(torch.func.functional_call(net, {**moved, **buffers}, (x,)), dim=1)
        divergence = F.kl_div(log_probs, q, reduction="batchmean")
        leaves = list((parameters if second_order else moved).values())
        for part, new in zip(gradient, torch.autograd.grad(divergence, leaves, retain_graph=second_order), strict=True):
            part += new / len(branches)
        total += divergence.detach() / len(branches)
    return total, gradient


def trained(net: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name."""
    return {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}


def neighbours(features: Tensor, number: int) -> Tensor:
    """For each row of features (B, D) the nearest other rows (B, number), or all of them if they are fewer."""
    distances = torch.cdist(features.float(), features.float()).fill_diagonal_(torch.inf)
    return distances.topk(min(number, len(features) - 1), largest=False).indices


def mislabeled(labels: Tensor, near: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """The labels (B,), a share of which is replaced by that of a random neighbour of near (B, number)."""
    chosen = torch.randperm(len(labels), generator=generator)[: round(share * len(labels))].to(labels.device)
    pick = torch.randint(near.shape[1], chosen.shape, generator=generator).to(labels.device)
    return labels.index_put((chosen,), labels[near[chosen, pick]])


def follow(teacher: nn.Module, net: nn.Module, decay: float) -> None:
    """Move the teacher's parameters: decay theta~ + (1 - decay) theta. It has its own BatchNorm statistics."""
    with torch.no_grad():
        for mean, parameter in zip(teacher.parameters(), net.parameters(), strict=True):
            mean.lerp_(parameter, 1 - decay)


METHOD = MLNT()
