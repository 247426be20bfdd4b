"""Runs on small trees of the official layouts: what is measured, kept, saved, and predicted by the saved model.

Oracles: a loop over the rows, scores by hand, and the probabilities that the run's own nets give.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from official_trees import make_clothing1m, make_webvision
from sklearn.metrics import roc_auc_score
from toys import finish, settled

from dividemix.algorithm.ensemble import predict_probs
from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.judging.metrics import metrics_row
from dividemix.methods import find_method
from dividemix.methods.loop import fit
from dividemix.model.export import export
from dividemix.model.model import Model
from dividemix.planning.job import Job
from dividemix.runs.run import Run

TINY: dict[str, Any] = {
    "net": "small_cnn",
    "net_width": 2,
    "batch_size": 4,
    "epochs": 4,
    "warmup_epochs": 1,
    "image_size": 16,
    "crop_size": 12,
    "crop_padding": 0,
    "lambda_u": 0.0,
    "labeled_only": True,
    "device": "cpu",
}
pytestmark = pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")


def clothing1m(root: Path, **changes: Any) -> Job:
    if not root.exists():
        make_clothing1m(root, num_train=42)
    return Job.of(TINY | {"data": "clothing1m", "root": str(root), "balanced_batches": 3} | changes)


def webvision(root: Path, **changes: Any) -> Job:
    return Job.of(TINY | {"data": "webvision", "root": str(root)} | changes)


def test_clothing1m_keeps_the_epoch_that_is_best_on_clean_validation_images(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", clothing1m(tmp_path / "data"))
    rows = list(run.epochs())
    best = max((row for row in rows if row["phase"] == "mix"), key=lambda row: (row["val_acc"], row["epoch"]))
    assert all(row["val_is_clean"] and row["num_val"] == 14 for row in rows)
    assert run.kept_epoch == best["epoch"]
    summary = run.summary()
    assert (summary["kept_acc"], summary["kept_val_acc"]) == (best["test_acc"], best["val_acc"])
    assert all(row["num_divided"] == 12 for row in rows[1:])
    assert all(sum(histogram["counts"]) == 12 for row in rows[1:] for histogram in row["loss_histograms"])
    issues = run.label_issues()
    assert issues.clean_prob.shape == (2, 42)
    assert np.isfinite(issues.clean_prob).all()


@pytest.mark.slow
def test_clothing1m_resumed_after_each_epoch_leaves_the_same_bytes(tmp_path: Path) -> None:
    job = clothing1m(tmp_path / "data")
    finish(Run.create(tmp_path / "straight", job))
    epochs = Run.create(tmp_path / "halted", job).epochs()
    next(epochs)
    epochs.close()
    for _ in range(3):
        epochs = Run.load(tmp_path / "halted").epochs()
        next(epochs, None)
        epochs.close()
    finish(Run.load(tmp_path / "halted"))
    assert settled(tmp_path / "halted") == settled(tmp_path / "straight")


def test_figures_of_a_division_are_of_the_samples_that_it_divided(tmp_path: Path) -> None:
    """The AUC by scikit-learn, and counts of wrong labels, over the samples with a clean probability."""
    run = Run.create(tmp_path / "run", clothing1m(tmp_path / "data", noise="symmetric:0.5"))
    material = run.material
    assert material.true_labels is not None
    is_wrong = material.train.labels.numpy() != material.true_labels
    num_compared = 0
    for report in fit(find_method("dividemix"), run.state, material.sets, run.job.settings):
        row = metrics_row(report, run.state.nets, material)
        for k, division in enumerate(report.divisions):
            prob = division.clean_prob.numpy()
            drawn = [i for i in range(42) if not np.isnan(prob[i])]
            assert len(drawn) == 12
            assert sum(row["loss_histograms"][k]["wrong_counts"]) == is_wrong[drawn].sum()
            assert row["clean_auc"] is not None
            assert row["clean_auc"][k] == pytest.approx(roc_auc_score(~is_wrong[drawn], prob[drawn]))
            num_compared += 1
    assert num_compared == 6


def test_webvision_is_tested_on_both_sets_by_its_first_and_its_first_five_guesses(tmp_path: Path) -> None:
    make_webvision(tmp_path / "data")
    run = Run.create(tmp_path / "run", webvision(tmp_path / "data"))
    rows = list(run.epochs())
    assert "val_acc" not in rows[-1]
    assert run.kept_epoch == 4
    assert run.material.test is not None
    other = rows[-1]["other_tests"]["ilsvrc12"]
    for acc, acc_of_five, images in (
        (rows[-1]["test_acc"], rows[-1]["test_top5"], run.material.test),
        (other["acc"], other["top5"], run.material.other_tests["ilsvrc12"]),
    ):
        probs = predict_probs(run.state.nets, images).mean(dim=0)
        labels = images.labels.tolist()
        orders = [sorted(range(7), key=[-prob for prob in row].__getitem__) for row in probs.tolist()]
        top1 = sum(order[0] == label for order, label in zip(orders, labels, strict=True))
        top5 = sum(label in order[:5] for order, label in zip(orders, labels, strict=True))
        assert acc == pytest.approx(100 * top1 / len(labels))
        assert acc_of_five == pytest.approx(100 * top5 / len(labels))
    summary = run.summary()
    assert "kept_val_acc" not in summary
    assert summary["kept_acc"] == rows[-1]["test_acc"]
    assert summary["test_top5"] == rows[-1]["test_top5"]
    assert summary["other_tests"] == rows[-1]["other_tests"]


def test_evaluate_says_how_well_each_set_is_recognised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_webvision(tmp_path / "data")
    (row,) = Run.create(tmp_path / "run", webvision(tmp_path / "data", epochs=1)).epochs()
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    other = row["other_tests"]["ilsvrc12"]
    for begin, acc, top5, acc_by_net in (
        ("", row["test_acc"], row["test_top5"], row["test_acc_by_net"]),
        ("ilsvrc12, 7 images: ", other["acc"], other["top5"], other["acc_by_net"]),
    ):
        alone = ", ".join(f"{accuracy:.2f} %" for accuracy in acc_by_net)
        figures = f"accuracy {acc:.2f} %, top-5 {top5:.2f} %"
        assert f"{begin}{figures} ({alone} by each network alone)" in lines


def test_without_ilsvrc12_its_columns_are_not_there(tmp_path: Path) -> None:
    make_webvision(tmp_path / "data", num_ilsvrc12=0)
    run = Run.create(tmp_path / "run", webvision(tmp_path / "data", epochs=1))
    (row,) = run.epochs()
    assert "other_tests" not in row
    assert "ilsvrc12" not in str(row)
    assert "imagenet/val" in (tmp_path / "run" / "skipped.csv").read_text()


@pytest.fixture
def cropping(tmp_path: Path) -> Run:
    """A finished run whose nets get 12 x 12 pixels of images of 16 x 16."""
    run = Run.create(tmp_path / "run", clothing1m(tmp_path / "data", epochs=2))
    run.train()
    return run


def test_the_saved_model_predicts_what_the_run_does(cropping: Run, tmp_path: Path) -> None:
    """From files, and from arrays in the size that the files are read at."""
    assert cropping.material.test is not None
    expected = cropping.test_probs().mean(axis=0)
    model = Model.from_pretrained(tmp_path / "run")
    files = [tmp_path / "data" / f"images/2/{i % 10:02d}/{1000 + i},{i}.jpg" for i in range(14)]
    np.testing.assert_allclose(model.predict_proba(files), expected, atol=1e-6)
    arrays = cropping.material.test.pixels(np.arange(14))
    assert arrays.shape == (14, 16, 16, 3)
    np.testing.assert_allclose(model.predict_proba(arrays), expected, atol=1e-6)
    edges = arrays.copy()
    edges[:, :2], edges[:, -2:], edges[:, :, :2], edges[:, :, -2:] = 0, 255, 255, 0
    np.testing.assert_array_equal(model.predict_proba(edges), model.predict_proba(arrays))  # only the middle counts
    with pytest.raises(InputError, match="16, 16, 3"):
        model.predict_proba(arrays[:, 2:-2, 2:-2])


@pytest.mark.slow
def test_the_exported_model_predicts_what_the_run_does(cropping: Run, tmp_path: Path) -> None:
    assert cropping.material.test is not None
    export(tmp_path / "run", tmp_path / "model.pt2", "pt2")
    program = torch.export.load(tmp_path / "model.pt2").module()
    images = torch.from_numpy(cropping.material.test.pixels(np.arange(14)))
    np.testing.assert_allclose(program(images).detach().numpy(), cropping.test_probs().mean(axis=0), atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"crop_size": 17}, "crop_size is 17: the images are 16 x 16"),
        ({"holdout": 0.5}, r"holdout is 0\.5: clothing1m has its own validation images; set holdout to 0"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Run.create(tmp_path / "run", clothing1m(tmp_path / "data", **changes))
