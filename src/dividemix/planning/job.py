"""What a run does, as plain values that are written to config.yaml and read from it. No torch import."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dividemix.data.builtin import BUILT_IN
from dividemix.errors import InputError
from dividemix.foreign import is_foreign
from dividemix.methods import DEFAULT_METHOD, METHODS, find_method
from dividemix.methods.method import MethodSettings
from dividemix.settings import REQUIRED, Field, Settings, fields_of, refuse_unknown, setting
from dividemix.stored import read_yaml

FORMAT = 2  # of a run directory, in its config.yaml
# Where files are and what computes may change before a run is resumed; what is computed may not. The data's digest
# shows that the data is the same. The file of weights must keep its name.
PLACES = (
    *("data", "labels", "root", "image_root", "test", "test_labels", "trusted", "weights"),
    *("memory_gb", "device", "kernels"),
)


@dataclass(frozen=True, kw_only=True)
class Job(Settings):
    """The data, its noise, the method, and the method's settings."""

    data: str = setting(
        REQUIRED,
        "a folder with one subfolder of images per class; a .csv or .tsv with columns path and label; a .parquet or"
        " .npz file; .tar shards or a folder of shards; boxes in a COCO .json file; vectors in an .npz, .npy, .parquet"
        " or .arrow file;"
        f" or {', '.join(BUILT_IN)}",
        "DATA",
    )
    labels: str | None = setting(
        None, "the labels of an .npy file: an .npy, .csv or .tsv file in the same order", "FILE"
    )
    test: str | None = setting(None, "samples to test on: a second folder or file of the same kinds", "DATA")
    test_labels: str | None = setting(
        None, "the labels of a test set that is an .npy file: a file as for labels", "FILE"
    )
    trusted: str | None = setting(
        None, "images with right labels, for methods that use them: a folder or file as for test", "DATA"
    )
    root: str | None = setting(None, "the folder with the files of a built-in data set, or its packed archive", "DIR")
    path_column: str = setting("path", "the table's column of image paths", "NAME")
    label_column: str = setting("label", "the table's column of labels", "NAME")
    image_root: str | None = setting(
        None, "the folder that relative paths in a table start from [that of the table]", "DIR"
    )
    text_column: str | None = setting(
        None, "train on texts: the column of a .csv, .tsv, .jsonl or .parquet file", "NAME"
    )
    target: str | None = setting(
        None, "train on the rows of a .csv, .tsv, .jsonl or .parquet file: the column of labels", "NAME"
    )
    numeric: str | None = setting(None, "with target: columns that are numbers [inferred]", "A,B,...")
    categorical: str | None = setting(None, "with target: columns that are categories [inferred]", "A,B,...")
    drop_columns: str | None = setting(None, "with target: columns not to train on, such as an id", "A,B,...")
    key: str | None = setting(None, "with target: a column that identifies the rows; not used to train", "NAME")
    features_column: str | None = setting(
        None, "the column of vectors (lists of numbers) in a .parquet or .arrow", "NAME"
    )
    annotators: str | None = setting(
        None, "several annotators: the table's columns of labels, one for each of them", "A,B,..."
    )
    annotator_column: str | None = setting(
        None, "several annotators: the column that names them, in a table with a row for each label", "NAME"
    )
    encoder: str | None = setting(
        None,
        "train on the vectors that a pretrained model makes of images or texts: timm:MODEL, torchvision:MODEL,"
        " open_clip:MODEL/WEIGHTS, net:resnet50=FILE for images; sentence-transformers:MODEL, tfidf for texts;"
        " transformers:MODEL for both; or your own as package.module:function",
        "NAME",
    )
    finetune: bool = setting(
        False, "texts: train the encoder (transformers:MODEL) end to end, not only on the vectors that it gives"
    )
    max_tokens: int = setting(128, "with finetune: tokens that are read of a text; the rest is cut", low=2)
    image_size: int | None = setting(None, "side in pixels to which images are resized and cropped", "PIXELS", low=8)
    memory_gb: float = setting(4.0, "keep images in memory up to this size; a larger .npz file is refused", "GB", low=0)
    limit_train: int | None = setting(
        None,
        "train on N samples only; each class keeps its share, at least one sample, and its first samples",
        "N",
        low=1,
    )
    limit_test: int | None = setting(None, "test on N samples only, chosen in the same way", "N", low=1)
    imbalance: float | None = setting(
        None,
        "make a long tail: class sizes fall until the first has RATIO times the samples of the last",
        "RATIO",
        low=1,
    )
    noise: str = setting(
        "none",
        "noise to add: symmetric:0.5, symmetric_other:0.4, asymmetric:0.4, pair_flip:0.3, instance:0.4,"
        " human:worst, open_set:0.3:DATA, matrix:FILE, file:FILE",
        "KIND:RATE",
    )
    holdout: float = setting(
        0.0, "share of samples held out, with their noisy labels, to choose the epoch to keep", "SHARE", low=0, high=0.5
    )
    test_epochs: bool = setting(True, "test after every epoch; false: only the model that is kept, at the end")
    method: str = setting(DEFAULT_METHOD, "see dividemix methods; or your own as package.module:OBJECT", "NAME")
    weights: str | None = setting(None, "weights to start from: .safetensors, .pth", "FILE")
    pretrained: bool = setting(False, "start from the pretrained weights of a net of timm or torchvision")
    settings: MethodSettings = dataclasses.field(default_factory=find_method(DEFAULT_METHOD).settings)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Job":
        """The job with these values by name, else defaults. Raises InputError if one is unknown or not allowed."""
        method = JOB_FIELDS["method"].checked(values.get("method", JOB_FIELDS["method"].default))
        group = find_method(method).settings
        refuse_unknown_settings(values, method)
        fields = {**JOB_FIELDS, **fields_of(group)}
        values = {name: fields[name].from_yaml(value) for name, value in values.items()}
        settings = group(**{name: value for name, value in values.items() if name in fields_of(group)})
        return cls(settings=settings, **{name: value for name, value in values.items() if name in JOB_FIELDS})

    def check(self) -> None:
        """Raise InputError unless the settings are those of the method."""
        super().check()
        needed, given = find_method(self.method).settings, type(self.settings)
        if given is not needed:
            raise InputError(f"settings are {given.__name__}: method {self.method} needs {needed.__name__}")
        if self.weights and self.pretrained:
            raise InputError("pretrained and weights are both given: choose one of them")
        if self.finetune and not (self.encoder or "").partition("transformers:")[2]:
            raise InputError("finetune needs an encoder of texts that can train: set encoder to transformers:MODEL")

    @property
    def encoder_name(self) -> str | None:
        """The encoder that makes vectors of the samples: if it is trained itself, its tokenizer."""
        if not self.finetune:
            return self.encoder
        model = (self.encoder or "").partition(":")[2]
        return f"tokens:{model}={self.max_tokens}"

    def values(self) -> dict[str, Any]:
        """All settings as one flat mapping, named like the command line's flags."""
        return {name: getattr(self, name) for name in JOB_FIELDS} | dataclasses.asdict(self.settings)

    def flags(self) -> list[str]:
        """The command line's arguments for exactly this job."""
        values = {name: value for name, value in self.values().items() if value is not None}
        words = [values.pop("data")]
        for name, value in values.items():
            words.append(f"--{name}={str(value).lower() if isinstance(value, bool) else value}")
        return words

    @property
    def identity(self) -> dict[str, Any]:
        """What is computed: all values but the places."""
        return {name: value for name, value in self.values().items() if name not in PLACES}

    def as_planned(self, epoch: int) -> "Job":
        """The job as it was planned after `epoch` epochs: later plans may be recorded already."""
        return dataclasses.replace(self, settings=self.settings.in_force(epoch))

    def difference(self, stored: "Job") -> str | None:
        """The first difference of a stored run in what is computed, in words; None if there is none."""
        here, there = ({**job.identity, "weights": job.weights and Path(job.weights).name} for job in (self, stored))
        name = next((name for name in here if here[name] != there.get(name)), None)
        return None if name is None else f"the run there has {name} {there.get(name)}, not {here[name]}"

    def require_same(self, stored: "Job", where: Path) -> None:
        """Raise InputError unless the job stored at `where` computes the same."""
        if difference := self.difference(stored):
            raise InputError(f"{where}: {difference}: resume it with the same settings, or use another out")

    @property
    def names_code(self) -> bool:
        """Whether its net, method or encoder is code that is not part of the package."""
        return any(is_foreign(name) for name in (self.settings.net, self.method, self.encoder or ""))

    @property
    def title(self) -> str:
        """A short title: the data's name, and the noise if any is added."""
        name = Path(self.data).name or self.data
        return name if self.noise == "none" else f"{name}, {self.noise}"

    def to_yaml(self) -> str:
        """The text of config.yaml, which --config takes as well."""
        return str(yaml.safe_dump({"format": FORMAT} | self.values(), sort_keys=False))


def data_name(data: str) -> str:
    """The name of a run on the data: that of the file or folder, or of the link to it; a pattern has its folder's."""
    path = Path(os.path.abspath(data))  # noqa: PTH100
    return path.parent.name if set("{*") & set(path.name) else path.stem


def own_fields(method: str) -> dict[str, Field]:
    """The settings that the method has beyond those of every method."""
    common = fields_of(MethodSettings)
    return {name: field for name, field in fields_of(find_method(method).settings).items() if name not in common}


def known_to(method: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values whose names a job of the method has."""
    known = {*JOB_FIELDS, *fields_of(find_method(method).settings)}
    return {name: value for name, value in values.items() if name in known}


def refuse_unknown_settings(values: Mapping[str, Any], method: str) -> None:
    """Raise InputError for a setting that neither a job nor the method has."""
    known = (*JOB_FIELDS, *fields_of(find_method(method).settings))
    for name in values:
        if name not in known and any(name in fields_of(other.settings) for other in METHODS.values()):
            own = ", ".join(own_fields(method))
            has = f"its own settings: {own}" if own else "it has only the settings that every method has"
            raise InputError(f"method {method} has no setting {name}: leave it out; {has}")
    refuse_unknown(values, known)


def read_settings(path: Path, *, of_run: bool = False) -> dict[str, Any]:
    """The settings in a YAML file, or in the config.yaml `of_run`, by name. Raises InputError if it cannot be read."""
    try:
        values = read_yaml(path)
    except InputError as error:
        if not of_run or isinstance(error.__cause__, OSError):  # what the system refuses is not damaged
            raise
        raise InputError(f"{error} (the file is damaged: put a copy of it back, or train again)") from error
    if values.pop("format", None if of_run else FORMAT) != FORMAT:
        raise InputError(
            f"{path}: made by another version of dividemix; this version cannot read it: train again, or install the"
            " version that env.json names"
        )
    return values


JOB_FIELDS = fields_of(Job)
