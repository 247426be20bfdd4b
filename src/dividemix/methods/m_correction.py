"""M-correction (Arazo et al., ICML 2019): the larger a label's loss, the more the net's own prediction replaces it.

Before each epoch a Beta mixture of two components is fitted to all losses; B_i is the posterior of the large losses.
A label becomes (1 - B_i) y_i + B_i y^_i, where y^_i is the net's own prediction, and mixup mixes pairs i, j:
    hard (M-DYR-H)    x = lambda x_i + (1 - lambda) x_j with lambda from Beta(alpha, alpha); y^ is the predicted class
    soft (MD-DYR-SH)  x = (w_i x_i + w_j x_j) / (w_i + w_j) with w = 1 - B; labels are mixed half and half; y^ is
                      softmax(logits / tau), tau falling from 1 to 0.001
The loss is cross-entropy plus the divergence of the mean prediction from uniform. Mixup alone comes first.

Differences from the released code: the losses for the mixture are those of images without augmentation; the posterior
is computed for each loss, not looked up in 100 bins, and is monotone by itself; the epochs at which phases begin, fixed
there for 300 epochs, are shares.

Shapes: n samples of the epoch, B in a batch, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor, nn

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

# The released code. DivideMix's tables have the better variant of
# each column: soft for CIFAR-10 at 90 % and for CIFAR-100 but at 80 %. No code is published for the other sets.
_CIFAR: dict[str, Any] = {"epochs": 300, "batch_size": 64, "lr": 0.1, "lr_drop_epoch": 100, "weight_decay": 1e-4}
_CIFAR |= {"lr_second_drop": 250}
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": _CIFAR, "cifar100": {**_CIFAR, "correction": "soft"}}

_DYNAMIC_SHARE = 1 / 60  # of the epochs: mixup weighed by B before the soft variant corrects labels
_COLD_FROM = 2 / 3  # of the epochs: from here on tau is at its end
_COLD = 0.001
_MIN_SPAN = 1e-4  # losses closer together are one cluster


@dataclass(frozen=True, kw_only=True)
class MCorrectionSettings(MethodSettings):
    """The variant and its numbers."""

    correction: Literal["hard", "soft"] = setting(
        "hard", "hard: labels move to the predicted class; soft: to predicted probabilities, and mixup is weighed"
    )
    warmup_share: float = setting(0.35, "share of the epochs that train with mixup alone", low=0, high=1)
    alpha: float = setting(32.0, "parameter of mixup's Beta distribution", above=0)


class MCorrection(Method):
    """Mixup, then mixup with labels that the net corrects."""

    settings = MCorrectionSettings

    def phases(self, s: MCorrectionSettings) -> tuple[Phase, ...]:
        """Mixup; for the soft variant a little weighed mixup; then correction."""
        num_warmup = round(s.warmup_share * s.epochs)
        num_dynamic = min(round(_DYNAMIC_SHARE * s.epochs), s.epochs - num_warmup) if s.correction == "soft" else 0
        phases = (
            Phase("warmup", num_warmup, selects=False),
            Phase("dynamic", num_dynamic, selects=False, cost=1.7),
            Phase("correct", s.epochs - num_warmup - num_dynamic, cost=2.0),
        )
        return tuple(phase for phase in phases if phase.num_epochs)

    def epoch(self, state: State, sets: TrainingSets, s: MCorrectionSettings) -> EpochReport:
        """An epoch of the phase that it is in."""
        from dividemix.algorithm.dividemix import finite
        from dividemix.algorithm.losses import loss_reg, loss_x
        from dividemix.algorithm.sample_losses import sample_losses
        from dividemix.methods.loop import phase_at
        from dividemix.methods.mixup import draw_mixing
        from dividemix.methods.ordinary_epoch import ordinary_batches

        phase, data, learner = phase_at(self.phases(s), state.epoch).name, sets.train, state.learners[0]
        batches = ordinary_batches(state, data, s)
        figures, posterior = {}, None
        if phase != "warmup":
            losses = finite(sample_losses(state, data, batches.unique()), state)[0]
            posterior = fit_posterior(losses)
            figures = {"noise_rate": posterior(losses).mean().item()}
            state.progress.lap("evaluate")
        net, totals = learner.net.train(), torch.zeros(2, device=data.labels.device)
        steps = zip(batches, data.augmented(batches, state.views), strict=True)
        for index, x in state.progress.watch(phase, steps, len(batches)):
            labels = data.labels[index]
            partner, label_share = draw_mixing(len(x), s.alpha, state.draws)
            partner, wrong, guess = partner.to(x.device), None, None
            if posterior is not None:
                wrong = posterior(losses_in_evaluation(net, x, labels)).to(x)
            if phase == "correct":
                with torch.no_grad():
                    guess = guessed(net(x), self.temperature(state.epoch, s))
            image_share = torch.full((len(x),), label_share).to(x)
            if wrong is not None and s.correction == "soft":
                image_share = weighed_share(wrong, partner)
                label_share = 0.5 if phase == "correct" else label_share
            column = image_share.view(-1, *[1] * (x.ndim - 1))
            logits = net(torch.lerp(x[partner], x, column))
            targets = corrected(labels, wrong, guess, logits)
            l_x = loss_x(logits, torch.lerp(targets[partner], targets, label_share))
            l_reg = loss_reg(logits) if phase == "correct" else torch.zeros_like(l_x)
            learner.descend(l_x + l_reg)
            totals += torch.stack([l_x, l_reg]).detach()
            state.progress.lap("forward_backward")
        terms = dict(zip(("loss", "loss_reg"), (totals / len(batches)).tolist(), strict=True))
        return EpochReport({name: [value] for name, value in terms.items()}, figures=figures)

    def temperature(self, epoch: int, s: MCorrectionSettings) -> float:
        """The tau of an epoch: 0 for the hard variant; else it falls linearly to 0.001 from the first correction on."""
        if s.correction == "hard":
            return 0.0
        first = sum(phase.num_epochs for phase in self.phases(s) if phase.name != "correct")
        num_steps = max(round(_COLD_FROM * s.epochs) - first - 1, 1)
        return 1 - (1 - _COLD) * min((epoch - first) / num_steps, 1.0)

    def judge(self, state: State, data: TrainingData, s: MCorrectionSettings) -> Judgement:
        """Its opinion of every given label: 1 - B_i."""
        from dividemix.methods.evaluation import evaluate, judgement

        seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
        return judgement(seen, 1 - fit_posterior(seen.losses[0])(seen.losses[0])[None])


def fit_posterior(losses: Tensor) -> Callable[[Tensor], Tensor]:
    """The function from losses to B: the posterior of the large-loss component of a mixture over the losses (n,).

    The mixture sees the losses between their 5th and 95th percentiles (by the nearest rank), scaled to (0, 1). If they
    are all but equal, no label differs from another, and B is 0.
    """
    from dividemix.algorithm.beta_mixture import fit_betas
    from dividemix.algorithm.divide import warn_of_equal_losses

    losses = losses.double()
    ordered = losses.sort().values
    low, high = (float(ordered[round(share * (len(ordered) - 1))]) for share in (0.05, 0.95))
    if high - low <= _MIN_SPAN:
        warn_of_equal_losses()
        return torch.zeros_like

    def scaled(losses: Tensor) -> Tensor:
        return ((losses.double() - low - 1e-5) / (high - low + 1e-6)).clamp(1e-3, 1 - 1e-3)

    mixture = fit_betas(scaled(losses[(losses >= low) & (losses <= high)]))
    return lambda losses: (1 - mixture.low_prob(scaled(losses.cpu()))).clamp(1e-4, 1 - 1e-4)


def losses_in_evaluation(net: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy (B,) of a net in evaluation mode; it is in training mode again afterwards."""
    with torch.no_grad():
        logits: Tensor = net.eval()(x)
    net.train()
    return F.cross_entropy(logits, labels, reduction="none")


def weighed_share(wrong: Tensor, partner: Tensor) -> Tensor:
    """The share (B,) of each image in its mixture with its partner: w_i / (w_i + w_j), w = 1 - B."""
    w = 1 - wrong
    return w / (w + w[partner])


def guessed(logits: Tensor, temperature: float) -> Tensor:
    """The net's own labels y^ (B, C): softmax(logits / tau), or the predicted class if tau is 0."""
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)
    return F.softmax(logits / temperature, dim=1)


def corrected(labels: Tensor, wrong: Tensor | None, guess: Tensor | None, like: Tensor) -> Tensor:
    """(1 - B) y + B y^ (B, C), in the shape and type of the logits `like`; y without a guess."""
    given = F.one_hot(labels, like.shape[1]).to(like.dtype)
    return given if wrong is None or guess is None else torch.lerp(given, guess, wrong[:, None])


METHOD = MCorrection()
