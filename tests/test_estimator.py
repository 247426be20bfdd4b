"""DivideMixClassifier.

Oracles: scikit-learn's own estimator checks; scikit-learn's classifiers on the same noisy labels; the labels that
were made wrong here, which the scores have to find.
"""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, ParameterGrid, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle
from sklearn.utils.estimator_checks import parametrize_with_checks
from toys import toy_arrays

from dividemix import DivideMixClassifier, foreign
from dividemix.errors import InputError

QUICK: dict[str, Any] = {"epochs": 5, "warmup_epochs": 3, "net_width": 16, "device": "cpu", "random_state": 0}

# On vectors the linear layer trains as long as no parameter of the networks is set.
LINEAR = DivideMixClassifier(epochs=6, device="cpu", random_state=0)

# The checks that are known to fail, each with its reason.
ROUNDED = {"check_methods_sample_order_invariance": "float32 rounds by the place in a batch: 5e-9, allowed are 1e-9"}


def expected_failed_checks(estimator: DivideMixClassifier) -> dict[str, str]:
    """None for networks; one for the linear layer on random waves."""
    return ROUNDED if estimator.warmup_epochs is None else {}


@pytest.mark.slow
@parametrize_with_checks([DivideMixClassifier(**QUICK), LINEAR], expected_failed_checks=expected_failed_checks)  # type: ignore[untyped-decorator]
def test_it_is_a_scikit_learn_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def mislabeled(y: NDArray[np.int64], share: float, seed: int) -> NDArray[np.int64]:
    """The labels, with a share of them replaced by another class."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < share
    num_classes = y.max() + 1
    return np.where(wrong, (y + rng.integers(1, num_classes, len(y))) % num_classes, y)


def blobs(num_samples: int = 120) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Three classes that are easily told apart."""
    X, y = make_blobs(num_samples, centers=[(0, 0), (4, 0), (0, 4)], random_state=0)
    return X, y


# It learns.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # longer training makes the rivals worse
@pytest.mark.parametrize(("method", "flagged"), [(None, 0.5), ("robust", 0.9)])
def test_with_wrong_labels_it_beats_ordinary_classifiers_and_finds_them(method: str | None, flagged: float) -> None:
    """The linear layer ranks as well, but is less sure, so that it flags fewer of the wrong labels."""
    X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
    train, test = slice(0, 700), slice(700, None)
    given = mislabeled(y[train], 0.4, seed=0)
    ours = DivideMixClassifier(method=method, random_state=0, device="cpu").fit(X[train], given)
    rivals = LogisticRegression(), MLPClassifier(random_state=0)
    theirs = [make_pipeline(StandardScaler(), rival).fit(X[train], given).score(X[test], y[test]) for rival in rivals]
    assert ours.score(X[test], y[test]) > max(theirs) + 0.1
    wrong = given != y[train]
    assert average_precision_score(wrong, -ours.label_scores_) > 0.95
    assert average_precision_score(wrong, -ours.clean_prob_) > 0.9
    assert wrong[ours.is_label_issue_].mean() > 0.9
    assert ours.is_label_issue_[wrong].mean() > flagged


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_with_right_labels_it_keeps_up_with_an_ordinary_network() -> None:
    X, y = make_moons(700, noise=0.2, random_state=0)
    ours = DivideMixClassifier(random_state=0, device="cpu").fit(X[:200], y[:200]).score(X[200:], y[200:])
    theirs = MLPClassifier(random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:])
    assert ours > theirs - 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_hundred_rows_with_wrong_labels_are_enough_to_beat_an_ordinary_network() -> None:
    """Mean of three seeds, each with its own split, noise and weights: with one, luck could decide."""
    gains = []
    for seed in range(3):
        X, y = shuffle(*load_wine(return_X_y=True), random_state=seed)
        X = StandardScaler().fit_transform(X)
        given = mislabeled(y[:106], 0.4, seed)
        ours = DivideMixClassifier(method="robust", random_state=seed, device="cpu").fit(X[:106], given)
        theirs = MLPClassifier(random_state=seed).fit(X[:106], given)
        gains.append(ours.score(X[106:], y[106:]) - theirs.score(X[106:], y[106:]))
    assert np.mean(gains) > 0.05, gains


def test_what_it_learned_has_the_shapes_it_says() -> None:
    X, y = blobs()
    classifier = DivideMixClassifier(**QUICK).fit(X, y)
    assert classifier.n_features_in_ == 2
    assert classifier.input_shape_ == (2,)
    assert len(classifier.nets_) == 2
    assert len(classifier.loss_curve_) == QUICK["epochs"]
    for each in (classifier.clean_prob_, classifier.label_scores_, classifier.is_label_issue_):
        assert each.shape == (120,)
    probs = classifier.predict_proba(X)
    np.testing.assert_allclose(classifier.label_scores_, probs[np.arange(120), y], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)


# It is what scikit-learn's tools expect.


def test_vectors_get_the_linear_layer_unless_a_parameter_of_the_networks_is_set() -> None:
    X, y = blobs()
    given = mislabeled(y, 0.3, seed=0)
    classifier = clone(LINEAR).set_params(epochs=None).fit(X, given)
    assert [type(net).__name__ for net in classifier.nets_] == ["Fourier"]
    assert (classifier.predict(X) == y).mean() > 0.9
    scores = classifier.label_scores_  # calibrated by all labels, so not quite clean_prob_
    assert np.median(scores[given != y]) < 0.2 < 0.8 < np.median(scores[given == y])
    wide = clone(LINEAR).fit(np.hstack([X, np.zeros((120, 140))]), given)
    assert [type(net).__name__ for net in wide.nets_] == ["Linear"]
    named = DivideMixClassifier(method="robust_vectors", epochs=6, net="linear", random_state=0).fit(X, given)
    assert [type(net).__name__ for net in named.nets_] == ["Linear"]
    for changes in ({"net": "mlp"}, {"lambda_u": 0.0}, {"method": "robust"}):
        networks = clone(LINEAR).set_params(epochs=2, **changes).fit(X, given)
        assert [type(net).__name__ for net in networks.nets_] == ["MLP", "MLP"]
    with pytest.raises(InputError, match="method robust_vectors has no setting lambda_u"):
        DivideMixClassifier(method="robust_vectors", lambda_u=0.0).fit(X, given)


class Layer(torch.nn.Module):
    """Your own network, for vectors of two numbers."""

    def __init__(self, num_classes: int = 3):
        super().__init__()
        self.layer = torch.nn.Linear(2, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layer(x)
        return logits


@pytest.mark.parametrize("make", [Layer, lambda: Layer, lambda: lambda num_classes: Layer(num_classes)])
def test_your_own_network_as_a_module_a_class_or_a_function(make: Any) -> None:
    """A grid copies it. The package keeps no copy."""
    X, y = blobs(60)
    own = make()
    search = GridSearchCV(DivideMixClassifier(**QUICK | {"net": own}), {"epochs": [4, 5]}, cv=2, error_score="raise")
    before = len(foreign._objects)
    search.fit(X, y)
    assert len(foreign._objects) == before
    assert [type(net) for net in search.best_estimator_.nets_] == [Layer, Layer]
    first, second = (net.layer.weight for net in search.best_estimator_.nets_)
    assert not torch.equal(first, second)
    if isinstance(own, torch.nn.Module):  # a copy was trained
        assert all(weight.grad is None for weight in own.parameters())


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (3, "net is 3: must be a name, a torch.nn.Module, or a function"),
        (torch.nn.Linear(2, 9), "does not fit 3 classes"),
    ],
)
def test_an_object_that_is_no_fitting_network(net: Any, message: str) -> None:
    X, y = blobs(60)
    with pytest.raises(InputError, match=message):
        DivideMixClassifier(**QUICK | {"net": net}).fit(X, y)


def test_the_linear_layer_survives_a_pickle_and_repeats_its_training() -> None:
    X, y = blobs(60)
    first, again = clone(LINEAR).fit(X, y), clone(LINEAR).fit(X, y)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict_proba(X), first.predict_proba(X))


def test_string_labels_are_learned_as_numbers_are() -> None:
    X, y = blobs()
    names = np.array(["ant", "bee", "cow"])
    by_number = DivideMixClassifier(**QUICK).fit(X, y)
    by_name = DivideMixClassifier(**QUICK).fit(X, names[y])
    assert by_name.classes_.tolist() == ["ant", "bee", "cow"]
    np.testing.assert_array_equal(by_name.predict(X), names[by_number.predict(X)])


def test_an_int_repeats_a_training_and_leaves_global_generators_alone() -> None:
    X, y = blobs()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()
    first, again, other = (
        clone(DivideMixClassifier(**QUICK)).set_params(random_state=seed).fit(X, y).predict_proba(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], numpy_state)


@pytest.mark.slow
def test_pipelines_cross_validation_and_grids_take_it() -> None:
    X, y = blobs(60)
    pipeline = make_pipeline(StandardScaler(), DivideMixClassifier(**QUICK))
    assert cross_val_score(pipeline, X, y, cv=2).min() > 0.8
    grid = {"dividemixclassifier__lr": np.array([1e-6, 0.02]), "dividemixclassifier__epochs": np.array([4])}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_["dividemixclassifier__lr"] == 0.02


@pytest.mark.parametrize(
    ("grid", "nets"),
    [
        ({"lr": [0.01, 0.02, 0.05]}, ["MLP", "MLP"]),
        ({"lambda_u": [0.0, 25.0]}, ["MLP", "MLP"]),
        ({"batch_size": [16, 32]}, ["MLP", "MLP"]),
        ({"epochs": [None, 2]}, ["Fourier"]),
        ({"net_width": [None, 16, 64]}, ["Fourier"]),
    ],
)
def test_all_points_of_a_grid_train_by_one_method(grid: dict[str, list[Any]], nets: list[str]) -> None:
    """A value that is that of the default is a value, too: lr=0.02 trained another method than lr=0.01."""
    X, y = blobs(30)
    for point in ParameterGrid(grid):
        fitted = clone(LINEAR).set_params(**{"epochs": 2, **point}).fit(X, y)
        assert [type(net).__name__ for net in fitted.nets_] == nets, point


def test_a_grid_over_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    """Warm-up that was not given follows the epochs: fewer than its former default of 5 raised an error."""
    X, y = blobs(30)
    classifier = DivideMixClassifier(method="robust", net_width=4, device="cpu", random_state=0)
    search = GridSearchCV(classifier, {"epochs": [1, 2, 3, 7]}, cv=2, error_score="raise").fit(X, y)
    assert all(np.isfinite(search.cv_results_["mean_test_score"]))
    for epochs, warmup in ((3, 1), (np.int64(12), 2), (30, 5)):
        capsys.readouterr()
        classifier.set_params(epochs=epochs, verbose=True).fit(X, y)
        assert capsys.readouterr().out.count("warmup") == warmup


def test_every_epoch_has_its_line_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = blobs(30)
    DivideMixClassifier(**QUICK).fit(X, y)
    assert capsys.readouterr().out == ""
    DivideMixClassifier(**QUICK, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *(f"epoch {epoch}/5 warmup" for epoch in (1, 2, 3)),
        *(f"epoch {epoch}/5 mix" for epoch in (4, 5)),
    ]


# Images.


@pytest.mark.parametrize("num_channels", [None, 1, 3])
def test_images_are_learned_and_survive_a_pickle(num_channels: int | None) -> None:
    toy = toy_arrays()
    images = [toy["x_train"], toy["x_test"]]
    if num_channels:
        images = [np.repeat(each[..., None], num_channels, axis=-1) for each in images]
    classifier = DivideMixClassifier(**QUICK | {"net_width": 2, "epochs": 12, "warmup_epochs": 8})
    classifier.fit(images[0], toy["y_train"])
    assert classifier.input_shape_ == (8, 8, num_channels or 1)
    assert classifier.n_features_in_ == 64 * (num_channels or 1)
    assert classifier.score(images[1], toy["y_test"]) > 0.6  # one in four is guessing
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(images[1]), classifier.predict_proba(images[1]))


def test_samples_of_another_shape_than_the_fitted_are_refused() -> None:
    toy = toy_arrays()
    images, vectors = toy["x_train"], toy["x_train"].reshape(len(toy["x_train"]), -1)
    on_images = DivideMixClassifier(**QUICK | {"net_width": 2}).fit(images, toy["y_train"])
    on_vectors = DivideMixClassifier(**QUICK).fit(vectors, toy["y_train"])
    for classifier, X in ((on_images, vectors), (on_images, images.reshape(-1, 4, 16)), (on_vectors, images)):
        with pytest.raises(InputError, match="samples of X have shape"):
            classifier.predict(X)


# The edges of data.


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], [0, 1]),
        ([[0.0, 1.0], [0.1, 1.0], [5.0, 1.0], [5.1, 1.0]], ["a", "a", "b", "b"]),
        ([[1.0, 2.0]] * 6, [0, 1, 2] * 2),
        (np.eye(9), np.arange(9)),
        ([[0.0]] * 50 + [[9.0]], [0] * 50 + [1]),
        ([[0.0], [1e30], [-1e30], [1.0]], [0, 1, 0, 1]),
    ],
    ids=["two samples", "constant feature", "nothing to tell by", "a class each", "one against fifty", "huge"],
)
def test_degenerate_data_is_learned_as_far_as_it_goes_and_without_warnings(X: Any, y: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = DivideMixClassifier(**QUICK | {"batch_size": 64}).fit(X, y)
        probs = classifier.predict_proba(X)
    assert probs.shape == (len(X), len(set(y)))
    assert np.isfinite(probs).all()
    assert np.isfinite(classifier.clean_prob_).all()
    assert set(classifier.predict(X)) <= set(y)


@pytest.mark.parametrize(
    ("changes", "X", "y", "told"),
    [
        ({}, np.eye(4), [7] * 4, "one class"),
        ({}, np.eye(4), [0.5, 1.5, 2.5, 3.25], "continuous"),
        ({}, [[np.nan], [1.0]], [0, 1], "NaN"),
        ({}, np.zeros((4, 8, 8)), [0, 1] * 2, "images .* of uint8"),
        ({}, np.zeros((2, 8, 8, 3, 1), np.uint8), [0, 1], "images .* of uint8"),
        ({}, np.zeros((0, 8, 8), np.uint8), [], "0 sample"),
        ({}, np.zeros((4, 2, 2), np.uint8), [0, 1] * 2, "does not fit"),
        ({"epochs": 2, "warmup_epochs": 3}, np.eye(4), [0, 1] * 2, "warmup_epochs"),
        ({"lr": -1}, np.eye(4), [0, 1] * 2, "lr is -1"),
        ({"noise_std": -0.1}, np.eye(4), [0, 1] * 2, "noise_std is -0.1"),
        ({"noise_std": "much"}, np.eye(4), [0, 1] * 2, "noise_std is 'much'"),
        ({"net": "huge"}, np.eye(4), [0, 1] * 2, "unknown net 'huge'"),
        ({"division": "none"}, np.eye(4), [0, 1] * 2, "per_class"),
        ({"clean_threshold": 2}, np.eye(4), [0, 1] * 2, "clean_threshold is 2"),
        ({"epochs": "many"}, np.eye(4), [0, 1] * 2, "epochs is 'many'"),
        ({"method": "best"}, np.eye(4), [0, 1] * 2, "unknown method 'best'"),
    ],
)
def test_what_cannot_be_learned_is_said(changes: dict[str, Any], X: Any, y: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        DivideMixClassifier(**QUICK | changes).fit(X, y)


@pytest.mark.slow
def test_without_scikit_learn_one_line_says_what_to_install() -> None:
    script = """
import sys
sys.modules["sklearn"] = None
from dividemix import *
try:
    from dividemix import DivideMixClassifier
except InputError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("DivideMixClassifier needs scikit-learn")
    assert result.stdout.endswith("pip install 'dividemix[sklearn]'\n")
    assert result.stdout.count("\n") == 1
