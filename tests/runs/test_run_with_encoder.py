"""Images through an encoder to vectors and back: a stand-in encoder, everything else as users have it."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_ins
import torch
from PIL import Image
from toys import NUM_CLASSES, SETTINGS, finish, save_toy, settled, toy_arrays, trained

import dividemix
from dividemix.cli import main
from dividemix.errors import HeadOnlyWarning, InputError
from dividemix.model import EXPORT_FORMATS
from dividemix.model.export import export
from dividemix.model.model import Model
from dividemix.planning.job import Job
from dividemix.runs.run import Run

VECTORS: dict[str, Any] = SETTINGS | {"net": "mlp", "net_width": 8, "encoder": "stand_ins:patches"}


def job(folder: Path, **changes: Any) -> Job:
    return Job.of({"data": str(save_toy(folder)), "noise": "symmetric:0.4", "method": "dividemix"} | VECTORS | changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("encoded")
    return trained(folder / "run", job(folder))


def test_the_vectors_are_those_of_the_encoder(run: Run) -> None:
    images = toy_arrays()["x_train"][..., None].repeat(3, axis=3)
    x = torch.tensor((images / 255 - 0.5) / 0.25, dtype=torch.float32).permute(0, 3, 1, 2)
    raw = stand_ins.Patches()(x).detach().numpy()
    expected = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    np.testing.assert_allclose(next(run.material.everything.plain([torch.arange(40)])), expected, atol=1e-3)
    assert run.material.shape == (48,)


def test_the_images_are_encoded_once_for_all_runs(tmp_path: Path, run: Run) -> None:
    before = stand_ins.COUNTS["images"]
    trained(tmp_path / "run", job(tmp_path, seed=2))
    assert stand_ins.COUNTS["images"] == before


def test_two_epochs_and_two_more_are_four(tmp_path: Path, run: Run) -> None:
    half = trained(tmp_path / "half", job(tmp_path), 2)
    with pytest.raises(InputError, match=r"its encoder 'stand_ins:patches' is Python code .* --trust_net"):
        Run.load(half.directory.path)
    finish(Run.load(half.directory.path, trust_net=True))
    here, there = settled(tmp_path / "half"), settled(run.directory.path)
    # Both name the data's folder.
    assert [name for name in here if here[name] != there[name]] == ["config.yaml", "report.html"]


def test_the_model_takes_images_again(tmp_path: Path, run: Run) -> None:
    arrays = toy_arrays()
    with pytest.raises(InputError, match="its encoder 'stand_ins:patches' is Python code"):
        Model.from_pretrained(run.directory.path)
    model = Model.from_pretrained(run.directory.path, "cpu", trust_net=True)
    assert model.kind == "images"
    expected = run.test_probs().mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(arrays["x_test"]), expected, atol=1e-5)
    np.testing.assert_allclose(run.predict_proba(arrays["x_test"]), expected, atol=1e-5)
    names = set(json.loads((run.directory.path / "model" / "config.json").read_text())["preprocessing"])
    assert {"encoder", "encoder_is", "height", "num_features"} <= names
    paths = []
    for number, image in enumerate(arrays["x_test"]):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(image).save(paths[-1])
    np.testing.assert_allclose(model.predict_proba(paths), expected, atol=1e-5)
    assert main(["predict", str(run.directory.path), str(paths[0]), "--trust_net"]) == 0


def test_another_encoder_of_the_same_name_is_refused(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run.directory.path / "model", tmp_path / "model")
    monkeypatch.setattr(stand_ins, "patches", lambda: stand_ins.Patches(2.0))
    with pytest.raises(InputError, match="has other weights than in the training"):
        Model.from_pretrained(tmp_path / "model", trust_net=True)


def test_encoder_and_nets_are_exported_as_one_file(tmp_path: Path, run: Run) -> None:
    for kind in EXPORT_FORMATS:
        assert export(run.directory.path, tmp_path / f"m.{kind}", kind, trust_net=True) < 1e-5
    images = toy_arrays()["x_test"][..., None]
    probs = torch.export.load(tmp_path / "m.pt2").module()(torch.from_numpy(images)).detach().numpy()
    np.testing.assert_allclose(probs, run.predict_proba(images), atol=1e-5)


def test_an_encoder_that_is_no_module_leaves_the_nets_to_export(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", job(tmp_path, encoder="stand_ins:plain", epochs=2, warmup_epochs=1))
    for kind in EXPORT_FORMATS:
        with pytest.warns(HeadOnlyWarning, match="takes the encoder's vectors"):
            assert export(tmp_path / "run", tmp_path / f"m.{kind}", kind, trust_net=True) < 1e-5
    images = toy_arrays()["x_test"][..., None]
    vectors = torch.tensor(stand_ins.Plain().encode(images))
    probs = torch.export.load(tmp_path / "m.pt2").module()(vectors).detach().numpy()
    np.testing.assert_allclose(probs, run.predict_proba(images), atol=1e-5)


def test_the_page_shows_the_images(run: Run) -> None:
    page = (run.directory.path / "report.html").read_text()
    assert "by stand_ins:patches" in page
    assert "data:image" in page


def test_from_python_with_images_in_memory(tmp_path: Path) -> None:
    arrays = toy_arrays()
    run = dividemix.train(
        arrays["x_train"], arrays["y_train"], encoder="stand_ins:patches", epochs=2, out=tmp_path / "r", progress=False
    )
    assert run.material.shape == (48,)
    again = Run.load(tmp_path / "r", trust_net=True)
    assert again.material.digest == run.material.digest
    assert len(run.material.classes) == NUM_CLASSES


def test_a_built_in_set_takes_the_preset_for_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--limit_train", "60", "--limit_test", "40", "--epochs", "2", "--encoder", "stand_ins:patches"]
    assert main(["train", "fashion", *flags, "--out", "run"]) == 0
    assert Run.load("run", trust_net=True).job.settings.net in ("mlp", "linear", "fourier")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "timm"}, "unknown encoder 'timm'"),
        ({"encoder": "net:resnet50=none.pth"}, "cannot read weights none.pth"),
        ({"encoder": "stand_ins:broken"}, "cannot be made: RuntimeError"),
    ],
)
def test_a_mistake_ends_before_anything_is_written(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Run.create(tmp_path / "run", job(tmp_path, **changes))
    assert not (tmp_path / "run").exists()


def test_vectors_need_no_encoder(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", features=np.zeros((8, 3)) + np.arange(8)[:, None], labels=np.arange(8) % 2)
    mistaken = Job.of({"data": str(tmp_path / "v.npz"), "method": "dividemix"} | VECTORS)
    with pytest.raises(InputError, match=r"takes images, but .* has vectors"):
        Run.create(tmp_path / "run", mistaken)
