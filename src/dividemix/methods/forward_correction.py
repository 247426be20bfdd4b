"""F-correction (Patrini, Rozza, Menon, Nock, Qu, CVPR 2017): the loss passes predictions through the noise.

    T_ij = P(given label j | true class i); every row sums to 1
    L = -log sum_i p_i T_iy        with y the given label; predictions are p, not p T

A first run with cross-entropy estimates T: row i is the prediction for a sample that is almost surely of class i. A
second run starts from the first weights again, with the loss above. Each run has a whole learning-rate schedule.

Differences from the public code: T comes from the predictions with the lowest loss on a tenth of the samples, which
the first run does not train on; the second run trains on all. Of each class, three tenths as many samples as have its
label are skipped as outliers, which for ten balanced classes is the code's quantile of 97 %. They are skipped by rank,
so that equal predictions stay. The code zeroes the skipped ones in the predictions themselves, which changes later
rows: here it does not. The second run starts from the weights of the first one, not from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

_PREDICTIONS = "predictions"  # State.samples: (N, C), the best of the first run so far
_LIKELIHOOD = "label_likelihood"  # State.samples: (N, C), the column T_.y of each sample's given label y


@dataclass(frozen=True, kw_only=True)
class ForwardCorrectionSettings(MethodSettings):
    """The settings of forward correction."""

    first_share: float = setting(0.5, "share of the epochs that are the first run, which estimates T", low=0, high=1)
    outlier_share: float = setting(
        0.3, "outliers skipped before the sample that gives a row of T: a share of those with that label", low=0, high=1
    )

    @property
    def num_first(self) -> int:
        """How many epochs the first run has."""
        return round(self.first_share * self.epochs)

    def learning_rate(self, epoch: int) -> float:
        """The rate after `epoch` epochs: each run has the whole schedule in its own epochs."""
        begin, end = (0, self.num_first) if epoch < self.num_first else (self.num_first, self.epochs)
        return self.rate_at((epoch - begin) * self.epochs // max(end - begin, 1))


class ForwardCorrection(Method):
    """Two runs of one net: the first estimates the noise, the second corrects for it."""

    settings = ForwardCorrectionSettings

    def phases(self, s: ForwardCorrectionSettings) -> tuple[Phase, ...]:
        """The two runs."""
        return Phase("estimate", s.num_first, selects=False, cost=1.3), Phase("correct", s.epochs - s.num_first)

    def epoch(self, state: State, sets: TrainingSets, s: ForwardCorrectionSettings) -> EpochReport:
        """An epoch of the first or the second run."""
        from dividemix.methods.restart import keep_first_weights, restart

        keep_first_weights(state)
        if state.epoch < s.num_first:
            return _first_run(state, sets.train, s)
        if state.epoch == s.num_first:
            restart(state)
            if _PREDICTIONS in state.samples:
                T = estimate_transition(state.samples.pop(_PREDICTIONS), sets.train.labels.cpu(), s.outlier_share)
                state.samples[_LIKELIHOOD] = T.T[sets.train.labels.cpu()].float()
        return _second_run(state, sets.train, s)

    def judge(self, state: State, data: TrainingData, s: ForwardCorrectionSettings) -> Judgement:
        """The posterior p_y T_yy / sum_i p_i T_iy of the given label y.

        By the loss mixture while T is unknown and, with a warning, for data other than the training samples.
        """
        from dividemix.methods.evaluation import evaluate, judge_without_own_opinion, judgement

        likelihood = state.samples.get(_LIKELIHOOD)
        if likelihood is None:
            return super().judge(state, data, s)
        if len(likelihood) != len(data.labels):
            return judge_without_own_opinion(state, data)
        seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
        assert seen.pred_probs is not None
        joint = seen.pred_probs.double() * likelihood.double().clamp(min=1e-12)
        posterior = joint / joint.sum(dim=1, keepdim=True)
        return judgement(seen, posterior.gather(1, data.labels.cpu()[:, None]).T)


def _first_run(state: State, data: TrainingData, s: ForwardCorrectionSettings) -> EpochReport:
    """An ordinary epoch on nine tenths; the predictions are kept if they fit the last tenth better than before."""
    from dividemix.algorithm.warm_up import warm_up
    from dividemix.methods.evaluation import evaluate
    from dividemix.methods.held_out import held_out
    from dividemix.methods.part import Part

    held = held_out(data.labels)
    terms = warm_up(state, 0, Part(data, (~held).nonzero().squeeze(1)), s, F.cross_entropy)
    compared = (held if held.any() else ~held).nonzero().squeeze(1)
    loss, best = evaluate(state, data, compared).losses.mean().item(), torch.inf
    if _PREDICTIONS in state.samples:
        probs = state.samples[_PREDICTIONS][compared, data.labels.cpu()[compared]]
        best = -probs.double().clamp(min=1e-30).log().mean().item()
    if loss < best:
        probs_of_all = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True).pred_probs
        assert probs_of_all is not None
        state.samples[_PREDICTIONS] = probs_of_all
    state.progress.lap("evaluate")
    return EpochReport({"loss": [terms["loss"].item()]}, figures={"held_out_loss": loss})


def _second_run(state: State, data: TrainingData, s: ForwardCorrectionSettings) -> EpochReport:
    """An ordinary epoch with the corrected loss; with cross-entropy if no first run has estimated T."""
    from dividemix.methods.ordinary_epoch import ordinary_epoch

    net, likelihood, figures = state.nets[0], state.samples.get(_LIKELIHOOD), {}
    if likelihood is not None:
        likelihood = likelihood.to(data.labels.device)
        figures = {"noise_rate": 1 - likelihood.gather(1, data.labels[:, None]).mean().item()}

    def loss_of(index: Tensor, x: Tensor) -> Tensor:
        if likelihood is None:
            return F.cross_entropy(net(x), data.labels[index])
        return forward_loss(net(x), likelihood[index])

    return ordinary_epoch(state, data, s, loss_of, lambda: figures)


def forward_loss(logits: Tensor, likelihood: Tensor) -> Tensor:
    """-log sum_i p_i T_iy, the mean over logits (R, C); `likelihood` (R, C) has T_iy of each row's given label y."""
    log_joint = F.log_softmax(logits, dim=1) + likelihood.to(logits.dtype).clamp(min=1e-12).log()
    return -torch.logsumexp(log_joint, dim=1).mean()


def estimate_transition(predictions: Tensor, labels: Tensor, outlier_share: float) -> Tensor:
    """T (C, C) in float64 from predictions (N, C) of the samples and their given labels (N,)."""
    predictions = predictions.double()
    order = predictions.argsort(dim=0, descending=True, stable=True)
    counts = labels.bincount(minlength=predictions.shape[1])
    num_skipped = (outlier_share * counts.double() + 1e-9).long().clamp(max=len(labels) - 1)
    rows = predictions[order.gather(0, num_skipped[None]).squeeze(0)]
    return rows / rows.sum(dim=1, keepdim=True)


# Read in the public code: rates, weight decay and epochs of each of the two runs, and the sample of the largest
# prediction for CIFAR-100. The rate drops after 40 and 80 of 120 epochs, and after 80 and 120 of 150: here of both runs
# together. Clothing1M: rate and origin of T unknown.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "cifar10": {
        **{"epochs": 240, "lr": 0.1, "lr_drop_epoch": 80, "lr_second_drop": 160, "weight_decay": 1e-4},
        "outlier_share": 0.3,
    },
    "cifar100": {
        **{"epochs": 300, "lr": 0.1, "lr_drop_epoch": 160, "lr_second_drop": 240, "weight_decay": 1e-3},
        "outlier_share": 0.0,
    },
}
METHOD = ForwardCorrection()
