"""The scikit-learn face: DivideMix as a classifier with fit and predict, for feature vectors and for images.

Shapes: n samples, d features, H x W pixels, C classes.
"""

import math
import warnings
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.dividemix import EpochReport, fit
from dividemix.algorithm.ensemble import predict_probs
from dividemix.config import Config
from dividemix.data.dataset import ArrayData
from dividemix.data.features import FeatureData, feature_statistics
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.engine.device import choose_device
from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.judging.label_issues import find_issues
from dividemix.planning.prepare import start
from dividemix.planning.presets import preset_config

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise InputError(
        f"DivideMixClassifier needs scikit-learn 1.6 or later ({error}): pip install 'dividemix[sklearn]'"
    ) from error


class DivideMixClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier for labels of which many may be wrong.

    Two networks take turns to divide the samples into rightly and wrongly labeled ones by their losses, and train each
    other on them. Without knowing the noise: what is not a parameter here is as in the preset `default`.

    Parameters
    ----------
    epochs : int, default=30
        Epochs in all, warm-up included.
    warmup_epochs : int, default=5
        Epochs of ordinary training before the first division.
    batch_size : int, default=32
        Labeled samples, and unlabeled ones, in a step; at most a quarter of the samples are taken.
    lr : float, default=0.02
        Learning rate of SGD; it falls to zero along a cosine.
    net : str or None, default=None
        The network, by name or as package.module:function. None is "mlp" for vectors, "small_cnn" for images.
    net_width : int or None, default=None
        Units of a hidden layer, or channels of the first stage. None is 64 for vectors, 16 for images.
    noise_std : float, default=0.1
        Deviation of the Gaussian noise that makes a view of a vector, in deviations of each feature. Images are
        shifted at random instead.
    lambda_u : float, default=25.0
        Weight of the loss on unlabeled samples; how much of it is in force depends on the noise that is estimated.
    lambda_r : float, default=0.0
        Weight of the regulariser that asks for all classes equally often; 1 helps against heavy noise where they are.
    clean_threshold : float, default=0.5
        Clean probability from which a sample keeps its label. Above the preset's, since small networks on few samples
        learn wrong labels by heart, which makes them look plausible.
    division : {"global", "per_class"}, default="global"
        Whether losses are compared among all samples, or among those of one given label.
    alpha : float, default=0.5
        Parameter of mixup's Beta distribution.
    random_state : int, RandomState or None, default=None
        An int makes training repeatable.
    device : str, default="auto"
        Where to train: "auto", "cpu", "cuda", ... Predictions are made on the CPU.
    verbose : bool, default=False
        Print a line for each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    n_features_in_ : int
        Numbers in a sample: d, or H x W x channels.
    input_shape_ : tuple
        (d,) or (H, W, channels).
    nets_ : list of torch.nn.Module
        The trained networks.
    clean_prob_ : ndarray of shape (n,)
        Probability that the label of each training sample is right; mean over the networks.
    label_scores_ : ndarray of shape (n,)
        Probability that the networks give to the label of each training sample; low is bad.
    is_label_issue_ : ndarray of shape (n,)
        Training samples whose clean probability is below a half, and for which another label is predicted.
    loss_curve_ : list of float
        The warm-up's loss, then L_X, by epoch; mean over the networks.

    Notes
    -----
    It wins where right labels would tell the classes well apart. On two features and two classes with 40 % wrong labels
    it is no better than an ordinary network, and where one class is rare a linear model may be better.

    Examples
    --------
    >>> from dividemix import DivideMixClassifier
    >>> classifier = DivideMixClassifier(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> suspicious = classifier.label_scores_.argsort()  # doctest: +SKIP
    """

    classes_: NDArray[Any]
    input_shape_: tuple[int, ...]
    mean_: Any  # of each feature, or of each channel; as std_
    std_: Any
    nets_: list[nn.Module]
    clean_prob_: NDArray[np.float64]
    label_scores_: NDArray[np.float32]
    is_label_issue_: NDArray[np.bool_]
    loss_curve_: list[float]

    def __init__(
        self,
        *,
        epochs: int = 30,
        warmup_epochs: int = 5,
        batch_size: int = 32,
        lr: float = 0.02,
        net: str | None = None,
        net_width: int | None = None,
        noise_std: float = 0.1,
        lambda_u: float = 25.0,
        lambda_r: float = 0.0,
        clean_threshold: float = 0.5,
        division: str = "global",
        alpha: float = 0.5,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ):
        self.epochs = epochs
        self.warmup_epochs = warmup_epochs
        self.batch_size = batch_size
        self.lr = lr
        self.net = net
        self.net_width = net_width
        self.noise_std = noise_std
        self.lambda_u = lambda_u
        self.lambda_r = lambda_r
        self.clean_threshold = clean_threshold
        self.division = division
        self.alpha = alpha
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on X, (n, d) numbers or (n, H, W[, channels]) uint8 images, with the given labels y (n,)."""
        rows, shape = _rows(X)
        rows, y = validate_data(self, rows, y, dtype=None if shape else _FLOATS)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y holds one class, {self.classes_[0]!r}: at least two classes are needed")
        if not (isinstance(self.noise_std, Real) and 0 <= self.noise_std < math.inf):
            raise InputError(f"noise_std is {self.noise_std!r}: a number from 0 is needed")
        self.input_shape_ = shape or rows.shape[1:]
        self.mean_, self.std_ = pixel_statistics(rows.reshape(-1, *shape)) if shape else feature_statistics(rows)
        config, device = self._config(len(rows)), choose_device(self.device)
        data = self._data(rows, labels, device)
        state = start(
            config,
            "dividemix",
            num_classes=len(self.classes_),
            image_shape=self.input_shape_,
            num_samples=len(rows),
            device=device,
        )
        with warnings.catch_warnings():
            # Small data, and data without wrong labels, often divides like that: nothing for a user to act upon.
            warnings.simplefilter("ignore", DegenerateDivisionWarning)
            self.loss_curve_ = [self._watch(report) for report in fit(state, data, config)]
            issues = find_issues(state.nets, data, config, classes=tuple(map(str, self.classes_)))
        self.clean_prob_ = issues.clean_prob.mean(axis=0)
        self.label_scores_ = issues.label_score
        self.is_label_issue_ = issues.is_label_issue
        self.nets_ = [net.cpu() for net in state.nets]  # so that a pickle of them opens anywhere
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Probabilities (n, C) of X, the mean over the networks; columns as in classes_."""
        check_is_fitted(self)
        rows, shape = _rows(X)
        rows = validate_data(self, rows, reset=False, dtype=None if shape else _FLOATS)
        if (shape or rows.shape[1:]) != self.input_shape_:
            raise InputError(f"samples of X have shape {shape or rows.shape[1:]}: fitted were {self.input_shape_}")
        data = self._data(rows, np.zeros(len(rows), np.int64), torch.device("cpu"))
        probs: NDArray[np.float32] = predict_probs(self.nets_, data).mean(dim=0).numpy()
        return probs

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest label of each sample of X, (n,)."""
        probs = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[probs.argmax(axis=1)]
        return predicted

    def _config(self, num_samples: int) -> Config:
        """The parameters as a configuration."""
        fields = self.get_params(deep=False)
        for name in ("noise_std", "random_state", "verbose"):
            del fields[name]
        chosen = (
            {"net": "mlp", "net_width": 64} if len(self.input_shape_) == 1 else {"net": "small_cnn", "net_width": 16}
        )
        fields |= {name: value for name, value in chosen.items() if fields[name] is None}
        # A search over a grid brings numpy's numbers.
        fields = {name: value.item() if isinstance(value, np.generic) else value for name, value in fields.items()}
        config = preset_config(
            "default",
            **fields,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            precision="float32",  # a forward that is wrapped for a shorter type, or compiled, could not be pickled
            compile="never",
        )
        return replace(config, batch_size=min(config.batch_size, max(2, num_samples // 4)))

    def _data(self, rows: NDArray[Any], labels: NDArray[np.int64], device: torch.device) -> ArrayData | FeatureData:
        """Rows (n, n_features_in_) as what the networks are fed from."""
        if len(self.input_shape_) == 1:
            return FeatureData(
                rows,
                labels,
                mean=self.mean_,
                std=self.std_,
                noise_std=self.noise_std,
                device=device,
            )
        return ArrayData(
            rows.reshape(-1, *self.input_shape_),
            labels,
            mean=self.mean_,
            std=self.std_,
            crop_padding=max(1, round(min(self.input_shape_[:2]) / 12)),
            device=device,
        )

    def _watch(self, report: EpochReport) -> float:
        """The epoch's loss, printed if asked."""
        losses = next(iter(report.losses.values()))  # the warm-up's only one, or L_X
        loss = sum(losses) / len(losses)
        if self.verbose:
            kept = "".join(f", {len(division.labeled)} labels kept" for division in report.divisions)
            print(f"epoch {report.epoch}/{self.epochs} {report.phase}: loss {loss:.4f}{kept}")  # noqa: T201
        return loss


_FLOATS = (np.float64, np.float32)


def _rows(X: Any) -> tuple[Any, tuple[int, ...]]:
    """X as rows, one for each sample, and the shape of its images (H, W, channels), empty if it has vectors."""
    if (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) <= 2:
        return X, ()
    X = np.asarray(X)
    if X.dtype != np.uint8 or X.ndim > 4:
        raise InputError(
            f"X is {X.dtype} of shape {X.shape}: allowed are numbers (n, d) and images (n, H, W[, channels]) of uint8"
        )
    shape = X.shape[1:] if X.ndim == 4 else (*X.shape[1:], 1)
    return X.reshape(len(X), math.prod(shape)), shape
