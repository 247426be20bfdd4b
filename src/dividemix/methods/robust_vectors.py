"""For vectors and texts: our recipe for unknown noise. A linear classifier, with a model of how labels are confused.

For embeddings and rows of tables. Five heads are trained, each on four fifths of the samples, so that every label is
judged by a head that never saw it. First the heads learn the given labels, with weaker and weaker regularisation; the
likelihood of the labels they did not see chooses it. Then the noise matrix P(given | true) is estimated from those
predictions, and the heads are trained through it: they predict the true labels. Both are repeated. If the matrix does
not help to explain labels that were not seen, the first heads are kept. Of many samples, a part is enough for these
choices; at the end the heads learn from all (vector_part.py). The model is the mean of the heads, which is one linear
layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dividemix.lazy import torch
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State
    from dividemix.methods.fold_heads import Folded


@dataclass(frozen=True, kw_only=True)
class RobustVectorsSettings(MethodSettings):
    """The settings of the recipe for vectors; those of SGD, batches and views are not used."""

    num_folds: int = setting(
        5, "folds of the samples: each is judged by a head that was trained on the others", low=2, high=1000
    )
    correction_epochs: int = setting(
        6, "epochs, at most a half of all, in which the noise matrix is estimated and the heads learn through it", low=0
    )
    relaxation: float = setting(
        3.0,
        "factor by which stronger and weaker regularisation is tried once the heads learn through the noise matrix;"
        " the one that best explains labels that were not trained on is used",
        low=1,
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
    steps_tell_time = False

    def phases(self, s: RobustVectorsSettings) -> tuple[Phase, ...]:
        """The path of regularisation, then corrections; only the last epoch may be kept, since `judge` describes it."""
        num_correct = max(s.num_corrections - 1, 0)
        path = Phase("path", s.epochs - 1 - num_correct, selects=False)
        return path, Phase("correct", num_correct, selects=False), Phase("finish", 1)

    def start(self, state: State, sets: TrainingSets, s: RobustVectorsSettings) -> None:
        """Make folds and heads of zeros. Raises InputError unless the data are vectors and the net is a linear head."""
        from dividemix.methods.fold_heads import principal_axes
        from dividemix.methods.folds import folds_of
        from dividemix.methods.linear_head import features_of, head_of, vectors_of
        from dividemix.methods.regularisation_path import STRONGEST

        data = vectors_of(sets.train)
        features = features_of(state, data)
        num_features, num_classes = features.shape[1], head_of(state).out_features
        heads = features.new_zeros(s.num_folds, num_features + 1, num_classes)
        state.buffers["heads"], state.buffers["best_heads"] = heads, heads.clone()
        state.buffers["axes"], state.buffers["spread"] = principal_axes(features)
        state.buffers["matrix"] = torch.eye(num_classes, device=heads.device)
        # The best heads of the corrections, and their noise matrix.
        state.buffers["corrected"], state.buffers["corrected_matrix"] = heads.clone(), state.buffers["matrix"].clone()
        # Of held-out samples, too. They are computed once: after a resume elsewhere, vectors may have other bits.
        state.buffers["folds"] = folds_of(data, s.num_folds, s.seed)
        # Regularisation; likelihood of labels not seen, in corrections the share predicted, at best; epochs since then.
        state.buffers["path"] = torch.tensor([STRONGEST, -torch.inf, 0.0], dtype=torch.float64)
        state.buffers["best_lam"] = state.buffers["path"][0].clone()  # regularisation of the best heads

    def epoch(self, state: State, sets: TrainingSets, s: RobustVectorsSettings) -> EpochReport:
        """A step of the path, or a correction, on a part of many samples; the last epoch learns from all."""
        from dividemix.methods.linear_head import vectors_of
        from dividemix.methods.regularisation_path import path_step
        from dividemix.methods.vector_part import learn_from_all, part_of

        part = _folded(state, part_of(vectors_of(sets.train), len(state.buffers["matrix"]), s.seed), s)
        with torch.no_grad():
            before = s.epochs - s.num_corrections
            report = path_step(state, part, before, s.steps) if state.epoch < before else _correction(state, part, s)
            if state.epoch == s.epochs - 1 and len(part.labels) < len(sets.train.labels):
                learn_from_all(state, part, _folded(state, sets.train, s), s.steps)
        return report

    def judge(self, state: State, data: TrainingData, s: RobustVectorsSettings) -> Judgement:
        """Probabilities of the true labels, given the samples and their labels, by the heads that did not see them.

        For heads that did not learn through a noise matrix, one is estimated. `data` is what was trained on, or the
        whole that it is a subset of.
        """
        from dividemix.methods.fitted_matrix import fitted
        from dividemix.methods.fold_heads import out_of_sample
        from dividemix.methods.folds import repeated
        from dividemix.methods.linear_head import vectors_of
        from dividemix.methods.noise_matrix import first_matrix, true_label_probs
        from dividemix.methods.rare_classes import can_be_judged, seen_elsewhere
        from dividemix.methods.vector_part import is_refused

        folded, matrix, sharpness = _folded(state, data, s), state.buffers["matrix"], 1.0
        with torch.no_grad():
            is_corrected = state.epoch > s.epochs - s.num_corrections and not is_refused(state)
            log_probs = out_of_sample(state.buffers["heads" if is_corrected else "best_heads"], folded)
            if not is_corrected:
                matrix = first_matrix(log_probs, folded.labels)
                sharpness = fitted(log_probs, folded.labels, matrix).sharpness
            given = folded.labels[:, None]
            losses = -log_probs.gather(1, given).T.double().cpu()
            is_copy = repeated(vectors_of(data).features, folded.labels, s.seed)
            seen = seen_elsewhere(folded.labels, folded.folds, s.num_folds, is_copy)
            is_judged = can_be_judged(folded.labels, log_probs, seen).cpu()
            for rows in folded.blocks(log_probs.shape[1]):  # in place: of many samples, each copy is large
                log_probs[rows] = true_label_probs(sharpness * log_probs[rows], folded.labels[rows], matrix)
            clean_prob = log_probs.gather(1, given).T.double().cpu().clamp(0, 1)
        return Judgement(
            log_probs.float().cpu(),
            losses,
            clean_prob,
            is_out_of_sample=True,
            matrix=matrix.float().cpu(),
            is_judged=is_judged,
        )


def _correction(state: State, data: Folded, s: RobustVectorsSettings) -> EpochReport:
    """Train the heads through the noise matrix, and estimate it again from their predictions out of sample.

    Too many corrections can exchange classes that are often mistaken for each other: labels become likelier and
    predictions worse. So the heads are kept that predict most of the labels that they did not see.
    """
    from dividemix.methods.fitted_matrix import fitted
    from dividemix.methods.fold_heads import out_of_sample, train_heads
    from dividemix.methods.linear_head import set_head
    from dividemix.methods.noise_matrix import first_matrix
    from dividemix.methods.regularisation_path import PATIENCE
    from dividemix.methods.unseen_labels import explained, is_better

    heads, matrix = state.buffers["heads"], state.buffers["matrix"]
    lam, best, num_worse = state.buffers["path"].tolist()
    strengths = {lam}
    if state.epoch == s.epochs - s.num_corrections:
        log_probs = out_of_sample(heads, data)
        matrix = fitted(log_probs, data.labels, first_matrix(log_probs, data.labels)).matrix
        strengths, best, num_worse = {lam, lam * s.relaxation, lam / s.relaxation}, -1.0, 0.0
    if num_worse < PATIENCE:
        tried = []
        for strength in sorted(strengths):
            trained = train_heads(heads, data, strength, matrix, s.steps)
            tried.append((strength, trained, fitted(out_of_sample(trained, data), data.labels, matrix)))
        lam, heads, fit = max(tried, key=lambda one: one[2].likelihood)
        matrix, sure, num_worse = fit.matrix, fit.sharpness * heads, num_worse + 1
        if (agreed := explained(sure, data, matrix).agreed.mean().item()) > best:
            state.buffers["corrected"], state.buffers["corrected_matrix"] = sure, matrix
            best, num_worse = agreed, 0.0
    found = explained(state.buffers["corrected"], data, state.buffers["corrected_matrix"])
    if state.epoch == s.epochs - 1:
        heads, matrix = state.buffers["corrected"].clone(), state.buffers["corrected_matrix"].clone()
        without = explained(state.buffers["best_heads"], data, torch.eye(len(matrix), device=matrix.device))
        if not is_better(found, without):
            heads, lam = state.buffers["best_heads"].clone(), state.buffers["best_lam"].item()
            log_probs = out_of_sample(heads, data)
            matrix = first_matrix(log_probs, data.labels)
            found = explained(fitted(log_probs, data.labels, matrix).sharpness * heads, data, matrix)
    state.buffers["heads"], state.buffers["matrix"] = heads, matrix
    state.buffers["path"] = torch.tensor([lam, best, num_worse], dtype=torch.float64)
    set_head(state, state.buffers["heads"])
    figures = {"regularisation": lam, "noise_rate": 1 - found.right}
    return EpochReport({"loss": [-found.likelihoods.mean().item()]}, figures=figures)


def _folded(state: State, data: TrainingData, s: RobustVectorsSettings) -> Folded:
    from dividemix.methods.fold_heads import Folded
    from dividemix.methods.linear_head import features_of, vectors_of

    vectors = vectors_of(data)
    features, folds = features_of(state, vectors), state.buffers["folds"][vectors.positions]
    return Folded(features, vectors.labels, folds, s.num_folds, state.buffers["axes"], state.buffers["spread"])


METHOD = RobustVectors()
