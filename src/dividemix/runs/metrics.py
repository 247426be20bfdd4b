"""From an epoch's report to its row of metrics.jsonl: accuracies, the split, and how well it tells right from wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import EpochReport
from dividemix.algorithm.ensemble import predict_probs
from dividemix.runs import scoring
from dividemix.runs.loss_histogram import loss_histogram
from dividemix.runs.material import Material

_TOP = 5  # predictions among which the label counts as recognised, where there are more classes


def metrics_row(report: EpochReport, nets: Sequence[nn.Module], material: Material) -> dict[str, Any]:
    """The row, with `seconds` still to be filled in."""
    test, holdout = material.test, material.holdout
    row: dict[str, Any] = {"epoch": report.epoch, "phase": report.phase, "seconds": 0.0, "test_acc": None}
    tests = ({} if test is None else {"test": test}) | material.other_tests
    for name, images in tests.items():
        probs, labels = predict_probs(nets, images).cpu().numpy(), images.labels.cpu().numpy()
        row[f"{name}_acc"] = scoring.accuracy(probs.mean(axis=0), labels)
        row[f"{name}_acc_by_net"] = [scoring.accuracy(net_probs, labels) for net_probs in probs]
        if len(material.classes) > _TOP:
            row[f"{name}_top5"] = scoring.top_accuracy(probs.mean(axis=0), labels, _TOP)
    if holdout is not None:
        probs = predict_probs(nets, holdout).cpu().numpy()
        row["val_acc"] = scoring.accuracy(probs.mean(axis=0), holdout.labels.cpu().numpy())
        row["num_val"] = len(holdout.labels)
        if material.clean_holdout:
            row["val_is_clean"] = True
    if report.divisions:
        row["num_labeled"] = [len(division.labeled) for division in report.divisions]
        row["noise_rate"], row["lambda_u"] = report.noise_rate, report.lambda_u
        is_wrong = _is_wrong(material)
        if is_wrong is not None:
            aucs = [_clean_auc(division, is_wrong) for division in report.divisions]
            row["clean_auc"] = None if None in aucs else aucs
        row["loss_histograms"] = [loss_histogram(division, is_wrong) for division in report.divisions]
    return row | report.losses


def _clean_auc(division: Division, is_wrong: NDArray[np.bool_]) -> float | None:
    """The AUC over the samples that were divided."""
    divided = division.divided.numpy()
    return scoring.clean_auc(division.clean_prob.numpy()[divided], ~is_wrong[divided])


def _is_wrong(material: Material) -> NDArray[np.bool_] | None:
    """Which of the n training labels are wrong, where that is known."""
    if material.true_labels is None:
        return None
    is_wrong: NDArray[np.bool_] = material.train.labels.cpu().numpy() != material.true_labels[material.train_index]
    return is_wrong
