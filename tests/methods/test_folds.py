"""Folds. Oracles: the definition; the flags on data whose wrong labels are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_cross_fitted import data_of
from torch import Tensor

from dividemix.data.features import FeatureData
from dividemix.engine.state import State
from dividemix.judging.label_issues import find_issues
from dividemix.methods import METHODS, loop
from dividemix.methods.cross_fitted import CrossFittedSettings
from dividemix.methods.folds import folds_of, repeated
from dividemix.methods.method import TrainingSets
from dividemix.methods.robust_vectors import RobustVectorsSettings
from dividemix.nets.build import build_net

Drawn = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_]]  # vectors, given labels, which ones are wrong


def of(vectors: Tensor, labels: Tensor | None = None) -> FeatureData:
    """The vectors as they are, by default with one label."""
    given = torch.zeros(len(vectors), dtype=torch.int64) if labels is None else labels
    size = vectors.shape[1]
    return FeatureData(vectors.numpy(), given.numpy(), mean=np.zeros(size), std=np.ones(size))


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_where_no_vector_repeats_the_folds_are_those_of_earlier_versions() -> None:
    """Bits of these vectors, times numbers drawn with the seed, mixed. Written down before repeats were split."""
    generator = torch.Generator().manual_seed(2)
    vectors = drawn(4_000, 7)
    mixed = (vectors.view(torch.int32).long() * torch.randint(2**31, (7,), generator=generator)).sum(dim=1)
    expected = ((mixed ^ (mixed >> 31)) * 0x9E3779B1 >> 29).remainder(5)
    for labels in (torch.zeros(4_000, dtype=torch.int64), torch.arange(4_000) % 3):
        assert torch.equal(folds_of(of(vectors, labels), 5, 3), expected)
        assert not repeated(vectors, labels, 3).any()
    assert expected[:20].tolist() == [1, 1, 2, 4, 0, 4, 4, 2, 3, 3, 2, 4, 0, 3, 1, 3, 2, 1, 2, 1]


@pytest.mark.parametrize(("number", "differ", "is_split"), [(2, 1, 0), (3, 1, 1), (5, 0, 0), (5, 1, 1), (6, 0, 1)])
def test_few_copies_share_a_fold_and_more_are_split_as_soon_as_labels_can_outvote_each_other(
    number: int, differ: int, is_split: int
) -> None:
    vectors = drawn(300, 7).repeat(number, 1)
    labels = (torch.arange(300) % 3).repeat(number)
    labels[: 300 * differ] = 3
    folds = folds_of(of(vectors, labels), 10, 3).view(number, 300)
    assert ((folds != folds[0]).any(dim=0) == bool(is_split)).all()
    is_copy = repeated(vectors, labels, 3).view(number, 300)
    assert not is_copy[: 1 + differ].any()
    assert (is_copy[1 + differ :] == (not is_split)).all()
    if is_split:
        assert all(len(column.unique()) == number for column in folds.T)


def test_each_fold_has_its_share_of_the_cases_of_a_vector_whatever_their_labels() -> None:
    vectors = drawn(4, 3)[torch.arange(4_000) % 4]
    labels, others = (torch.arange(4_000) // 4 % number for number in (2, 3))
    folds = folds_of(of(vectors, labels), 5, 1)
    assert torch.equal(folds, folds_of(of(vectors, others), 5, 1))  # no label is told by its fold
    for k in range(4):
        assert folds[k::4].bincount(minlength=5).tolist() == [200] * 5


def test_no_order_of_the_data_is_kept_in_the_folds() -> None:
    """Wrong labels often come every so many rows. In turn by position, one fold would have them all."""
    folds = folds_of(of(torch.ones(5_000, 2)), 5, 1)
    counts = folds[::5].bincount(minlength=5)
    assert counts.max() < 300


def test_samples_that_do_not_train_have_folds_too_and_copies_share_them() -> None:
    vectors = drawn(500, 7)
    vectors[400:] = vectors[:100]
    vectors[3, 2], vectors[403, 2] = 0.0, -0.0
    data = of(vectors).subset(np.arange(450))
    folds = folds_of(data, 5, 3)
    assert torch.equal(folds[400:], folds[:100])


def test_the_seed_draws_the_folds() -> None:
    """Of two seeds the folds are independent: a fifth of the vectors stay in theirs, by chance."""
    for vectors in (drawn(5_000, 4), torch.ones(5_000, 4)):
        folds = [folds_of(of(vectors), 5, seed) for seed in (0, 1, 2, 2**63 - 1)]
        for k, first in enumerate(folds):
            for second in folds[k + 1 :]:
                assert (first == second).double().mean().item() == pytest.approx(0.2, abs=5 * 0.0057)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_folds_are_about_equally_large(scale: float, seed: int) -> None:
    counts = torch.bincount(folds_of(of(scale * drawn(10_000, 3)), 5, seed), minlength=5)
    assert ((counts - 2_000).abs() < 5 * 40).all()  # five standard deviations
    whole = torch.arange(10_000.0)[:, None]  # numbers whose bits are mostly zero
    assert ((torch.bincount(folds_of(of(whole), 5, seed), minlength=5) - 2_000).abs() < 5 * 40).all()


def one_hot(*columns: NDArray[np.int64]) -> NDArray[Any]:
    return np.concatenate([np.eye(column.max() + 1)[column] for column in columns], axis=1)


def with_noise(vectors: NDArray[Any], true: NDArray[np.int64]) -> Drawn:
    wrong = np.random.default_rng(1).random(len(true)) < 0.1
    return vectors, np.where(wrong, (true + 1) % (true.max() + 1), true), wrong


def deciding_column() -> Drawn:
    true = np.random.default_rng(0).integers(0, 4, 800)
    return with_noise(one_hot(true), true)


def xor_table() -> Drawn:
    first, second = np.random.default_rng(0).integers(0, 4, (2, 1_500))
    return with_noise(one_hot(first, second), (first + second) % 2)


def additive_table() -> Drawn:
    columns = np.random.default_rng(0).integers(0, 3, (3, 1_500))
    return with_noise(one_hot(*columns), np.digitize(columns.sum(axis=0), [2, 4]))


def repeated_vectors() -> Drawn:
    """Clusters, and most of the first one are one vector, far from it."""
    rng = np.random.default_rng(0)
    true = np.arange(1_200) % 4
    vectors = rng.normal(size=(1_200, 16)) + 4 * np.eye(4, 16)[true]
    vectors[(true == 0) & (rng.random(1_200) < 0.7)] = 3 * rng.normal(size=16)
    return with_noise(vectors, true)


def copies(number: int) -> Callable[[], Drawn]:
    """Clusters; each sample occurs several times, with its label, wrong or not."""

    def draw() -> Drawn:
        true = np.arange(600) % 4
        vectors = np.random.default_rng(0).normal(size=(600, 16)) + 4 * np.eye(4, 16)[true]
        return tuple(np.repeat(array, number, axis=0) for array in with_noise(vectors, true))  # type: ignore[return-value]

    return draw


CASES = [deciding_column, xor_table, additive_table, repeated_vectors, copies(2), copies(3)]
NAMES = ["column", "xor", "additive", "repeated", "copies2", "copies3"]
PAIRS = [
    pytest.param(case, method, id=f"{name}-{method}")
    for case, name in zip(CASES, NAMES, strict=True)
    for method in ("cross_fitted", "robust_vectors")
    if (name, method) != ("xor", "robust_vectors")  # no linear head can learn it
]


@pytest.mark.parametrize(("case", "method"), PAIRS)
def test_wrong_labels_are_found_and_right_ones_kept_where_samples_repeat(
    case: Callable[[], Drawn], method: str
) -> None:
    vectors, given, wrong = case()
    common: dict[str, Any] = {"epochs": 5, "net": "trees" if method == "cross_fitted" else "linear"}
    s = CrossFittedSettings(**common, learner="extra_trees") if method == "cross_fitted" else None
    settings = s or RobustVectorsSettings(**common | {"epochs": 16})
    data, door = data_of(vectors, given), METHODS[method]
    net = build_net(settings, num_classes=int(given.max()) + 1, image_shape=vectors.shape[1:], seed=1)
    state, sets = State.start([net], settings), TrainingSets(data)
    loop.start(door, state, sets, settings)
    list(loop.fit(door, state, sets, settings))
    names = tuple("abcd"[: given.max() + 1])
    flagged = find_issues(door.judge(state, data, settings), given, classes=names).is_label_issue
    assert wrong[flagged].mean() > 0.9
    assert flagged[wrong].mean() > 0.6
