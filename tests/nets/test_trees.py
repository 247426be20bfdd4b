"""Trees as a module. The oracles are scikit-learn's own predictions, and a walk from node to node."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from dividemix.methods.tree_learners import joined, tree_tensors
from dividemix.nets.trees import Trees

VECTORS, LABELS = load_digits(return_X_y=True)
VECTORS = (VECTORS / 7 + 0.1).astype(np.float32)  # thresholds between float32 numbers


def net_of(*models: Any, num_classes: int = 10) -> Trees:
    """A net with the trees of these models."""
    net = Trees(num_classes, VECTORS.shape[1])
    for model in models:
        net.grow(joined(dict(net.state_dict()), tree_tensors(model, num_classes)))
    return net


def probs_of(net: Trees) -> Any:
    """What the net predicts of all digits."""
    with torch.no_grad():
        return net(torch.from_numpy(VECTORS)).exp().numpy()


@pytest.mark.parametrize("forest", [ExtraTreesClassifier, RandomForestClassifier])
def test_a_forest_predicts_what_scikit_learn_predicts(forest: Any) -> None:
    models = [forest(5, min_samples_leaf=4, random_state=seed).fit(VECTORS, LABELS) for seed in (0, 1)]
    expected = np.mean([model.predict_proba(VECTORS) for model in models], axis=0)
    np.testing.assert_allclose(probs_of(net_of(*models)), expected, atol=1e-3)  # the leaves are float16


@pytest.mark.parametrize("num_classes", [2, 3])
def test_boosted_trees_predict_what_scikit_learn_predicts(num_classes: int) -> None:
    kept = num_classes > LABELS
    model = HistGradientBoostingClassifier(max_iter=4, random_state=0).fit(VECTORS[kept], LABELS[kept])
    net = net_of(model, num_classes=num_classes)
    np.testing.assert_allclose(probs_of(net), model.predict_proba(VECTORS), atol=1e-5)
    other = HistGradientBoostingClassifier(max_iter=3, random_state=1).fit(VECTORS[kept][::2], LABELS[kept][::2])
    both = np.sqrt(model.predict_proba(VECTORS) * other.predict_proba(VECTORS))  # the mean of the logits
    expected = both / both.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probs_of(net_of(model, other, num_classes=num_classes)), expected, atol=1e-5)


def test_a_class_that_the_training_did_not_have_is_next_to_impossible() -> None:
    kept = LABELS != 3
    for model in (
        ExtraTreesClassifier(5, random_state=0).fit(VECTORS[kept], LABELS[kept]),
        HistGradientBoostingClassifier(max_iter=2).fit(VECTORS[kept], LABELS[kept]),
    ):
        probs = probs_of(net_of(model))
        assert probs[:, 3].max() < 1e-4
        np.testing.assert_allclose(probs[:, model.classes_], model.predict_proba(VECTORS), atol=1e-3)


def test_the_noise_matrix_is_taken_out_of_what_the_trees_predict() -> None:
    net = net_of(ExtraTreesClassifier(20, min_samples_leaf=5, random_state=0).fit(VECTORS, LABELS))
    given = probs_of(net)
    matrix = 0.7 * torch.eye(10) + 0.3 * torch.roll(torch.eye(10), 1, dims=1)
    noisy = torch.from_numpy(given) @ matrix
    net.matrix.copy_(matrix)
    true = probs_of(net)
    # What the trees predict as given labels is explained at least as well by these true ones, through the matrix.
    through = torch.from_numpy(true / true.sum(axis=1, keepdims=True)) @ matrix
    divergence = (torch.from_numpy(given) * (through.clamp(min=1e-12).log() - noisy.clamp(min=1e-12).log())).sum(dim=1)
    assert divergence.min() > -1e-3
    assert divergence.mean() > 0.01


def test_what_was_grown_comes_back_into_a_new_net() -> None:
    net = net_of(ExtraTreesClassifier(3, random_state=0).fit(VECTORS, LABELS))
    again = Trees(10, VECTORS.shape[1])
    again.load_state_dict(net.state_dict())
    assert np.array_equal(probs_of(again), probs_of(net))


@pytest.mark.parametrize(
    ("name", "change"), [("left", 10**6), ("feature", 64), ("leaf", -1), ("roots", 10**6), ("tree_class", 10)]
)
def test_trees_that_lead_nowhere_are_refused(name: str, change: int) -> None:
    tensors = dict(net_of(ExtraTreesClassifier(3, random_state=0).fit(VECTORS, LABELS)).state_dict())
    tensors[name] = tensors[name].clone()
    tensors[name][0] = change
    with pytest.raises(ValueError, match=name):
        Trees(10, VECTORS.shape[1]).load_state_dict(tensors)
    tensors[name] = tensors[name][:0]
    with pytest.raises(ValueError, match="the trees"):
        Trees(10, VECTORS.shape[1]).load_state_dict(tensors)


def test_no_trees_predict_all_classes_alike() -> None:
    np.testing.assert_allclose(probs_of(Trees(10, VECTORS.shape[1])), 0.1, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("value", torch.zeros(9000, 3)),  # of three classes, not ten
        ("value", torch.zeros(9000)),
        ("threshold", torch.zeros(9000, dtype=torch.complex64)),
        ("feature", torch.zeros(9000)),
        ("form", torch.tensor(3)),
        ("form", torch.tensor([3, 1])),
        ("form", torch.tensor([3.0, float("inf"), 0])),
        ("form", torch.tensor([3, -1, 0])),
        ("roots", torch.zeros(0, dtype=torch.int32)),
    ],
)
def test_trees_of_another_form_are_refused(name: str, other: torch.Tensor) -> None:
    """What is loaded decides the shapes: values of other classes ended in a traceback when they were used."""
    tensors = dict(net_of(ExtraTreesClassifier(3, random_state=0).fit(VECTORS, LABELS)).state_dict())
    size = len(tensors[name])
    tensors[name] = other[:size] if other.ndim and len(other) > size else other
    if name == "roots":
        tensors["tree_class"] = tensors["tree_class"][:0]
    with pytest.raises(ValueError, match=r"trees|unpack"):
        Trees(10, VECTORS.shape[1]).load_state_dict(tensors)
