"""The noise matrix. Oracles: loops over the samples, and the matrix with which labels were drawn."""

import numpy as np
import pytest
import torch
from drawn_labels import TRUE_MATRIX, drawn

from dividemix.methods import noise_matrix
from dividemix.methods.noise_matrix import first_matrix, true_label_probs, without_noise


def test_the_first_matrix_counts_confident_samples_as_a_loop_does() -> None:
    log_probs, _, given = drawn(300)
    probs = log_probs.exp().numpy()
    means = [np.mean([probs[i, c] for i in range(300) if given[i] == c]) for c in range(3)]
    joint = np.ones((3, 3))
    for i in range(300):
        joint[max(range(3), key=lambda c: probs[i, c] / means[c]), given[i]] += 1
    np.testing.assert_allclose(first_matrix(log_probs, given).numpy(), joint / joint.sum(1, keepdims=True), rtol=1e-5)


def test_a_class_without_samples_is_possible_and_nothing_is_divided_by_zero() -> None:
    log_probs, _, given = drawn(300)
    matrix = first_matrix(log_probs, given.clamp(max=1))
    assert ((matrix > 0) & (matrix < 1)).all()


@pytest.mark.parametrize("number", [1, 4, 40])
def test_a_class_that_nobody_learned_draws_no_samples(number: int) -> None:
    """Three classes that are predicted well, and one whose own probability is the floor: too rare, or all in one fold.

    Oracles: the matrix without its samples, and counts by hand.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(3).repeat_interleave(300)
    sure = 0.9 + 0.1 * torch.rand(900, generator=generator, dtype=torch.float64)
    probs = torch.full((900 + number, 4), 1e-6, dtype=torch.float64)
    probs[range(900), labels] = sure
    probs[:900, :3] += (1 - sure[:, None]) / 3
    probs[:900, 3] += 1e-7  # heads that did see the class
    probs[900:, 0] = 1.0
    log_probs = (probs / probs.sum(dim=1, keepdim=True)).log()
    given = torch.cat([labels, torch.full((number,), 3)])
    found = first_matrix(log_probs, given)
    without = first_matrix(log_probs[:900, :3].log_softmax(dim=1), labels)
    torch.testing.assert_close(found[1:3, :3], without[1:], atol=0.005, rtol=0)
    assert found[0, 3].item() == pytest.approx((number + 1) / (300 + number + 4))
    assert found[3, 3] > 0.9  # as the others
    torch.testing.assert_close(found.sum(dim=1), torch.ones(4, dtype=torch.float64))


def test_where_nothing_was_learned_all_classes_are_alike() -> None:
    matrix = first_matrix(torch.full((30, 3), 1 / 3).log(), torch.arange(30) % 3)
    torch.testing.assert_close(matrix, matrix.diagonal()[0] * torch.eye(3) + matrix[0, 1] * (1 - torch.eye(3)))
    torch.testing.assert_close(matrix.sum(dim=1), torch.ones(3))


def test_of_many_samples_some_are_taken_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels 0, 1, 2, 0, 1, 2, ...: every third sample has the same. Oracle: the matrix from all samples."""
    log_probs, _, given = drawn()
    number = int(torch.bincount(given).min())
    order = torch.stack([(given == c).nonzero()[:number, 0] for c in range(3)], dim=1).flatten()
    log_probs, given = log_probs[order], given[order]
    of_all = first_matrix(log_probs, given)
    monkeypatch.setattr(noise_matrix, "_MOST", number)
    of_some = first_matrix(log_probs, given)
    assert not torch.equal(of_some, of_all)
    torch.testing.assert_close(of_some, of_all, atol=0.06, rtol=0)


def test_the_noise_is_taken_out_of_predictions() -> None:
    """Oracle: the probabilities that were passed through the matrix; where none fits, they still sum to one."""
    true = drawn(300)[0].exp()
    found = without_noise((true @ TRUE_MATRIX).log(), TRUE_MATRIX).exp()
    assert (found - true).abs().mean() < 0.05 < (true @ TRUE_MATRIX - true).abs().mean()
    torch.testing.assert_close(found @ TRUE_MATRIX, true @ TRUE_MATRIX, atol=0.03, rtol=0)
    impossible = without_noise(drawn(300)[0], TRUE_MATRIX).exp()
    torch.testing.assert_close(impossible.sum(dim=1), torch.ones(300))


def test_true_labels_follow_by_bayes() -> None:
    log_probs, true, given = drawn()
    matrix = (TRUE_MATRIX + 0.01) / 1.03
    found = true_label_probs(log_probs, given, matrix)
    for i in range(20):
        weights = [log_probs[i, c].exp() * matrix[c, given[i]] for c in range(3)]
        torch.testing.assert_close(found[i], torch.stack(weights) / sum(weights))
    # Calibrated: of the labels that are right with some probability, that share is right.
    right = found.gather(1, given[:, None])[:, 0]
    sure = right > 0.8
    assert (given == true)[sure].float().mean() == pytest.approx(right[sure].mean().item(), abs=0.03)
