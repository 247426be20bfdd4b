"""Against cleanlab's whole path, and against ordinary training, on the embedded set or another one.

Usage, from the root of the repository: python -m benchmarks.against_cleanlab [--seeds N] [--noise KIND:RATE ...]
[--ways ours cleanlab ordinary] [--settings data=cifar10 root=DIR limit_train=10000 ...] [--path_epochs N]

Ours: the preset `default`, one run: it scores every label and leaves a model. cleanlab's: ordinary training of the same
network with the same schedule on four fifths of the data, five times, for out-of-sample probabilities; its issue finder
on them; ordinary training on what it kept. Ordinary: that training on everything. Average precision is that of the
label scores for truly wrong labels. With --path_epochs each of cleanlab's six trainings has so many epochs, so that
both ways take the same time.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.machine import headline, machine
from dividemix.algorithm.ensemble import predict_probs
from dividemix.methods import METHODS
from dividemix.methods.loop import fit
from dividemix.methods.method import TrainingSets
from dividemix.planning.job import Job, known_to
from dividemix.planning.material import Material, gather
from dividemix.planning.plan import make_plan
from dividemix.planning.prepare import start
from dividemix.runs.run import Run

_NOISES = ("symmetric:0.2", "symmetric:0.5", "asymmetric:0.3")


def main() -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", nargs="+", default=list(_NOISES))
    parser.add_argument("--ways", nargs="+", choices=list(_WAYS), default=["ours", "cleanlab"])
    parser.add_argument("--settings", nargs="*", default=["data=fashion"], metavar="NAME=VALUE")
    parser.add_argument("--path_epochs", type=int)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    console.print(headline(machine()), soft_wrap=True)
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    for noise in arguments.noise:
        for seed in range(1, arguments.seeds + 1):
            given = dict(one.split("=", 1) for one in arguments.settings)
            job = _job({name: yaml.safe_load(value) for name, value in given.items()}, noise, seed)
            for name in arguments.ways:
                epochs = (arguments.path_epochs if name == "cleanlab" else None) or job.settings.epochs
                result = _WAYS[name](replace(job, settings=replace(job.settings, epochs=epochs)))
                results.setdefault(noise, {}).setdefault(name, []).append(result)
                figures = "  ".join(f"{key} {value:.4g}" for key, value in result.items())
                console.print(f"{noise} seed {seed} {name}: {figures}", soft_wrap=True)
    console.print(_table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


def _job(given: dict[str, Any], noise: str, seed: int) -> Job:
    """The preset `default` on the data."""
    return make_plan(given | {"noise": noise, "seed": seed}, preset="default").job


def _ours(job: Job) -> dict[str, float]:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", job)
        run.train()
        seconds = time.perf_counter() - began
        issues, summary = run.label_issues(), run.summary()
    assert run.material.true_labels is not None
    assert summary["kept_acc"] is not None
    is_wrong = issues.labels != run.material.true_labels
    return _scored(is_wrong, 1 - issues.label_score, issues.is_label_issue, summary["kept_acc"], seconds)


def _cleanlab(job: Job) -> dict[str, float]:
    began = time.perf_counter()
    material = gather(job, torch.device("cpu"))
    labels = material.labels
    probs = np.zeros((len(labels), len(material.classes)))
    folds = StratifiedKFold(5, shuffle=True, random_state=job.settings.seed)
    for inside, outside in folds.split(labels, labels):
        probs[outside] = _predictions(_trained(job, material, inside), material.everything.subset(outside))
    is_issue = find_label_issues(labels, probs)
    nets = _trained(job, material, np.flatnonzero(~is_issue))
    seconds = time.perf_counter() - began
    assert material.true_labels is not None
    scores = get_label_quality_scores(labels, probs)
    return _scored(labels != material.true_labels, 1 - scores, is_issue, _accuracy(nets, material), seconds)


def _ordinary(job: Job) -> dict[str, float]:
    began = time.perf_counter()
    material = gather(job, torch.device("cpu"))
    nets = _trained(job, material, np.arange(len(material.labels)))
    seconds = time.perf_counter() - began
    return {"accuracy": _accuracy(nets, material), "seconds": seconds}


_WAYS = {"ours": _ours, "cleanlab": _cleanlab, "ordinary": _ordinary}


def _trained(job: Job, material: Material, index: NDArray[np.int64]) -> list[torch.nn.Module]:
    """Ordinary training on some of the samples."""
    name = "cross_entropy"
    s = Job.of(known_to(name, job.values()) | {"method": name}).settings
    sets = TrainingSets(material.everything.subset(index))
    shape, device = material.shape, torch.device("cpu")
    state = start(name, s, sets, num_classes=len(material.classes), shape=shape, device=device)
    for _ in fit(METHODS[name], state, sets, s):
        pass
    return state.nets


def _predictions(nets: list[torch.nn.Module], data: Any) -> NDArray[np.float32]:
    probs: NDArray[np.float32] = predict_probs(nets, data).mean(dim=0).numpy()
    return probs


def _accuracy(nets: list[torch.nn.Module], material: Material) -> float:
    """In percent, on the test images."""
    assert material.test is not None
    right = _predictions(nets, material.test).argmax(axis=1) == material.test.labels.numpy()
    return float(100 * right.mean())


def _scored(
    is_wrong: NDArray[np.bool_], suspicion: NDArray[Any], flagged: NDArray[np.bool_], accuracy: float, seconds: float
) -> dict[str, float]:
    """The figures of a way that also finds labels: those about wrong labels only where there are some."""
    outcome = {"accuracy": float(accuracy), "seconds": seconds}
    if not is_wrong.any():
        return outcome
    return outcome | {
        "average precision": float(average_precision_score(is_wrong, suspicion)),
        "flags: precision": float(is_wrong[flagged].mean()) if flagged.any() else 0.0,
        "flags: recall": float(flagged[is_wrong].mean()),
    }


def _table(results: dict[str, dict[str, list[dict[str, float]]]]) -> Table:
    """Means over the seeds, standard deviation behind."""
    columns = ("accuracy", "seconds", "average precision", "flags: precision", "flags: recall")
    table = Table(title="Means over seeds (standard deviation)", title_justify="left")
    table.add_column("noise", no_wrap=True)
    table.add_column("way", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for noise, ways in results.items():
        for name, runs in ways.items():
            cells = [_cell([run[column] for run in runs if column in run]) for column in columns]
            table.add_row(noise, name, *cells)
    return table


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    spread = f" ({statistics.stdev(values):.2g})" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4g}{spread}"


if __name__ == "__main__":
    main()
