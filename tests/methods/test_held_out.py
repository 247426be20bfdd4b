"""The samples that are held out. Oracle: a loop that counts each class."""

import torch

from dividemix.methods.held_out import held_out


def test_every_tenth_sample_of_a_class_is_held_out() -> None:
    labels = torch.randint(4, (130,), generator=torch.Generator().manual_seed(0))
    labels[labels == 3] = 0
    labels[[5, 90]] = 3  # a class of two samples
    seen, expected = [0] * 4, []
    for label in labels.tolist():
        seen[label] += 1
        expected.append(seen[label] % 10 == 0)
    assert held_out(labels).tolist() == expected
    assert 10 <= sum(expected) <= 13
