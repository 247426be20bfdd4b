"""MentorNet (Jiang, Zhou, Leung, Li, Fei-Fei, ICML 2018): a curriculum weighs each sample by its loss.

m is a moving p-percentile of the batches' losses: m = rho m + (1 - rho) percentile_p, p the share of clean labels. The
weight v of a sample with loss l, after e percent of the training, is
    predefined   1 while e <= 18; then 1 if l <= m, else 0; from e = 90 on 1 - (l - m) / gamma, clipped to [0, 1]
    data_driven  1 while e < 17; then sigmoid g(l, l - m); the small net g has learned to tell right labels from wrong
A random share of each batch gets v = 0. The step descends (1/B) sum_i v_i l_i.

Differences from the released code: e is that of the epoch's start; m starts after the burn-in, at the percentile of all
losses, not at 0; p follows from the noise rate, which is estimated; weight decay is not multiplied by the mean of v.
For data_driven, g has no inputs for the label and for e, which are constant in the code; it learns before each epoch,
from trusted samples with their labels and with wrong ones, not once from another training. Without trusted samples
there is a stand-in (stand_in.py). The code's last 5 % with 90 % dropped never happen there, nor here.

Shapes: N samples, B in a batch, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from dividemix.engine.state import State

# The released scripts; their third drop of the rate, after 77 epochs, is skipped. Table 6 has the data-driven
# curriculum.
_CIFAR: dict[str, Any] = {"epochs": 100, "batch_size": 64, "lr": 0.1, "lr_drop_epoch": 50, "weight_decay": 2e-4}
_CIFAR |= {"lr_second_drop": 64}
PUBLISHED: dict[str, Mapping[str, Any]] = {
    name: {**_CIFAR, "curriculum": "data_driven"} for name in ("cifar10", "cifar100")
}

NOISE_RATE = "noise_rate"  # State.buffers: (1,) float32
PERCENTILE = "percentile"  # State.buffers: m (1,) float64
HIDDEN, OUT = "mentor_hidden", "mentor_out"  # State.buffers: the weights of g, two and a bias for each unit; its output
_BURN_IN = {"predefined": 19, "data_driven": 17}  # percent of the training
_DROP_LATER = 17  # percent of the training: from here on few samples are dropped
_SOFT = 90  # percent of the training: from here on the predefined weights are soft
_GAMMA = 1.0
_NUM_UNITS, _RATE = 20, 0.05  # of the small net and its training by Adam
_FIRST_STEPS, _NEXT_STEPS = 300, 30  # before its first epoch, and before each other, where it starts from what it was


@dataclass(frozen=True, kw_only=True)
class MentorNetSettings(MethodSettings):
    """The curriculum and its numbers."""

    curriculum: Literal["predefined", "data_driven"] = setting(
        "predefined", "predefined: by a rule; data_driven: by a small net that learns from trusted samples"
    )
    noise_rate: float | None = setting(
        None, "share of wrong labels: this share of losses is above the percentile; none: estimated", low=0, high=0.99
    )
    percentile_decay: float = setting(0.5, "rho: decay of the moving percentile", low=0, high=1)
    early_drop: float = setting(
        0.5, "share of a batch dropped at random in the first 17 % of the epochs", low=0, high=1
    )
    late_drop: float = setting(0.05, "share of a batch dropped at random afterwards", low=0, high=1)


class MentorNet(Method):
    """A burn-in with all samples, then a curriculum."""

    settings = MentorNetSettings
    uses_trusted: Mapping[str, Any] | None = {"curriculum": "data_driven"}

    def phases(self, s: MentorNetSettings) -> tuple[Phase, ...]:
        """Burn-in, then curriculum, which has at least one epoch."""
        in_burn_in = [100 * epoch // s.epochs < _BURN_IN[s.curriculum] for epoch in range(s.epochs - 1)]
        phases = Phase("burn_in", sum(in_burn_in), selects=False), Phase("curriculum", s.epochs - sum(in_burn_in))
        return tuple(phase for phase in phases if phase.num_epochs)

    def epoch(self, state: State, sets: TrainingSets, s: MentorNetSettings) -> EpochReport:
        """An epoch of ordinary steps with weights."""
        from dividemix.methods.loop import phase_at
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.stand_in import stand_in_figures

        data, learner, percent = sets.train, state.learners[0], 100 * state.epoch // s.epochs
        figures: dict[str, float] = {}
        weigh: Callable[[Tensor, Tensor], Tensor] | None = None
        rate, m = 0.0, torch.zeros((), device=data.labels.device)
        if phase_at(self.phases(s), state.epoch).name == "curriculum":
            rate, m = known(state, sets, s)
            figures = {NOISE_RATE: rate}
            if s.curriculum == "data_driven":
                weigh = learned_weights(state, sets, rate, m)
                figures |= stand_in_figures(sets)
            else:
                weigh = predefined_soft if percent >= _SOFT else predefined
            state.progress.lap("evaluate")
        net = learner.net.train()
        batches = ordinary_batches(state, data, s)
        num_kept = int(2 * s.batch_size * (1 - (s.early_drop if percent < _DROP_LATER else s.late_drop)))
        totals = torch.zeros(2, device=data.labels.device)
        steps = zip(batches, data.augmented(batches, state.views), strict=True)
        for index, x in state.progress.watch("mentornet", steps, len(batches)):
            losses = F.cross_entropy(net(x), data.labels[index], reduction="none")
            kept = torch.randperm(len(x), generator=state.draws)[:num_kept].to(x.device)
            v = torch.zeros_like(losses)
            with torch.no_grad():
                if weigh is None:
                    v[kept] = 1.0
                else:
                    m = moved(m, losses, 1 - rate, s.percentile_decay)
                    v[kept] = weigh(losses, m)[kept]
            loss = (v * losses).mean()
            learner.descend(loss)
            totals += torch.stack([loss.detach(), v.mean()])
            state.progress.lap("forward_backward")
        if weigh is not None:
            state.buffers[PERCENTILE] = m.detach().cpu().double().view(1)
        loss_mean, weight_mean = (totals / len(batches)).tolist()
        return EpochReport({"loss": [loss_mean]}, figures=figures | {"mean_weight": weight_mean})


def known(state: State, sets: TrainingSets, s: MentorNetSettings) -> tuple[float, Tensor]:
    """The noise rate and m; at the start of the curriculum estimated, and the percentile of all losses."""
    from dividemix.algorithm.dividemix import finite
    from dividemix.algorithm.sample_losses import sample_losses
    from dividemix.methods.noise_estimate import estimated_noise_rate

    if s.noise_rate is None and NOISE_RATE not in state.buffers:
        state.buffers[NOISE_RATE] = torch.tensor([estimated_noise_rate(state, sets.train)])
    rate = float(state.buffers[NOISE_RATE]) if s.noise_rate is None else s.noise_rate
    if PERCENTILE not in state.buffers:
        losses = finite(sample_losses(state, sets.train, torch.arange(len(sets.train.labels))), state)[0]
        state.buffers[PERCENTILE] = losses.cpu().double().quantile(1 - rate).view(1)
    dtype = next(state.nets[0].parameters()).dtype
    return rate, state.buffers[PERCENTILE][0].to(sets.train.labels.device, dtype)


def moved(m: Tensor, losses: Tensor, share: float, decay: float) -> Tensor:
    """The moving percentile after a batch: decay m + (1 - decay) percentile."""
    return decay * m + (1 - decay) * losses.quantile(share)


def predefined(losses: Tensor, m: Tensor) -> Tensor:
    """The weights (B,) of the predefined curriculum after its burn-in."""
    return (losses <= m).to(losses.dtype)


def predefined_soft(losses: Tensor, m: Tensor) -> Tensor:
    """The weights (B,) of the predefined curriculum at its end."""
    return (1 - (losses - m) / _GAMMA).clamp(0, 1)


def learned_weights(state: State, sets: TrainingSets, rate: float, m: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """The weights of a small net that was shown trusted samples, with their labels and with wrong ones."""
    from dividemix.algorithm.sample_losses import evaluated, label_losses
    from dividemix.methods.stand_in import trusted_samples

    trusted, index = trusted_samples(state, sets)
    right, wrong = list[torch.Tensor](), list[torch.Tensor]()
    for _, labels, log_probs in evaluated(state, trusted, index):
        num_classes = log_probs.shape[2]
        offset = 1 + (torch.rand(len(labels), generator=state.draws) * (num_classes - 1)).long().to(labels.device)
        right.append(label_losses(log_probs, labels)[0])
        wrong.append(label_losses(log_probs, (labels + offset) % num_classes)[0])
    losses = torch.cat(right + wrong)
    is_right = (torch.arange(len(losses), device=losses.device) < len(index)).to(losses.dtype)
    learned = learn(
        torch.stack([losses, losses - m], 1), is_right, (1 - rate) * is_right + rate * (1 - is_right), state
    )
    return lambda losses, m: learned(torch.stack([losses, losses - m], 1))


def learn(inputs: Tensor, is_right: Tensor, counts: Tensor, state: State) -> Callable[[Tensor], Tensor]:
    """The probability that a label is right, as a function of inputs (n, 2), learned from labels known to be (n,)."""
    low, high = inputs.amin(0), inputs.amax(0)  # beyond these nothing was learned
    mean, spread = inputs.mean(0), inputs.std(0, unbiased=False).clamp(min=1e-6)
    is_first = HIDDEN not in state.buffers
    if is_first:
        state.buffers[HIDDEN] = torch.randn(3, _NUM_UNITS, generator=state.draws)
        state.buffers[OUT] = torch.randn(_NUM_UNITS + 1, generator=state.draws) / _NUM_UNITS**0.5
    hidden, out = (state.buffers[name].to(inputs, copy=True) for name in (HIDDEN, OUT))
    adam = torch.optim.Adam([hidden.requires_grad_(), out.requires_grad_()], lr=_RATE)

    def score(inputs: Tensor) -> Tensor:
        scaled = (inputs.clamp(low, high) - mean) / spread
        return torch.addmv(out[-1], torch.tanh(scaled @ hidden[:2] + hidden[2]), out[:-1])

    for _ in range(_FIRST_STEPS if is_first else _NEXT_STEPS):
        adam.zero_grad()
        F.binary_cross_entropy_with_logits(score(inputs), is_right, counts).backward()
        adam.step()
    state.buffers[HIDDEN], state.buffers[OUT] = (weights.detach().cpu() for weights in (hidden, out))
    return lambda inputs: torch.sigmoid(score(inputs))


METHOD = MentorNet()
