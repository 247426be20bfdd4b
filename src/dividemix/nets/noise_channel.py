"""Predictions of the given labels, with the noise taken out."""

from torch import Tensor

_ROUNDS = 30


def without_noise(log_probs: Tensor, matrix: Tensor) -> Tensor:
    """Log-probabilities (N, C) of the *true* labels, from those of the *given* ones through P(given | true) (C, C).

    By EM. The identity changes nothing.
    """
    given = true = log_probs.exp()
    for _ in range(_ROUNDS):
        true = true * (given / (true @ matrix).clamp(min=1e-30) @ matrix.T)
    return true.clamp(min=1e-12).log()
