"""Models against the nets they were made of: probabilities computed here by hand, files edited into every damage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from injected import dying, full_disk
from numpy.typing import NDArray
from PIL import Image
from small_model import CLASSES, save_images, small_images, small_model

from dividemix.data.images import read_image
from dividemix.errors import InputError
from dividemix.model.inputs import ImageInput
from dividemix.model.model import Model

IMAGES = small_images(7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_model().save_pretrained(tmp_path / "run" / "model")
    return tmp_path / "run" / "model"


def edit_config(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change config.json and take out its digest, by which every change would be noticed at once."""
    values = json.loads((folder / "config.json").read_text())
    del values["digest"]
    edit(values)
    (folder / "config.json").write_text(json.dumps(values))


def by_hand(model: Model, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean over the nets of softmax, one image at a time, in float64."""
    rows = []
    assert isinstance(model.takes, ImageInput)
    for image in images:
        x = (image / 255 - model.takes.mean.double().numpy()) / model.takes.std.double().numpy()
        x = torch.tensor(x).permute(2, 0, 1)[None]
        with torch.no_grad():
            logits = [net.double().eval()(x) for net in model.ensemble.nets]
        rows.append(np.mean([torch.softmax(each, dim=1)[0].numpy() for each in logits], axis=0))
    return np.array(rows)


@pytest.mark.parametrize("num_nets", [1, 2, 3])
def test_probabilities_are_the_mean_over_the_nets(num_nets: int) -> None:
    probs = small_model(num_nets=num_nets).predict_proba(IMAGES)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs, by_hand(small_model(num_nets=num_nets), IMAGES), atol=1e-5)
    assert probs.max(axis=1).min() > 0.4  # not even: the comparison means something
    assert np.ptp(probs, axis=0).max() > 0.1


@pytest.mark.parametrize("shape", [(8, 8, 3), (12, 9, 1)])
def test_a_saved_model_comes_back_the_same(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    model, images = small_model(image_shape=shape), small_images(5, shape)
    model.save_pretrained(tmp_path)
    loaded = Model.from_pretrained(tmp_path, device="cpu")
    np.testing.assert_allclose(loaded.predict_proba(images), model.predict_proba(images), atol=1e-6)
    assert loaded.classes == model.classes
    assert loaded.takes.shape == model.takes.shape
    for name in ("net", "net_width", "final_norm"):
        assert getattr(loaded.net, name) == getattr(model.net, name)
    assert loaded.describe() == model.describe()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]


def test_the_files_tell_what_others_need(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    assert (config["net"], config["net_width"], config["final_norm"], config["num_nets"]) == ("small_cnn", 2, False, 2)
    assert tuple(config["classes"]) == CLASSES
    preprocessing = config["preprocessing"]
    assert [preprocessing[name] for name in ("height", "width", "channels")] == [8, 8, 3]
    assert preprocessing["mean"] == [0.5, 0.4, 0.3]
    assert preprocessing["std"] == [0.2, 0.25, 0.3]
    assert config["versions"].keys() == {"dividemix", "torch"}
    names = safetensors.torch.load((folder / "model.safetensors").read_bytes()).keys()
    assert {name.split(".")[0] for name in names} == {"nets"}
    assert {name.split(".")[1] for name in names} == {"0", "1"}


def test_a_run_directory_stands_for_its_model(folder: Path) -> None:
    loaded = Model.from_pretrained(str(folder.parent))
    np.testing.assert_allclose(loaded.predict_proba(IMAGES), small_model().predict_proba(IMAGES), atol=1e-6)


def test_batches_do_not_change_what_comes_out() -> None:
    model = small_model()
    whole = model.predict_proba(IMAGES)
    for batch_size in (1, 3, 7, 100):
        np.testing.assert_allclose(model.predict_proba(IMAGES, batch_size=batch_size), whole, atol=1e-6)
    assert model.predict_proba(IMAGES[:0]).shape == (0, 3)
    assert model.predict_proba([]).shape == (0, 3)


def test_files_are_as_good_as_arrays(tmp_path: Path) -> None:
    model = small_model()
    paths = save_images(tmp_path, IMAGES, [f"{number}.png" for number in range(7)])
    whole = model.predict_proba(IMAGES)
    for files in (paths, [str(path) for path in paths], [path.read_bytes() for path in paths]):
        np.testing.assert_allclose(model.predict_proba(files, batch_size=3), whole, atol=1e-6)


def test_grey_images_need_no_channel() -> None:
    model, images = small_model(image_shape=(8, 8, 1)), small_images(4, (8, 8, 1))
    np.testing.assert_array_equal(model.predict_proba(images[..., 0]), model.predict_proba(images))


def test_an_unreadable_file_is_named_or_given_as_such(tmp_path: Path) -> None:
    model = small_model()
    paths = save_images(tmp_path, IMAGES[:3], ["a.png", "b.png", "c.png"])
    paths[1].write_bytes(b"no image")
    with pytest.raises(InputError, match=r"b\.png: not an image"):
        model.predict_proba(paths)
    with pytest.raises(InputError, match="image 1: not an image"):
        model.predict_proba([path.read_bytes() for path in paths])
    first, reason, last = model.predict_files(paths, batch_size=2)
    assert "not an image" in str(reason)
    assert isinstance(first, np.ndarray)
    assert isinstance(last, np.ndarray)
    np.testing.assert_allclose(np.stack([first, last]), model.predict_proba(IMAGES[[0, 2]]), atol=1e-6)


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (IMAGES[..., 0], r"this model takes \(N, 8, 8, 3\)"),
        (IMAGES[:, :7], r"this model takes \(N, 8, 8, 3\)"),
        (IMAGES[0, 0], r"this model takes \(N, 8, 8, 3\)"),
        (torch.zeros(2, 3, 9, 8), r"this model takes \(N, 8, 8, 3\)"),
        (IMAGES * 2.0, "images has float values from .* must be from 0 to 1"),
        (IMAGES > 9, "images has type bool"),
        (7, "images is int"),
        ([7], r"images\[0\] is int"),
    ],
)
def test_other_images_are_refused(images: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        small_model().predict_proba(images)


@pytest.mark.parametrize(
    "form",
    [
        IMAGES / 255,
        IMAGES.astype(np.int64),
        IMAGES.transpose(0, 3, 1, 2),
        torch.from_numpy(IMAGES),
        (torch.from_numpy(IMAGES) / 255).permute(0, 3, 1, 2).requires_grad_(),
        list(IMAGES),
        tuple(torch.from_numpy(IMAGES).permute(0, 3, 1, 2)),
        [Image.fromarray(image) for image in IMAGES],
        [Image.fromarray(IMAGES[0]), *(IMAGES[1:] / 255)],
    ],
)
def test_what_can_be_trained_on_can_be_predicted(form: Any) -> None:
    """Oracle: the uint8 array that every form was made of."""
    model = small_model()
    np.testing.assert_allclose(model.predict_proba(form, batch_size=3), model.predict_proba(IMAGES), atol=1e-6)


def test_images_in_a_list_may_have_any_size() -> None:
    """Oracle: the same images resized by the reader of files."""
    model, images = small_model(), small_images(2, (20, 12, 3))
    expected = model.predict_proba(np.stack([read_image(Image.fromarray(image), 8, 8, 3) for image in images]))
    np.testing.assert_allclose(model.predict_proba(list(images)), expected, atol=1e-6)


def test_images_as_high_as_they_have_channels_are_no_riddle_to_a_model_that_knows_its_size() -> None:
    shape = (3, 8, 1)
    model, images = small_model(net="preact_resnet18", image_shape=shape), small_images(4, shape)
    np.testing.assert_allclose(
        model.predict_proba(images), model.predict_proba([image[..., 0] for image in images]), atol=1e-6
    )


def test_a_model_of_foreign_code_is_loaded_only_by_who_trusts_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_for_test.py").write_text(
        "from pathlib import Path\nfrom dividemix.nets.small_cnn import SmallCNN\nPath('it_ran').touch()\n"
        "make = SmallCNN\n"
    )
    edit_config(folder, change(net="evil_for_test:make"))
    with pytest.raises(InputError, match=r"config\.json: its net 'evil_for_test:make' is Python code .*--trust_net"):
        Model.from_pretrained(folder)
    assert not (tmp_path / "it_ran").exists()
    loaded = Model.from_pretrained(folder, trust_net=True)
    assert (tmp_path / "it_ran").exists()
    np.testing.assert_allclose(loaded.predict_proba(IMAGES), small_model().predict_proba(IMAGES), atol=1e-6)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_has_images(batch_size: int) -> None:
    for images in (IMAGES, [b""]):
        with pytest.raises(InputError, match="batch_size"):
            small_model().predict_proba(images, batch_size=batch_size)


def test_a_model_is_replaced_whole(tmp_path: Path) -> None:
    small_model(num_nets=3).save_pretrained(tmp_path)
    small_model(num_nets=1).save_pretrained(tmp_path)
    assert len(Model.from_pretrained(tmp_path).ensemble.nets) == 1


def test_a_full_disk_costs_no_model(tmp_path: Path) -> None:
    """The old one was removed before there was space for the new one."""
    old, new = small_model(num_nets=2), small_model(num_nets=1)
    old.save_pretrained(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for at in range(4):  # two files are created, and brought to the disk
        with full_disk(tmp_path, at), pytest.raises(OSError, match="No space left"):
            new.save_pretrained(tmp_path)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    new.save_pretrained(tmp_path)
    assert len(Model.from_pretrained(tmp_path).ensemble.nets) == 1


def test_a_process_that_dies_leaves_no_mixture_of_models(tmp_path: Path) -> None:
    """At whatever file operation: the old model, none, or the new one."""
    old, new = small_model(num_nets=2), small_model(num_nets=2)
    new.ensemble.nets[0].load_state_dict(old.ensemble.nets[1].state_dict())
    known = [model.predict_proba(IMAGES) for model in (old, new)]
    assert np.abs(known[0] - known[1]).max() > 0.01
    seen = set()
    for at in range(100):
        folder = tmp_path / str(at)
        old.save_pretrained(folder)
        with dying(tmp_path, at) as fault:
            new.save_pretrained(folder)
        if (folder / "config.json").exists():
            probs = Model.from_pretrained(folder).predict_proba(IMAGES)
            (which,) = (name for name, good in zip(("old", "new"), known, strict=True) if np.allclose(probs, good))
            seen.add(which)
        else:
            with pytest.raises(InputError, match=r"not a run directory or a model"):
                Model.from_pretrained(folder)
            seen.add("none")
        if not fault.happened:
            break
    assert not fault.happened
    assert seen == {"old", "new", "none"}


def test_without_a_model_there_is_a_hint(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="not a run directory or a model: give the directory that dividemix train wrote"
    ):
        Model.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "config.yaml").write_text("data: x\n")
    with pytest.raises(InputError, match="no model yet: finish it with dividemix resume"):
        Model.from_pretrained(tmp_path)


def change(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """An edit of config.json; None takes the entry out, a dict edits the entry's own entries."""

    def edit(values: dict[str, Any]) -> None:
        for name, value in changes.items():
            if value is None:
                del values[name]
            elif isinstance(value, dict):
                values[name] |= value
            else:
                values[name] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (change(format=2), "has format 2.*install the version that wrote it"),
        (change(format=None), "has format None"),
        (change(model_type="bert"), "not a model of dividemix"),
        (change(model_type=None), "not a model of dividemix"),
        (change(net="transformer"), "unknown net 'transformer'"),
        (change(net="no_such_module:net"), r"'no_such_module:net' is Python code .* --trust_net"),
        (change(net=None), "damaged.*'net' is missing"),
        (change(net_width=3), "shape of nets.0"),
        (change(net_width="2"), "damaged.*net_width is '2'"),
        (change(net="preact_resnet18"), "shape of nets.0"),
        (change(num_nets=1), "has 2 nets, config.json has 1"),
        (change(num_nets=10**9), "has 2 nets"),
        (change(num_nets=True), "num_nets is True"),
        (change(classes=["a", "b"]), "shape of nets.0"),
        (change(classes="abc"), "classes must be"),
        (change(classes=[1, 2, 3]), "classes must be"),
        (change(preprocessing=None), "'preprocessing' is missing"),
        (change(preprocessing=[1, 2]), "damaged"),
        (change(preprocessing={"channels": 1}), "mean is .* it must be 1 finite numbers"),
        (change(preprocessing={"channels": 1, "mean": [0.5], "std": [0.2]}), "shape of nets.0"),
        (change(preprocessing={"height": 0}), "height is 0"),
        (change(preprocessing={"height": 2}), "does not fit"),
        (change(preprocessing={"mean": [0.5, 0.5, float("nan")]}), "it must be 3 finite numbers"),
        (change(preprocessing={"mean": 0.5}), "damaged"),
        (change(preprocessing={"std": [0.2, 0, 0.2]}), "std must be above zero"),
    ],
)
def test_a_changed_config_is_told_in_one_line(folder: Path, edit: Callable[[dict[str, Any]], None], told: str) -> None:
    edit_config(folder, edit)
    with pytest.raises(InputError, match=told) as caught:
        Model.from_pretrained(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"model_type": "dividemix"', b"[" * 100_000])
def test_a_damaged_config_is_told(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=r"config\.json: (damaged|not a model)"):
        Model.from_pretrained(folder)


def test_damaged_weights_are_told(folder: Path) -> None:
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + b"0")
    with pytest.raises(InputError, match=r"this file or config\.json is not what was saved; save the model again"):
        Model.from_pretrained(folder)
    edit_config(folder, change())
    for damaged in (b"", content[:5], content[:100], content[:-1], content + b"0", b"\xff" * 100):
        weights.write_bytes(damaged)
        with pytest.raises(InputError, match="the weights cannot be read") as caught:
            Model.from_pretrained(folder)
        assert "\n" not in str(caught.value)
    weights.unlink()
    with pytest.raises(InputError, match="the weights cannot be read"):
        Model.from_pretrained(folder)


def test_weights_of_something_else_are_told(folder: Path) -> None:
    weights = folder / "model.safetensors"
    tensors = safetensors.torch.load(weights.read_bytes())
    edit_config(folder, change())
    name = next(name for name in sorted(tensors) if tensors[name].ndim == 4)
    others = [
        ({key: value for key, value in tensors.items() if key != name}, f"{name}: absent"),
        (tensors | {name: tensors[name][:1].clone()}, f"shape of {name}"),
        (tensors | {"nets.0.more": torch.zeros(1)}, r"nets.0.more: \(1,\), in the net of config.json: absent"),
        (tensors | {"optimizer": torch.zeros(1)}, "optimizer"),
        ({"encoder.weight": torch.zeros(3)}, "has 0 nets"),
    ]
    for content, told in others:
        weights.write_bytes(safetensors.torch.save(content))
        with pytest.raises(InputError, match=told):
            Model.from_pretrained(folder)
