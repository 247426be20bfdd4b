"""Two methods as a user would write them, outside the package: soft labels per sample, and a trusted set."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from dividemix.data.draw import draw
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.methods.evaluation import evaluate
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting


@dataclass(frozen=True, kw_only=True)
class SoftLabelSettings(MethodSettings):
    """Two settings of its own."""

    pull: float = setting(0.3, "how far a soft label moves to the prediction in a step", low=0, high=1)
    hard_epochs: int = setting(1, "epochs with the given labels", low=1)


class SoftLabels(Method):
    """Each sample has a soft label, which moves towards the net's predictions."""

    settings = SoftLabelSettings

    def phases(self, s: SoftLabelSettings) -> tuple[Phase, ...]:
        return Phase("hard", s.hard_epochs, selects=False), Phase("soft", s.epochs - s.hard_epochs)

    def epoch(self, state: State, sets: TrainingSets, s: SoftLabelSettings) -> EpochReport:
        learner, labels, total = state.learners[0], sets.train.labels, 0.0
        num_steps = -(-len(labels) // (2 * s.batch_size))
        batches = draw(torch.arange(len(labels)), num_steps, 2 * s.batch_size, state.draws)
        learner.net.train()
        for index, x in zip(batches, sets.train.augmented(batches, state.views), strict=True):
            log_probs = F.log_softmax(learner.net(x), dim=1)
            if "soft" not in state.samples:  # the net knows how many classes there are: a class may have no sample
                state.samples["soft"] = F.one_hot(labels, log_probs.shape[1]).to(log_probs)
            soft = state.samples["soft"] = state.samples["soft"].to(labels.device)  # a restored one is on the CPU
            loss = -(soft[index] * log_probs).sum(dim=1).mean()
            learner.descend(loss)
            total += float(loss.detach())
            if state.epoch >= s.hard_epochs:
                soft[index] = torch.lerp(soft[index], log_probs.detach().exp(), s.pull)
        return EpochReport({"loss": [total / num_steps]})

    def judge(self, state: State, data: TrainingData, s: SoftLabelSettings) -> Judgement:
        """A label is as clean as its net finds it probable: this method knows better than a mixture."""
        seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
        assert seen.pred_probs is not None
        return Judgement(seen.pred_probs, seen.losses.double(), torch.exp(-seen.losses.double()))


class TrustedSteps(Method):
    """Ordinary steps on all samples, each with as many samples whose labels are trusted."""

    needs_trusted = True

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        assert sets.trusted is not None
        learner, total = state.learners[0], 0.0
        num_steps = -(-len(sets.train.labels) // s.batch_size)
        noisy = draw(torch.arange(len(sets.train.labels)), num_steps, s.batch_size, state.draws)
        clean = draw(torch.arange(len(sets.trusted.labels)), num_steps, s.batch_size, state.draws)
        views = zip(sets.train.augmented(noisy, state.views), sets.trusted.augmented(clean, state.views), strict=True)
        learner.net.train()
        for i, j, (x, y) in zip(noisy, clean, views, strict=True):
            labels = torch.cat([sets.train.labels[i], sets.trusted.labels[j]])
            loss = F.cross_entropy(learner.net(torch.cat([x, y])), labels)
            learner.descend(loss)
            total += float(loss.detach())
        return EpochReport({"loss": [total / num_steps]})


SOFT_LABELS = SoftLabels()
TRUSTED_STEPS = TrustedSteps()
