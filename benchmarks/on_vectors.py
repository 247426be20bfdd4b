"""robust_vectors against logistic regression, a kNN vote, cleanlab's path and boosted trees, on vectors.

Usage, from the root of the repository: python -m benchmarks.on_vectors FOLDER SET ... [--noise KIND:RATE ...]
[--seeds N ...] [--ways NAME ...] [--json FILE]

FOLDER has SET.npz with the arrays train, train_labels, test, test_labels, and given if the labels have real noise
(--noise real). Asymmetric noise takes each class for the next one, on the set cifar10 for the paper's similar class.

- ours: robust_vectors, as DivideMixClassifier trains it.
- logistic: logistic regression. C is chosen by accuracy on the noisy labels in 5 folds; the folds' probabilities of the
  given labels rank them. The search uses our solver, which tests compare with scikit-learn's.
- knn: the vote of the 50 nearest others, by the angle between vectors as they are.
- cleanlab: its issue finder on the probabilities of `logistic`, and scikit-learn's model on what it keeps. Its better
  ranking counts, of self-confidence and normalised margin.
- trees, cleanlab_trees: HistGradientBoosting with early stopping, and cleanlab's path on it, 5 folds.
- two_nets: DivideMixClassifier with the method robust.
"""

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from numpy.typing import NDArray
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.machine import headline, machine
from dividemix import DivideMixClassifier
from dividemix.data.features import feature_statistics, standardised
from dividemix.data.noise import add_noise, parse_noise
from dividemix.methods.fold_heads import Folded, out_of_sample, principal_axes, train_heads

_CIFAR10 = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}
_PATH = tuple(10 / 3**k for k in range(10))  # regularisation; C is 1 / (it times the samples)


@dataclass(frozen=True, eq=False)
class Task:
    """Vectors (N, D), their given and true labels (N,), and test vectors with true labels."""

    vectors: NDArray[np.float32]
    given: NDArray[np.int64]
    true: NDArray[np.int64]
    test: NDArray[np.float32]
    test_labels: NDArray[np.int64]
    num_classes: int
    seed: int

    def standardised(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors and test vectors, each feature with mean 0 and deviation 1."""
        statistics_ = feature_statistics(self.vectors)
        return standardised(self.vectors, *statistics_), standardised(self.test, *statistics_)


Result = tuple[NDArray[np.int64], NDArray[np.floating]]  # predicted test labels, and a score (N,): low is bad


def _ours(task: Task) -> Result:
    classifier = DivideMixClassifier(random_state=task.seed).fit(task.vectors, task.given)
    return classifier.predict(task.test), classifier.label_scores_


def _two_nets(task: Task) -> Result:
    classifier = DivideMixClassifier(method="robust", random_state=task.seed).fit(task.vectors, task.given)
    return classifier.predict(task.test), classifier.label_scores_


def _logistic(task: Task) -> Result:
    probs, lam = _folded_probs(task)
    vectors, test = task.standardised()
    return _fit_logistic(vectors, task.given, lam).predict(test), _self_confidence(probs, task.given)


def _cleanlab(task: Task) -> Result:
    probs, lam = _folded_probs(task)
    vectors, test = task.standardised()
    kept = ~find_label_issues(task.given, probs)
    predicted = _fit_logistic(vectors[kept], task.given[kept], lam).predict(test)
    return predicted, _better_ranking(task, probs)


def _knn(task: Task, k: int = 50) -> Result:
    vectors, test = (torch.nn.functional.normalize(torch.from_numpy(rows)) for rows in (task.vectors, task.test))
    votes = torch.nn.functional.one_hot(torch.from_numpy(task.given), task.num_classes).float()

    def shares(rows: torch.Tensor, own: bool) -> torch.Tensor:
        parts = []
        for first in range(0, len(rows), 1000):
            distances = torch.cdist(rows[first : first + 1000], vectors)
            if own:
                distances[torch.arange(len(distances)), first + torch.arange(len(distances))] = torch.inf
            parts.append(votes[distances.topk(k, largest=False).indices].mean(dim=1))
        return torch.cat(parts)

    return shares(test, False).argmax(dim=1).numpy(), _self_confidence(shares(vectors, True).numpy(), task.given)


def _trees(task: Task) -> Result:
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=task.seed)
    predicted = model.fit(task.vectors, task.given).predict(task.test)
    return predicted, np.zeros(len(task.given))  # its ranking is cleanlab_trees


def _cleanlab_trees(task: Task) -> Result:
    model = HistGradientBoostingClassifier(early_stopping=True, random_state=task.seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=task.seed)
    probs = cross_val_predict(model, task.vectors, task.given, cv=folds, method="predict_proba")
    kept = ~find_label_issues(task.given, probs)
    predicted = model.fit(task.vectors[kept], task.given[kept]).predict(task.test)
    return predicted, _better_ranking(task, probs)


WAYS: dict[str, Callable[[Task], Result]] = {
    "ours": _ours,
    "logistic": _logistic,
    "knn": _knn,
    "cleanlab": _cleanlab,
    "trees": _trees,
    "cleanlab_trees": _cleanlab_trees,
    "two_nets": _two_nets,
}


@functools.cache
def _folded_probs(task: Task, num_folds: int = 5) -> tuple[NDArray[np.float64], float]:
    """Out-of-sample probabilities of logistic regression, with the regularisation of the best accuracy."""
    vectors, labels = torch.from_numpy(task.standardised()[0]), torch.from_numpy(task.given)
    folds = torch.empty_like(labels)
    splits = StratifiedKFold(num_folds, shuffle=True, random_state=task.seed).split(task.vectors, task.given)
    for k, (_, outside) in enumerate(splits):
        folds[outside] = k
    data = Folded(vectors, labels, folds, num_folds, *principal_axes(vectors))
    heads = torch.zeros(num_folds, vectors.shape[1] + 1, task.num_classes)
    best: tuple[float, float, torch.Tensor] = (-1.0, 0.0, vectors)
    for lam in _PATH:
        heads = train_heads(heads, data, lam, torch.eye(task.num_classes), 30)
        log_probs = out_of_sample(heads, data)
        accuracy = (log_probs.argmax(dim=1) == labels).double().mean().item()
        if accuracy > best[0]:
            best = accuracy, lam, log_probs
        elif accuracy < best[0] - 0.02:
            break
    probs = best[2].double().exp().numpy()
    return probs / probs.sum(axis=1, keepdims=True), best[1]


def _fit_logistic(vectors: NDArray[np.float32], labels: NDArray[np.int64], lam: float) -> LogisticRegression:
    return LogisticRegression(C=1 / (lam * len(labels)), max_iter=300, tol=1e-3).fit(vectors, labels)


def _self_confidence(probs: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[Any]:
    scores: NDArray[Any] = probs[np.arange(len(labels)), labels]
    return scores


def _better_ranking(task: Task, probs: NDArray[np.float64]) -> NDArray[np.float64]:
    rankings = [
        get_label_quality_scores(task.given, probs, method=method)
        for method in ("self_confidence", "normalized_margin")
    ]
    wrong = task.given != task.true
    return max(rankings, key=lambda scores: average_precision_score(wrong, -scores) if wrong.any() else 0.0)


def _task(path: Path, noise: str, seed: int) -> Task:
    arrays = np.load(path)
    vectors, true = arrays["train"].astype(np.float32), arrays["train_labels"].astype(np.int64)
    num_classes = int(max(true.max(), arrays["test_labels"].max())) + 1
    given = arrays["given"] if noise == "real" else None
    if given is None:
        similar = _CIFAR10 if path.stem == "cifar10" else {c: (c + 1) % num_classes for c in range(num_classes)}
        spec = parse_noise(noise)
        noisy = add_noise(true, spec, num_classes=num_classes, seed=seed, similar=similar, samples=vectors)
        given = noisy.labels
    return Task(vectors, given, true, arrays["test"].astype(np.float32), arrays["test_labels"], num_classes, seed)


def _measured(way: str, task: Task) -> dict[str, float]:
    """What a way reaches: accuracy on the test set, average precision of its ranking, and the time it takes."""
    began, cpu, wrong = time.perf_counter(), time.process_time(), task.given != task.true
    predicted, scores = WAYS[way](task)
    return {
        "accuracy": 100 * float(np.mean(predicted == task.test_labels)),
        "precision": float(average_precision_score(wrong, -scores)) if wrong.any() else 0.0,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }


def main() -> None:
    """Run the comparison and print each result, then the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--noise", nargs="+", default=["symmetric:0.5", "asymmetric:0.4", "instance:0.4", "none"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["ours", "logistic", "knn", "cleanlab"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console = Console(highlight=False, width=150)
    console.print(headline(machine()), soft_wrap=True)
    results: dict[str, list[dict[str, float]]] = {}
    for seed in arguments.seeds:
        for name in arguments.sets:
            for noise in arguments.noise if seed == 1 else [noise for noise in arguments.noise if noise != "real"]:
                task = _task(arguments.folder / f"{name}.npz", noise, seed)
                for way in arguments.ways:
                    row = _measured(way, task)
                    results.setdefault(f"{name} {noise} {way}", []).append(row)
                    figures = "  ".join(f"{key} {value:.4g}" for key, value in row.items())
                    console.print(f"{name} {noise} seed {seed} {way}: {figures}", soft_wrap=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(results, indent=2))
    for key, rows in results.items():
        means = {name: statistics.mean(row[name] for row in rows) for name in rows[0]}
        console.print(f"{key}: " + "  ".join(f"{name} {value:.4g}" for name, value in means.items()), soft_wrap=True)


if __name__ == "__main__":
    main()
