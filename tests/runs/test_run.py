"""Runs against runs that nothing disturbed: resumed, they end in the same bytes, times excepted."""

import json
import math
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import NUM_TEST, NUM_TRAIN, SETTINGS, finish, save_toy, settled, toy_arrays, toy_job, trained, tree

from dividemix.api import train
from dividemix.engine.checkpoint import load_checkpoint
from dividemix.errors import InputError
from dividemix.judging.records import EpochRow
from dividemix.report.of_run import page_content, write_report
from dividemix.runs.checkpoints import save_last
from dividemix.runs.directory import RunDirectory
from dividemix.runs.run import Run


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "cross_entropy"},
        {"loss_window": 3},
        {"method": "robust", "loss_window": 3, "division": "per_class"},
    ],
)
def test_two_epochs_and_two_are_four(tmp_path: Path, changes: dict[str, Any]) -> None:
    trained(tmp_path / "straight", toy_job(tmp_path, **changes))
    trained(tmp_path / "halves", toy_job(tmp_path, **changes), num_epochs=2)
    halves = Run.load(tmp_path / "halves")
    assert halves.state.epoch == len(halves.rows) == 2
    assert not halves.finished
    finish(halves)
    assert halves.finished
    assert settled(tmp_path / "halves") == settled(tmp_path / "straight")


def test_a_run_that_is_resumed_on_another_machine_records_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=2)
    for name in ("another", "a third"):  # which finds the run finished
        monkeypatch.setattr("dividemix.runs.directory.processor_name", lambda name=name: name)
        run = Run.load(tmp_path / "run")
        run.train()
    first, second = run.directory.read_environments()
    assert second == first | {"processor": "another"}


@pytest.mark.slow
def test_every_epoch_on_its_own_makes_the_same_run(tmp_path: Path) -> None:
    trained(tmp_path / "straight", toy_job(tmp_path))
    trained(tmp_path / "single", toy_job(tmp_path), num_epochs=1)
    while not (run := Run.load(tmp_path / "single")).finished:
        with closing(run.epochs()) as epochs:
            next(epochs)
    assert list(run.epochs()) == []
    write_report(run)
    assert settled(tmp_path / "single") == settled(tmp_path / "straight")


def test_the_seed_makes_the_run(tmp_path: Path) -> None:
    """The comparison of bytes above can fail: another seed gives other ones."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trained(tmp_path / name, toy_job(tmp_path, seed=seed))
    assert settled(tmp_path / "a") == settled(tmp_path / "b")
    a, c = settled(tmp_path / "a"), settled(tmp_path / "c")
    for name in ("metrics.jsonl", "noise.json", "config.yaml"):
        assert a[name] != c[name]
    weights = [next(last.glob("*.safetensors")).read_bytes() for last in tmp_path.glob("[ac]/checkpoints/last")]
    assert weights[0] != weights[1]


def test_a_finished_run_has_nothing_left_to_train(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path))
    before = tree(tmp_path / "run")
    assert list(Run.load(tmp_path / "run").epochs()) == []
    assert tree(tmp_path / "run") == before


def test_metrics_and_summary_show_what_the_epochs_did(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path))
    written = rows(tmp_path / "run")
    assert written == run.rows
    assert [row["epoch"] for row in written] == [1, 2, 3, 4]
    assert [row["phase"] for row in written] == ["warmup", "warmup", "mix", "mix"]
    for row in written:
        assert row["seconds"] > 0
        assert row["cpu_seconds"] > 0
        assert row["test_acc"] * NUM_TEST / 100 == pytest.approx(round(row["test_acc"] * NUM_TEST / 100))
        names, numbers = (
            {"test_acc_by_net"},
            {"epoch", "phase", "selects", "seconds", "cpu_seconds", "profile", "test_acc"},
        )
        terms, figures = {"loss"}, {}
        if row["phase"] == "mix":
            names |= {"num_labeled", "clean_auc", "loss_histograms"}
            numbers |= {"num_divided"}
            counts = [math.ceil(number / run.job.settings.batch_size) for number in row["num_labeled"]]
            times = [row["epoch"] - 3 + step / count for count in counts for step in range(count)]  # since the warm-up
            terms, figures = {"loss_x", "loss_u", "loss_reg"}, {"lambda_u": pytest.approx(25 * np.mean(times) / 16)}
            assert row["num_divided"] == NUM_TRAIN
            assert [sum(histogram["counts"]) for histogram in row["loss_histograms"]] == [NUM_TRAIN] * 2
        assert row["selects"] == (row["phase"] == "mix")
        assert set(row["losses"]) == terms
        assert row["figures"] == figures
        assert all(len(values) == 2 for values in (*(row[name] for name in names), *row["losses"].values()))
        assert set(row) == {"losses", "figures", *names, *numbers}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary.pop("digest")
    assert summary.pop("probs_digest")
    assert summary == run.summary() | {"noise_rate": run.label_issues().noise_rate}
    assert summary["final_acc"] == written[-1]["test_acc"]
    assert summary["best_acc"] == max(row["test_acc"] for row in written)
    assert summary["last_acc"] == pytest.approx(np.mean([row["test_acc"] for row in written]))
    assert summary["clean_auc"] == pytest.approx(np.mean(written[-1]["clean_auc"]))
    assert summary["noise"]["nominal"] == 0.4
    recall = summary["class_recall"]
    assert list(recall) == ["0", "1", "2", "3"]
    assert np.mean(list(recall.values())) == pytest.approx(summary["final_acc"])  # the classes are equally many
    files = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.*") if path.is_file()}
    assert {"config.yaml", "env.json", "noise.json", "metrics.jsonl", "summary.json"} < files
    assert {"checkpoints/last/checkpoint.json", "checkpoints/best/checkpoint.json"} < files
    assert {"label_issues.csv", "pred_probs.npy", "report.html", "model/config.json", "model/model.safetensors"} < files


def test_a_row_of_our_recipe_has_the_estimated_noise_and_the_weight_that_follows_from_it(tmp_path: Path) -> None:
    """Oracle: lambda_u grows in proportion from nothing at 25 % noise to all of it at 50 %."""
    trained(tmp_path / "run", toy_job(tmp_path, method="robust"))
    *warmup, third, fourth = rows(tmp_path / "run")
    assert [row["figures"] for row in warmup] == [{}, {}]
    for row in (third, fourth):
        assert set(row["figures"]) == {"noise_rate", "lambda_u", "lambda_u_full"}
        share = min(1.0, max(0.0, 4 * row["figures"]["noise_rate"] - 1))
        assert row["figures"]["lambda_u_full"] == pytest.approx(25 * share)


def test_the_best_checkpoint_is_that_of_the_epoch_that_tested_best(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path, epochs=6, lr=0.05))
    best = None
    for row in run.epochs():
        assert row["test_acc"] is not None
        if best is None or row["test_acc"] > best:
            best, probs = row["test_acc"], run.test_probs()
    loaded = Run.load(tmp_path / "run")
    loaded.load_best()
    np.testing.assert_array_equal(loaded.test_probs(), probs)
    assert load_checkpoint(loaded.directory.best)[1]["test_acc"] == best


def test_if_epochs_are_not_tested_the_kept_model_still_is(tmp_path: Path) -> None:
    """The oracle is the same run with a test after every epoch: it ends with the same model and the same scores."""
    jobs = {name: toy_job(tmp_path, holdout=0.2, test_epochs=name == "each") for name in ("each", "end")}
    each, end = (trained(tmp_path / name, job) for name, job in jobs.items())
    assert [row["test_acc"] for row in end.rows] == [None] * 4
    kept = each.rows[each.kept_epoch - 1]
    assert end.summary()["kept_acc"] == each.summary()["kept_acc"] == kept["test_acc"]
    assert end.summary()["class_recall"] == each.summary()["class_recall"]
    assert end.summary()["final_acc"] is end.summary()["best_acc"] is end.summary()["last_acc"] is None
    assert [row["val_acc"] for row in end.rows] == [row["val_acc"] for row in each.rows]
    shown = page_content(end).rows
    assert [row["test_acc"] for row in shown if row["test_acc"] is not None] == [kept["test_acc"]]


def test_without_test_images_there_is_nothing_to_test(tmp_path: Path) -> None:
    save_toy(tmp_path, x_test=None, y_test=None)
    run = trained(tmp_path / "run", toy_job(tmp_path))
    assert [row["test_acc"] for row in run.rows] == [None] * 4
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final_acc"] is None
    with pytest.raises(InputError, match="no test images"):
        run.test_probs()


def test_labels_as_given_have_no_noise_to_report(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path, noise="none"))
    assert "noise" not in run.summary()
    assert not (tmp_path / "run" / "noise.json").exists()
    assert all("clean_auc" not in row for row in run.rows)


def test_true_labels_in_the_file_score_the_division(tmp_path: Path) -> None:
    true = toy_arrays()["y_train"]
    save_toy(tmp_path, y_train=np.where(np.arange(NUM_TRAIN) < 10, (true + 1) % 4, true), y_true=true)
    run = trained(tmp_path / "run", toy_job(tmp_path, noise="none"))
    aucs = run.rows[-1]["clean_auc"]
    assert aucs is not None
    assert all(0 <= auc <= 1 for auc in aucs)
    with pytest.raises(InputError, match="noisy labels already"):
        Run.create(tmp_path / "other", toy_job(tmp_path))


def test_an_unknown_method_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown method 'magic': the methods are dividemix, robust, cross_entropy"):
        Run.create(tmp_path / "run", replace(toy_job(tmp_path), method="magic", data="nowhere.npz"))
    assert not (tmp_path / "run").exists()


def test_a_best_checkpoint_that_was_never_written_is_repaired(tmp_path: Path) -> None:
    """As if the process had died between the last checkpoint and the best one."""
    path = tmp_path / "run"
    trained(path, toy_job(tmp_path, epochs=1, warmup_epochs=1))
    kept = tree(path / "checkpoints" / "best")
    shutil.rmtree(path / "checkpoints" / "best")
    run = Run.load(path)
    assert list(run.epochs()) == []
    assert tree(path / "checkpoints" / "best") == kept
    run.load_best()


def test_a_best_checkpoint_of_another_epoch_is_not_taken_for_the_best(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", toy_job(tmp_path))
    run.rows[0]["test_acc"], run.rows[1]["test_acc"] = 100.0, 0.0
    first_is_saved = load_checkpoint(run.directory.best)[1]["epoch"] == 1
    run.rows[0 if not first_is_saved else 1]["test_acc"] = 101.0
    with pytest.raises(InputError, match="not of the best epoch; resume the run"):
        run.load_best()


def test_a_best_checkpoint_that_is_missing_is_no_reason_to_start_again(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", toy_job(tmp_path))
    with pytest.raises(InputError, match=r"no epoch is trained yet; resume the run$"):
        run.load_best()
    run.train()
    shutil.rmtree(run.directory.best)
    with pytest.raises(InputError, match=r"no checkpoint here: .*; use the last one instead$"):
        Run.load(tmp_path / "run").load_best()
    shutil.rmtree(run.directory.last)
    with pytest.raises(InputError, match=r"no checkpoint here: .*; start again: move the run directory away, or train"):
        Run.load(tmp_path / "run")


def test_a_run_that_is_being_trained_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = Run.create(path, toy_job(tmp_path))
    with closing(run.epochs()) as epochs:
        next(epochs)
        with pytest.raises(InputError, match="another process is training"):
            Run.create(path, toy_job(tmp_path), overwrite=True)
        assert len(list(epochs)) == 3
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".run")]


def test_what_was_skipped_is_remembered_with_data_from_python(tmp_path: Path) -> None:
    arrays = toy_arrays()
    (tmp_path / "broken.png").write_bytes(b"no image")
    images = [*arrays["x_train"], tmp_path / "broken.png"]
    labels = [*arrays["y_train"], 0]
    run = train(images, labels, out=tmp_path / "run", progress=False, preset="fashion", **SETTINGS)
    assert run.summary()["num_skipped"] == 1
    assert Run.load(tmp_path / "run").summary()["num_skipped"] == 1
    issues = Run.load(tmp_path / "run").label_issues()
    np.testing.assert_array_equal(issues.pred_probs, run.label_issues().pred_probs)


def test_a_run_that_another_process_has_trained_meanwhile_is_left_alone(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path), num_epochs=1)
    first, second = Run.load(tmp_path / "run"), Run.load(tmp_path / "run")
    first.train()
    before = settled(tmp_path / "run")
    with pytest.raises(InputError, match="another process has changed it meanwhile"):
        next(second.epochs())
    assert settled(tmp_path / "run") == before


def test_a_run_whose_last_checkpoint_fails_does_not_look_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(
        directory: RunDirectory, tensors: dict[str, torch.Tensor], rows: list[EpochRow], *_: Any, **more: Any
    ) -> None:
        if len(rows) == 4:
            raise OSError(28, "No space left on device")
        save_last(directory, tensors, rows, *_, **more)

    monkeypatch.setattr("dividemix.runs.run.save_last", full)
    with pytest.raises(OSError, match="No space left"):
        trained(tmp_path / "run", toy_job(tmp_path))
    assert not (tmp_path / "run" / "summary.json").exists()
    monkeypatch.undo()
    finish(Run.load(tmp_path / "run"))
    assert settled(tmp_path / "run") == settled(trained(tmp_path / "other", toy_job(tmp_path)).directory.path)


def test_a_run_does_not_train_into_another_that_took_its_place(tmp_path: Path) -> None:
    first = Run.create(tmp_path / "run", toy_job(tmp_path, lr=0.01))
    Run.create(tmp_path / "run", toy_job(tmp_path, lr=0.3), overwrite=True)
    before = tree(tmp_path / "run")
    with pytest.raises(InputError, match="another process has changed it meanwhile"):
        first.train()
    assert tree(tmp_path / "run") == before
