"""A run on vectors from its start to its model: the oracles are scikit-learn's data, and a second way to the same."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.datasets import make_blobs
from toys import finish, settled, trained

import dividemix
from dividemix.cli import main
from dividemix.errors import InputError
from dividemix.judging.label_issues import LabelIssues
from dividemix.model import EXPORT_FORMATS
from dividemix.model.export import export
from dividemix.model.model import Model
from dividemix.model.vector_files import read_vectors
from dividemix.planning.job import Job
from dividemix.runs.run import Run

X, Y = make_blobs(160, n_features=6, centers=4, cluster_std=1.0, random_state=0)
X = X.astype(np.float32)
SETTINGS: dict[str, Any] = {"net": "mlp", "net_width": 8, "batch_size": 8, "epochs": 4, "warmup_epochs": 2}
SETTINGS |= {"device": "cpu", "method": "dividemix", "holdout": 0.1}


def save(folder: Path) -> Path:
    path = folder / "v.npz"
    np.savez(path, features=X[:120], labels=Y[:120], test_features=X[120:], test_labels=Y[120:])
    return path


def job(folder: Path, **changes: Any) -> Job:
    return Job.of({"data": str(save(folder)), "noise": "symmetric:0.3"} | SETTINGS | changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("vectors")
    return trained(folder / "run", job(folder))


def test_it_learns_in_spite_of_the_noise_and_finds_it(run: Run) -> None:
    assert run.summary()["kept_acc"] > 90  # type: ignore[operator]
    issues: LabelIssues = run.label_issues()
    assert run.material.true_labels is not None
    wrong = run.material.labels != run.material.true_labels
    assert wrong[issues.order[: int(wrong.sum())]].mean() > 0.8


def test_two_epochs_and_two_more_are_four(tmp_path: Path, run: Run) -> None:
    half = trained(tmp_path / "half", job(tmp_path), 2)
    finish(Run.load(half.directory.path))
    here, there = settled(tmp_path / "half"), settled(run.directory.path)
    assert here.keys() == there.keys()
    # Both name the data's folder.
    assert [name for name in here if here[name] != there[name]] == ["config.yaml", "report.html"]


def test_the_model_takes_raw_vectors(tmp_path: Path, run: Run) -> None:
    model = Model.from_pretrained(run.directory.path, device="cpu")
    assert model.kind == "vectors"
    with_run = run.predict_proba(X[120:])
    np.testing.assert_allclose(with_run, run.test_probs().mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X[120:].tolist()), with_run, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(torch.from_numpy(X[120:])), with_run, atol=1e-6)
    assert model.predict_proba(X[:0]).shape == (0, 4)
    model.save_pretrained(tmp_path)
    np.testing.assert_array_equal(Model.from_pretrained(tmp_path, "cpu").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (X[:, :5], "vectors has vectors of 5 numbers, but the training vectors have 6"),
        (X[0, :5], r"vectors has shape \(5,\)"),
        (np.full((2, 6), np.nan), "vectors has NaN or an infinite number in row 0"),
        (["a.png"], "vectors has lists of different lengths, or other things than numbers"),
    ],
)
def test_other_things_are_refused_in_one_line(run: Run, vectors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run.predict_proba(vectors)
    assert "\n" not in str(caught.value)


def test_exported_it_takes_raw_vectors_too(tmp_path: Path, run: Run) -> None:
    for kind in EXPORT_FORMATS:
        assert export(run.directory.path, tmp_path / f"m.{kind}", kind) < 1e-5
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    (probs,) = session.run(None, {"vectors": X[:7]})
    np.testing.assert_allclose(probs, run.predict_proba(X[:7]), atol=1e-5)


def test_the_page_has_no_pictures_and_says_what_the_samples_are(run: Run) -> None:
    page = (run.directory.path / "report.html").read_text()
    assert "6 numbers each" in page
    assert '"map":{"points":[[' in page
    assert "data:image" not in page
    assert "pixels, " not in page


def test_predict_and_evaluate_on_the_command_line(tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X[:9])
    np.savez(tmp_path / "x.npz", features=X[:9])
    path = str(run.directory.path)
    rows = []
    for name in ("x.npy", "x.npz"):
        assert main(["predict", path, str(tmp_path / name), "--overwrite", "--out", str(tmp_path / "p.csv")]) == 0
        rows.append([row[1:] for row in csv.reader((tmp_path / "p.csv").open())])
    assert rows[0] == rows[1]
    assert rows[0][0] == ["index", "predicted_label", "predicted_prob", "prob_0", "prob_1", "prob_2", "prob_3"]
    assert [row[0] for row in rows[0][1:]] == [str(i) for i in range(9)]
    np.testing.assert_allclose(
        [[float(p) for p in row[3:]] for row in rows[0][1:]], run.predict_proba(X[:9]), atol=1e-5
    )
    assert "9 vectors predicted" in capsys.readouterr().err
    assert main(["evaluate", path]) == 0
    assert "40 test vectors" in capsys.readouterr().out
    (tmp_path / "a.png").write_bytes(b"x")
    for wrong in ("a.png", "none.npy"):
        assert main(["predict", path, str(tmp_path / wrong)]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_from_python_the_run_keeps_a_copy_and_can_be_loaded(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = dividemix.train(X[:120], Y[:120], test=X[120:], test_labels=Y[120:], out=out, progress=False, **SETTINGS)
    again = Run.load(out)
    assert again.material.digest == run.material.digest
    np.testing.assert_array_equal(again.predict_proba(X), run.predict_proba(X))
    assert (out / "report.html").is_file()


def test_the_planner_chooses_a_net_for_vectors(tmp_path: Path) -> None:
    run = dividemix.train(X, Y, epochs=1, out=tmp_path / "run", progress=False)
    assert (run.job.method, run.job.settings.net) == ("robust_vectors", "fourier")
    assert not [choice for choice in run.choices if choice.name in ("crop_padding", "image_size")]


def test_the_recipe_for_vectors_resumes_finds_wrong_labels_and_exports(tmp_path: Path) -> None:
    """What users get on vectors: from its start to its model, stopped and resumed."""
    defaults = {"method": "robust_vectors", "net": "fourier", "net_width": 16, "epochs": 8, "holdout": 0.0}
    wanted = Job.of({"data": str(save(tmp_path)), "noise": "symmetric:0.3", "device": "cpu"} | defaults)
    straight, half = trained(tmp_path / "straight", wanted), trained(tmp_path / "half", wanted, 5)
    finish(Run.load(half.directory.path))
    assert settled(tmp_path / "half") == settled(tmp_path / "straight")
    assert straight.summary()["kept_acc"] > 90  # type: ignore[operator]
    issues, true = straight.label_issues(), straight.material.true_labels
    assert true is not None
    wrong = straight.material.labels != true
    assert wrong[issues.order[: int(wrong.sum())]].mean() > 0.9
    assert (tmp_path / "straight" / "report.html").is_file()
    assert export(tmp_path / "straight", tmp_path / "m.onnx", "onnx") < 1e-5


def test_files_from_python(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    mask = dividemix.find_label_issues(tmp_path / "x.npy", tmp_path / "y.npy", **SETTINGS)
    assert mask.shape == (160,)


def test_a_folder_is_not_a_file_of_vectors(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_vectors(tmp_path)
    takes = "this model takes vectors: give .npy, .npz, .parquet, .arrow or .feather files"
    assert str(caught.value) == f"{tmp_path} is a folder: {takes}"
