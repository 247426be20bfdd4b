"""How heads explain labels that they did not see. Oracles: a loop over the samples; made-up gains."""

import pytest
import torch

from dividemix.methods import fold_heads
from dividemix.methods.fold_heads import Folded, out_of_sample, principal_axes
from dividemix.methods.unseen_labels import Explained, explained, is_better

MATRIX = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize("at_once", [2**22, 1])
def test_it_is_what_a_loop_over_the_samples_finds(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_heads, "_CACHED", at_once)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(300, 4, generator=generator)
    labels = torch.randint(3, (300,), generator=generator)
    data = Folded(features, labels, torch.arange(300) % 2, 2, *principal_axes(features))
    heads = torch.randn(2, 5, 3, generator=generator)
    found = explained(heads, data, MATRIX)
    probs, total = out_of_sample(heads, data).exp(), 0.0
    for i, label in enumerate(labels.tolist()):
        likelihood = sum(probs[i, c].item() * MATRIX[c, label].item() for c in range(3))
        assert found.likelihoods[i].exp().item() == pytest.approx(likelihood, rel=1e-4)
        assert found.agreed[i].item() == (probs[i].argmax().item() == label)
        total += probs[i, label].item() * MATRIX[label, label].item() / likelihood
    assert found.right == pytest.approx(total / 300, rel=1e-4)


@pytest.mark.parametrize(
    ("likelier", "agreed", "expected"),
    [
        (0.5, 0, True),  # labels are clearly likelier
        (0.5, 30, True),
        (-0.5, 30, True),  # noise that depends on the sample: predictions clearly better, labels not likelier
        (0.5, -30, False),  # labels likelier, predictions clearly worse
        (0.0, 0, False),  # no difference
        (0.01, 0, False),  # within chance
    ],
)
def test_better_is_clearly_better_and_in_predictions_not_clearly_worse(
    likelier: float, agreed: int, expected: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    old = Explained(torch.randn(400, generator=generator), (torch.arange(400) % 2).double(), 1.0)
    noise = torch.randn(400, generator=generator)
    new = Explained(old.likelihoods + likelier + noise - noise.mean(), old.agreed.clone(), 1.0)
    changed = (new.agreed == (agreed < 0)).nonzero()[: abs(agreed), 0]
    new.agreed[changed] = 1 - new.agreed[changed]
    assert is_better(new, old) is expected
