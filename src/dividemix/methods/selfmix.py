"""For texts with --finetune true: SelfMix (Qiao et al., COLING 2022) trains a pretrained language model on them.

One net, a body and a head: e = body(x), logits = head(e). After warm-up, each epoch begins with the losses in
evaluation mode. A mixture of two Gaussians divides the samples; those of large losses lose their labels. A step takes
B samples with and B without labels:

    q = sharpen(softmax(head(body(u))), T) in evaluation mode, for a sample u without a label
    e, e' = body(x) and body(u), with dropout; e'' = body(u) again, with other dropout
    L_mix = soft cross-entropy of head(mixup of all e, e' and their targets y, q)
    L_p   = -log max softmax, mean over head(e') and head(e'')
    L_r   = (KL(p' || p'') + KL(p'' || p')) / 2, summed over the step's samples without labels
    L     = L_mix + pseudo_weight L_p + rdrop_weight L_r

The optimiser is Adam: momentum and weight_decay have no effect. As in the released code, the losses that are divided
are the cross-entropy of the probabilities taken as logits: softmax twice bounds them. Different from it: L_p has the
maximum of the paper's text, where the code has the minimum.

Shapes: n samples, B in a batch, C classes, D numbers of a sentence.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dividemix.errors import InputError
from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from dividemix.algorithm.divide import Division
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class SelfMixSettings(MethodSettings):
    """The numbers of the paper."""

    warmup_epochs: int = setting(2, "epochs of ordinary training before the first division", low=1)
    clean_threshold: float = setting(0.5, "clean probability from which a sample keeps its label", low=0, high=1)
    temperature: float = setting(0.5, "T: sharpening temperature", above=0)
    alpha: float = setting(0.75, "parameter of mixup's Beta distribution", above=0)
    pseudo_weight: float = setting(0.2, "weight of the term that asks for sure predictions without labels", low=0)
    rdrop_weight: float = setting(0.3, "weight of R-Drop: two dropout views of a sample should agree", low=0)

    def check(self) -> None:
        """Raise InputError unless the warm-up fits into the epochs."""
        super().check()
        if self.warmup_epochs > self.epochs:
            raise InputError(f"warmup_epochs is {self.warmup_epochs}: it must be at most epochs ({self.epochs})")


class SelfMix(Method):
    """Ordinary fine-tuning, then SelfMix."""

    settings = SelfMixSettings
    needs_vectors = True

    def phases(self, s: SelfMixSettings) -> tuple[Phase, ...]:
        """Warm-up, then mix; a training that is all warm-up is ordinary fine-tuning."""
        num_mix = s.epochs - s.warmup_epochs
        return Phase("warmup", s.warmup_epochs, selects=not num_mix), Phase("mix", num_mix, cost=2.5)

    def start(self, state: State, sets: TrainingSets, s: SelfMixSettings) -> None:
        """Replace the learner's optimiser by Adam. Raises InputError if there are too many processes for a batch."""
        from dividemix.engine import processes

        number = processes.num_joined()
        least = 2 * max(number, 4 if s.sync_batchnorm else 0)  # of fewer texts each would draw its own dropout
        if number > 1 and s.batch_size < least:
            raise InputError(f"batch_size is {s.batch_size}: with {number} processes it must be at least {least}")
        (learner,) = state.learners
        learner.optimizer = torch.optim.Adam(learner.net.parameters(), lr=s.lr)

    def epoch(self, state: State, sets: TrainingSets, s: SelfMixSettings) -> EpochReport:
        """An epoch of warm-up or of SelfMix."""
        from dividemix.methods.ordinary_epoch import ordinary_epoch

        data, net = sets.train, state.nets[0]
        if state.epoch < s.warmup_epochs:
            return ordinary_epoch(state, data, s, lambda index, x: F.cross_entropy(net(x), data.labels[index]))
        losses, division = _divide(state, data, s)
        totals = _train(state, data, division, s)
        return EpochReport({name: [value] for name, value in totals.items()}, [division], losses[None])

    def judge(self, state: State, data: TrainingData, s: SelfMixSettings) -> Judgement:
        """The opinion of the mixture that divides."""
        from dividemix.algorithm.divide import clean_probability, normalise
        from dividemix.methods.evaluation import evaluate, judgement

        seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
        assert seen.pred_probs is not None
        clean_prob, _ = clean_probability(normalise(bounded_losses(seen.pred_probs, data.labels.cpu())))
        return judgement(seen, clean_prob[None])


def bounded_losses(probs: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy (n,) of labels (n,) with probabilities (n, C) in the place of logits."""
    return F.cross_entropy(probs.double(), labels, reduction="none")


def pseudo_loss(views: tuple[Tensor, Tensor]) -> Tensor:
    """L_p of the logits (B, C) of two views."""
    first, second = (-view.log_softmax(dim=1).amax(dim=1).mean() for view in views)
    return (first + second) / 2


def rdrop_loss(views: tuple[Tensor, Tensor]) -> Tensor:
    """L_r of the logits (B, C) of two views: (p' - p'') (log p' - log p'') / 2, summed over classes and samples."""
    first, second = (view.log_softmax(dim=1) for view in views)
    return ((first.exp() - second.exp()) * (first - second)).sum() / 2


def _divide(state: State, data: TrainingData, s: SelfMixSettings) -> tuple[Tensor, Division]:
    """The losses (n,) of all samples on the CPU, and the division by them."""
    from dividemix.algorithm.divide import clean_probability, divide, normalise, warn_of_equal_losses
    from dividemix.algorithm.dividemix import finite
    from dividemix.methods.evaluation import evaluate

    probs = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True).pred_probs
    assert probs is not None
    losses = finite(bounded_losses(probs, data.labels.cpu()), state)
    values = normalise(losses)
    clean_prob, mixture = clean_probability(values)
    if mixture is None:
        warn_of_equal_losses()
    division = divide(clean_prob, s.clean_threshold, s.batch_size)
    state.progress.lap("co_divide")
    return losses, replace(division, values=values, mixtures=[] if mixture is None else [(1.0, mixture)])


def _train(state: State, data: TrainingData, division: Division, s: SelfMixSettings) -> dict[str, float]:
    """An epoch on a division: as many steps as the samples with labels fill. Returns the mean of each loss."""
    import math

    from dividemix.algorithm.losses import loss_x
    from dividemix.algorithm.mixmatch import mixup, sharpen
    from dividemix.data.draw import draw
    from dividemix.methods.last_layer import head_input, head_logits, last_linear

    (learner,), B = state.learners, s.batch_size
    net = learner.net
    num_steps = math.ceil(len(division.labeled) / B)
    parts = [draw(index, num_steps, B, state.draws) for index in (division.labeled, division.unlabeled)]
    batches = torch.cat(parts, dim=1)
    totals = torch.zeros(3, device=data.labels.device)
    samples = zip(batches, data.augmented(batches, state.views), strict=True)
    for index, x in state.progress.watch("net 1", samples, num_steps):
        with torch.no_grad():
            guesses = sharpen(net.eval()(x[B:]).softmax(dim=1), s.temperature) if len(x) > B else None
        net.train()
        sentences = head_input(net, x)
        zero = sentences.new_zeros(())
        l_pseudo, l_rdrop = zero, zero
        targets = F.one_hot(data.labels[index[:B]], last_linear(net).out_features).to(sentences.dtype)
        if guesses is not None:
            targets = torch.cat([targets, guesses.to(sentences.dtype)])
            again = head_input(net, x[B:])
            with _same_dropout(state):
                views = head_logits(net, sentences[B:]), head_logits(net, again)
            l_pseudo, l_rdrop = pseudo_loss(views), rdrop_loss(views)
        mixed, targets = mixup(sentences, targets, alpha=s.alpha, per_sample=False, generator=state.draws)
        with _same_dropout(state):
            l_mix = loss_x(head_logits(net, mixed), targets)
        state.progress.lap("mixmatch")
        learner.descend(l_mix + s.pseudo_weight * l_pseudo + s.rdrop_weight * l_rdrop)
        totals += torch.stack([l_mix, l_pseudo, l_rdrop]).detach()
        state.progress.lap("forward_backward")
    means = (totals / num_steps).tolist()
    return dict(zip(("loss_mix", "loss_pseudo", "loss_rdrop"), means, strict=True))


@contextmanager
def _same_dropout(state: State) -> Iterator[None]:
    """While inside, layers draw the same numbers in all processes: they share the body's work, not the head's."""
    device = next(state.nets[0].parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(torch.randint(2**62, (), generator=state.draws)))
        yield


METHOD = SelfMix()
