"""Cross-fitted trees. Oracles: scikit-learn's cross_val_predict on the same folds; the training that never stopped."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_blobs
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score
from sklearn.utils import shuffle
from tiny import TinyData, copied, tiny_nets

from dividemix.data.features import FeatureData, feature_statistics
from dividemix.engine.state import State
from dividemix.errors import InputError
from dividemix.judging.label_issues import find_issues
from dividemix.methods import METHODS, loop, tree_learners
from dividemix.methods.cross_fitted import CANDIDATES, CrossFittedSettings
from dividemix.methods.method import TrainingSets
from dividemix.nets.build import build_net

METHOD = METHODS["cross_fitted"]
SHORT: dict[str, Any] = {"epochs": 3, "net": "trees", "num_trees": 5, "num_rounds": 5, "learner": "extra_trees"}


def data_of(vectors: NDArray[Any], labels: NDArray[np.int64]) -> FeatureData:
    mean, std = feature_statistics(vectors)
    return FeatureData(vectors, labels, mean=mean, std=std)


def started(data: FeatureData, s: CrossFittedSettings, num_classes: int = 3) -> State:
    net = build_net(s, num_classes=num_classes, image_shape=tuple(data.features.shape[1:]), seed=1)
    state = State.start([net], s)
    loop.start(METHOD, state, TrainingSets(data), s)
    return state


def trained(data: FeatureData, s: CrossFittedSettings, num_classes: int = 3) -> State:
    state = started(data, s, num_classes)
    list(loop.fit(METHOD, state, TrainingSets(data), s))
    return state


def blobs(num_samples: int = 90) -> FeatureData:
    vectors, labels = make_blobs(num_samples, n_features=4, centers=3, random_state=0)
    wrong = np.random.default_rng(0).random(num_samples) < 0.3
    return data_of(vectors, np.where(wrong, (labels + 1) % 3, labels))


@pytest.mark.parametrize("learner", ["extra_trees", "hist_gradient_boosting"])
@pytest.mark.parametrize("seed", [20_261_118, 2**63 - 1])
def test_every_seed_is_taken(seed: int, learner: str) -> None:
    """scikit-learn refuses seeds of more than 32 bits, and a thousand times the seed was given to it."""
    data, s = blobs(30), CrossFittedSettings(**SHORT | {"epochs": 2, "learner": learner, "seed": seed})
    assert trained(data, s).epoch == 2


@pytest.mark.parametrize("learner", ["extra_trees", "random_forest"])
def test_a_leaf_of_more_rows_than_there_are_has_all_rows(learner: str) -> None:
    """The laboratory found it: a traceback of scikit-learn. Oracle: trees of one leaf say the same of everything."""
    s = CrossFittedSettings(**SHORT | {"epochs": 2, "learner": learner, "min_leaf": 2**62})
    logits = trained(blobs(30), s).nets[0](torch.randn(9, 4))
    assert torch.equal(logits, logits[:1].expand(9, -1))


@pytest.mark.parametrize(("num_samples", "num_classes"), [(150, 20), (900, 100), (101, 12)])
def test_boosting_trains_where_a_tenth_cannot_have_every_class(num_samples: int, num_classes: int) -> None:
    """scikit-learn refuses to hold out fewer samples than there are classes. Oracle: most labels, which are right."""
    vectors, labels = make_blobs(num_samples, n_features=8, centers=num_classes, center_box=(-60, 60), random_state=0)
    s = CrossFittedSettings(**SHORT | {"num_rounds": 2})
    model = tree_learners.trained("hist_gradient_boosting", s, vectors, labels, 0)
    assert model.score(vectors, labels) > 3 / num_classes  # by chance: 1 / num_classes


@pytest.mark.parametrize("num_classes", [3, 10])
def test_boosting_stops_early_where_a_tenth_has_every_class(num_classes: int) -> None:
    """Labels at random: each round makes unseen labels less likely. Oracle: fewer rounds than are allowed."""
    rng = np.random.default_rng(0)
    s = CrossFittedSettings(**SHORT | {"learner": "hist_gradient_boosting", "num_rounds": 40})
    model = tree_learners.trained(s.learner, s, rng.normal(size=(200, 4)), np.arange(200) % num_classes, 0)
    assert model.n_iter_ < 40


@pytest.mark.parametrize("kind", ["next", "any"])
def test_it_finds_wrong_labels_and_predicts_right_ones(kind: str) -> None:
    """Digits, 35 % of labels wrong: better than scikit-learn's boosted trees, trained on them as they are."""
    vectors, true = shuffle(*load_digits(return_X_y=True), random_state=0)
    rng = np.random.default_rng(0)
    other = (true[:1_000] + (1 if kind == "next" else rng.integers(1, 10, 1_000))) % 10
    given = np.where(rng.random(1_000) < 0.35, other, true[:1_000])
    wrong, data = given != true[:1_000], data_of(vectors[:1_000], given)
    s = CrossFittedSettings(epochs=5, net="trees", num_trees=20, num_rounds=20)
    state = trained(data, s, 10)
    judged = METHOD.judge(state, data, s)
    scores = judged.pred_probs.numpy()[np.arange(1_000), given]
    assert average_precision_score(wrong, -scores) > 0.93
    flagged = (judged.clean_prob[0] < 0.5).numpy() & (judged.pred_probs.argmax(dim=1).numpy() != given)
    assert wrong[flagged].mean() > 0.95  # it flags few right labels, and most of the wrong ones
    assert flagged[wrong].mean() > 0.7
    mean, std = feature_statistics(vectors[:1_000])
    test = torch.from_numpy(((vectors[1_000:] - mean) / std).astype(np.float32))
    with torch.no_grad():
        accuracy = np.mean(state.nets[0](test).argmax(dim=1).numpy() == true[1_000:])
    boosted = HistGradientBoostingClassifier(max_iter=20, early_stopping=True, random_state=0)
    assert accuracy > boosted.fit(vectors[:1_000], given).score(vectors[1_000:], true[1_000:]) + 0.02
    assert accuracy > 0.93


def test_labels_are_judged_by_trees_that_did_not_see_them() -> None:
    """The same folds, trained by scikit-learn outside of the package."""
    data, s = blobs(), CrossFittedSettings(**SHORT, seed=4)
    state = trained(data, s)
    folds, vectors, labels = state.buffers["folds"].numpy(), data.features.numpy(), data.labels.numpy()
    expected = np.empty((len(labels), 3))
    for k in range(3):
        forest = ExtraTreesClassifier(5, min_samples_leaf=3, random_state=4_000 + k)
        expected[folds == k] = forest.fit(vectors[folds != k], labels[folds != k]).predict_proba(vectors[folds == k])
    np.testing.assert_allclose(state.buffers["log_probs"].exp(), expected.clip(1e-6), rtol=1e-6)


def test_every_label_calibrates_since_no_tree_saw_the_one_that_it_judges() -> None:
    """Oracle: the true labels of digits. How sure the opinion is differs from the truth by more than after it."""
    vectors, true = shuffle(*load_digits(return_X_y=True), random_state=0)
    rng = np.random.default_rng(0)
    given = np.where(rng.random(len(true)) < 0.3, (true + rng.integers(1, 10, len(true))) % 10, true)
    data, s = data_of(vectors, given), CrossFittedSettings(**{**SHORT, "num_trees": 20})
    state = trained(data, s, 10)
    judged = METHOD.judge(state, data, s)
    other = METHOD.judge(state, data_of(vectors, (given + 1) % 10), s)
    assert judged.is_out_of_sample
    assert judged.sample_probs is not None
    assert other.sample_probs is not None
    assert torch.equal(judged.sample_probs, other.sample_probs)  # the judged labels are not used
    torch.testing.assert_close(judged.sample_probs.sum(dim=1), torch.ones(len(true)), rtol=0, atol=1e-3)
    issues = find_issues(judged, given, classes=tuple(map(str, range(10))))
    assert issues.expected["is_calibrated"]
    before, after = (
        abs(wrong_prob.sum() - (given != true).sum())
        for wrong_prob in (1 - issues.clean_prob[0], issues.calibration.wrong_prob)
    )
    assert after < before / 2


@pytest.mark.parametrize("learner", ["auto", "random_forest"])
def test_two_folds_and_the_rest_equal_all_in_one_go(learner: str) -> None:
    data, s = blobs(), CrossFittedSettings(**{**SHORT, "learner": learner})
    straight = started(data, s)
    saved = [copied(straight.tensors())]
    reports = []
    for report in loop.fit(METHOD, straight, TrainingSets(data), s):
        saved.append(copied(straight.tensors()))
        reports.append((dict(report.losses), dict(report.figures)))
    for epoch, tensors in enumerate(saved[:-1]):
        resumed = started(data, s)
        resumed.load(tensors, epoch)
        again = loop.fit(METHOD, resumed, TrainingSets(data), s)
        assert [(dict(one.losses), dict(one.figures)) for one in again] == reports[epoch:]
        assert all(torch.equal(tensor, saved[-1][name]) for name, tensor in resumed.tensors().items())


def test_auto_takes_the_learner_that_predicts_more_of_the_labels() -> None:
    """A step along one of 60 features: boosting finds it, forests of few random features do not."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 60))
    data = data_of(vectors, (vectors[:, 7] > 0).astype(np.int64))
    s = CrossFittedSettings(epochs=2, net="trees", num_trees=5)
    assert trained(data, s, 2).buffers["learner"] == 1
    smooth = blobs(200)
    assert trained(smooth, s).buffers["learner"] == 0


def test_auto_reports_both_learners_and_fits_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[tuple[str, int]] = []

    def record(learner: str, s: CrossFittedSettings, vectors: Any, labels: Any, fold: int) -> Any:
        fitted.append((learner, fold))
        return train(learner, s, vectors, labels, fold)

    train = tree_learners.trained
    monkeypatch.setattr(tree_learners, "trained", record)
    data, s = blobs(), CrossFittedSettings(**SHORT | {"learner": "auto"})
    state = started(data, s)
    first, *others = [dict(report.figures) for report in loop.fit(METHOD, state, TrainingSets(data), s)]
    calls = sorted(fitted)
    assert first == pytest.approx({learner: _right_in_fold(data, state, s, learner, 0) for learner in CANDIDATES})
    assert not any(learner in figures for figures in others for learner in CANDIDATES)
    chosen = CANDIDATES[int(state.buffers["learner"])]
    assert first[chosen] == max(first.values())
    assert calls == sorted([(learner, 0) for learner in CANDIDATES] + [(chosen, 1), (chosen, 2)])


def test_auto_compares_on_the_first_fold_that_has_samples() -> None:
    """Boosting wins on this step. Without samples in fold 0, forests won unmeasured."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 60))
    data = data_of(vectors, (vectors[:, 7] > 0).astype(np.int64))
    s = CrossFittedSettings(epochs=3, net="trees", num_trees=5, num_rounds=20)
    state = started(data, s, 2)
    state.buffers["folds"] = state.buffers["folds"].clamp(min=1)
    first, *_ = [dict(report.figures) for report in loop.fit(METHOD, state, TrainingSets(data), s)]
    assert state.buffers["learner"] == 1
    assert first == pytest.approx({learner: _right_in_fold(data, state, s, learner, 1) for learner in CANDIDATES})


def _right_in_fold(data: FeatureData, state: State, s: CrossFittedSettings, learner: str, fold: int) -> float:
    """The share of the given labels of a fold that a learner predicts, trained on the others."""
    inside = (state.buffers["folds"] == fold).numpy()
    vectors, labels = data.features.numpy(), data.labels.numpy()
    model = tree_learners.trained(learner, s, vectors[~inside], labels[~inside], fold)
    return float((model.predict(vectors[inside]) == labels[inside]).mean())


def test_samples_that_are_held_out_are_judged_too() -> None:
    data, s = blobs(), CrossFittedSettings(**SHORT)
    part = data.subset(np.arange(60))
    state = trained(part, s)
    judged = METHOD.judge(state, data, s)
    assert judged.pred_probs.shape == (90, 3)
    torch.testing.assert_close(judged.pred_probs[:60], METHOD.judge(state, part, s).pred_probs)


def test_clean_labels_are_left_alone() -> None:
    vectors, labels = make_blobs(300, n_features=4, centers=3, random_state=0)
    data, s = data_of(vectors, labels), CrossFittedSettings(epochs=5, net="trees")
    judged = METHOD.judge(trained(data, s), data, s)
    is_flagged = (judged.clean_prob[0] < 0.5) & (judged.pred_probs.argmax(dim=1) != data.labels)
    assert is_flagged.double().mean() < 0.03


def test_one_epoch_has_two_folds() -> None:
    data, s = blobs(), CrossFittedSettings(**{**SHORT, "epochs": 1})
    state = trained(data, s)
    assert state.buffers["folds"].unique().tolist() == [0, 1]
    two = trained(data, CrossFittedSettings(**{**SHORT, "epochs": 2}))
    assert torch.equal(state.buffers["log_probs"], two.buffers["log_probs"])


def test_mistakes_are_one_line() -> None:
    s = CrossFittedSettings(**SHORT)
    with pytest.raises(InputError, match="needs net trees"):
        started(blobs(), CrossFittedSettings(**{**SHORT, "net": "linear"}))
    with pytest.raises(
        InputError, match="is for the rows of tables, and these are images: give another method, or none"
    ):
        loop.start(METHOD, State.start(tiny_nets(num_nets=1), s), TrainingSets(TinyData()), s)
    alone = blobs()
    alone.labels[:] = 1
    with pytest.raises(InputError, match="fold 1 of 3 leaves one class to train on: set other epochs"):
        started(alone, s)
