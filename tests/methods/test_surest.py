"""The noise matrix of the surest samples. Oracles: labels drawn from known classes and known noise; slow loops."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dividemix.methods.noise_matrix import first_matrix
from dividemix.methods.surest import surest_matrix


def overlapping(num_samples: int, noise: float, num_classes: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of the given labels, given labels, and true labels, of classes that overlap."""
    generator = torch.Generator().manual_seed(seed)
    true_probs = torch.softmax(3 * torch.randn(num_samples, num_classes, generator=generator), dim=1).double()
    true = torch.multinomial(true_probs, 1, generator=generator)[:, 0]
    step = torch.randint(1, num_classes, (num_samples,), generator=generator)
    is_wrong = torch.rand(num_samples, generator=generator) < noise
    given = torch.where(is_wrong, (true + step) % num_classes, true)
    eye = torch.eye(num_classes, dtype=torch.float64)
    matrix = (1 - noise) * eye + noise / (num_classes - 1) * (1 - eye)
    return (true_probs @ matrix).log(), given, true


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("num_samples", [500, 10_000])
def test_overlap_of_classes_is_not_taken_for_noise(num_samples: int, noise: float) -> None:
    """The mean over ten draws; confident learning finds 10 points more where there is no noise."""
    found, by_confident_learning = [], []
    for seed in range(10):
        log_probs, given, true = overlapping(num_samples, noise, seed=seed)
        assert (log_probs.argmax(dim=1) != true).double().mean() > 0.1  # they overlap
        found.append(1 - surest_matrix(log_probs, given).diagonal().mean().item())
        by_confident_learning.append(1 - first_matrix(log_probs, given).diagonal().mean().item())
    assert np.mean(found) == pytest.approx(noise, abs=0.06)
    if noise == 0.0:
        assert np.mean(by_confident_learning) > 0.1


def test_each_row_is_that_of_a_loop() -> None:
    log_probs, given, _ = overlapping(200, 0.2)
    probs, labels = log_probs.exp().numpy(), given.tolist()
    predicted = probs.argmax(axis=1).tolist()
    order = sorted(range(200), key=lambda i: -probs[i].max())
    contradicted = [i for i in order if predicted[i] != labels[i]]
    seen = (sum(i in contradicted for i in order[:40]) + 1) / 50
    noise = max(seen - 0.25 * max(len(contradicted) / 200 - seen, 0), 1 / 50)
    counts, in_all = np.zeros((3, 3)), np.zeros((3, 3))
    for c in range(3):
        own = [i for i in order if predicted[i] == c]
        for rank, i in enumerate(own):
            in_all[c, labels[i]] += 1
            counts[c, labels[i]] += rank < 0.2 * len(own)
    all_wrong = [sum(counts[c, j] for c in range(3) if c != j) + 1 for j in range(3)]
    found = surest_matrix(log_probs, given)
    for c in range(3):
        number, others = sum(counts[c]), [j for j in range(3) if j != c]
        wrong, share_in_all = number - counts[c, c], 1 - in_all[c, c] / sum(in_all[c])
        own_noise = max(wrong / number - 0.25 * max(share_in_all - wrong / number, 0), 0)
        own_noise = (number * own_noise + 200 * noise) / (number + 200)
        for j in others:
            share = (counts[c, j] + 5 * all_wrong[j] / sum(all_wrong[k] for k in others)) / (wrong + 5)
            assert found[c, j].item() == pytest.approx(own_noise * share)
        assert found[c, c].item() == pytest.approx(1 - own_noise)


def test_many_samples_tell_which_class_is_noisy_and_what_it_is_taken_for() -> None:
    """Labels of class 0 become 1 in 30 of 100 cases, those of the other two classes are right."""
    log_probs, _, true = overlapping(50_000, 0.0)
    generator = torch.Generator().manual_seed(9)
    given = torch.where((true == 0) & (torch.rand(50_000, generator=generator) < 0.3), 1, true)
    matrix = torch.eye(3, dtype=torch.float64)
    matrix[0] = torch.tensor([0.7, 0.3, 0.0])
    found = surest_matrix((log_probs.exp() @ matrix).log(), given)
    assert found[0, 1] > 0.1
    assert found[0, 2] < 0.1 * found[0, 1]
    assert (found.diagonal()[1:] > 0.97).all()


@pytest.mark.parametrize("num_samples", [1, 5, 30])
def test_few_samples_of_few_classes_give_a_matrix(num_samples: int) -> None:
    log_probs, given, _ = overlapping(num_samples, 0.2, num_classes=2)
    found = surest_matrix(log_probs, given)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(2, dtype=torch.float64))
    assert ((found > 0) & (found < 1)).all()
