"""Exported files, loaded as their users would, against the model that they were made of."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_model import small_images, small_model
from toys import tree

from dividemix.errors import InputError
from dividemix.model import EXPORT_FORMATS
from dividemix.model import export as export_module
from dividemix.model.export import TOLERANCE, export
from dividemix.model.model import Model

MISSING = [name for name in ("onnx", "onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]
SHAPES = {"small_cnn": (9, 8, 1), "small_vgg": (17, 16, 1), "preact_resnet18": (8, 8, 3)}


@pytest.fixture(params=SHAPES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    """A model, saved in run/model."""
    made = small_model(net=request.param, image_shape=SHAPES[request.param])
    made.save_pretrained(tmp_path / "run" / "model")
    return made


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with a model."""
    small_model().save_pretrained(tmp_path / "run" / "model")
    return tmp_path / "run"


def check(predict: Callable[[Any], Any], model: Model) -> None:
    """The same probabilities for any number of images."""
    for number in (1, 2, 5, 17):
        images = small_images(number, model.takes.shape)
        np.testing.assert_allclose(predict(images), model.predict_proba(images), atol=TOLERANCE)


@pytest.mark.slow
def test_a_pt2_file_predicts_as_the_model_does(tmp_path: Path, model: Model) -> None:
    out = tmp_path / "model.pt2"
    assert 0 <= export(tmp_path / "run", out, "pt2") <= TOLERANCE
    extra = {"config.json": ""}
    module = torch.export.load(out, extra_files=extra).module()
    check(lambda images: module(torch.from_numpy(images)).detach().numpy(), model)
    assert json.loads(extra["config.json"]) == model.describe()


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_an_onnx_file_predicts_as_the_model_does(tmp_path: Path, model: Model) -> None:
    import onnxruntime

    out = tmp_path / "model.onnx"
    assert 0 <= export(tmp_path / "run", out, "onnx") <= TOLERANCE
    assert {path.name for path in tmp_path.iterdir()} == {"run", "model.onnx"}  # one file holds it all
    session = onnxruntime.InferenceSession(out)
    check(lambda images: session.run(None, {"images": images})[0], model)
    assert json.loads(session.get_modelmeta().custom_metadata_map["config.json"]) == model.describe()


def refused(run: Path, out: Path, format: str = "pt2", **trust: bool) -> str:
    """What is told of an export that must change nothing."""
    before = tree(run.parent)
    with pytest.raises(InputError) as caught:
        export(run, out, format, **trust)
    assert tree(run.parent) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("wrong", [0.01, float("nan"), "shape", "one image"])
def test_a_file_that_computes_something_else_is_not_written(
    run: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    def read(content: bytes) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]:
        def predict(images: NDArray[np.uint8]) -> NDArray[np.float32]:
            probs = small_model().predict_proba(images)
            if wrong == "shape":
                return probs[:, :2]
            if wrong == "one image":
                return probs[:1] if len(images) > 1 else probs
            probs[-1, 0] += wrong
            return probs

        return predict

    monkeypatch.setitem(export_module.FORMATS, "pt2", (lambda model: b"content", read))
    assert "not written" in refused(run, run / "model.pt2")


def test_a_file_that_agrees_is_written(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format = (lambda model: b"content", lambda content: small_model().predict_proba)
    monkeypatch.setitem(export_module.FORMATS, "pt2", format)
    assert export(run, run / "model.pt2", "pt2") < 1e-6
    assert (run / "model.pt2").read_bytes() == b"content"


def test_black_white_and_single_images_are_looked_at(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def predict(images: NDArray[np.uint8]) -> NDArray[np.float32]:
        seen.append(images)
        return small_model().predict_proba(images)

    monkeypatch.setitem(export_module.FORMATS, "pt2", (lambda model: b"", lambda content: predict))
    export(run, run / "model.pt2", "pt2")
    assert {len(images) for images in seen} == {1, 5}
    every = np.concatenate(seen)
    assert (every == 0).all(axis=(1, 2, 3)).any()
    assert (every == 255).all(axis=(1, 2, 3)).any()


def test_mistakes_are_told_before_anything_is_written(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"unknown format 'nothing'; the formats are {', '.join(EXPORT_FORMATS)}" in refused(
        run, run / "x", "nothing"
    )
    assert "name a file in an existing folder" in refused(run, run / "no" / "model.pt2")
    (run / "folder.pt2").mkdir()
    assert "name a file in an existing folder" in refused(run, run / "folder.pt2")
    (run / "folder.pt2").rmdir()
    wrong = "m.pt2: for onnx a .onnx file is written: change the extension"
    assert wrong in refused(run, run / "m.pt2", "onnx")
    assert "not a run directory or a model: give the directory that dividemix train wrote" in refused(
        run / "nowhere", run / "model.pt2"
    )
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert "pip install 'dividemix[onnx]'" in refused(run, run / "model.onnx", "onnx")


class Untraceable(torch.nn.Module):
    """Its arithmetic depends on what it sees, which no program without branches can repeat."""

    def __init__(self, num_classes: int):
        super().__init__()
        self.head = torch.nn.Linear(192, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits (B, C)."""
        logits: torch.Tensor = self.head(images.flatten(1))
        return logits * (2 if images.sum().item() > 0 else 1)


@pytest.mark.slow
def test_a_net_that_cannot_be_exported_is_told(tmp_path: Path) -> None:
    small_model(net="test_export:Untraceable").save_pretrained(tmp_path / "run" / "model")
    out = tmp_path / "model.pt2"
    assert "trust_net" in refused(tmp_path / "run", out)
    assert "net 'test_export:Untraceable' cannot be exported" in refused(tmp_path / "run", out, trust_net=True)
