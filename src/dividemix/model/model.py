"""A trained model as a folder with config.json and model.safetensors: save, load, predict.

Shapes: N samples, H x W pixels, channels 1 or 3, D numbers of a vector, C classes, K nets.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from dividemix import atomic
from dividemix.data.classes import Label, class_labels, label_type
from dividemix.data.images import ImageLike, UnreadableImage, read_image
from dividemix.data.readers.pixels import as_image
from dividemix.data.source import Kind
from dividemix.data.threads import map_ahead
from dividemix.engine.device import choose_device
from dividemix.errors import InputError, advised, shown
from dividemix.foreign import refuse_foreign
from dividemix.meant import or_meant_path
from dividemix.model.encoded_input import Input, read_input
from dividemix.model.given_samples import samples_for
from dividemix.model.inputs import count
from dividemix.nets.build import build_net
from dividemix.nets.given import use_for
from dividemix.nets.settings import NetSettings
from dividemix.settings import checked_path, fields_of
from dividemix.stored import digest_of, read_json
from dividemix.version import __version__

FORMAT = 1
_ENCODER = "input.encoder."  # begins the names of weights that are not part of the model's files
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_SAME = "take both files from the same model"


class Ensemble(nn.Module):
    """K nets as one: raw samples in, the mean of the nets' probabilities out."""

    def __init__(self, nets: Sequence[nn.Module], takes: Input):
        super().__init__()
        self.nets = nn.ModuleList(nets)
        self.input = takes

    def forward(self, samples: Tensor) -> Tensor:
        """Probabilities (N, C) of raw samples, such as uint8 images (N, H, W, channels)."""
        x = self.input(samples)
        return torch.stack([torch.softmax(net(x), dim=1) for net in self.nets]).mean(dim=0)


class Model:
    """K trained nets and what is needed to use them: the classes, and how a raw sample becomes their input."""

    def __init__(self, nets: Sequence[nn.Module], *, classes: Sequence[Label], takes: Input, net: NetSettings):
        self.classes = tuple(classes)
        self.takes = takes
        self.net = net
        self.ensemble = Ensemble(nets, takes).to(next(nets[0].parameters()).device)

    @property
    def kind(self) -> Kind:
        """What the model takes: images or vectors."""
        return self.takes.kind

    def describe(self) -> dict[str, Any]:
        """The content of config.json."""
        return {
            "format": FORMAT,
            "model_type": "dividemix",
            **{name: getattr(self.net, name) for name in fields_of(NetSettings)},
            "num_nets": len(self.ensemble.nets),
            "classes": list(map(str, self.classes)),
            "label_type": label_type(self.classes),
            "kind": self.kind,
            "preprocessing": self.takes.describe(),
            "versions": {"dividemix": __version__, "torch": torch.__version__},
        }

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the model into the folder; an existing model is replaced, unless the disk is full.

        A folder that has config.json has a whole model, even if the process died: the old one is removed when both new
        files are on the disk, and the new one gets its name last.
        """
        folder = checked_path(folder, "folder")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file: give a folder")
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {
            name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
            for name, tensor in self.ensemble.state_dict().items()
            if not name.startswith(_ENCODER)
        }
        content = safetensors.torch.save(tensors, metadata={"format": "pt"})
        described = self.describe()
        described["digest"] = digest_of(content, described)
        about = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
        with atomic.replacing(folder / _CONFIG) as config, atomic.replacing(folder / _WEIGHTS) as weights:
            for file, written in ((config, about.encode()), (weights, content)):
                file.write(written)
                atomic.flush(file)
            (folder / _CONFIG).resolve().unlink(missing_ok=True)

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, device: str = "auto", *, trust_net: bool = False, net: Any = None
    ) -> "Model":
        """The model in a folder that `save_pretrained` wrote, or in a run directory.

        A custom net (package.module:function) is imported, which runs its code. That needs `trust_net`, since a folder
        from elsewhere may name any code. A net that was an object of a Python program is given again as `net`. Raises
        InputError if there is no model, it is damaged or of another version of dividemix, or its net is code that is
        not trusted.
        """
        folder = _model_folder(checked_path(folder, "folder"))
        chosen = choose_device(device)
        values = _read_values(folder / _CONFIG)
        if net is not None:
            use_for(values.get("net"), net)
        preprocessing = values.get("preprocessing")
        if isinstance(preprocessing, dict):  # before the encoder is loaded
            refuse_foreign("encoder", preprocessing.get("encoder"), folder / _CONFIG, trusted=trust_net)
        num_nets, described = _read_config(values, folder / _CONFIG)
        refuse_foreign("net", described["net"].net, folder / _CONFIG, trusted=trust_net)
        tensors = _read_weights(folder / _WEIGHTS, num_nets, values)
        num_classes, takes = len(described["classes"]), described["takes"]
        shape = takes.net_shape
        if ":" not in described["net"].net:  # shapes are compared before memory is taken
            with torch.device("meta"):
                empty = build_net(described["net"], num_classes=num_classes, image_shape=shape, seed=0)
            expected = {
                f"nets.{k}.{name}": tensor for k in range(num_nets) for name, tensor in empty.state_dict().items()
            }
            expected |= {f"input.{name}": tensor for name, tensor in takes.state_dict().items()}
            _check_fit(tensors, expected, folder / _WEIGHTS, varying=getattr(empty, "varying", ()))
        nets = [
            build_net(described["net"], num_classes=num_classes, image_shape=shape, seed=0) for _ in range(num_nets)
        ]
        model = cls(nets, **described)
        _check_fit(tensors, model.ensemble.state_dict(), folder / _WEIGHTS, varying=getattr(nets[0], "varying", ()))
        try:
            model.ensemble.load_state_dict(tensors, strict=False)  # its encoder has its weights already
        except (ValueError, RuntimeError) as error:
            words = " ".join(str(error).split())[:200]
            raise InputError(f"{folder / _WEIGHTS}: damaged ({words}); save the model again") from error
        model.ensemble.to(chosen).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model

    def predict_proba(self, samples: Any, *, batch_size: int = 256) -> NDArray[np.float32]:
        """Probabilities (N, C) of the classes: the mean over the nets, which are left in evaluation mode.

        Images are an array or a tensor in the model's size, of uint8 or of floats in [0, 1]: (N, H, W, channels),
        (N, channels, H, W), or (N, H, W) for one channel. Or they are a list of N images of any size: paths, contents
        of files, Pillow images, arrays, tensors. Vectors are an array or a tensor (N, D), a list of N vectors, or a
        table of D numeric columns. Texts are a list. Rows are a table of pandas or polars, a dict of columns, a list of
        dicts, or a dict, which is one row. Images and texts may be such tables, too, with a column `path`, `image` or
        `img`, or with the column of texts that the model was trained on. One path, one text, or one image or vector in
        the model's size is a list of one. Raises InputError if an array has other values or another size, or an image
        cannot be read.
        """
        items = samples_for(self.takes, samples)
        if isinstance(items, np.ndarray):
            return self._all_probs(items, batch_size)
        files = [as_image(item, f"images[{number}]") for number, item in enumerate(items)]
        probs = np.empty((len(files), len(self.classes)), dtype=np.float32)
        for number, row in enumerate(self.predict_files(files, batch_size=batch_size)):
            if isinstance(row, UnreadableImage):
                file = files[number]
                raise InputError(f"{file if isinstance(file, Path) else f'image {number}'}: {row}") from row
            probs[number] = row
        return probs

    def _all_probs(self, samples: NDArray[Any], batch_size: int) -> NDArray[np.float32]:
        """Probabilities (N, C) of raw samples (N, ...), computed in batches."""
        parts = [self._probs(samples[start : start + batch_size]) for start in _starts(len(samples), batch_size)]
        return np.concatenate([np.empty((0, len(self.classes)), dtype=np.float32), *parts])

    def predict(self, samples: Any, *, batch_size: int = 256) -> NDArray[Any]:
        """The most likely classes (N,) of what `predict_proba` takes, in the type of the labels in training."""
        predicted: NDArray[Any] = np.array(self.classes)[
            self.predict_proba(samples, batch_size=batch_size).argmax(axis=1)
        ]
        return predicted

    def predict_files(
        self, files: Sequence[ImageLike], *, batch_size: int = 256
    ) -> Iterator[NDArray[np.float32] | UnreadableImage]:
        """For each image file its probabilities (C,), as in `predict_proba`, or the reason why it cannot be read."""
        batches = (files[start : start + batch_size] for start in _starts(len(files), batch_size))
        for decoded in map_ahead(self._decoded, batches):
            readable = [image for image in decoded if isinstance(image, np.ndarray)]
            probs = iter(self._probs(np.stack(readable)) if readable else ())
            for image in decoded:
                yield next(probs) if isinstance(image, np.ndarray) else image

    def _decoded(self, file: ImageLike) -> NDArray[np.uint8] | UnreadableImage:
        try:
            height, width, channels = self.takes.shape
            return read_image(file, height, width, channels)
        except UnreadableImage as error:
            return error

    @torch.inference_mode()
    def _probs(self, samples: NDArray[Any]) -> NDArray[np.float32]:
        """Probabilities (R, C) of one batch of raw samples."""
        batch = torch.from_numpy(np.ascontiguousarray(samples)).to(next(self.ensemble.parameters()).device)
        probs: NDArray[np.float32] = self.ensemble.eval()(batch).cpu().numpy()
        if not np.isfinite(probs).all():
            raise InputError("the model's probabilities are not finite: its weights are damaged; train it again")
        return probs


def _starts(length: int, batch_size: int) -> range:
    """The first index of each batch."""
    if not isinstance(batch_size, int | np.integer) or isinstance(batch_size, bool) or batch_size < 1:
        raise InputError(f"batch_size is {shown(batch_size)}: it must be an integer >= 1")
    return range(0, length, batch_size)


def _model_folder(path: Path) -> Path:
    """The folder of the model in a run directory, or of the model itself."""
    for folder in (path / "model", path):
        if (folder / _CONFIG).is_file():
            return folder
    if (path / "config.yaml").is_file():
        raise InputError(f"{path}: the run has no model yet: finish it with dividemix resume {path}")
    wanted = "give the directory that dividemix train wrote, such as runs/photos-robust_history-seed1"
    raise InputError(f"{path}: not a run directory or a model: {or_meant_path(path, wanted)}")


def _read_values(path: Path) -> dict[str, Any]:
    """The object in config.json."""
    try:
        return read_json(path, dict[str, Any])
    except InputError as error:
        raise advised(error, "save the model again") from error.__cause__


def _read_config(values: dict[str, Any], path: Path) -> tuple[int, dict[str, Any]]:
    """The number of nets in config.json, and the other arguments of Model."""
    if values.get("model_type") != "dividemix":
        raise InputError(f"{path}: not a model of dividemix; name a run directory, or the folder model in it")
    if values.get("format") != FORMAT:
        raise InputError(
            f"{path}: has format {values.get('format')!r}, this version of dividemix reads format {FORMAT}: "
            "install the version that wrote it, or a newer one"
        )
    try:
        return count(values, "num_nets"), _described(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # an InputError of NetSettings is a ValueError
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: damaged ({reason}); save the model again") from error


def _described(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of Model, apart from the nets. Raises ValueError, KeyError or TypeError if they are wrong."""
    classes = values["classes"]
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes) or len(set(classes)) < 2:
        raise ValueError("classes must be a list of two names or more")
    net = NetSettings(**{name: values[name] for name in fields_of(NetSettings)})
    labels = class_labels(classes, values.get("label_type", "text"))  # models of 0.1 have none
    return {"classes": labels, "takes": read_input(values), "net": net}


def _read_weights(path: Path, num_nets: int, values: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors of the nets. A digest in config.json shows that both files are as they were saved."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the weights cannot be read ({error.strerror or error})") from error
    try:
        about = {name: value for name, value in values.items() if name != "digest"}
        if "digest" in values and values["digest"] != digest_of(content, about):  # models of 0.1 have none
            raise InputError(f"{path}: this file or {_CONFIG} is not what was saved; save the model again")
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except SafetensorError as error:
        raise InputError(f"{path}: the weights cannot be read ({error}); save the model again") from error
    num_stored = len({name.split(".")[1] for name in tensors if name.startswith("nets.")})
    if num_stored != num_nets:  # before any is built
        raise InputError(f"{path}: has {num_stored} nets, {_CONFIG} has {num_nets}: {_SAME}")
    return tensors


def _check_fit(
    tensors: dict[str, Tensor], expected: dict[str, Tensor], path: Path, *, varying: Sequence[str] = ()
) -> None:
    """Raise InputError unless the tensors have the expected names and shapes; `varying` ones may have other shapes."""
    expected = {name: tensor for name, tensor in expected.items() if not name.startswith(_ENCODER)}
    found, needed = ({name: str(tuple(tensor.shape)) for name, tensor in one.items()} for one in (tensors, expected))
    for name in sorted(found.keys() | needed.keys()):
        here, wanted = found.get(name, "absent"), needed.get(name, "absent")
        varies = name.rpartition(".")[2] in varying and "absent" not in (here, wanted)
        if here != wanted and not varies:
            raise InputError(f"{path}: shape of {name}: {here}, in the net of {_CONFIG}: {wanted}: {_SAME}")
