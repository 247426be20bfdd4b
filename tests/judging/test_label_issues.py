"""What is said of each label. Oracle: the definitions, written as a loop over samples."""

import csv
import io
from typing import Any

import numpy as np
import oracles
import pytest
import torch
from tiny import TinyData, tiny_nets
from torch import nn

from dividemix.algorithm.divide import clean_probability, normalise
from dividemix.engine.state import State
from dividemix.judging.calibration import calibrate
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.methods import find_method
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.methods.method import MethodSettings
from dividemix.methods.robust import RobustSettings

CLASSES = ("ant", "bee", "cat, or dog")


Found = tuple[LabelIssues, list[nn.Module], TinyData]


def issues_of(method: str, nets: list[nn.Module], data: TinyData, settings: MethodSettings, **more: Any) -> LabelIssues:
    """What is found when the method judges the data by these nets."""
    judgement = find_method(method).judge(State.start(nets, settings), data, settings)
    return find_issues(judgement, data.labels.numpy(), classes=CLASSES, **more)


@pytest.fixture
def found() -> Found:
    nets, data = tiny_nets(), TinyData(60)
    paths = tuple(f"{i}.png" for i in range(60))
    return issues_of("dividemix", nets, data, DivideMixSettings(), paths=paths), nets, data


def test_probabilities_losses_and_clean_probabilities_are_those_of_the_nets(found: Found) -> None:
    issues, nets, data = found
    with torch.no_grad():
        probs = [torch.softmax(net.eval()(data.images), dim=1) for net in nets]
    for i, label in enumerate(data.labels.tolist()):
        mean = (probs[0][i] + probs[1][i]) / 2
        np.testing.assert_allclose(issues.pred_probs[i], mean, atol=1e-6)
        assert issues.label_score[i] == pytest.approx(mean[label].item(), abs=1e-6)
        assert issues.predicted[i] == int(mean.argmax())
        for k in range(2):
            assert issues.losses[k, i] == pytest.approx(-probs[k][i, label].log().item())
    for k in range(2):
        w, _ = clean_probability(normalise(torch.from_numpy(issues.losses[k])))
        np.testing.assert_array_equal(issues.clean_prob[k], w.numpy())


def test_clean_probabilities_are_at_least_plausibilities_where_training_keeps_plausible_labels(
    found: Found,
) -> None:
    issues, nets, data = found
    kept = issues_of("robust", nets, data, RobustSettings(keep_plausible=True))
    with torch.no_grad():
        probs = [torch.softmax(net.eval()(data.images), dim=1).tolist() for net in nets]
    plausible = np.mean([oracles.plausibility(net_probs, data.labels.tolist()) for net_probs in probs], axis=0)
    np.testing.assert_allclose(kept.clean_prob, np.maximum(issues.clean_prob, plausible), atol=1e-6)
    assert (kept.clean_prob > issues.clean_prob).any()


def test_a_label_is_flagged_where_the_loss_and_the_prediction_speak_against_it(found: Found) -> None:
    issues, _, data = found
    for i, label in enumerate(data.labels.tolist()):
        unlikely = (issues.clean_prob[0, i] + issues.clean_prob[1, i]) / 2 < 0.5
        assert issues.is_label_issue[i] == (unlikely and issues.predicted[i] != label)
    assert issues.noise_rate == issues.is_label_issue.sum() / 60


def test_flagged_labels_come_first_and_the_worst_first_of_all(found: Found) -> None:
    issues, _, _ = found
    ranked = sorted(range(60), key=lambda i: (not issues.is_label_issue[i], issues.label_score[i]))
    assert issues.order.tolist() == ranked


def test_the_noise_matrix_is_a_joint_distribution_with_the_flags_off_its_diagonal(found: Found) -> None:
    issues, _, data = found
    joint = np.zeros((3, 3))
    for i, label in enumerate(data.labels.tolist()):
        joint[label, issues.predicted[i] if issues.is_label_issue[i] else label] += 1 / 60
    np.testing.assert_allclose(issues.noise_matrix, joint)


def test_the_csv_holds_every_sample_in_that_order(found: Found) -> None:
    issues, _, data = found
    rows = list(csv.DictReader(io.StringIO(issues.to_csv())))
    assert [int(row["index"]) for row in rows] == issues.order.tolist()
    assert list(rows[0]) == [
        *("index", "path", "is_label_issue", "label_score", "given_label", "predicted_label", "predicted_prob"),
        *("wrong_prob", "clean_prob_1", "clean_prob_2", "loss_1", "loss_2"),
    ]
    for row in rows:
        i = int(row["index"])
        assert row["path"] == f"{i}.png"
        assert row["given_label"] == CLASSES[data.labels[i]]
        assert row["predicted_label"] == CLASSES[issues.predicted[i]]
        assert row["is_label_issue"] == str(bool(issues.is_label_issue[i]))
        assert float(row["label_score"]) == pytest.approx(issues.label_score[i], rel=1e-5)
        assert float(row["loss_2"]) == pytest.approx(issues.losses[1, i], rel=1e-5)


def test_the_index_is_that_of_the_data_as_it_was_given(found: Found) -> None:
    """Here every third row of a larger table."""
    issues, nets, data = found
    of_table = issues_of("dividemix", nets, data, DivideMixSettings(), rows=np.arange(60) * 3 + 1)
    rows = list(csv.DictReader(io.StringIO(of_table.to_csv())))
    assert [int(row["index"]) for row in rows] == [3 * i + 1 for i in issues.order]
    np.testing.assert_array_equal(of_table.order, issues.order)


def test_held_out_labels_make_the_score_a_calibrated_probability() -> None:
    """Oracle: judging/calibration.py, which has its own."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    probs = rng.dirichlet(np.ones(3), 300).astype(np.float32)
    opinion = probs[np.arange(300), labels].astype(np.float64)
    about: dict[str, Any] = {"classes": CLASSES, "paths": None, "labels": labels, "pred_probs": probs}
    about |= {"losses": -np.log(opinion)[None], "clean_prob": opinion[None], "sample_probs": probs}
    without, found = LabelIssues(**about), LabelIssues(**about, unseen=np.arange(150))
    assert np.array_equal(without.label_score, probs[np.arange(300), labels])
    assert without.expected == {"is_calibrated": False}  # an opinion is not a number to promise
    calibrated = calibrate(probs, labels, opinion, np.arange(150))
    assert found.label_score == pytest.approx(1 - calibrated.wrong_prob, abs=1e-6)
    expected = found.expected
    assert expected["is_calibrated"] is True
    assert expected["num_wrong"] == pytest.approx(calibrated.wrong_prob.sum(), abs=0.1)
    order, num_flagged = found.order, int(found.is_label_issue.sum())
    assert expected["precision_at"] == {
        name: pytest.approx(calibrated.wrong_prob[order[:k]].mean(), abs=1e-4)
        for name, k in (("10", 10), ("100", 100), ("flagged", num_flagged))
    }
    first = next(found.rows())
    assert first["wrong_prob"] == pytest.approx(1 - first["label_score"], abs=1e-6)
