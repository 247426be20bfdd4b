"""Predictions without the given labels, recovered from those with them."""

import numpy as np
import pytest
import torch

from dividemix.judging.before_labels import BeforeLabels
from dividemix.methods.noise_matrix import true_label_probs


def test_what_bayes_rule_adds_is_taken_away_again() -> None:
    """Oracle: the predictions that the rule was given, also sure ones and labels that are nearly impossible."""
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(scale=8, size=(500, 6))).float()
    labels = rng.integers(6, size=500)
    matrix = torch.from_numpy(rng.dirichlet(np.full(6, 0.5), size=6)).float().clamp(min=1e-6)
    after = true_label_probs(logits.log_softmax(dim=1), torch.from_numpy(labels), matrix).numpy()
    found, expected = BeforeLabels(after, labels, matrix.numpy()), logits.softmax(dim=1).numpy()
    assert np.abs(after - expected).max() > 0.5
    assert (found.shape, len(found)) == ((500, 6), 500)
    np.testing.assert_allclose(found[:], expected, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("rows", [slice(2, 4), np.array([3, 0]), np.array([True, False, False, True])])
def test_some_rows_are_those_of_all(rows: slice | np.ndarray) -> None:
    after = np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9], [0.4, 0.6]], dtype=np.float32)
    probs = BeforeLabels(after, np.array([0, 1, 1, 0]), np.array([[0.8, 0.2], [0.4, 0.6]], dtype=np.float32))
    assert np.array_equal(probs[rows], probs[:][rows])
    assert probs[:][0] == pytest.approx([0.7 / 0.8 / (0.7 / 0.8 + 0.3 / 0.4), 0.3 / 0.4 / (0.7 / 0.8 + 0.3 / 0.4)])
