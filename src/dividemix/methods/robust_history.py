"""For images: our quick recipe for unknown noise. One net refines the labels by its own earlier predictions.

An epoch costs as much as one of ordinary training. First the net learns the given labels, until the rate is low, and
anchors tell how noisy each label is, and which classes get it by mistake. Then the rate is high again, and every epoch
begins with soft labels: the given one with weight w, a guess from the running mean of the net's predictions with the
rest. w is the probability that the label is right, by a mixture over the losses of each class; labels with little noise
are not doubted. Every second step mixes pairs of images and their soft labels, which are then learned by heart less
easily. The model is a running mean of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

_MATRIX = "noise_matrix"  # State.buffers: (C, C) float32, once labels are refined
_NOISE = "noise_by_label"  # State.buffers: (C,)
_LITTLE, _MUCH = 0.05, 0.15  # noise up to which a label is not doubted at all, and from which it is doubted in full


@dataclass(frozen=True, kw_only=True)
class RobustHistorySettings(MethodSettings):
    """The settings of the recipe."""

    given_share: float = setting(0.4, "share of the epochs that learn the labels as they are given", low=0, high=1)
    given_epochs: int = setting(0, "epochs that learn the labels as they are given; 0: given_share decides", low=0)
    history_decay: float = setting(
        0.7, "weight of the running mean of a sample's predictions when a new one is added", low=0, high=1
    )
    alpha: float = setting(
        0.5,
        "parameter of the Beta distribution that mixes images in every second step with refined labels; 0: no mixing",
        low=0,
    )
    average_epochs: float = setting(
        0.6, "epochs over which the weights of the model are averaged; 0: the last weights", low=0
    )

    @property
    def num_given(self) -> int:
        """Epochs with the given labels: at least one, which the history needs."""
        return min(self.given_epochs or max(round(self.given_share * self.epochs), 1), self.epochs)

    def decided(self, epoch: int) -> dict[str, int]:
        """As `ScheduleSettings.decided`: the epochs with the given labels, once they are over."""
        return {"given_epochs": self.num_given} if epoch >= self.num_given else {}

    def learning_rate(self, epoch: int) -> float:
        """The rate in force after `epoch` epochs. Each phase has the whole curve: a low rate judges labels best."""
        share = 0.0  # of the phase; each plan divides what the one before it left
        for done in range(0 if epoch < self.num_given else self.num_given, epoch):
            plan = self.in_force(done)
            end = plan.num_given if done < plan.num_given else plan.epochs
            share += (1 - share) / (end - done)
        return self.rate_at(share * self.epochs)


class RobustHistory(Method):
    """Ordinary training, then training on refined labels."""

    settings = RobustHistorySettings

    def phases(self, s: RobustHistorySettings) -> tuple[Phase, ...]:
        """Given labels, then refined ones."""
        return Phase("warmup", s.num_given, selects=s.num_given == s.epochs), Phase("refine", s.epochs - s.num_given)

    def start(self, state: State, sets: TrainingSets, s: RobustHistorySettings) -> None:
        """Add the running mean of the weights."""
        from dividemix.methods.weight_average import start_average

        start_average(state.learners[0])

    def epoch(self, state: State, sets: TrainingSets, s: RobustHistorySettings) -> EpochReport:
        """An epoch with the cost of an ordinary one."""
        from dividemix.algorithm.losses import loss_x
        from dividemix.methods.mixup import draw_mixing
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.prediction_history import HISTORY, remember
        from dividemix.methods.weight_average import follow

        data, learner = sets.train, state.learners[0]
        soft, figures = _targets(state, data, s)
        batches = ordinary_batches(state, data, s)
        learner.net.train()
        total = torch.zeros((), device=data.labels.device)
        images = data.augmented(batches, state.views)
        steps = zip(batches, images, _rates(state.epoch, len(batches), s), strict=True)
        for step, (index, x, rate) in enumerate(state.progress.watch("net 1", steps, len(batches))):
            for group in learner.optimizer.param_groups:
                group["lr"] = rate
            is_mixed = soft is not None and s.alpha > 0 and step % 2 == 1
            partner, lam = draw_mixing(len(index), s.alpha if is_mixed else 0, state.draws)
            logits = learner.net(torch.lerp(x[partner], x, lam) if is_mixed else x)
            if soft is None:
                loss = F.cross_entropy(logits, data.labels[index])
            else:
                target = soft[index.to(soft.device)].to(logits.dtype)
                loss = loss_x(logits, torch.lerp(target[partner], target, lam))
            learner.descend(loss)
            follow(learner, s.average_epochs * len(batches))
            if not is_mixed:
                if HISTORY not in state.samples:
                    state.samples[HISTORY] = torch.zeros(len(data.labels), logits.shape[1])
                probs = logits.detach().float().softmax(dim=1).cpu()
                remember(state.samples[HISTORY], index.cpu(), probs, s.history_decay)
            total += loss.detach()
            state.progress.lap("forward_backward")
        return EpochReport({"loss": [(total / len(batches)).item()]}, figures=figures)

    def judge(self, state: State, data: TrainingData, s: RobustHistorySettings) -> Judgement:
        """P(true label | sample, given label) by Bayes, from the averaged net's predictions and the noise matrix."""
        from dividemix.methods.anchors import anchor_matrix
        from dividemix.methods.evaluation import evaluate
        from dividemix.methods.noise_matrix import true_label_probs
        from dividemix.methods.rare_classes import can_be_judged

        seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
        assert seen.pred_probs is not None
        labels = data.labels.cpu()
        matrix = state.buffers[_MATRIX].cpu() if _MATRIX in state.buffers else anchor_matrix(seen.pred_probs)
        posterior = true_label_probs(seen.pred_probs.clamp(min=1e-12).log(), labels, matrix.clamp(min=1e-12))
        clean_prob = posterior.gather(1, labels[:, None]).T.double().clamp(0, 1)
        is_judged = can_be_judged(labels, seen.pred_probs, labels.bincount()[labels])
        return Judgement(seen.pred_probs, seen.losses.double(), clean_prob, seen.pred_probs, is_judged=is_judged)


def _rates(epoch: int, num_steps: int, s: RobustHistorySettings) -> list[float]:
    """The rate of each step of an epoch; if it falls to zero, it does so evenly, and rises in a phase's first epoch."""
    if s.lr_schedule != "cosine":
        return [s.learning_rate(epoch)] * num_steps
    is_first, is_last = epoch in (0, s.num_given), epoch + 1 in (s.num_given, s.epochs)
    begin, end = s.learning_rate(epoch), 0.0 if is_last else s.learning_rate(epoch + 1)
    rates = [begin + (end - begin) * step / num_steps for step in range(num_steps)]
    return [rate * (step + 1) / num_steps for step, rate in enumerate(rates)] if is_first else rates


def _targets(state: State, data: TrainingData, s: RobustHistorySettings) -> tuple[Tensor | None, dict[str, float]]:
    """Soft labels (N, C) on the device, or None while the given ones are learned; and the estimated noise."""
    from dividemix.methods.anchors import mistaken_for
    from dividemix.methods.prediction_history import HISTORY, clean_prob_by_class, predictions, refined

    if state.epoch < s.num_given:
        return None, {}
    labels = data.labels.cpu()
    if _MATRIX not in state.buffers:
        _estimate_noise(state, data)
    matrix, noise = (state.buffers[name].cpu() for name in (_MATRIX, _NOISE))
    probs = predictions(state.samples[HISTORY], labels)
    doubt = ((noise - _LITTLE) / (_MUCH - _LITTLE)).clamp(0, 1)
    clean_prob = 1 - doubt[labels] * (1 - clean_prob_by_class(probs, labels))
    soft = refined(probs, labels, clean_prob, mistaken_for(matrix))
    state.progress.lap("refine")
    return soft.to(data.labels.device), {"noise_rate": noise[labels].mean().item()}


def _estimate_noise(state: State, data: TrainingData) -> None:
    """Estimate the noise matrix and the noise of each label, once, by the net that has learned the given labels.

    The history begins again, with what this net predicts: earlier predictions were made at higher rates.
    """
    from dividemix.methods.anchors import anchor_matrix, class_shares, noise_by_label
    from dividemix.methods.evaluation import evaluate
    from dividemix.methods.prediction_history import HISTORY

    probs = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True).pred_probs
    assert probs is not None
    state.samples[HISTORY].copy_(probs)
    matrix = anchor_matrix(probs)
    state.buffers[_MATRIX] = matrix
    state.buffers[_NOISE] = noise_by_label(matrix, class_shares(probs, matrix)).clamp(0, 1)


METHOD = RobustHistory()
