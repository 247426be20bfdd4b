"""Opinions by soft labels. Oracles: the entry of the given label; the loss mixture where soft labels say nothing."""

import pytest
import torch
from tiny import TinyData, start

from dividemix.methods import METHODS
from dividemix.methods.evaluation import judge_by_loss
from dividemix.methods.method import MethodSettings
from dividemix.methods.soft_labels import judge_by_soft_labels, share_changed


def test_a_label_is_as_clean_as_its_share_of_the_soft_label() -> None:
    data = TinyData()
    state = start(METHODS["cross_entropy"], MethodSettings(), data)
    soft = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    soft /= soft.sum(dim=1, keepdim=True)
    judged = judge_by_soft_labels(state, data, soft)
    for i, label in enumerate(data.labels.tolist()):
        assert judged.clean_prob[0, i].item() == pytest.approx(float(soft[i, label]))
    by_loss = judge_by_loss(state, data)
    assert torch.equal(judged.losses, by_loss.losses)
    assert torch.equal(judged.pred_probs, by_loss.pred_probs)
    for other in (None, soft[:30]):
        assert torch.equal(judge_by_soft_labels(state, data, other).clean_prob, by_loss.clean_prob)


def test_a_changed_label_has_its_largest_share_elsewhere() -> None:
    soft = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.6, 0.0], [0.0, 1.0, 0.0]])
    assert share_changed(soft, torch.tensor([0, 1, 1, 2])) == 0.5
