"""Our recipe for vectors and unknown noise: a linear head behind a noise matrix, judged out of sample.

For embeddings and rows of tables. Five heads are trained, each on four fifths of the samples, so that every label is
judged by a head that never saw it. First the heads learn the given labels, with weaker and weaker regularisation; the
likelihood of the labels they did not see chooses it. Then the noise matrix P(given | true) is estimated from those
predictions, and the heads are trained through it: they predict the true labels. Both are repeated. If labels that were
not seen are not clearly likelier through the matrix, the first heads are kept. The model is the mean of the heads,
which is one linear layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.errors import InputError
from dividemix.lazy import torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dividemix.data.features import FeatureData
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State
    from dividemix.methods.fold_heads import Folded

_STRONGEST, _WEAKEST = 10.0, 3e-4  # regularisation at both ends of the path, for standardised features
_PATIENCE = 2  # steps of the path without a better likelihood after which it ends


@dataclass(frozen=True, kw_only=True)
class RobustVectorsSettings(MethodSettings):
    """The settings of the recipe for vectors; those of SGD, batches and views are not used."""

    num_folds: int = setting(5, "folds of the samples: each is judged by a head that was trained on the others", low=2)
    correction_epochs: int = setting(
        4, "epochs, at most a half of all, in which the noise matrix is estimated and the heads learn through it", low=0
    )
    relaxation: float = setting(
        3.0, "the regularisation is divided by this once the heads learn through the noise matrix", low=1
    )
    steps: int = setting(15, "steps of L-BFGS in an epoch, at most", low=1)

    @property
    def num_corrections(self) -> int:
        """Epochs with the noise matrix."""
        return min(self.correction_epochs, self.epochs // 2)


class RobustVectors(Method):
    """A linear head behind a noise matrix, judged out of sample."""

    settings = RobustVectorsSettings
    needs_vectors = True

    def phases(self, s: RobustVectorsSettings) -> tuple[Phase, ...]:
        """The path of regularisation, then corrections; only the last epoch may be kept, since `judge` describes it."""
        num_correct = max(s.num_corrections - 1, 0)
        path = Phase("path", s.epochs - 1 - num_correct, selects=False)
        return path, Phase("correct", num_correct, selects=False), Phase("finish", 1)

    def start(self, state: State, sets: TrainingSets, s: RobustVectorsSettings) -> None:
        """Make folds and heads of zeros. Raises InputError unless the data are vectors and the net is a linear head."""
        from dividemix.methods.fold_heads import fold_of, principal_axes

        data = _vectors(sets.train)
        features = _features(state, data)
        num_features, num_classes = features.shape[1], _head(state).out_features
        heads = features.new_zeros(s.num_folds, num_features + 1, num_classes)
        state.buffers["heads"], state.buffers["best_heads"] = heads, heads.clone()
        state.buffers["axes"], state.buffers["spread"] = principal_axes(features)
        state.buffers["matrix"] = torch.eye(num_classes, device=heads.device)
        # Of held-out samples, too. They are computed once: after a resume elsewhere, vectors may have other bits.
        state.buffers["folds"] = fold_of(data.whole, s.num_folds)
        # Regularisation and held-out likelihood of the best heads; steps of the path since then.
        state.buffers["path"] = torch.tensor([_STRONGEST, -torch.inf, 0.0], dtype=torch.float64)

    def epoch(self, state: State, sets: TrainingSets, s: RobustVectorsSettings) -> EpochReport:
        """A step of the path, or a correction."""
        data = _folded(state, sets.train, s)
        with torch.no_grad():
            before = s.epochs - s.num_corrections
            return _path_step(state, data, s, before) if state.epoch < before else _correction(state, data, s)

    def judge(self, state: State, data: TrainingData, s: RobustVectorsSettings) -> Judgement:
        """Probabilities of the true labels, given the samples and their labels, by the heads that did not see them.

        Heads that did not learn through a noise matrix predict the given labels: the noise is taken out of that.
        `data` is what was trained on, or the whole that it is a subset of.
        """
        from dividemix.methods.fold_heads import out_of_sample
        from dividemix.methods.noise_matrix import first_matrix, true_label_probs, without_noise

        folded = _folded(state, data, s)
        with torch.no_grad():
            is_refused = torch.equal(state.buffers["heads"], state.buffers["best_heads"])  # see _correction
            is_corrected = state.epoch > s.epochs - s.num_corrections and not is_refused
            log_probs = out_of_sample(state.buffers["heads" if is_corrected else "best_heads"], folded)
            matrix = state.buffers["matrix"] if is_corrected else first_matrix(log_probs, folded.labels)
            matrix = matrix.clamp(min=1e-12)
            given = folded.labels[:, None]
            losses = -log_probs.gather(1, given).T.double().cpu()
            for rows in folded.blocks(log_probs.shape[1]):
                true = log_probs[rows] if is_corrected else without_noise(log_probs[rows], matrix)
                log_probs[rows] = true_label_probs(true, folded.labels[rows], matrix)
            clean_prob = log_probs.gather(1, given).T.double().cpu().clamp(0, 1)
        return Judgement(log_probs.float().cpu(), losses, clean_prob)


def _path_step(state: State, data: Folded, s: RobustVectorsSettings, num_steps: int) -> EpochReport:
    """Train the heads on the given labels with the next, weaker regularisation; remember the likeliest heads."""
    from dividemix.methods.fold_heads import out_of_sample, train_heads

    best_lam, best, num_worse = state.buffers["path"].tolist()
    share = state.epoch / (num_steps - 1) if num_steps > 1 else 0.5  # of the path: its middle if there is one step
    lam = _STRONGEST * (_WEAKEST / _STRONGEST) ** share
    if num_worse < _PATIENCE:
        heads = train_heads(state.buffers["heads"], data, lam, state.buffers["matrix"], s.steps)
        likelihood = _likelihood(out_of_sample(heads, data), data.labels)
        if likelihood > best:
            best_lam, best, num_worse = lam, likelihood, 0.0
            state.buffers["best_heads"] = heads
        else:
            num_worse += 1
        state.buffers["heads"] = heads
        state.buffers["path"] = torch.tensor([best_lam, best, num_worse], dtype=torch.float64)
    if num_worse == _PATIENCE or state.epoch == num_steps - 1:
        state.buffers["heads"] = state.buffers["best_heads"].clone()
    _set_net(state)
    return EpochReport({"loss": [-best]}, figures={"regularisation": best_lam})


def _correction(state: State, data: Folded, s: RobustVectorsSettings) -> EpochReport:
    """Estimate the noise matrix from predictions out of sample; train the heads through it."""
    from dividemix.methods.fold_heads import out_of_sample, train_heads
    from dividemix.methods.noise_matrix import better_matrix, between, first_matrix

    lam = state.buffers["path"][0].item() / s.relaxation
    first = first_matrix(out_of_sample(state.buffers["best_heads"], data), data.labels)
    matrix = first
    if state.epoch > s.epochs - s.num_corrections:
        latest = better_matrix(out_of_sample(state.buffers["heads"], data), data.labels, state.buffers["matrix"])
        # The first overstates the noise, the second understates it where heads are never sure.
        matrix = between(first, latest)
    state.buffers["matrix"] = matrix
    state.buffers["heads"] = train_heads(state.buffers["heads"], data, lam, matrix, s.steps)
    _set_net(state)
    likelihoods, noise = _through(state, data)
    without = out_of_sample(state.buffers["best_heads"], data).gather(1, data.labels[:, None])[:, 0].double()
    gain = likelihoods - without
    if state.epoch == s.epochs - 1 and gain.mean() < gain.std(correction=0) / len(gain) ** 0.5:
        # The matrix explains labels that were not seen hardly better than none: the noise is of another kind, or none.
        state.buffers["heads"] = state.buffers["best_heads"].clone()
        state.buffers["matrix"] = first
        _set_net(state)
        noise = _through(state, data)[1]
    return EpochReport({"loss": [-likelihoods.mean().item()]}, figures={"regularisation": lam, "noise_rate": noise})


def _through(state: State, data: Folded) -> tuple[Tensor, float]:
    """The log-likelihood of each label (N,), not seen, through the noise matrix; and the estimated noise."""
    from dividemix.methods.fold_heads import out_of_sample

    log_probs, log_matrix = out_of_sample(state.buffers["heads"], data), state.buffers["matrix"].log()
    likelihoods, right = torch.empty_like(log_probs[:, 0], dtype=torch.float64), 0.0
    for rows in data.blocks(log_probs.shape[1]):
        joint = log_probs[rows] + log_matrix.T[data.labels[rows]]
        each = joint.logsumexp(dim=1)
        likelihoods[rows] = each.double()
        right += (joint.gather(1, data.labels[rows, None])[:, 0] - each).exp().double().sum().item()
    return likelihoods, 1 - right / len(data.labels)


def _head(state: State) -> nn.Linear:
    """The linear layer that is trained. Raises InputError if the net has another one."""
    from dividemix.nets.linear import Fourier, Linear

    net = state.nets[0]
    if not isinstance(net, (Linear, Fourier)):
        raise InputError("method robust_vectors needs a linear head: set net to linear or fourier")
    return net.head


def _vectors(data: TrainingData) -> FeatureData:
    """The data. Raises InputError unless they are vectors."""
    from dividemix.data.features import FeatureData

    if not isinstance(data, FeatureData):
        raise InputError("method robust_vectors needs vectors, and these are images: set method to robust")
    return data


def _features(state: State, data: FeatureData) -> Tensor:
    """What the head gets (N, D). Raises InputError unless the net is a linear head."""
    net: Any = state.nets[0]
    _head(state)
    with torch.no_grad():
        features: Tensor = net.features(data.features)
    return features


def _folded(state: State, data: TrainingData, s: RobustVectorsSettings) -> Folded:
    from dividemix.methods.fold_heads import Folded

    vectors = _vectors(data)
    features, folds = _features(state, vectors), state.buffers["folds"][vectors.positions]
    return Folded(features, vectors.labels, folds, s.num_folds, state.buffers["axes"], state.buffers["spread"])


def _likelihood(log_probs: Tensor, labels: Tensor) -> float:
    """The mean logarithm of the given labels' probability."""
    return log_probs.gather(1, labels[:, None]).double().mean().item()


def _set_net(state: State) -> None:
    """Give the net the mean of the heads."""
    mean = state.buffers["heads"].mean(dim=0)
    head = _head(state)
    head.weight.copy_(mean[:-1].T)
    head.bias.copy_(mean[-1])


METHOD = RobustVectors()
