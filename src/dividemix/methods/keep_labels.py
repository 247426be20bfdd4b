"""Which labels `robust` keeps: by mixtures over the losses, by plausibility, and all while there is little noise.

Shapes: K nets, N samples, n of them in an epoch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dividemix.algorithm.divide import Division, Mixture, clean_probability, divide, normalise, warn_of_equal_losses
from dividemix.algorithm.dividemix import averaged, finite
from dividemix.data.draw import epoch_samples
from dividemix.methods.evaluation import Evaluation, evaluate, judgement
from dividemix.methods.method import Judgement
from dividemix.methods.plausibility import plausibility

if TYPE_CHECKING:
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State
    from dividemix.methods.robust import RobustSettings

PLAUSIBILITY = "plausibility"  # State.samples: (n, W) float64, of the last W divisions, newest last


def start(state: State, data: TrainingData, s: RobustSettings) -> None:
    """Make room for the plausibilities of the last divisions, if they are averaged."""
    if s.keep_plausible and s.loss_window > 1:
        state.samples[PLAUSIBILITY] = torch.zeros(len(data.labels), 0, dtype=torch.float64)


def select(state: State, data: TrainingData, s: RobustSettings) -> tuple[Tensor, list[Division], float]:
    """All nets' losses (K, n), each net's division by the *other* one, and the estimated share of wrong labels."""
    samples = epoch_samples(data.labels, s.balanced_batches * s.batch_size, state.draws)
    seen = evaluate(state, data, samples)
    losses, labels = finite(seen.losses, state), data.labels.cpu()[samples]
    plausible = _averaged_plausibility(state, _plausible(seen, labels, s), s)
    values = averaged(state, losses, s)
    divisions, noise_rates = [], []
    for k in reversed(range(len(losses))):  # the last net's losses are for the first net
        w, mixtures = opinion(values[k], labels, plausible, s)
        if not mixtures:
            warn_of_equal_losses(within="" if s.division == "global" else ", within each class")
        predictions = torch.where(seen.rival_losses[k] < losses[k], seen.rivals[k], labels)
        noise_rates.append(noise_rate(w, predictions, labels))
        is_clean = noise_rates[-1] < s.keep_all_up_to
        division = keep_all(len(w)) if is_clean else divide(w, s.clean_threshold, s.batch_size)
        division = replace(division, values=values[k], mixtures=mixtures)
        divisions.append(division.among(samples, len(data.labels)))
    state.progress.lap("co_divide")
    return losses, divisions, sum(noise_rates) / len(noise_rates)


def judge(state: State, data: TrainingData, s: RobustSettings) -> Judgement:
    """Each net's opinion of every given label, by its losses as they are now."""
    seen = evaluate(state, data, torch.arange(len(data.labels)), keep_probs=True)
    labels = data.labels.cpu()
    plausible = _plausible(seen, labels, s)
    opinions = [opinion(normalise(losses), labels, plausible, s)[0] for losses in seen.losses]
    return judgement(seen, torch.stack(opinions))


def opinion(
    values: Tensor, labels: Tensor, plausible: Tensor | None, s: RobustSettings
) -> tuple[Tensor, list[tuple[float, Mixture]]]:
    """W (n,) from normalised losses (n,), never below the labels' plausibility, and the mixtures with their shares.

    A group with nearly equal losses has no mixture.
    """
    clean_prob, mixtures = torch.ones_like(values), []
    everyone = torch.ones_like(labels, dtype=torch.bool)
    for group in [everyone] if s.division == "global" else [labels == label for label in labels.unique()]:
        clean_prob[group], mixture = clean_probability(values[group], s.mixture)
        if mixture is not None:
            mixtures.append((int(group.sum()) / len(values), mixture))
    return clean_prob if plausible is None else torch.maximum(clean_prob, plausible), mixtures


def noise_rate(clean_prob: Tensor, predictions: Tensor, labels: Tensor) -> float:
    """Estimated share of wrong labels: the mean of 1 - w_i, taken as 0 where the net predicts (n,) the given label.

    A hard sample has a large loss, too, but is not noise if the net agrees with its label.
    """
    return ((1 - clean_prob) * (predictions != labels)).mean().item()


def keep_all(num_samples: int) -> Division:
    """The division of data that is taken to be clean: every label is kept."""
    return Division(torch.arange(num_samples), torch.arange(0), torch.ones(num_samples, dtype=torch.float64))


def _plausible(seen: Evaluation, labels: Tensor, s: RobustSettings) -> Tensor | None:
    return plausibility(seen.losses, seen.rivals, seen.rival_losses, labels) if s.keep_plausible else None


def _averaged_plausibility(state: State, newest: Tensor | None, s: RobustSettings) -> Tensor | None:
    """The mean (n,) over the last divisions; `newest` (n,) is this one's."""
    if newest is None or s.loss_window == 1:
        return newest
    history = torch.cat([state.samples[PLAUSIBILITY], newest[:, None]], dim=1)[:, -s.loss_window :]
    state.samples[PLAUSIBILITY] = history
    return history.T.contiguous().mean(dim=0)
