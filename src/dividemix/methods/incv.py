"""Iterative-CV, INCV (Chen et al., ICML 2019): cross-validate to select samples, then Co-teaching on them.

Each of the rounds splits the candidates, at first all samples, into two halves. From its first weights, net k trains on
the selected samples and half k, and predicts the other half. Samples whose given label is predicted are selected. With
symmetric noise, the r |selected| largest losses of the others are discarded: r = min(2, e / (1 - e)). The noise rate e
follows from how many labels are predicted in the first round (agreement.py).

Then both nets begin again, with Co-teaching on the selected samples that drops the noise left among them. Later each
batch has up to half as many candidates in addition, while the number of samples that is kept stays.

Differences from the public code: it is estimated if the noise is symmetric, not told; e is a closed form, not a grid
search, and comes from both halves, which are trained side by side; the momentum is forgotten with the weights; SGD
replaces Adam; no loss to discard never means all of them; the nets predict together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

STATUS, FOLD = "status", "fold"  # State.samples: (N,) int8, one of the next line; the half in this round, or -1
CANDIDATE, SELECTED, DISCARDED = range(3)
PREDICTED, LOSSES = "predicted", "fold_losses"  # State.samples: (N,) int64 and float32, of this round
AGREEMENT = "agreement"  # State.buffers: (2,) float64, the largest share of labels that net k predicted in this round
NOISE = "noise"  # State.buffers: (3,) float64: noise rate, chance of alike labels, 1 if the noise is symmetric
_RAMP_SHARE = 0.05  # of Co-teaching, until all of the noise left is dropped: 10 of 200 epochs


@dataclass(frozen=True, kw_only=True)
class INCVSettings(MethodSettings):
    """The rounds of selection and what is known of the noise."""

    num_rounds: int = setting(4, "rounds of selection", low=1, high=1000)
    round_share: float = setting(0.125, "share of the epochs of a round; 1 epoch or more", low=0, high=1)
    round_epochs: int = setting(0, "epochs of a round; 0: round_share decides", low=0)
    noise_pattern: Literal["estimated", "symmetric", "asymmetric"] = setting(
        "estimated", "how wrong labels are spread: asymmetric if those of a class are alike; estimated: found from data"
    )

    @property
    def round_length(self) -> int:
        """Epochs of a round."""
        return self.round_epochs or max(1, round(self.round_share * self.epochs))

    @property
    def select_epochs(self) -> int:
        """Epochs of all rounds that leave an epoch for Co-teaching."""
        return min(self.num_rounds, (self.epochs - 1) // self.round_length) * self.round_length

    def decided(self, epoch: int) -> dict[str, int]:
        """As `ScheduleSettings.decided`: the length of a round once one has begun; their number once all are over."""
        lengths = {"round_epochs": self.round_length} if epoch else {}
        if epoch > self.select_epochs > 0:
            lengths["num_rounds"] = self.select_epochs // self.round_length
        return lengths


class INCV(Method):
    """Select samples by cross-validation, then train two nets on them by Co-teaching."""

    settings = INCVSettings

    def num_nets(self, s: INCVSettings) -> int:
        """Two."""
        return 2

    def phases(self, s: INCVSettings) -> tuple[Phase, ...]:
        """Selection, then Co-teaching."""
        n = s.select_epochs
        return Phase("select", n, selects=False, cost=1.7), Phase("co_teaching", s.epochs - n, cost=2.0)

    def start(self, state: State, sets: TrainingSets, s: INCVSettings) -> None:
        """Make every sample a candidate."""
        n = len(sets.train.labels)
        state.samples[STATUS] = torch.full((n,), CANDIDATE, dtype=torch.int8)
        state.samples[FOLD] = torch.full((n,), -1, dtype=torch.int8)
        state.samples[PREDICTED], state.samples[LOSSES] = torch.zeros(n, dtype=torch.int64), torch.zeros(n)
        state.buffers[AGREEMENT] = torch.full((2,), -1.0, dtype=torch.float64)
        state.buffers[NOISE] = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)

    def epoch(self, state: State, sets: TrainingSets, s: INCVSettings) -> EpochReport:
        """An epoch of a round, or of Co-teaching."""
        from dividemix.methods.restart import keep_first_weights

        keep_first_weights(state)
        losses = (_select_epoch if state.epoch < s.select_epochs else _co_teaching_epoch)(state, sets.train, s)
        shares = [float((state.samples[STATUS] == status).double().mean()) for status in (SELECTED, DISCARDED)]
        figures = {"noise_rate": float(state.buffers[NOISE][0]), "selected": shares[0], "discarded": shares[1]}
        return EpochReport(losses, figures=figures)


def _select_epoch(state: State, data: TrainingData, s: INCVSettings) -> dict[str, list[float]]:
    """Train each net on its half and the selected samples; select after the last epoch of a round."""
    from dividemix.algorithm.warm_up import warm_up
    from dividemix.methods.agreement import estimated_noise
    from dividemix.methods.part import Part
    from dividemix.methods.restart import restart, set_rate

    number, done = divmod(state.epoch, s.round_length)
    if done == 0:
        restart(state)
        split(state)
    set_rate(state, s, done, s.round_length)
    status, fold, losses = state.samples[STATUS], state.samples[FOLD], []
    for k in range(2):
        index = _where((status == SELECTED) | (fold == k))
        part = Part(data, index if len(index) else torch.arange(len(status)))
        losses.append(float(warm_up(state, k, part, s, F.cross_entropy)["loss"]))
    rate, _, symmetric = state.buffers[NOISE].tolist()
    takes_best = number < (1 if rate > 0.6 or not symmetric else 2 if rate > 0.3 else 4)
    ends = done == s.round_length - 1
    for k in range(2) if takes_best or ends else ():
        predict(state, data, k, any_epoch=not takes_best)
    if ends and number == 0:
        state.buffers[NOISE].copy_(estimated_noise(state.samples[PREDICTED], data.labels.cpu(), s.noise_pattern))
    if ends:
        select(state, data.labels.cpu())
    state.progress.lap("select")
    return {"loss": losses}


def split(state: State) -> None:
    """Split the candidates at random into two halves."""
    index = _where(state.samples[STATUS] == CANDIDATE)
    order = index[torch.randperm(len(index), generator=state.draws)]
    state.samples[FOLD].fill_(-1)
    state.samples[FOLD][order] = (torch.arange(len(order)) % 2).to(torch.int8)
    state.buffers[AGREEMENT].fill_(-1)


def predict(state: State, data: TrainingData, k: int, *, any_epoch: bool) -> None:
    """Let net k predict the half that it does not train on; only the best epoch of a round counts, unless any does."""
    from dividemix.algorithm.ensemble import predict_probs
    from dividemix.methods.part import Part

    tested = _where(state.samples[FOLD] == 1 - k)
    if len(tested) == 0:
        return
    part = Part(data, tested)
    probs = predict_probs([state.nets[k]], part)[0].cpu()
    labels, predicted = part.labels.cpu(), probs.argmax(dim=1)
    agreement = (predicted == labels).double().mean()
    if any_epoch or agreement > state.buffers[AGREEMENT][k]:
        state.buffers[AGREEMENT][k] = agreement
        state.samples[PREDICTED][tested] = predicted
        state.samples[LOSSES][tested] = -probs.gather(1, labels[:, None]).squeeze(1).clamp(min=1e-30).log().float()


def select(state: State, labels: Tensor) -> None:
    """Select the samples of both halves whose label (N,) was predicted; discard large losses of symmetric noise."""
    rate, _, symmetric = state.buffers[NOISE].tolist()
    ratio = min(2.0, rate / max(1 - rate, 1e-9)) if symmetric else 0.0
    for half in range(2):
        tested = state.samples[FOLD] == half
        agrees = tested & (state.samples[PREDICTED] == labels)
        others = _where(tested & ~agrees)
        worst = state.samples[LOSSES][others].argsort(descending=True, stable=True)[: int(ratio * int(agrees.sum()))]
        state.samples[STATUS][agrees] = SELECTED
        state.samples[STATUS][others[worst]] = DISCARDED


def _co_teaching_epoch(state: State, data: TrainingData, s: INCVSettings) -> dict[str, list[float]]:
    """Co-teaching on the selected samples, later with candidates; on all samples if none is selected."""
    from dividemix.data.draw import draw
    from dividemix.methods.agreement import noise_left
    from dividemix.methods.ordinary_epoch import ordinary_batches
    from dividemix.methods.part import Part
    from dividemix.methods.restart import restart, set_rate
    from dividemix.methods.two_nets import exchanged_losses, train_both

    done, length = state.epoch - s.select_epochs, s.epochs - s.select_epochs
    if done == 0:
        restart(state)
    set_rate(state, s, done, length)
    selected, candidates = (_where(state.samples[STATUS] == status) for status in (SELECTED, CANDIDATE))
    selected = selected if len(selected) else torch.arange(len(data.labels))
    batches = selected[ordinary_batches(state, Part(data, selected), s)]
    size, (rate, alike, symmetric) = batches.shape[1], state.buffers[NOISE].tolist()
    dropped = noise_left(rate, alike) * min(1.0, done / max(1, round(_RAMP_SHARE * length)))
    num_kept = max(1, round(size * (1 - dropped)))
    num_more = min(len(candidates) * size // len(selected), size // 2)
    if num_more and done > (0.2 if symmetric and rate <= 0.6 else 0.4) * length:
        batches = torch.cat([batches, draw(candidates, len(batches), num_more, state.draws)], dim=1)
    return train_both(state, data, batches, lambda logits, labels: exchanged_losses(logits, labels, num_kept))


def _where(mask: Tensor) -> Tensor:
    """The indices of a mask (N,)."""
    return mask.nonzero().squeeze(1)


METHOD = INCV()

# The public code (read): 4 rounds of 50 epochs, then 200 of Co-teaching: 0.125 of 400 epochs each. WebVision's figure
# was published with another net; its schedule is not in the code.
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": {"num_rounds": 4, "round_share": 0.125}}
