"""For rows of tables: our recipe for unknown noise. Each label is judged by trees that never saw it.

Each epoch trains the learner on the samples of all folds but one, and predicts the samples of that fold. After the last
one, these predictions are sharpened until the given labels are likeliest. The noise matrix P(given | true) is read off
those that are surest (surest.py), and taken out of them. The model is the trees of all folds together, with the noise
taken out of what they predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dividemix.errors import InputError
from dividemix.lazy import torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.features import FeatureData
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State
    from dividemix.nets.trees import Trees


CANDIDATES = ("extra_trees", "hist_gradient_boosting")
_SHARPNESS = (1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class CrossFittedSettings(MethodSettings):
    """The settings of the learner. An epoch is a fold; those of SGD, batches and views are not used."""

    learner: Literal["auto", "extra_trees", "random_forest", "hist_gradient_boosting"] = setting(
        "auto",
        "the classifier of scikit-learn that is trained in each fold; auto takes extra_trees or hist_gradient_boosting,"
        " whichever predicts more of the given labels of the first fold that has samples",
    )
    num_trees: int = setting(50, "trees of a forest, in each fold", low=1, high=100_000)
    num_rounds: int = setting(
        100, "largest number of rounds of boosting in each fold; it may stop early", low=1, high=100_000
    )
    min_leaf: int = setting(3, "smallest number of rows in a leaf of a forest; more if there are very many rows", low=1)

    @property
    def num_folds(self) -> int:
        """Folds of the samples: an epoch is a fold, but a single epoch has two."""
        return max(2, self.epochs)


class CrossFitted(Method):
    """Trees of scikit-learn, cross-fitted."""

    settings = CrossFittedSettings
    needs_vectors = True
    steps_tell_time = False

    def phases(self, s: CrossFittedSettings) -> tuple[Phase, ...]:
        """One fold after the other; only the last epoch may be kept, since the model is that of all folds."""
        return Phase("folds", s.epochs - 1, selects=False), Phase("finish", 1)

    def start(self, state: State, sets: TrainingSets, s: CrossFittedSettings) -> None:
        """Assign the folds. Raises InputError unless the data are vectors of several classes, and the net is trees."""
        from dividemix.methods.folds import folds_of

        data, num_classes = _vectors(sets.train), len(_trees(state).bias)
        # Of held-out samples, too. They are computed once: after a resume elsewhere, vectors may have other bits.
        state.buffers["folds"] = folds_of(data, s.num_folds, s.seed)
        own, labels = state.buffers["folds"].cpu()[data.positions.cpu()], data.labels.cpu()
        for fold in range(s.num_folds):  # before a run directory is made
            if len(labels[own != fold].unique()) < 2:
                raise InputError(f"fold {fold + 1} of {s.num_folds} leaves one class to train on: set other epochs")
        uniform = -torch.tensor(float(num_classes), dtype=torch.float64).log()
        state.buffers["learner"] = torch.zeros((), dtype=torch.int64)  # the chosen one of CANDIDATES
        state.buffers["log_probs"] = uniform.repeat(len(data.whole), num_classes)

    def epoch(self, state: State, sets: TrainingSets, s: CrossFittedSettings) -> EpochReport:
        """Train on all folds but one; add the trees to the net; after the last fold, estimate the noise."""
        data, net = _vectors(sets.train), _trees(state)
        positions, labels = data.positions.cpu(), data.labels.cpu()
        folds = [state.epoch] if s.epochs > 1 else list(range(s.num_folds))
        figures: dict[str, float] = {}
        for fold in folds:
            figures |= _train_without(state, data, fold, s)
        predicted, is_last = state.buffers["log_probs"][positions], state.epoch == s.epochs - 1
        if is_last:
            figures["noise_rate"] = _take_noise_out(net, predicted, labels)
        own = state.buffers["folds"].cpu()[positions]
        judged = torch.ones_like(own, dtype=torch.bool) if is_last else own == folds[0]
        losses = -predicted.gather(1, labels[:, None])[judged]
        return EpochReport({"loss": [losses.mean().item() if len(losses) else 0.0]}, figures=figures)

    def judge(self, state: State, data: TrainingData, s: CrossFittedSettings) -> Judgement:
        """Probabilities of the true labels, given the samples and their labels, by trees that did not see them."""
        from dividemix.methods.folds import repeated
        from dividemix.methods.rare_classes import can_be_judged, seen_elsewhere

        with torch.no_grad():
            predicted, given = state.buffers["log_probs"][_vectors(data).positions.cpu()], data.labels.cpu()
            probs = _true_probs(_trees(state), predicted, given)
            losses = -predicted.gather(1, given[:, None]).T
            clean_prob = probs.gather(1, given[:, None]).T.clamp(0, 1)
        sample_probs = _without_noise(_trees(state), predicted).exp()
        vectors, folds = _vectors(data), state.buffers["folds"].cpu()
        is_copy = repeated(vectors.features.cpu(), given, s.seed)
        seen = seen_elsewhere(given, folds[vectors.positions.cpu()], s.num_folds, is_copy)
        is_judged = can_be_judged(given, predicted, seen)
        return Judgement(probs.float(), losses, clean_prob, sample_probs.float(), True, is_judged)


def _train_without(state: State, data: FeatureData, fold: int, s: CrossFittedSettings) -> dict[str, float]:
    """Train on the other folds, predict the samples of the fold, give the net the trees; figures of a choice."""
    from dividemix.methods.tree_learners import joined, log_probs, trained, tree_tensors

    net, labels, features = _trees(state), data.labels.cpu().numpy(), data.features.cpu().numpy()
    folds = state.buffers["folds"].cpu()
    own, is_outside = folds[data.positions.cpu()].numpy(), folds == fold

    def without(one: int, learner: str) -> Any:
        return trained(learner, s, features[own != one], labels[own != one], one)

    figures, models = {}, {}
    if s.learner == "auto" and fold == 0:
        first = int(own.min())  # the first fold that has samples to compare on
        models = {(first, learner): without(first, learner) for learner in CANDIDATES}
        inside = own == first
        figures = {name: float(model.score(features[inside], labels[inside])) for (_, name), model in models.items()}
        state.buffers["learner"].fill_(CANDIDATES.index(max(CANDIDATES, key=figures.__getitem__)))
    learner = CANDIDATES[int(state.buffers["learner"])] if s.learner == "auto" else s.learner
    model = models[fold, learner] if (fold, learner) in models else without(fold, learner)
    outside = data.whole.cpu()[is_outside].numpy()
    state.buffers["log_probs"][is_outside] = log_probs(model, outside, len(net.bias))
    with torch.no_grad():
        existing = {name: tensor.cpu() for name, tensor in net.state_dict().items()}
        net.grow(joined(existing, tree_tensors(model, len(net.bias))))
    return figures


def _take_noise_out(net: Trees, predicted: Tensor, given: Tensor) -> float:
    """Set sharpness and noise matrix of the net by log-probabilities (N, C) of given labels (N,); return the noise."""
    from dividemix.methods.surest import surest_matrix

    with torch.no_grad():
        likelihoods = [_sharpened(predicted, k).gather(1, given[:, None]).mean().item() for k in _SHARPNESS]
        net.sharpness.fill_(_SHARPNESS[likelihoods.index(max(likelihoods))])
        net.matrix.copy_(surest_matrix(_sharpened(predicted, net.sharpness.item()), given))
        probs = _true_probs(net, predicted, given)
    return 1 - probs.gather(1, given[:, None]).mean().item()


def _true_probs(net: Trees, predicted: Tensor, given: Tensor) -> Tensor:
    """P(true label | sample, given label) (N, C) from log-probabilities (N, C), out of sample, of given labels (N,).

    With the noise taken out, trees are less sure than they could be: the given labels tell by how much.
    """
    from dividemix.methods.fitted_matrix import log_likelihoods
    from dividemix.methods.noise_matrix import true_label_probs

    true, matrix = _without_noise(net, predicted), _matrix(net)
    likelihoods = [log_likelihoods(_sharpened(true, k), given, matrix).mean().item() for k in _SHARPNESS]
    return true_label_probs(_sharpened(true, _SHARPNESS[likelihoods.index(max(likelihoods))]), given, matrix)


def _without_noise(net: Trees, predicted: Tensor) -> Tensor:
    """Log-probabilities (N, C) of the true labels, from those of the given ones, out of sample."""
    from dividemix.methods.noise_matrix import without_noise

    return without_noise(_sharpened(predicted, net.sharpness.item()), _matrix(net))


def _matrix(net: Trees) -> Tensor:
    return net.matrix.double().cpu().clamp(min=1e-12)


def _sharpened(log_probs: Tensor, factor: float) -> Tensor:
    return torch.log_softmax(factor * log_probs, dim=1)


def _trees(state: State) -> Trees:
    """The net. Raises InputError if it is another one."""
    from dividemix.nets.trees import Trees

    net = state.nets[0]
    if not isinstance(net, Trees):
        raise InputError("method cross_fitted needs net trees: set net to trees")
    return net


def _vectors(data: TrainingData) -> FeatureData:
    """The data. Raises InputError unless they are vectors."""
    from dividemix.data.features import FeatureData

    if not isinstance(data, FeatureData):
        raise InputError(
            "method cross_fitted is for the rows of tables, and these are images: give another method, or none"
        )
    return data


METHOD = CrossFitted()
