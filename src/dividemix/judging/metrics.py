"""From an epoch's report to its row of metrics.jsonl: accuracies, the split, and how well it separates wrong labels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dividemix.algorithm.divide import Division
from dividemix.algorithm.ensemble import predict_probs
from dividemix.data.training_data import TrainingData
from dividemix.judging import scoring
from dividemix.judging.loss_histogram import loss_histogram
from dividemix.judging.records import EpochRow, TestScores
from dividemix.methods.method import EpochReport
from dividemix.planning.material import Material


def metrics_row(
    report: EpochReport, nets: Sequence[nn.Module], material: Material, *, is_tested: bool = True
) -> EpochRow:
    """The row of an epoch, with scores on the test sets if it `is_tested`; the caller fills in `seconds`."""
    row: EpochRow = {
        "epoch": report.epoch,
        "phase": report.phase,
        "selects": report.selects,
        "seconds": 0.0,
        "profile": dict(report.seconds),
        "losses": dict(report.losses),
        "figures": dict(report.figures),
        "test_acc": None,
    }
    if material.test is not None and is_tested:
        scores = _scores(nets, material.test)
        row["test_acc"], row["test_acc_by_net"] = scores["acc"], scores["acc_by_net"]
        if "top5" in scores:
            row["test_top5"] = scores["top5"]
    if material.other_tests and is_tested:
        row["other_tests"] = {name: _scores(nets, images) for name, images in material.other_tests.items()}
    if material.holdout is not None:
        row["val_acc"], row["num_val"] = _scores(nets, material.holdout)["acc"], len(material.holdout.labels)
        if material.clean_holdout:
            row["val_is_clean"] = True
    if report.divisions:
        row["num_labeled"] = [len(division.labeled) for division in report.divisions]
        row["num_divided"] = int(report.divisions[0].divided.sum())  # the same samples in all divisions of an epoch
        is_wrong = _is_wrong(material)
        if is_wrong is not None:
            aucs = [_clean_auc(division, is_wrong) for division in report.divisions]
            row["clean_auc"] = None if None in aucs else [auc for auc in aucs if auc is not None]
        row["loss_histograms"] = [
            loss_histogram(division, is_wrong) for division in report.divisions if division.values is not None
        ]
    return row


def _scores(nets: Sequence[nn.Module], samples: TrainingData) -> TestScores:
    return scoring.test_scores(predict_probs(nets, samples).cpu().numpy(), samples.labels.cpu().numpy())


def _clean_auc(division: Division, is_wrong: NDArray[np.bool_]) -> float | None:
    """The AUC over the samples that were divided."""
    divided = division.divided.numpy()
    return scoring.clean_auc(division.clean_prob.numpy()[divided], ~is_wrong[divided])


def _is_wrong(material: Material) -> NDArray[np.bool_] | None:
    """Which of the n training labels are wrong; None if that is unknown."""
    if material.true_labels is None:
        return None
    is_wrong: NDArray[np.bool_] = material.train.labels.cpu().numpy() != material.true_labels[material.train_index]
    return is_wrong
