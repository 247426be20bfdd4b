"""Runs against runs that nothing disturbed: whatever stops one, resumed it ends in the same bytes, times excepted."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from faults import dying
from toys import FLAGS, NUM_TEST, NUM_TRAIN, SETTINGS, save_toy, settled, toy_arrays, tree

from dividemix.api import train
from dividemix.cli import main
from dividemix.engine.checkpoint import load_checkpoint
from dividemix.errors import InputError
from dividemix.planning.job import Job
from dividemix.runs.checkpoints import save_last
from dividemix.runs.run import Run


@pytest.fixture(autouse=True)
def _one_thread():
    """Sums may depend on the number of threads, and so bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def job(tmp_path):
    """A job on the toy data, which changes turn into another one."""
    data = str(save_toy(tmp_path))

    def make(**changes):
        return Job.of({"data": data, "noise": "symmetric:0.4"} | SETTINGS | changes)

    return make


def trained(path, job, num_epochs=None):
    """The run after so many epochs (all)."""
    run = Run.create(path, job)
    with closing(run.train()) as epochs:
        for _ in itertools.islice(epochs, num_epochs):
            pass
    return run


def rows(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("changes", [{}, {"method": "cross_entropy"}, {"loss_window": 3, "division": "per_class"}])
def test_two_epochs_and_two_are_four(tmp_path, job, changes):
    trained(tmp_path / "straight", job(**changes))
    trained(tmp_path / "halves", job(**changes), num_epochs=2)
    halves = Run.load(tmp_path / "halves")
    assert halves.state.epoch == len(halves.rows) == 2
    assert not halves.finished
    for _ in halves.train():
        pass
    assert halves.finished
    assert settled(tmp_path / "halves") == settled(tmp_path / "straight")


@pytest.mark.slow
def test_every_epoch_on_its_own_makes_the_same_run(tmp_path, job):
    trained(tmp_path / "straight", job())
    trained(tmp_path / "single", job(), num_epochs=1)
    while not (run := Run.load(tmp_path / "single")).finished:
        with closing(run.train()) as epochs:
            next(epochs)
    assert list(run.train()) == []
    assert settled(tmp_path / "single") == settled(tmp_path / "straight")


def test_the_seed_makes_the_run(tmp_path, job):
    """The comparison of bytes above can fail: another seed gives other ones."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trained(tmp_path / name, job(seed=seed))
    assert settled(tmp_path / "a") == settled(tmp_path / "b")
    a, c = settled(tmp_path / "a"), settled(tmp_path / "c")
    for name in ("metrics.jsonl", "noise.json", "config.yaml"):
        assert a[name] != c[name]
    weights = [next(last.glob("*.safetensors")).read_bytes() for last in tmp_path.glob("[ac]/checkpoints/last")]
    assert weights[0] != weights[1]


def test_a_finished_run_has_nothing_left_to_train(tmp_path, job):
    trained(tmp_path / "run", job())
    before = tree(tmp_path / "run")
    assert list(Run.load(tmp_path / "run").train()) == []
    assert tree(tmp_path / "run") == before


def test_metrics_and_summary_tell_what_the_epochs_did(tmp_path, job):
    run = trained(tmp_path / "run", job())
    written = rows(tmp_path / "run")
    assert written == run.rows
    assert [row["epoch"] for row in written] == [1, 2, 3, 4]
    assert [row["phase"] for row in written] == ["warmup", "warmup", "mix", "mix"]
    for row in written:
        assert row["seconds"] > 0
        assert row["test_acc"] * NUM_TEST / 100 == pytest.approx(round(row["test_acc"] * NUM_TEST / 100))
        names, numbers = ["test_acc_by_net", "loss"], []
        if row["phase"] == "mix":
            names = ["test_acc_by_net", "loss_x", "loss_u", "loss_reg", "num_labeled", "clean_auc", "loss_histograms"]
            numbers = ["num_divided", "noise_rate", "lambda_u"]
            assert row["num_divided"] == NUM_TRAIN
            assert [sum(histogram["counts"]) for histogram in row["loss_histograms"]] == [NUM_TRAIN] * 2
        assert all(len(row[name]) == 2 for name in names)
        assert set(row) == {"epoch", "phase", "seconds", "profile", "test_acc", *names, *numbers}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary == run.summary() | {"noise_rate": run.label_issues().noise_rate}
    assert summary["final_acc"] == written[-1]["test_acc"]
    assert summary["best_acc"] == max(row["test_acc"] for row in written)
    assert summary["last_acc"] == pytest.approx(np.mean([row["test_acc"] for row in written]))
    assert summary["clean_auc"] == pytest.approx(np.mean(written[-1]["clean_auc"]))
    assert summary["noise"]["nominal"] == 0.4
    recall = summary["class_recall"]
    assert list(recall) == ["0", "1", "2", "3"]
    assert np.mean(list(recall.values())) == pytest.approx(summary["final_acc"])  # the classes are equally many
    names = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.*") if path.is_file()}
    assert {"config.yaml", "env.json", "noise.json", "metrics.jsonl", "summary.json"} < names
    assert {"checkpoints/last/checkpoint.json", "checkpoints/best/checkpoint.json"} < names
    assert {"label_issues.csv", "pred_probs.npy", "report.html", "model/config.json", "model/model.safetensors"} < names


def test_the_best_checkpoint_is_that_of_the_epoch_that_tested_best(tmp_path, job):
    run = Run.create(tmp_path / "run", job(epochs=6, lr=0.05))
    best = None
    for row in run.train():
        if best is None or row["test_acc"] > best:
            best, probs = row["test_acc"], run.test_probs()
    loaded = Run.load(tmp_path / "run")
    loaded.load_best()
    np.testing.assert_array_equal(loaded.test_probs(), probs)
    assert load_checkpoint(loaded.directory.best)[1]["test_acc"] == best


def test_without_test_images_there_is_nothing_to_test(tmp_path, job):
    save_toy(tmp_path, x_test=None, y_test=None)
    run = trained(tmp_path / "run", job())
    assert [row["test_acc"] for row in run.rows] == [None] * 4
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["final_acc"] is None
    with pytest.raises(InputError, match="no test images"):
        run.test_probs()


def test_labels_as_given_have_no_noise_to_tell(tmp_path, job):
    run = trained(tmp_path / "run", job(noise="none"))
    assert "noise" not in run.summary()
    assert not (tmp_path / "run" / "noise.json").exists()
    assert all("clean_auc" not in row for row in run.rows)


def test_true_labels_in_the_file_score_the_division(tmp_path, job):
    true = toy_arrays()["y_train"]
    save_toy(tmp_path, y_train=np.where(np.arange(NUM_TRAIN) < 10, (true + 1) % 4, true), y_true=true)
    run = trained(tmp_path / "run", job(noise="none"))
    assert all(0 <= auc <= 1 for auc in run.rows[-1]["clean_auc"])
    with pytest.raises(InputError, match="noisy labels already"):
        Run.create(tmp_path / "other", job())


@pytest.mark.slow
def test_a_process_that_dies_anywhere_in_an_epoch_resumes_to_the_same_bytes(tmp_path, job):
    """Every file operation of the second of two epochs, summary included, is once the last one."""
    short = job(epochs=2, method="cross_entropy")
    trained(tmp_path / "straight", short)
    expected = settled(tmp_path / "straight")
    trained(tmp_path / "half", short, num_epochs=1)
    for at in itertools.count():
        path = tmp_path / str(at)
        shutil.copytree(tmp_path / "half", path)
        run = Run.load(path)
        with dying(path, at) as fault:
            for _ in run.train():
                pass
        for _ in Run.load(path).train():
            pass
        assert settled(path) == expected, f"after dying at operation {at}"
        if not fault.happened:
            break
    assert at > 15


@pytest.mark.slow
def test_a_process_that_dies_while_creating_leaves_a_run_or_none(tmp_path, job):
    for at in itertools.count():
        path = tmp_path / str(at) / "run"
        path.parent.mkdir()
        with dying(path.parent, at) as fault:
            Run.create(path, job(method="cross_entropy"))
        run = Run.load(path) if path.exists() else Run.create(path, job(method="cross_entropy"))
        assert run.state.epoch == 0
        assert [file.name for file in path.parent.iterdir()] == ["run"]
        if not fault.happened:
            break
    assert at > 15


def with_other_images(path):
    images = toy_arrays()["x_train"].copy()
    images[0, 0, 0] += 1
    save_toy(path, x_train=images)


def with_other_labels(path):
    save_toy(path, y_train=toy_arrays()["y_train"][::-1].copy())


def with_fewer_samples(path):
    save_toy(path, x_train=toy_arrays()["x_train"][:-4], y_train=toy_arrays()["y_train"][:-4])


@pytest.mark.parametrize("change", [with_other_images, with_other_labels, with_fewer_samples])
def test_changed_data_is_noticed(tmp_path, job, change):
    trained(tmp_path / "run", job(), num_epochs=1)
    before = tree(tmp_path / "run")
    change(tmp_path)
    with pytest.raises(InputError, match="other data"):
        Run.load(tmp_path / "run")
    assert tree(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0.5),
        ("seed", 7),
        ("epochs", 5),
        ("net_width", 3),
        ("flip", False),
        ("noise", "symmetric:0.2"),
        ("method", "cross_entropy"),
        ("limit_train", 8),
        ("division", "per_class"),
    ],
)
def test_another_configuration_is_refused_by_name(tmp_path, job, name, value):
    trained(tmp_path / "run", job(), num_epochs=1)
    with pytest.raises(InputError, match=rf"run: the run there has {name} \S+, not {value}"):
        Run.load(tmp_path / "run", job(**{name: value}))


def test_the_device_may_change(tmp_path, job):
    trained(tmp_path / "run", job(), num_epochs=1)
    assert Run.load(tmp_path / "run", job(device="auto")).state.epoch == 1


@pytest.mark.parametrize("changes", [{"net_width": 3}, {"method": "cross_entropy"}, {"lr": 0.5}])
def test_a_checkpoint_of_another_configuration_is_refused(tmp_path, job, changes):
    trained(tmp_path / "run", job(), num_epochs=1)
    trained(tmp_path / "other", job(**changes), num_epochs=1)
    for here, there in (("run", "other"), ("other", "run")):
        path = tmp_path / f"{here} with {there}"
        shutil.copytree(tmp_path / here, path)
        shutil.rmtree(path / "checkpoints")
        shutil.copytree(tmp_path / there / "checkpoints", path / "checkpoints")
        with pytest.raises(InputError, match=r"checkpoint|the run there has"):
            Run.load(path)


def damaged_facts(path):
    index = path / "checkpoints" / "last" / "checkpoint.json"
    content = json.loads(index.read_text())
    del content["data"]
    index.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "config.yaml").unlink(), "there is no run here"),
        (lambda path: (path / "config.yaml").write_text("data: ["), "not YAML"),
        (lambda path: (path / "metrics.jsonl").unlink(), "metrics.jsonl has 0 of the 2 epochs"),
        (lambda path: (path / "metrics.jsonl").write_text("{\n{\n"), "metrics.jsonl"),
        (lambda path: shutil.rmtree(path / "checkpoints"), "no checkpoint here"),
        (damaged_facts, "damaged"),
    ],
)
def test_a_damaged_run_is_told(tmp_path, job, damage, message):
    trained(tmp_path / "run", job(), num_epochs=2)
    damage(tmp_path / "run")
    with pytest.raises(InputError, match=message) as caught:
        Run.load(tmp_path / "run")
    assert str(tmp_path / "run") in str(caught.value)


def test_an_unknown_method_is_told_before_anything_is_read(tmp_path, job):
    with pytest.raises(InputError, match="unknown method 'magic': known are dividemix, cross_entropy"):
        Run.create(tmp_path / "run", job(method="magic", data="nowhere.npz"))
    assert not (tmp_path / "run").exists()


# Real processes: the command line, stopped from outside.

ENTRY = "from dividemix.cli import main; raise SystemExit(main())"

# Imports everything once, then does each command, a line of JSON, in a process of its own.
NURSERY = """
import json, os, sys
import torch._dynamo, dividemix.display
from dividemix.api import train
from dividemix.cli import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os._exit(main(json.loads(line)))
    print("born", child)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def command(data, out, *more):
    """Arguments of a training long enough to be stopped many times."""
    noise = ["--noise", "symmetric:0.4", "--epochs", "16", "--num_views", "8"]
    return ["train", str(data), *FLAGS, *noise, "--out", str(out), *more]


def start(code, *arguments):
    """A Python process with one thread, whose lines come at once."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(process, word):
    """The process's next line that begins with the word."""
    for line in process.stdout:
        if line.startswith(word):
            return line
    return pytest.fail(f"the process ended before it said {word!r}")


@pytest.mark.slow
def test_killed_ten_times_a_run_ends_in_the_same_bytes(tmp_path):
    data = save_toy(tmp_path)
    nursery = start(NURSERY)

    def begin(out, *more):
        nursery.stdin.write(json.dumps(command(data, out, *more)) + "\n")
        nursery.stdin.flush()
        return int(wait_for(nursery, "born").split()[1])

    def saved():
        index = tmp_path / "killed" / "checkpoints" / "last" / "checkpoint.json"
        return json.loads(index.read_text())["epoch"] if index.is_file() else 0

    begin(tmp_path / "straight")
    assert wait_for(nursery, "ended").split()[1] == "0"
    seconds = min(row["seconds"] for row in rows(tmp_path / "straight"))
    moments = random.Random(0)
    epochs = []
    for gets_on in 5 * [False, True]:
        child, stood, end = begin(tmp_path / "killed", "--resume"), saved(), time.monotonic() + 100
        wait_for(nursery, "dividemix on")
        while gets_on and saved() == stood:
            assert time.monotonic() < end, "no epoch was saved"
            time.sleep(0.005)
        time.sleep(moments.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        assert wait_for(nursery, "ended").split()[1] == str(-signal.SIGKILL)
        epochs.append(saved())
    nursery.communicate()
    assert epochs == sorted(epochs)
    assert 5 <= epochs[-1] < 16
    assert main(command(data, tmp_path / "killed", "--resume")) == 0
    assert settled(tmp_path / "killed") == settled(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_that_says_how_to_go_on(tmp_path, number, code):
    data = save_toy(tmp_path)
    assert main(command(data, tmp_path / "straight")) == 0
    process = start(ENTRY, *command(data, tmp_path / "stopped"))
    wait_for(process, "epoch  1/16")
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"stopped by {number.name}" in said
    assert "Traceback" not in said
    assert not [path for path in tree(tmp_path) if path.endswith((".tmp", ".partial"))]
    advice = said[said.index("Go on with: dividemix ") :].split()[4:]
    assert "--resume" in advice
    assert main(advice) == 0
    assert settled(tmp_path / "stopped") == settled(tmp_path / "straight")


def test_a_best_checkpoint_that_was_never_written_is_mended(tmp_path, job):
    """As if the process had died between the last checkpoint and the best one."""
    path = tmp_path / "run"
    trained(path, job(epochs=1, warmup_epochs=1))
    kept = tree(path / "checkpoints" / "best")
    shutil.rmtree(path / "checkpoints" / "best")
    run = Run.load(path)
    assert list(run.train()) == []
    assert tree(path / "checkpoints" / "best") == kept
    run.load_best()


def test_a_best_checkpoint_of_another_epoch_is_not_taken_for_the_best(tmp_path, job):
    run = trained(tmp_path / "run", job())
    run.rows[0]["test_acc"], run.rows[1]["test_acc"] = 100.0, 0.0
    first_is_saved = load_checkpoint(run.directory.best)[1]["epoch"] == 1
    run.rows[0 if not first_is_saved else 1]["test_acc"] = 101.0
    with pytest.raises(InputError, match="is not of the best epoch"):
        run.load_best()


def test_a_best_checkpoint_that_is_missing_is_no_reason_to_start_again(tmp_path, job):
    run = Run.create(tmp_path / "run", job())
    with pytest.raises(InputError, match=r"no epoch is trained yet; resume the run$"):
        run.load_best()
    list(run.train())
    shutil.rmtree(run.directory.best)
    with pytest.raises(InputError, match=r"no checkpoint here: .*; take the last one instead$"):
        run.load_best()
    shutil.rmtree(run.directory.last)
    with pytest.raises(InputError, match=r"no checkpoint here: .*; start again: move the run directory away, or train"):
        Run.load(tmp_path / "run")


def test_a_run_that_is_being_trained_is_not_overwritten(tmp_path, job):
    path = tmp_path / "run"
    run = Run.create(path, job())
    with closing(run.train()) as epochs:
        next(epochs)
        with pytest.raises(InputError, match="another process is training"):
            Run.create(path, job(), overwrite=True)
        assert len(list(epochs)) == 3
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".run")]


def test_what_was_left_out_is_remembered_with_data_from_python(tmp_path):
    arrays = toy_arrays()
    (tmp_path / "broken.png").write_bytes(b"no image")
    images = [*arrays["x_train"], tmp_path / "broken.png"]
    labels = [*arrays["y_train"], 0]
    run = train(images, labels, out=tmp_path / "run", progress=False, preset="fashion", **SETTINGS)
    assert run.summary()["num_skipped"] == 1
    assert Run.load(tmp_path / "run").summary()["num_skipped"] == 1
    issues = Run.load(tmp_path / "run").label_issues()
    np.testing.assert_array_equal(issues.pred_probs, run.label_issues().pred_probs)


def test_a_run_that_another_process_has_trained_meanwhile_is_left_alone(tmp_path, job):
    trained(tmp_path / "run", job(), num_epochs=1)
    first, second = Run.load(tmp_path / "run"), Run.load(tmp_path / "run")
    list(first.train())
    before = settled(tmp_path / "run")
    with pytest.raises(InputError, match="another process has trained it meanwhile"):
        next(second.train())
    assert settled(tmp_path / "run") == before


def test_a_run_whose_last_checkpoint_fails_does_not_look_finished(tmp_path, job, monkeypatch):
    def full(directory, tensors, epoch, *_):
        if epoch == 4:
            raise OSError(28, "No space left on device")
        save_last(directory, tensors, epoch, *_)

    monkeypatch.setattr("dividemix.runs.run.save_last", full)
    with pytest.raises(OSError, match="No space left"):
        trained(tmp_path / "run", job())
    assert not (tmp_path / "run" / "summary.json").exists()
    monkeypatch.undo()
    list(Run.load(tmp_path / "run").train())
    assert settled(tmp_path / "run") == settled(trained(tmp_path / "other", job()).directory.path)


def test_a_run_keeps_the_labels_of_a_noise_file(tmp_path, job):
    noise = trained(tmp_path / "first", job(), num_epochs=1).directory.noise.rename(tmp_path / "noise.json")
    expected = settled(trained(tmp_path / "whole", job(noise=f"file:{noise}")).directory.path)
    trained(tmp_path / "stopped", job(noise=f"file:{noise}"), num_epochs=2)
    noise.unlink()
    list(Run.load(tmp_path / "stopped").train())
    assert settled(tmp_path / "stopped") == expected


def test_a_run_that_keeps_its_data_takes_no_other(tmp_path):
    arrays = toy_arrays()
    run = train(arrays["x_train"], arrays["y_train"], out=tmp_path / "run", progress=False, **SETTINGS)
    with pytest.raises(InputError, match=r"keeps its own data, in data\.npz: leave out other\.npz"):
        Run.load(tmp_path / "run", replace(run.job, data="other.npz"))
    loaded = Run.load(tmp_path / "run")
    assert Run.load(tmp_path / "run", loaded.job).job == loaded.job
