"""The scikit-learn face: DivideMix as a classifier with fit and predict, for feature vectors and for images.

Shapes: n samples, d features, H x W pixels, C classes.
"""

import math
import warnings
from contextlib import nullcontext
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.ensemble import predict_probs
from dividemix.data.dataset import ArrayData
from dividemix.data.features import FeatureData, feature_statistics
from dividemix.data.pixel_statistics import pixel_statistics
from dividemix.data.readers.pixels import without_torch
from dividemix.engine.device import choose_device
from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.judging.label_issues import find_issues
from dividemix.methods import find_method
from dividemix.methods.loop import fit
from dividemix.methods.method import EpochReport, TrainingSets
from dividemix.nets.given import named_for_now
from dividemix.planning.choices import as_settings
from dividemix.planning.default_method import method_for_vectors
from dividemix.planning.defaults import for_vectors, net_for
from dividemix.planning.job import Job, known_to
from dividemix.planning.lengths import warmup_for
from dividemix.planning.plan import make_draft
from dividemix.planning.prepare import start
from dividemix.planning.presets import DEFAULT, find_preset

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
    """Classifier for labels of which many may be wrong; how many need not be known.

    Vectors, such as embeddings or the rows of a table: a linear layer predicts the true labels, and an estimated noise
    matrix says how they became the given ones. Every label is judged by a model that was not trained on it.

    Images: two networks divide the samples, by losses and predictions, into those that keep their label and those that
    get a new one. Each trains on the other's division. Settings of the method that are not parameters here are those of
    the preset `default`.

    Parameters of these networks are None unless you give a value. As soon as you give one, whatever it is, the networks
    train on vectors, too. So all points of a grid train by the same method, unless the grid has None or `method`.

    Parameters
    ----------
    method : str or None, default=None
        The method by name (docs/methods.md). None is "robust_vectors" for vectors and "robust" for images, or "robust"
        for both if a parameter from `warmup_epochs` to `alpha`, apart from `net_width`, has a value.
    epochs : int or None, default=None
        Number of epochs, including warm-up. None is 16 for the linear layer, and 30 for networks.
    warmup_epochs : int or None, default=None
        Epochs of ordinary training before the first division. None is a sixth of the epochs, 1 to 5.
    batch_size : int or None, default=None
        Labeled samples, and as many unlabeled ones, in a step; fewer if this is more than a quarter of the samples.
        None is 32.
    lr : float or None, default=None
        Learning rate of SGD; it falls to zero along a cosine. None is 0.02.
    net : str, torch.nn.Module, callable or None, default=None
        The network: by name, as package.module:function, as a module whose copies are trained, or as a function of
        num_classes that makes one. None is "linear" for vectors, or "fourier" for at most 128 features, or "mlp" if
        another method trains on them; and "small_cnn" for images.
    net_width : int or None, default=None
        Random waves of "fourier", units of a hidden layer, or channels of the first stage. None is 512 for "fourier",
        64 for other networks on vectors, 16 for images. "linear" has no width.
    noise_std : float or None, default=None
        Standard deviation of the Gaussian noise that makes a view of a vector, as a multiple of each feature's own.
        Images are shifted at random instead. None is 0.1.
    lambda_u : float or None, default=None
        Weight of the loss on unlabeled samples at 50 % estimated noise or more; it is smaller below, 0 up to 25 %. None
        is 25.
    lambda_r : float or None, default=None
        Weight of the regulariser that pushes predictions towards equally frequent classes. 1 helps against heavy
        noise if the classes are equally frequent. None is 0.
    clean_threshold : float or None, default=None
        Clean probability from which a sample keeps its label. None is 0.5. It is higher than the preset's, since small
        networks memorise wrong labels of few samples, which makes these labels look plausible.
    division : {"global", "per_class"} or None, default=None
        Whether losses are compared among all samples or among samples with the same given label. None is "global".
    alpha : float or None, default=None
        Parameter of mixup's Beta distribution. None is 0.5.
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
        The method's own probability that each training sample's label is right; mean over the networks.
    label_scores_ : ndarray of shape (n,)
        What to sort by: low values mark suspicious labels. The probability that the networks together predict for each
        training sample's label. If the method judges labels that it did not train on (`robust_vectors`), of 100 samples
        or more: the probability that the label is right, calibrated by all labels.
    is_label_issue_ : ndarray of shape (n,)
        Whether a training sample's label is more likely wrong than right, and another label is predicted for it. More
        likely wrong means `label_scores_` below 0.5 if these are calibrated, and `clean_prob_` below 0.5 if not.
    loss_curve_ : list of float
        The loss of each warm-up epoch, then L_X of each later epoch; mean over the networks. Of the linear layer it is
        that of labels it was not trained on.

    Notes
    -----
    It helps most where the classes can be separated well from correct labels.

    Examples
    --------
    >>> import numpy as np
    >>> from dividemix import DivideMixClassifier
    >>> truth = np.arange(120) % 3
    >>> X = np.random.default_rng(0).normal(size=(120, 4)) + 8 * np.eye(3, 4)[truth]
    >>> y = truth.copy()
    >>> y[:6] = (y[:6] + 1) % 3  # six wrong labels
    >>> classifier = DivideMixClassifier(epochs=6, random_state=0).fit(X, y)
    >>> sorted(classifier.label_scores_.argsort()[:6].tolist())
    [0, 1, 2, 3, 4, 5]
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
        method: str | None = None,
        epochs: int | None = None,
        warmup_epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        net: Any = None,
        net_width: int | None = None,
        noise_std: float | None = None,
        lambda_u: float | None = None,
        lambda_r: float | None = None,
        clean_threshold: float | None = None,
        division: str | None = None,
        alpha: float | None = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ):
        self.method = method
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
            raise InputError(f"y has one class, {self.classes_[0]!r}: it must have at least two")
        if self.noise_std is not None and not (isinstance(self.noise_std, Real) and 0 <= self.noise_std < math.inf):
            raise InputError(f"noise_std is {self.noise_std!r}: it must be a finite number >= 0")
        self.input_shape_ = shape or rows.shape[1:]
        self.mean_, self.std_ = pixel_statistics(rows.reshape(-1, *shape)) if shape else feature_statistics(rows)
        device, num_classes = choose_device(self.device), len(self.classes_)
        sets = TrainingSets(self._data(rows, labels, device))
        with nullcontext() if self.net is None else named_for_now(self.net) as net:
            job = self._job(len(rows), net)
            method, s = find_method(job.method), job.settings
            state = start(job.method, s, sets, num_classes=num_classes, shape=self.input_shape_, device=device)
        with warnings.catch_warnings():
            # Small data, and data without wrong labels, is often divided like that: a user need not act on it.
            warnings.simplefilter("ignore", DegenerateDivisionWarning)
            self.loss_curve_ = [self._watch(report, s.epochs) for report in fit(method, state, sets, s)]
            judgement = method.judge(state, sets.train, s)
            del sets  # the copy of many vectors: what follows needs memory, too
            issues = find_issues(judgement, labels, classes=tuple(map(str, self.classes_)))
        self.clean_prob_ = issues.clean_prob.mean(axis=0)
        self.label_scores_ = issues.label_score
        self.is_label_issue_ = issues.is_label_issue
        self.nets_ = [net.cpu() for net in state.predictors]  # so that a pickle of them loads anywhere
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Probabilities (n, C) of X, the mean over the networks; columns as in `classes_`."""
        check_is_fitted(self)
        rows, shape = _rows(X)
        rows = validate_data(self, rows, reset=False, dtype=None if shape else _FLOATS)
        found = shape or rows.shape[1:]
        if found != self.input_shape_:
            raise InputError(f"samples of X have shape {found}: they must have that of fit, {self.input_shape_}")
        data = self._data(rows, np.zeros(len(rows), np.int64), torch.device("cpu"))
        probs: NDArray[np.float32] = predict_probs(self.nets_, data).mean(dim=0).numpy()
        return probs

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely label of each sample of X, (n,)."""
        probs = self.predict_proba(X)  # before classes_ is read: it checks that there was a fit
        predicted: NDArray[Any] = self.classes_[probs.argmax(axis=1)]
        return predicted

    def _job(self, num_samples: int, net: str | None) -> Job:
        """The parameters, completed by the preset `default`, as a job; `net` by its name."""
        given = self.get_params(deep=False) | {"net": net}
        for name in ("random_state", "verbose"):
            del given[name]
        # A grid search may pass numbers of numpy's types.
        given = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
        fixed = {
            "data": "X",
            "seed": int(check_random_state(self.random_state).randint(2**31)),
            "precision": "float32",  # a forward wrapped for a shorter type, or a compiled one, cannot be pickled
            "compile": "never",
            "kernels": "torch",  # a pickle of the nets must load on machines without a compiler
        }
        changed = {name: value for name, value in given.items() if value is not None}
        if len(self.input_shape_) == 1 and (method := self._method_for_vectors(changed)):
            chosen = as_settings(for_vectors(method, self.input_shape_[0]))
            return make_draft(fixed | chosen | changed, preset=DEFAULT).job
        del given["noise_std"]
        if given["method"] is None:
            del given["method"]
        chosen = _OF_NETWORKS | as_settings(net_for(self.input_shape_)) | {"epochs": 30}
        given |= fixed | {name: value for name, value in chosen.items() if given[name] is None}
        if given["warmup_epochs"] is None:
            del given["warmup_epochs"]
            if type(given["epochs"]) is int:  # the planner refuses anything else
                given["warmup_epochs"] = warmup_for(given["epochs"], on_cpu=True).value
        if type(given["batch_size"]) is int:
            given["batch_size"] = min(given["batch_size"], max(2, num_samples // 4))
        known = known_to(given.get("method", find_preset(DEFAULT).method), given)
        given = {name: value for name, value in given.items() if name in known or name in changed}
        return make_draft(given, preset=DEFAULT).job

    @staticmethod
    def _method_for_vectors(changed: dict[str, Any]) -> str | None:
        """The preset's method for vectors, unless another is named or a parameter of the networks is given."""
        method = method_for_vectors({})
        if "method" in changed:
            return method if changed["method"] == method else None
        return method if changed.keys() <= {"epochs", "net_width", "device"} else None

    def _data(self, rows: NDArray[Any], labels: NDArray[np.int64], device: torch.device) -> ArrayData | FeatureData:
        """Rows (n, n_features_in_) in the form that the networks read."""
        common: dict[str, Any] = {"mean": self.mean_, "std": self.std_, "device": device}
        if len(self.input_shape_) == 1:
            noise_std = _NOISE_STD if self.noise_std is None else self.noise_std
            return FeatureData(rows, labels, noise_std=noise_std, **common)
        padding = max(1, round(min(self.input_shape_[:2]) / 12))
        return ArrayData(rows.reshape(-1, *self.input_shape_), labels, crop_padding=padding, **common)

    def _watch(self, report: EpochReport, num_epochs: int) -> float:
        """The epoch's loss; printed if verbose."""
        losses = next(iter(report.losses.values()))  # L_X, or the only loss of warm-up
        loss = sum(losses) / len(losses)
        if self.verbose:
            kept = "".join(f", {len(division.labeled)} labels kept" for division in report.divisions)
            print(f"epoch {report.epoch}/{num_epochs} {report.phase}: loss {loss:.4f}{kept}")  # noqa: T201
        return loss


_FLOATS = (np.float64, np.float32)
_NOISE_STD = 0.1
# What None is for the networks.
_OF_NETWORKS: dict[str, Any] = {"batch_size": 32, "lr": 0.02, "lambda_u": 25.0, "lambda_r": 0.0, "alpha": 0.5}
_OF_NETWORKS |= {"clean_threshold": 0.5, "division": "global"}


def _rows(X: Any) -> tuple[Any, tuple[int, ...]]:
    """X as one row for each sample, and the shape (H, W, channels) of its images; () for vectors."""
    X = without_torch(X, "X")
    if (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) <= 2:
        return X, ()
    X = np.asarray(X)
    if X.dtype != np.uint8 or X.ndim > 4:
        raise InputError(
            f"X is {X.dtype} of shape {X.shape}: allowed are numbers (n, d) and images (n, H, W[, channels]) of uint8"
        )
    shape = X.shape[1:] if X.ndim == 4 else (*X.shape[1:], 1)
    return X.reshape(len(X), math.prod(shape)), shape
