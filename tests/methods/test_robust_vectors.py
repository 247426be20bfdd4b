"""The recipe for vectors.

Oracles: scikit-learn's logistic regression on the same noisy labels; the training that was never stopped.
"""

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils import shuffle
from tiny import TinyData, copied, tiny_nets

from dividemix.data.features import FeatureData, feature_statistics
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.judging.label_issues import find_issues
from dividemix.methods import METHODS, fitted_matrix, loop
from dividemix.methods.method import TrainingSets
from dividemix.methods.robust_vectors import RobustVectorsSettings
from dividemix.nets.build import build_net

METHOD = METHODS["robust_vectors"]
SHORT: dict[str, Any] = {"epochs": 7, "correction_epochs": 3, "net": "linear", "steps": 6}


def data_of(vectors: NDArray[Any], labels: NDArray[np.int64]) -> FeatureData:
    mean, std = feature_statistics(vectors)
    return FeatureData(vectors, labels, mean=mean, std=std)


def started(data: FeatureData, s: RobustVectorsSettings, num_classes: int = 3) -> State:
    net = build_net(s, num_classes=num_classes, image_shape=tuple(data.features.shape[1:]), seed=1)
    state = State.start([net], s)
    loop.start(METHOD, state, TrainingSets(data), s)
    return state


def blobs(num_samples: int = 90) -> FeatureData:
    vectors, labels = make_blobs(num_samples, n_features=4, centers=3, random_state=0)
    wrong = np.random.default_rng(0).random(num_samples) < 0.3
    return data_of(vectors, np.where(wrong, (labels + 1) % 3, labels))


def test_it_beats_logistic_regression_where_one_class_is_taken_for_another() -> None:
    """Digits, 40 % of each class labelled as the next: accuracy, ranking of wrong labels and estimated noise."""
    vectors, true = shuffle(*load_digits(return_X_y=True), random_state=0)
    given = np.where(np.random.default_rng(0).random(1_000) < 0.4, (true[:1_000] + 1) % 10, true[:1_000])
    wrong = given != true[:1_000]
    data = data_of(vectors[:1_000], given)
    s = RobustVectorsSettings(epochs=14, net="linear")
    state = started(data, s, 10)
    list(loop.fit(METHOD, state, TrainingSets(data), s))
    judged = METHOD.judge(state, data, s)
    mean, std = feature_statistics(vectors[:1_000])
    test = torch.from_numpy(((vectors[1_000:] - mean) / std).astype(np.float32))
    accuracy = (state.nets[0](test).argmax(dim=1).numpy() == true[1_000:]).mean()

    rival = LogisticRegression(C=0.01, max_iter=1_000)
    theirs = rival.fit(data.features.numpy(), given).score(test.numpy(), true[1_000:])
    probs = cross_val_predict(rival, data.features.numpy(), given, method="predict_proba")
    their_precision = average_precision_score(wrong, -probs[np.arange(1_000), given])
    assert accuracy > max(0.9, theirs + 0.1)
    assert average_precision_score(wrong, -judged.clean_prob[0].numpy()) > max(0.95, their_precision + 0.2)
    assert (1 - judged.clean_prob).mean().item() == pytest.approx(wrong.mean(), abs=0.05)
    assert (judged.pred_probs.argmax(dim=1).numpy() == true[:1_000]).mean() > 0.9
    torch.testing.assert_close(judged.pred_probs.sum(dim=1), torch.ones(1_000))

    other = METHOD.judge(state, data_of(vectors[:1_000], (given + 1) % 10), s)
    assert judged.is_out_of_sample
    issues, changed = (
        find_issues(one, labels, classes=tuple(map(str, range(10))))
        for one, labels in ((judged, given), (other, (given + 1) % 10))
    )
    assert issues.sample_probs is not None
    assert changed.sample_probs is not None
    np.testing.assert_allclose(issues.sample_probs[:], changed.sample_probs[:], atol=1e-5)  # judged labels are not used
    assert issues.calibration.expected == pytest.approx(wrong.sum(), rel=0.1)
    assert issues.expected["is_calibrated"]


@pytest.mark.parametrize("net", ["linear", "fourier"])
def test_stopped_after_any_epoch_it_ends_with_the_same_bits(net: str) -> None:
    data, s = blobs(), RobustVectorsSettings(**SHORT | {"net": net, "net_width": 8})
    straight, sets = started(data, s), TrainingSets(data)
    saved, reports = [copied(straight.tensors())], []
    for report in loop.fit(METHOD, straight, sets, s):
        reports.append((report.phase, dict(report.losses), dict(report.figures)))
        saved.append(copied(straight.tensors()))
    assert [phase for phase, _, _ in reports] == ["path"] * 4 + ["correct"] * 2 + ["finish"]
    for epoch in range(7):
        resumed = started(data, s)
        resumed.load(saved[epoch], epoch)
        again = [
            (report.phase, dict(report.losses), dict(report.figures)) for report in loop.fit(METHOD, resumed, sets, s)
        ]
        assert again == reports[epoch:]
        for name, tensor in resumed.tensors().items():
            assert torch.equal(tensor, saved[-1][name]), (epoch, name)


def test_the_path_ends_where_labels_that_were_not_seen_become_less_likely() -> None:
    """More features than samples and half of the labels drawn at random: weak regularisation learns them by heart."""
    rng = np.random.default_rng(0)
    data = data_of(rng.normal(size=(60, 80)), rng.integers(3, size=60))
    s = RobustVectorsSettings(**SHORT | {"epochs": 12, "correction_epochs": 0, "steps": 15})
    strengths = [
        report.figures["regularisation"] for report in loop.fit(METHOD, started(data, s), TrainingSets(data), s)
    ]
    assert strengths[-1] == strengths[-2] > 0.1


def test_right_labels_are_hardly_doubted_and_nothing_is_lost() -> None:
    """Oracle: the heads before any correction, which are logistic regression."""
    vectors, labels = load_digits(return_X_y=True)
    data = data_of(vectors[:600], labels[:600])
    mean, std = feature_statistics(vectors[:600])
    test = torch.from_numpy(((vectors[600:] - mean) / std).astype(np.float32))
    s = RobustVectorsSettings(epochs=10, net="linear")
    state = started(data, s, 10)
    found, noise = [], []
    for report in loop.fit(METHOD, state, TrainingSets(data), s):
        noise.append(report.figures.get("noise_rate", 1.0))
        found.append((state.nets[0](test).argmax(dim=1).numpy() == labels[600:]).mean())
    assert found[-1] > found[4] - 0.005
    assert noise[-1] < 0.02
    judged = METHOD.judge(state, data, s)
    assert (judged.clean_prob < 0.5).float().mean() < 0.01


def test_a_matrix_that_misleads_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix that takes every label for the next one: predictions of labels that were not seen get worse."""
    wrong = 0.99 * torch.eye(3).roll(1, dims=1) + 0.01 / 3
    monkeypatch.setattr(fitted_matrix, "fitted", lambda *_: fitted_matrix.Fitted(wrong, 1.0, 0.0))
    data, s = blobs(), RobustVectorsSettings(**SHORT)
    state = started(data, s)
    list(islice(loop.fit(METHOD, state, TrainingSets(data), s), 6))
    assert not torch.equal(state.buffers["heads"], state.buffers["best_heads"])
    list(loop.fit(METHOD, state, TrainingSets(data), s))
    assert torch.equal(state.buffers["heads"], state.buffers["best_heads"])
    judged = METHOD.judge(state, data, s)
    assert (judged.pred_probs.argmax(dim=1) == data.labels).float().mean() > 0.5


@pytest.mark.parametrize(("epochs", "corrections", "trained"), [(7, 0, 7), (1, 3, 1), (7, 3, 3)])
def test_wrong_labels_are_found_before_any_correction(epochs: int, corrections: int, trained: int) -> None:
    """Blobs far from each other: nearly all flags are right, and nearly all wrong labels are flagged."""
    vectors, true = make_blobs(300, n_features=4, centers=3, cluster_std=0.5, random_state=0)
    wrong = np.random.default_rng(0).random(300) < 0.2
    data = data_of(vectors, np.where(wrong, (true + 1) % 3, true))
    s = RobustVectorsSettings(**SHORT | {"epochs": epochs, "correction_epochs": corrections})
    state = started(data, s)
    list(islice(loop.fit(METHOD, state, TrainingSets(data), s), trained))
    flagged = METHOD.judge(state, data, s).clean_prob[0].numpy() < 0.5
    assert (flagged == wrong).mean() > 0.95


@pytest.mark.parametrize("corrections", [0, 1, 3])
@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_only_the_last_epoch_may_be_kept(corrections: int, epochs: int) -> None:
    phases = METHOD.phases(RobustVectorsSettings(**SHORT | {"epochs": epochs, "correction_epochs": corrections}))
    kept = [phase.selects for phase in phases for _ in range(phase.num_epochs)]
    assert kept == [False] * (epochs - 1) + [True]


@pytest.mark.parametrize("net", ["linear", "fourier"])
def test_resumed_with_slightly_other_bits_each_label_is_judged_by_the_head_that_never_saw_it(net: str) -> None:
    """An encoder gives slightly other vectors on another machine. Oracle: the training that was never stopped."""
    rng = np.random.default_rng(0)
    vectors, labels, train = rng.normal(size=(120, 30)), rng.integers(3, size=120), np.arange(0, 120, 2)
    here, there = (
        FeatureData(factor * vectors, labels, mean=np.zeros(30), std=np.ones(30)) for factor in (1, 1 + 1e-7)
    )
    s = RobustVectorsSettings(**SHORT | {"net": net, "net_width": 8})
    straight, resumed = started(here.subset(train), s), started(there.subset(train), s)
    list(islice(loop.fit(METHOD, straight, TrainingSets(here.subset(train)), s), 5))
    resumed.load(copied(straight.tensors()), 5)
    for state, data in ((straight, here), (resumed, there)):
        list(loop.fit(METHOD, state, TrainingSets(data.subset(train)), s))
    assert not torch.equal(here.features, there.features)
    expected, found = METHOD.judge(straight, here, s), METHOD.judge(resumed, there, s)
    torch.testing.assert_close(found.losses, expected.losses, atol=1e-3, rtol=0)
    torch.testing.assert_close(found.clean_prob, expected.clean_prob, atol=1e-3, rtol=0)
    alone = METHOD.judge(straight, here.subset(train), s)  # the same folds, whatever else is judged
    torch.testing.assert_close(alone.losses, expected.losses[:, train], atol=1e-4, rtol=0)


def test_the_model_is_the_mean_of_the_heads() -> None:
    data, s = blobs(), RobustVectorsSettings(**SHORT)
    state = started(data, s)
    list(loop.fit(METHOD, state, TrainingSets(data), s))
    heads = state.buffers["heads"]
    expected = sum(data.features @ head[:-1] + head[-1] for head in heads) / len(heads)
    torch.testing.assert_close(state.nets[0](data.features), expected)


def test_odd_data_is_learned_as_far_as_it_goes() -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 4))
    cases = [
        (vectors, np.zeros(20, np.int64)),  # one class alone
        (vectors, np.arange(20) % 2),  # a class without samples
        (np.ones((20, 4)), np.arange(20) % 3),  # samples all alike, so all of one fold
        (vectors[:1], np.zeros(1, np.int64)),
        (vectors, np.eye(20, dtype=np.int64)[0]),  # a class with one sample
    ]
    for features, labels in cases:
        for epochs in (1, 2, 5):
            data, s = data_of(features, labels), RobustVectorsSettings(**SHORT | {"epochs": epochs})
            state = started(data, s)
            for report in loop.fit(METHOD, state, TrainingSets(data), s):
                assert all(math.isfinite(value) for value in (*report.losses["loss"], *report.figures.values()))
            judged = METHOD.judge(state, data, s)
            assert judged.pred_probs.isfinite().all()
            assert ((judged.clean_prob >= 0) & (judged.clean_prob <= 1)).all()
            assert judged.clean_prob.shape == judged.losses.shape == (1, len(labels))


def test_another_seed_gives_other_heads_and_the_same_seed_the_same() -> None:
    """Seeds are there to repeat a training: with folds that did not depend on them, three seeds were one training."""
    data, heads = blobs(), []
    for seed in (2, 3, 2, 2**63 - 1):
        s = RobustVectorsSettings(**SHORT | {"seed": seed})
        state = started(data, s)
        list(loop.fit(METHOD, state, TrainingSets(data), s))
        heads.append(state.buffers["heads"])
    assert torch.equal(heads[0], heads[2])
    assert not torch.allclose(heads[0], heads[1])
    assert not torch.allclose(heads[0], heads[3])


def test_images_and_other_nets_are_refused() -> None:
    s = RobustVectorsSettings(**SHORT)
    with pytest.raises(
        InputError, match="is for vectors and texts, and these are images: give another method, or none"
    ):
        loop.start(METHOD, State.start(tiny_nets(num_nets=1), s), TrainingSets(TinyData()), s)
    with pytest.raises(InputError, match="set net to linear or fourier"):
        started(blobs(), RobustVectorsSettings(**SHORT | {"net": "mlp"}))


def test_folds_beyond_any_data_are_refused() -> None:
    """Each fold has a head: 2**62 of them ended in a traceback."""
    with pytest.raises(InputError, match=r"num_folds is 4611686018427387904: it must be an integer >= 2 and <= 1000"):
        RobustVectorsSettings(**SHORT | {"num_folds": 2**62})
