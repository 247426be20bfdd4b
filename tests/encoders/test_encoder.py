"""An encoder of images: the oracle of its preprocessing is Pillow's resizing and arithmetic by hand."""

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from stand_ins import Patches
from torch import nn

from dividemix.encoders.encoder import ImageEncoder, Preprocessing, weights_digest
from dividemix.encoders.find import SOURCES, find_encoder
from dividemix.errors import InputError
from dividemix.nets.build import build_net
from dividemix.nets.settings import NetSettings

RNG = np.random.default_rng(0)


class Pixels(nn.Module):
    """The normalised pixels themselves."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)


@pytest.mark.parametrize(("height", "width"), [(12, 12), (30, 21), (6, 9)])
def test_images_are_resized_cropped_and_normalised(height: int, width: int) -> None:
    smooth = np.array(Image.fromarray(RNG.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((width, height), 3))
    one = Preprocessing(size=12, crop=10, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    vectors = ImageEncoder("x", Pixels(), one).encode(smooth[None])
    scale = 12 / min(height, width)
    sides = (max(12, round(height * scale)), max(12, round(width * scale)))
    resized = np.array(Image.fromarray(smooth).resize(sides[::-1], Image.Resampling.BICUBIC))
    top, left = (sides[0] - 10) // 2, (sides[1] - 10) // 2
    expected = (resized[top : top + 10, left : left + 10] / 255 - one.mean) / one.std
    found = vectors.reshape(3, 10, 10).permute(1, 2, 0).numpy()
    np.testing.assert_allclose(found, expected, atol=2 / 255 / 0.5)  # Pillow rounds to levels


def test_grey_images_count_as_colour() -> None:
    grey = RNG.integers(0, 256, (3, 8, 8, 1), dtype=np.uint8)
    encoder = ImageEncoder("x", Patches(), Preprocessing(size=8, crop=8))
    torch.testing.assert_close(encoder.encode(grey), encoder.encode(grey.repeat(3, axis=3)))


def test_a_map_becomes_its_mean() -> None:
    encoder = ImageEncoder("x", nn.Conv2d(3, 5, 3), Preprocessing(size=8, crop=8))
    assert encoder.encode(RNG.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)).shape == (2, 5)


def test_the_description_changes_with_the_weights_and_the_preprocessing_alone() -> None:
    def described(scale: float = 1.0, size: int = 8, name: str = "net:x=a.pth") -> dict[str, Any]:
        return ImageEncoder(name, Patches(scale), Preprocessing(size=size, crop=8)).describe()

    assert described() == described(name="net:x=elsewhere/b.pth")
    assert described() != described(scale=2.0)
    assert described() != described(size=9)
    assert weights_digest(Patches()) != weights_digest(Patches(1.5))


def test_an_image_of_the_wrong_size_is_one_line() -> None:
    encoder = ImageEncoder("x", nn.Sequential(nn.Flatten(), nn.Linear(5, 2)), Preprocessing(size=8, crop=8))
    with pytest.raises(InputError, match="encoder 'x' does not take images of 8 x 8: ") as caught:
        encoder.encode(np.zeros((1, 8, 8, 3), np.uint8))
    assert "\n" not in str(caught.value)


def test_an_own_net_with_weights_from_a_file(tmp_path: Path) -> None:
    net = build_net(NetSettings(net="resnet50"), num_classes=7, image_shape=(64, 64, 3), seed=3).eval()
    torch.save({f"module.{name}": tensor for name, tensor in net.state_dict().items()}, tmp_path / "w.pth")
    encoder = find_encoder(f"net:resnet50={tmp_path / 'w.pth'}", image_size=64)
    images = RNG.integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    vectors = encoder.encode(images)
    assert vectors.shape == (2, 2048)
    one = Preprocessing()
    x = (images / 255 - one.mean) / one.std
    with torch.no_grad():
        expected = net(torch.tensor(x, dtype=torch.float32).permute(0, 3, 1, 2))
        head = net.get_submodule("fc")
        torch.testing.assert_close(head(vectors), expected, rtol=1e-3, atol=1e-4)


def module(**members: Any) -> Any:
    """A stand-in for a package."""
    made = types.ModuleType("stand_in")
    made.__dict__.update(members, __version__="9")
    return made


def timm() -> Any:
    def create_model(name: str, *, pretrained: bool, num_classes: int) -> nn.Module:
        if name != "patches":
            raise RuntimeError(f"Unknown model ({name})\nsecond line")
        assert pretrained
        assert num_classes == 0
        return Patches()

    config = {"input_size": (3, 8, 8), "crop_pct": 0.5, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    config["interpolation"] = "bicubic"
    return module(create_model=create_model, data=module(resolve_model_data_config=lambda net: config))


def torchvision() -> Any:
    transforms = types.SimpleNamespace(
        resize_size=[16], crop_size=[8], mean=[0.5] * 3, std=[0.25] * 3, interpolation="InterpolationMode.BICUBIC"
    )
    weights = types.SimpleNamespace(DEFAULT=types.SimpleNamespace(transforms=lambda: transforms))

    def get_model(name: str, *, weights: Any) -> nn.Module:
        return nn.Sequential(Patches(), nn.Linear(48, 10))

    def get_model_weights(name: str) -> Any:
        if name != "patches":
            raise ValueError(f"Unknown model {name}")
        return weights

    return module(models=module(get_model=get_model, get_model_weights=get_model_weights))


def open_clip() -> Any:
    def create_model(name: str, pretrained: str) -> Any:
        if (name, pretrained) != ("patches", "w"):
            raise RuntimeError("Model config for x not found")
        return types.SimpleNamespace(visual=Patches())

    config = {"size": (8, 8), "mean": (0.5,) * 3, "std": (0.25,) * 3}
    return module(create_model=create_model, get_model_preprocess_cfg=lambda model: config)


def transformers() -> Any:
    class Vision(Patches):
        main_input_name = "pixel_values"

        def forward(self, pixel_values: torch.Tensor) -> Any:
            return types.SimpleNamespace(pooler_output=super().forward(pixel_values))

    def load_model(name: str, *, use_safetensors: bool, trust_remote_code: bool) -> Any:
        if name != "patches":
            raise OSError(f"{name} is not a local folder and is not a valid model identifier")
        assert (use_safetensors, trust_remote_code) == (True, False)
        return Vision()

    processor = types.SimpleNamespace(size={"height": 8, "width": 8}, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    return module(
        AutoModel=types.SimpleNamespace(from_pretrained=load_model),
        AutoImageProcessor=types.SimpleNamespace(from_pretrained=lambda name, trust_remote_code: processor),
    )


PACKAGES = {"timm": timm, "torchvision": torchvision, "open_clip": open_clip, "transformers": transformers}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_gives_the_net_and_its_preprocessing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = PACKAGES[package]()
    monkeypatch.setitem(sys.modules, package, stand_in)
    encoder = find_encoder(f"{package}:patches{'/w' if package == 'open_clip' else ''}")
    assert isinstance(encoder, ImageEncoder)
    side = 16 if package in ("timm", "torchvision") else 8
    assert (encoder.preprocessing.size, encoder.preprocessing.crop) == (side, 8)
    images = RNG.integers(0, 256, (2, side, side, 3), dtype=np.uint8)
    cut = images[:, (side - 8) // 2 :, (side - 8) // 2 :][:, :8, :8]
    x = torch.tensor((cut / 255 - 0.5) / 0.25, dtype=torch.float32).permute(0, 3, 1, 2)
    expected = Patches()(x).detach()
    if package == "open_clip":
        expected = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(encoder.encode(images), expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match=f"'{package}:other/x' cannot be loaded: .*; check the name") as caught:
        find_encoder(f"{package}:other/x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "timm:hf-hub:somebody/else",
        "timm:hf_hub:somebody/else",
        "timm:local-dir:folder",
        "open_clip:hf-hub:somebody/else",
        "open_clip:ViT-B-32/folder/weights.pt",
        "open_clip:ViT-B-32=weights.bin",
    ],
)
def test_weights_that_could_be_pickles_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model folder of somebody else may name an encoder, and a hub's configuration could make timm unpickle."""
    for package in ("timm", "open_clip"):
        monkeypatch.setitem(sys.modules, package, module(create_model=lambda *_, **__: pytest.fail("it is loaded")))
    with pytest.raises(InputError, match=r"only models that .* itself lists can be named"):
        find_encoder(name)


def test_texts_are_the_mean_of_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(table)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            return types.SimpleNamespace(last_hidden_state=self.table[input_ids])

    def tokenizer(texts: list[str], **_: Any) -> dict[str, torch.Tensor]:
        longest = max(map(len, texts))
        ids = [[int(c) for c in text] + [0] * (longest - len(text)) for text in texts]
        mask = [[1] * len(text) + [0] * (longest - len(text)) for text in texts]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    package = module(
        AutoModel=types.SimpleNamespace(from_pretrained=lambda name, use_safetensors, trust_remote_code: Tokens()),
        AutoTokenizer=types.SimpleNamespace(from_pretrained=lambda name, trust_remote_code: tokenizer),
    )
    monkeypatch.setitem(sys.modules, "transformers", package)
    encoder = find_encoder("transformers:words")
    assert encoder.takes == "texts"
    expected = torch.stack([table[[1, 2, 3]].mean(dim=0), table[7]])
    torch.testing.assert_close(encoder.encode(["123", "7"]), expected)
    many = ["1" * (1 + 7 * i % 11) + str(i % 10) for i in range(70)]  # more than are computed together
    one_by_one = torch.cat([encoder.encode([text]) for text in many])
    torch.testing.assert_close(encoder.encode(many), one_by_one)


@pytest.mark.parametrize("source", [name for name in SOURCES if name not in ("net", "tokens")])
def test_a_missing_package_is_one_line(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, source.replace("-", "_"), None)
    with pytest.raises(InputError, match=f"'{source}:m/w' needs .*: pip install ") as caught:
        find_encoder(f"{source}:m/w")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["transformers", "sentence-transformers", "tokens"])
@pytest.mark.parametrize("model", ["/nowhere", "./nowhere", "models/of/nowhere"])
def test_a_missing_folder_is_one_line_and_the_package_is_not_asked(
    source: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packages take such a name for one on their hub: their words about it help nobody."""
    package = types.ModuleType("package")
    package.__version__ = "0"  # type: ignore[attr-defined]
    for one in ("transformers", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, one, package)
    name = f"{source}:{model}" + "=8" * (source == "tokens")
    with pytest.raises(InputError, match=f"^'{name}' cannot be loaded: there is no folder {model}$"):
        find_encoder(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "resnet50",
            "unknown encoder 'resnet50': use timm:MODEL, .* did you mean torchvision:resnet50 or timm",
        ),
        ("timm:", "unknown encoder 'timm:'"),
        ("net:resnet50", "has no weights: name a file, as net:resnet50=weights.safetensors"),
        ("net:mlp=x.pth", "the nets with weights to load are resnet50, inception_resnet_v2$"),
        ("net:trees=x.pth", "the nets with weights to load are resnet50, inception_resnet_v2$"),
        ("net:resnet50=none.pth", "cannot read weights none.pth: No such file"),
        ("open_clip:ViT-B-32", "has no weights: write open_clip:MODEL/WEIGHTS"),
        ("nowhere:f", "encoder 'nowhere:f' cannot be imported: no module 'nowhere'"),
        ("stand_ins:broken", "encoder 'stand_ins:broken' cannot be made: RuntimeError: no weights here"),
        ("stand_ins:nothing", "encoder 'stand_ins:nothing' gave int: it must give a torch.nn.Module"),
    ],
)
def test_a_wrong_name_is_one_line(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        find_encoder(name)
    assert "\n" not in str(caught.value)
