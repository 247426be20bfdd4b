"""scikit-learn's learners that are made of trees: how each is trained, and its trees as tensors of `nets.trees`.

What a trained learner has are plain numbers, so a model of it is stored without pickle.
Shapes: N rows, D features, C classes, T trees, M nodes, L leaves.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.optional import import_optional

if TYPE_CHECKING:
    from dividemix.methods.cross_fitted import CrossFittedSettings

_MOST_LEAVES = 4_000  # of a tree in a forest, about: more rows get larger leaves
_FLOOR = 1e-6
_FEWEST = 100  # samples of which boosting holds a part out to see when to stop


def trained(learner: str, s: "CrossFittedSettings", vectors: NDArray[Any], labels: NDArray[Any], fold: int) -> Any:
    """The classifier of scikit-learn of that name, trained on vectors (N, D) and labels (N,)."""
    ensemble = import_optional("sklearn.ensemble", learner, "scikit-learn")
    common = {"random_state": (1_000 * s.seed + fold) % 2**32}  # the most that scikit-learn takes
    if learner == "hist_gradient_boosting":
        boosting = ensemble.HistGradientBoostingClassifier
        return boosting(max_iter=s.num_rounds, early_stopping=_stops_early(labels), **common).fit(vectors, labels)
    forest = {"extra_trees": ensemble.ExtraTreesClassifier, "random_forest": ensemble.RandomForestClassifier}[learner]
    leaf = min(max(s.min_leaf, len(labels) // _MOST_LEAVES), len(labels))
    threads = torch.get_num_threads()
    return forest(s.num_trees, min_samples_leaf=leaf, n_jobs=threads, **common).fit(vectors, labels)


def _stops_early(labels: NDArray[Any]) -> bool:
    """Whether boosting may hold a tenth of the samples out, by class: it needs one of each class on both sides."""
    counts = np.unique(labels, return_counts=True)[1]
    return len(labels) >= _FEWEST and -(-len(labels) // 10) >= len(counts) and bool(counts.min() > 1)


def log_probs(model: Any, vectors: NDArray[Any], num_classes: int) -> Tensor:
    """Log-probabilities (N, C) of vectors (N, D); small ones for classes that the training did not have."""
    probs = np.zeros((len(vectors), num_classes))
    if len(vectors):
        probs[:, model.classes_] = model.predict_proba(vectors)
    return torch.from_numpy(probs).clamp(min=_FLOOR).log()


def tree_tensors(model: Any, num_classes: int) -> dict[str, Tensor]:
    """The buffers and the bias of a net `trees` that gives what the model gives."""
    is_boosted = hasattr(model, "_predictors")
    trees = _boosted(model) if is_boosted else _forest(model, num_classes)
    parts: dict[str, list[NDArray[Any]]] = {}
    num_nodes = num_values = 0
    roots = []
    for tree in trees:
        roots.append(num_nodes)
        own, is_leaf = np.arange(len(tree["feature"])), tree["left"] < 0
        tree["left"], tree["right"] = (np.where(is_leaf, own, tree[side]) + num_nodes for side in ("left", "right"))
        tree["feature"] = np.where(is_leaf, 0, tree["feature"])
        tree["leaf"] = np.where(is_leaf, np.cumsum(is_leaf) - 1 + num_values, 0)
        tree["value"] = tree["value"][is_leaf]
        # The largest float32 that is not above: a row of float32 goes the same way.
        rounded = tree["threshold"].astype(np.float32)
        tree["threshold"] = np.where(rounded > tree["threshold"], np.nextafter(rounded, np.float32(-np.inf)), rounded)
        num_nodes, num_values = num_nodes + len(own), num_values + int(is_leaf.sum())
        for name, array in tree.items():
            parts.setdefault(name, []).append(array)
    depth = max(tree["depth"].max() for tree in trees)
    del parts["depth"]
    classes = parts.pop("tree_class", [np.zeros(1)] * len(trees))
    kinds = {"threshold": np.float32, "value": np.float32 if is_boosted else np.float16}
    tensors = {name: torch.from_numpy(np.concatenate(p).astype(kinds.get(name, np.int32))) for name, p in parts.items()}
    tensors["roots"] = torch.tensor(roots, dtype=torch.int32)
    tensors["tree_class"] = torch.from_numpy(np.concatenate(classes).astype(np.int32))
    tensors["form"] = torch.tensor([int(depth), 1, int(is_boosted)])
    tensors["bias"] = _bias(model, num_classes) if is_boosted else torch.zeros(num_classes)
    return tensors


def joined(first: dict[str, Tensor], second: dict[str, Tensor]) -> dict[str, Tensor]:
    """Both as one: the models that `first` has, and one more of the same learner. `first` may have none."""
    num_models = int(first["form"][1])
    if not num_models:
        return second
    moved = {name: second[name] + len(first["feature"]) for name in ("roots", "left", "right")}
    leaf = second["leaf"] + len(first["value"])
    is_inner = second["left"] != torch.arange(len(second["left"]), dtype=torch.int32)
    parts = {**second, **moved, "leaf": torch.where(is_inner, 0, leaf).to(torch.int32)}
    whole = {name: torch.cat([first[name], parts[name]]) for name in second if name not in ("form", "bias")}
    deepest = max(int(first["form"][0]), int(second["form"][0]))
    whole["form"] = torch.tensor([deepest, num_models + 1, int(second["form"][2])])
    whole["bias"] = (num_models * first["bias"] + second["bias"]) / (num_models + 1)
    return whole


def _forest(model: Any, num_classes: int) -> list[dict[str, NDArray[Any]]]:
    found = []
    for estimator in model.estimators_:
        tree = estimator.tree_
        value = np.zeros((tree.node_count, num_classes))
        value[:, model.classes_] = tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True)
        names = {"left": tree.children_left, "right": tree.children_right, "feature": tree.feature}
        found.append({**names, "threshold": tree.threshold, "value": value, "depth": np.array([tree.max_depth])})
    return found


def _boosted(model: Any) -> list[dict[str, NDArray[Any]]]:
    found = []
    for in_round in model._predictors:
        for k, predictor in enumerate(in_round):
            nodes = predictor.nodes
            is_leaf = nodes["is_leaf"].astype(bool)
            sides = {side: np.where(is_leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right")}
            # Two classes have one tree in a round: for the second class.
            number = model.classes_[k if len(model.classes_) > 2 else 1]
            found.append(
                {
                    **sides,
                    "feature": nodes["feature_idx"].astype(np.int64),
                    "threshold": nodes["num_threshold"],
                    "value": nodes["value"][:, None],
                    "depth": np.array([nodes["depth"].max()]),
                    "tree_class": np.array([number]),
                }
            )
    return found


def _bias(model: Any, num_classes: int) -> Tensor:
    """The logits (C,) before the first tree; very small ones for classes that the training did not have."""
    baseline: Sequence[float] = np.ravel(model._baseline_prediction).tolist()
    bias = torch.full((num_classes,), -20.0)
    bias[model.classes_] = torch.tensor([0.0, *baseline] if len(model.classes_) == 2 else baseline)
    return bias
