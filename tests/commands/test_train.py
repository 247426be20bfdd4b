"""A training on the command line against what it prints and what it leaves on disk."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from toys import FLAGS, settled
from workshop import QUICK, fail, succeed, tree_here

from dividemix.cli import main
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.nets.build import build_net
from dividemix.planning.presets import PRESETS

pytestmark = pytest.mark.usefixtures("workshop")


def test_a_training_shows_its_epochs_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--noise", "symmetric:0.4", "--out", "run")
    said = capsys.readouterr().out
    assert "robust on toy.npz: 40 images of 4 classes; noise symmetric:0.4: 32.5% of labels corrupted" in said
    assert "epoch 1/2  warmup" in said
    assert "epoch 2/2  mix" in said
    summary = json.loads(Path("run/summary.json").read_text())
    model = f"run: the model is that of epoch {summary['kept_epoch']} of 2, test accuracy {summary['kept_acc']:.1f} %"
    assert f"\n{model}\n" in said
    assert f"\n{round(40 * summary['noise_rate'])} of 40 labels ({summary['noise_rate']:.1%}) flagged as" in said
    words = ["run/report.html", "run/label_issues.csv", "dividemix review run"]
    words += ["dividemix relabel toy.npz --run run", "dividemix predict run DATA"]
    assert [line.split(": ")[1] for line in said.splitlines()[-5:]] == words  # what to do next, each on its line
    assert "true labels are known: " in said
    assert "─" in said


@pytest.mark.slow
def test_without_data_two_runs_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--limit_train", "200", "--epochs", "2", "--warmup_epochs", "1", "--net_width", "4"]
    succeed(*arguments)
    said = capsys.readouterr().out
    first = said.splitlines()[0]
    assert first.startswith("no DATA is named, so this is a demo: cross_entropy and robust on 28 x 28 pictures")
    assert first.endswith("for your own images: dividemix train FOLDER")
    runs = sorted(Path("runs").iterdir())
    assert [run.name for run in runs] == [
        "fashion-symmetric-0.5-cross_entropy-seed1",
        "fashion-symmetric-0.5-robust-seed1",
    ]
    summaries = [json.loads((run / "summary.json").read_text()) for run in runs]
    assert all(f"\n{run}: " in said for run in runs)
    table = [line.replace("│", " ").split() for line in said.splitlines() if line.startswith("│")]
    assert [row[0] for row in table] == ["cross_entropy", "robust"]
    for row, summary in zip(table, summaries, strict=True):
        assert row[1:4] == [f"{summary[name]:.2f}" for name in ("final_acc", "best_acc", "last_acc")]
    assert summaries[0]["noise"] == summaries[1]["noise"]

    before = tree_here()
    succeed(*arguments, "--resume")
    assert capsys.readouterr().out.splitlines()[-14:] == said.splitlines()[-14:]
    assert tree_here() == before


def test_three_epochs_of_the_demo_need_no_other_length(capsys: pytest.CaptureFixture[str]) -> None:
    succeed("--epochs", "3", "--limit_train", "50", "--net_width", "2", "--device", "cpu", "--out", "out")
    said, preset = capsys.readouterr().out, PRESETS["fashion"].fields
    assert said.startswith(
        "no DATA is named, so this is a demo: cross_entropy and robust on 28 x 28 pictures of clothes"
    )
    assert f"warmup_epochs 1: {preset['warmup_epochs']} of {preset['epochs']} epochs" in said
    phases = {
        method: [json.loads(row)["phase"] for row in Path("out", method, "metrics.jsonl").read_text().splitlines()]
        for method in ("cross_entropy", "robust")
    }
    assert phases == {"cross_entropy": ["train"] * 3, "robust": ["warmup", "mix", "mix"]}
    chosen = json.loads(Path("out/robust/choices.json").read_text())
    assert ("warmup_epochs", 1) in [(choice["name"], choice["value"]) for choice in chosen]


def test_overwrite_replaces_a_run(tmp_path: Path) -> None:
    succeed(*QUICK, "--out", "run", "--seed", "2")
    other = settled(tmp_path / "run")
    succeed(*QUICK, "--out", "run", "--overwrite")
    succeed(*QUICK, "--out", "fresh")
    assert settled(tmp_path / "run") == settled(tmp_path / "fresh") != other


def test_names_with_brackets_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Square brackets are markup to the library that prints."""
    (tmp_path / "x[").mkdir()
    (tmp_path / "toy.npz").rename(tmp_path / "x[" / "b].npz")
    succeed("x[/b].npz", *QUICK[1:], "--out", "[bold]run[/b]")
    said = capsys.readouterr().out
    assert "robust on x[/b].npz: " in said
    assert "\n[bold]run[/b]: " in said


def test_out_of_memory_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for where, said in (
        ("runs.run.metrics_row", "(0 of 2 epochs are saved)"),
        ("planning.prepare.gather", "use smaller images"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"dividemix.{where}", lambda *_, **__: torch.empty(2**60))
            assert main(["train", *QUICK, "--out", "run", "--overwrite"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("dividemix: error: out of memory: use ")
        assert said in error
        assert error.count("\n") == 1


def test_the_working_directory_as_data_gives_the_run_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(4):
            Image.new("L", (8, 8), 50 * i).save(tmp_path / "photos" / name / f"{i}.png")
    monkeypatch.chdir(tmp_path / "photos")
    succeed(".", *FLAGS, "--epochs", "1", "--warmup_epochs", "1")
    assert [path.name for path in Path("runs").iterdir()] == ["photos-robust-seed1"]


def test_an_existing_run_is_refused_and_left_untouched(capsys: pytest.CaptureFixture[str]) -> None:
    succeed(*QUICK, "--out", "run")
    assert fail(capsys, ["train", *QUICK, "--out", "run"]).endswith(
        "run has a run already: add --resume to continue it or --overwrite to replace it, or choose another --out\n"
    )
    Path("run/review").mkdir()
    Path("run/review/corrections.csv").write_text("index,path,given_label,new_label,action\n0,,a,b,accept\n")
    assert fail(capsys, ["train", *QUICK, "--out", "run", "--overwrite"]).endswith(
        "run has a review with 1 decision, which would be deleted by --overwrite: move run/review/corrections.csv to"
        " another folder, or choose another --out\n"
    )


def test_one_existing_run_of_two_is_refused_before_the_other_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    succeed(*QUICK, "--out", "out/robust")
    arguments = ["train", "--limit_train", "100", "--epochs", "1", "--warmup_epochs", "1", "--out", "out"]
    assert "out/robust has a run already" in fail(capsys, arguments)


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_folder_with_other_things_is_never_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overwrite: list[str]
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    line = fail(capsys, ["train", *QUICK, "--out", "thesis", *overwrite])
    assert "thesis exists and is not a run directory" in line


def test_the_working_directory_itself_as_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    error = fail(capsys, ["train", "../toy.npz", *QUICK[1:], "--out", "."])
    assert "out is .: it must be a directory for this run alone, such as runs/first" in error


def test_what_a_file_of_weights_gave_is_said_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a net with five classes, where the data has four: everything but the head."""
    source = build_net(DivideMixSettings(net="small_cnn", net_width=2), num_classes=5, image_shape=(8, 8, 1), seed=7)
    torch.save(source.state_dict(), tmp_path / "weights.pth")
    arguments = ["--weights", "weights.pth", "--epochs", "1", "--warmup_epochs", "1"]
    succeed(*QUICK, *arguments, "--out", "run")
    line = "weights.pth: 25 tensors matched; the head 'head.3' is new; 2 (head.3.weight, head.3.bias) not used"
    assert line in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "env.json").read_text())["weights"] == line
    succeed("--resume", *QUICK, *arguments, "--out", "run")
    assert "tensors matched" not in capsys.readouterr().out  # they counted at the start only
