"""Labels that cannot be judged. Oracles: loops over the samples; data of which no label is wrong."""

import numpy as np
import pytest
import torch
from method_checks import SHORT
from test_cross_fitted import SHORT as TREES
from test_cross_fitted import trained as trees_trained
from test_robust_vectors import SHORT as HEADS
from test_robust_vectors import data_of
from test_robust_vectors import started as heads_started
from tiny import NUM_CLASSES, TinyData, fit, start

from dividemix.data.features import FeatureData
from dividemix.engine.state import State
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.methods import METHODS, loop
from dividemix.methods.cross_fitted import CrossFittedSettings
from dividemix.methods.method import Judgement, TrainingSets
from dividemix.methods.rare_classes import can_be_judged, seen_elsewhere
from dividemix.methods.robust_history import METHOD, RobustHistorySettings
from dividemix.methods.robust_vectors import RobustVectorsSettings

SIZES = [120] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [12]


def test_what_is_seen_elsewhere_is_counted_as_a_loop_does() -> None:
    generator = torch.Generator().manual_seed(0)
    labels, folds, copied = (torch.randint(high, (80,), generator=generator) for high in (6, 4, 2))
    expected = [
        sum(int(other == label and k != fold and not one) for other, k, one in zip(labels, folds, copied, strict=True))
        for label, fold in zip(labels, folds, strict=True)
    ]
    assert seen_elsewhere(labels, folds, 4, copied.bool()).tolist() == expected


@pytest.mark.parametrize("method", ["robust_vectors", "extra_trees"])
def test_copies_do_not_make_a_rare_class_one_that_can_be_judged(method: str) -> None:
    """Three samples of a class, four times each: as few as three."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [120, 120, 3])
    vectors = rng.normal(size=(3, 20))[labels] * 6 + rng.normal(size=(243, 20))
    number = np.where(labels == 2, 4, 1)
    data = data_of(np.repeat(vectors, number, axis=0), np.repeat(labels, number))
    is_judged = judged_by(method, data).is_judged
    assert is_judged is not None
    assert torch.equal(is_judged, data.labels != 2)


@pytest.mark.parametrize(
    ("size", "num_predicted", "num_seen", "is_judged"),
    [
        (30, 0, 5, True),  # many, so that something was learned of them
        (30, 30, 4, False),  # most are in its own fold
        (20, 0, 16, True),
        (19, 9, 15, False),
        (19, 10, 15, True),
        (6, 3, 5, True),
        (5, 5, 4, False),
    ],
)
def test_a_label_is_judged_if_its_class_was_learned(
    size: int, num_predicted: int, num_seen: int, is_judged: bool
) -> None:
    labels = torch.tensor([1] * size + [0] * 50)
    probs = torch.tensor([[0.9, 0.1, 0.0]]).repeat(len(labels), 1)
    probs[:num_predicted] = torch.tensor([0.1, 0.9, 0.0])
    seen = torch.full((len(labels),), 40)
    seen[:size] = num_seen
    assert can_be_judged(labels, probs, seen).tolist() == [is_judged] * size + [True] * 50


def clusters(wrong: int = 0) -> FeatureData:
    """Clusters far from each other, large and tiny; the first samples have the label of the class of 12."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    vectors = rng.normal(size=(len(SIZES), 20))[labels] * 6 + rng.normal(size=(len(labels), 20))
    return data_of(vectors.astype(np.float32), np.where(np.arange(len(labels)) < wrong, len(SIZES) - 1, labels))


def judged_by(method: str, data: FeatureData) -> Judgement:
    if method == "robust_vectors":
        heads = RobustVectorsSettings(**HEADS)
        state: State = heads_started(data, heads, len(SIZES))
        list(loop.fit(METHODS[method], state, TrainingSets(data), heads))
        return METHODS[method].judge(state, data, heads)
    s = CrossFittedSettings(**TREES | {"epochs": 5, "learner": method, "num_trees": 20, "num_rounds": 20})
    return METHODS["cross_fitted"].judge(trees_trained(data, s, len(SIZES)), data, s)


def issues_of(judgement: Judgement, data: FeatureData) -> LabelIssues:
    return find_issues(judgement, data.labels.numpy(), classes=tuple(f"c{k}" for k in range(len(SIZES))))


@pytest.mark.parametrize("method", ["robust_vectors", "extra_trees", "hist_gradient_boosting"])
def test_right_labels_of_rare_classes_are_not_flagged_nor_those_beside_them(method: str) -> None:
    data = clusters()
    issues = issues_of(judged_by(method, data), data)
    assert not issues.is_label_issue.any()
    assert set(issues.rare_classes) >= {f"c{k}" for k in range(3, 12)}
    assert not set(issues.rare_classes) & {"c0", "c1", "c2"}
    assert issues.calibration.wrong_prob.max() < 0.5


@pytest.mark.parametrize("method", ["robust_vectors", "extra_trees"])
def test_wrong_labels_are_found_beside_rare_classes_and_in_small_ones(method: str) -> None:
    data = clusters(wrong=3)
    issues = issues_of(judged_by(method, data), data)
    assert np.flatnonzero(issues.is_label_issue).tolist() == [0, 1, 2]
    assert (issues.predicted[:3] == 0).all()


def test_images_of_rare_classes_are_not_judged_by_the_history_either() -> None:
    data, s = TinyData(60), RobustHistorySettings(**SHORT)
    data.labels[:] = torch.arange(60) % (NUM_CLASSES - 1)
    data.labels[:4] = NUM_CLASSES - 1
    state = start(METHOD, s, data)
    list(fit(METHOD, state, data, s))
    is_judged = METHOD.judge(state, data, s).is_judged
    assert is_judged is not None
    assert not is_judged[:4].any()
    assert is_judged[4:].all()
