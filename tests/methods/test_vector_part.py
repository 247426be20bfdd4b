"""Many vectors: choices on a part of them, heads of all. Oracle: scikit-learn's logistic regression on all."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from test_robust_vectors import METHOD, SHORT, blobs, data_of, started
from tiny import copied

from dividemix.methods import fitted_matrix, loop, vector_part
from dividemix.methods.method import TrainingSets
from dividemix.methods.robust_vectors import RobustVectorsSettings

LONG: dict[str, Any] = {**SHORT, "epochs": 12, "correction_epochs": 6, "steps": 15}


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> int:
    """The size of a part of samples with three or six classes."""
    monkeypatch.setattr(vector_part, "_LEAST", 200)
    monkeypatch.setattr(vector_part, "_OF_A_CLASS", 30)
    return 200


def test_a_part_is_drawn_from_all_of_many_samples(size: int) -> None:
    data = blobs(2_000)
    part = vector_part.part_of(data, 3, 7)
    assert len(part.positions.unique()) == len(part.labels) == size
    assert torch.equal(part.labels, data.labels[part.positions])
    assert torch.equal(part.positions, vector_part.part_of(data, 3, 7).positions)
    assert not torch.equal(part.positions, vector_part.part_of(data, 3, 8).positions)
    assert np.histogram(part.positions, bins=4, range=(0, 2_000))[0].min() > 25
    assert vector_part.part_of(part, 3, 7) is part
    assert len(vector_part.part_of(data, 10, 7).labels) == 300  # 30 of a class


def test_without_corrections_the_heads_are_logistic_regression_on_all(size: int) -> None:
    """With the C that was chosen on the part: C times the samples' losses, so C does not depend on their number."""
    data, s = blobs(1_000), RobustVectorsSettings(**LONG | {"correction_epochs": 0, "steps": 200})
    state = started(data, s)
    (*_, report) = loop.fit(METHOD, state, TrainingSets(data), s)
    for k, head in enumerate(state.buffers["heads"]):
        seen = state.buffers["folds"] != k
        c = 1_000 / (report.figures["regularisation"] * size * int(seen.sum()))
        rival = LogisticRegression(C=c, tol=1e-8, max_iter=10_000).fit(data.features[seen], data.labels[seen])
        theirs, ours = rival.predict_proba(data.features), torch.softmax(data.features @ head[:-1] + head[-1], dim=1)
        np.testing.assert_allclose(ours, theirs, atol=0.01)
    assert torch.equal(state.buffers["heads"], state.buffers["best_heads"])


def test_all_wrong_labels_are_found_and_more_samples_help() -> None:
    vectors, true = make_blobs(3_000, n_features=30, centers=6, cluster_std=6.0, center_box=(-4, 4), random_state=1)
    given = np.where(np.random.default_rng(0).random(3_000) < 0.3, (true + 1) % 6, true)
    s, found = RobustVectorsSettings(**LONG), {}
    for number in (200, 2_000):
        data = data_of(vectors[:2_000], given[:2_000]).subset(np.arange(number))
        state = started(data, s, 6)
        list(loop.fit(METHOD, state, TrainingSets(data), s))
        test = data_of(vectors, true).features[2_000:]
        found[number] = (state.nets[0](test).argmax(dim=1).numpy() == true[2_000:]).mean()
    judged = METHOD.judge(state, data, s)
    assert found[2_000] > found[200] + 0.03
    assert average_precision_score((given != true)[:2_000], -judged.clean_prob[0].numpy()) > 0.9
    torch.testing.assert_close(judged.pred_probs.sum(dim=1), torch.ones(2_000))


def test_a_matrix_that_misleads_is_not_used_for_all_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle is the training without corrections."""
    wrong = 0.99 * torch.eye(3).roll(1, dims=1) + 0.01 / 3
    monkeypatch.setattr(fitted_matrix, "fitted", lambda *_: fitted_matrix.Fitted(wrong, 1.0, 0.0))
    data, heads = blobs(500), []
    for epochs, corrections in ((7, 3), (4, 0)):
        s = RobustVectorsSettings(**SHORT | {"epochs": epochs, "correction_epochs": corrections})
        state = started(data, s)
        list(loop.fit(METHOD, state, TrainingSets(data), s))
        heads.append(state.buffers["heads"])
    assert torch.equal(*heads)


def test_stopped_before_the_last_epoch_it_ends_with_the_same_bits() -> None:
    data, s = blobs(400), RobustVectorsSettings(**SHORT)
    state, sets = started(data, s), TrainingSets(data)
    for _ in range(6):
        loop.train_one(METHOD, state, sets, s)
    resumed = started(data, s)
    resumed.load(copied(state.tensors()), 6)
    for one in (state, resumed):
        loop.train_one(METHOD, one, sets, s)
    for name, tensor in resumed.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name
