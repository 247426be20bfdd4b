"""The fitted noise matrix. Oracles: the matrix with which labels were drawn, and a loop over the samples."""

import pytest
import torch
from drawn_labels import TRUE_MATRIX, drawn

from dividemix.methods import fitted_matrix
from dividemix.methods.fitted_matrix import fitted, log_likelihoods
from dividemix.methods.noise_matrix import first_matrix


def test_the_fitted_matrix_is_that_of_the_draws() -> None:
    log_probs, _, given = drawn()
    found = fitted(log_probs, given, torch.full((3, 3), 1 / 3) + torch.eye(3)).matrix
    torch.testing.assert_close(found, TRUE_MATRIX, atol=0.03, rtol=0)


def test_blocks_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    log_probs, _, given = drawn(500)
    found = []
    for cached in (3 * 500, 3 * 7, 1):
        monkeypatch.setattr(fitted_matrix, "_CACHED", cached)
        found.append(fitted(log_probs, given, TRUE_MATRIX))
    assert all(torch.equal(one.matrix, found[0].matrix) for one in found)
    assert all(one[1:] == found[0][1:] for one in found)


def test_the_fitted_matrix_makes_the_labels_likelier() -> None:
    log_probs, _, given = drawn(500)
    first = first_matrix(log_probs, given)
    likelihoods = [
        torch.logsumexp(log_probs + matrix.log().T[given], dim=1).mean()
        for matrix in (first, fitted(log_probs, given, first).matrix)
    ]
    assert likelihoods[1] > likelihoods[0]


def test_predictions_that_are_too_flat_do_not_hide_noise() -> None:
    """A head that is right and never sure: the matrix is that of the draws all the same."""
    log_probs, _, given = drawn()
    flat = torch.log_softmax(log_probs / 3, dim=1)
    found = fitted(flat, given, torch.full((3, 3), 1 / 3) + torch.eye(3))
    torch.testing.assert_close(found.matrix, TRUE_MATRIX, atol=0.06, rtol=0)
    assert found.sharpness == pytest.approx(3, rel=0.15)
    sharp = torch.log_softmax(found.sharpness * flat, dim=1)
    assert found.likelihood == pytest.approx(log_likelihoods(sharp, given, found.matrix).mean().item(), abs=1e-3)


def test_a_rare_class_borrows_from_the_others() -> None:
    """Half of the labels drawn at random from 10 classes; one class has 8 samples. Oracle: the matrix of the draws."""
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(9, (4_000,), generator=generator)
    true[:8] = 9
    given = torch.where(
        torch.rand(4_000, generator=generator) < 0.5, torch.randint(10, (4_000,), generator=generator), true
    )
    log_probs = torch.log_softmax(5.0 * torch.eye(10)[true] + torch.randn(4_000, 10, generator=generator), dim=1)
    found = fitted(log_probs, given, first_matrix(log_probs, given)).matrix
    assert found[9, 9].item() == pytest.approx(0.55, abs=0.15)
    assert (found[9, :9] - 0.05).abs().max() < 0.05


def test_a_label_is_as_likely_as_a_loop_says() -> None:
    log_probs, _, given = drawn(20)
    found = log_likelihoods(log_probs, given, TRUE_MATRIX)
    for i in range(20):
        expected = sum(log_probs[i, c].exp().item() * TRUE_MATRIX[c, given[i]].item() for c in range(3))
        assert found[i].exp().item() == pytest.approx(expected, rel=1e-4)
