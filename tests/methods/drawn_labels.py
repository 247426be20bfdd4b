"""Labels drawn through a known noise matrix: the oracle of its estimates."""

import torch
from torch import Tensor

TRUE_MATRIX = torch.tensor([[0.6, 0.4, 0.0], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])


def drawn(num_samples: int = 6_000) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of the true labels, true labels drawn from them, and given labels drawn from TRUE_MATRIX."""
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.log_softmax(4 * torch.randn(num_samples, 3, generator=generator), dim=1)
    true = torch.multinomial(log_probs.exp(), 1, generator=generator)[:, 0]
    given = torch.multinomial(TRUE_MATRIX[true], 1, generator=generator)[:, 0]
    return log_probs, true, given
