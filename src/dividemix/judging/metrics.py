"""From an epoch's report to its row of metrics.jsonl: accuracies, the split, and how well it tells right from wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.divide import Division
from dividemix.algorithm.dividemix import EpochReport
from dividemix.algorithm.ensemble import predict_probs
from dividemix.judging import scoring
from dividemix.judging.loss_histogram import loss_histogram
from dividemix.planning.material import Material


def metrics_row(report: EpochReport, nets: Sequence[nn.Module], material: Material) -> dict[str, Any]:
    """The row, with `seconds` still to be filled in."""
    holdout = material.holdout
    row: dict[str, Any] = {"epoch": report.epoch, "phase": report.phase, "seconds": 0.0, "test_acc": None}
    for name, images in material.tests.items():
        scores = scoring.test_scores(predict_probs(nets, images).cpu().numpy(), images.labels.cpu().numpy())
        row |= {f"{name}_{score}": value for score, value in scores.items()}
    if holdout is not None:
        probs = predict_probs(nets, holdout).cpu().numpy()
        row["val_acc"] = scoring.accuracy(probs.mean(axis=0), holdout.labels.cpu().numpy())
        row["num_val"] = len(holdout.labels)
        if material.clean_holdout:
            row["val_is_clean"] = True
    if report.divisions:
        row["num_labeled"] = [len(division.labeled) for division in report.divisions]
        row["num_divided"] = int(report.divisions[0].divided.sum())  # all divisions of an epoch are of the same samples
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
