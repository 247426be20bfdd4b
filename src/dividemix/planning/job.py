"""What a run is to do, as plain values: written to config.yaml, read back from it. No torch import."""

import contextlib
import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dividemix.config import Config
from dividemix.errors import InputError

# Where things lie and what computes may change between a run and its resumption; what is computed may not. That the
# data is the same wherever it lies, its digest tells; of weights to start from, the file's name must stay.
PLACES = ("data", "root", "test", "weights", "memory_gb", "device")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Which data, with which noise, by which method, how."""

    data: str
    root: str | None = None
    test: str | None = None
    path_column: str = "path"
    label_column: str = "label"
    image_size: int | None = None
    memory_gb: float = 4.0
    limit_train: int | None = None
    noise: str = "none"
    holdout: float = 0.0
    method: str = "dividemix"
    weights: str | None = None
    config: Config = dataclasses.field(default_factory=Config)

    def values(self) -> dict[str, Any]:
        """Everything as one flat mapping with the names of the command line's flags."""
        return {name: getattr(self, name) for name in JOB_FIELDS} | dataclasses.asdict(self.config)

    @property
    def identity(self) -> dict[str, Any]:
        """What is computed: all values but the places. That the data is the same, its digest tells."""
        return {name: value for name, value in self.values().items() if name not in PLACES}

    def difference(self, stored: "Job") -> str | None:
        """The first such value in which a stored run is another one, in words; None if there is none."""
        here, there = ({**job.identity, "weights": job.weights and Path(job.weights).name} for job in (self, stored))
        name = next((name for name in here if here[name] != there[name]), None)
        return None if name is None else f"the run there has {name} {there[name]}, not {here[name]}"

    def require_same(self, stored: "Job", where: Path) -> None:
        """Go on only if the run stored there does this job, wherever things lie.

        Raises:
            InputError: naming the first difference.
        """
        if difference := self.difference(stored):
            raise InputError(f"{where}: {difference}: resume it with the same settings, or use another --out")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Job":
        """The job that such a mapping describes; what is absent takes its default.

        Raises:
            InputError: for an unknown key or a value out of range.
        """
        _refuse_unknown(values)
        config = Config(**{key: value for key, value in values.items() if key in CONFIG_FIELDS})
        return cls(config=config, **{key: value for key, value in values.items() if key in JOB_FIELDS})

    def __post_init__(self) -> None:
        """Check the fields that are not Config's own business.

        Raises:
            InputError: naming the field, its value, what is allowed.
        """
        for name, meant in _TEXTS.items():
            value = getattr(self, name)
            if not isinstance(value, str) and not (name in _OPTIONAL and value is None):
                raise InputError(f"{name} is {value!r}: {meant} is needed")
            if value is not None and not _is_unicode(value):
                raise InputError(f"{name} is {value!r}: its name is not UTF-8; rename it")
        for name, low in (("limit_train", 1), ("image_size", 8)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < low):
                raise InputError(f"{name} is {value!r}: a whole number from {low} is needed")
        for name, high in (("holdout", 0.5), ("memory_gb", math.inf)):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= high or math.isinf(value):
                raise InputError(f"{name} is {value!r}: a number from 0{f' to {high}' if high < 1 else ''} is needed")
            object.__setattr__(self, name, float(value))

    @property
    def title(self) -> str:
        """What it is about, in a few words: the data's name, and the noise if any is added."""
        name = Path(self.data).name or self.data
        return name if self.noise == "none" else f"{name}, {self.noise}"

    def to_yaml(self) -> str:
        """The text of config.yaml, which --config takes as well."""
        text: str = yaml.safe_dump(self.values(), sort_keys=False)
        return text


def data_name(data: str) -> str:
    """What a run on the data is called: the file's or folder's name; that of a link is its own."""
    return Path(os.path.abspath(data)).stem  # noqa: PTH100


def _is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8: a file name of other bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_settings(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        InputError: if it is missing, not YAML, or not a mapping of settings to values.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: settings are needed as 'name: value' lines")
    _refuse_unknown(values, where=f"{path}: ")
    for name in values:
        if name in _NUMBERS and isinstance(values[name], str):  # YAML 1.1 takes 1e-3 for text
            with contextlib.suppress(ValueError):
                values[name] = float(values[name])
    return values


def _refuse_unknown(values: Mapping[Any, Any], where: str = "") -> None:
    allowed = JOB_FIELDS + CONFIG_FIELDS
    for name in values:
        if name not in allowed:
            raise InputError(f"{where}unknown setting {name!r}: allowed are {', '.join(allowed)}")


_TEXTS = {
    "data": "a name or a path",
    "root": "a path",
    "test": "a path",
    "weights": "a path",
    "path_column": "a column's name",
    "label_column": "a column's name",
    "noise": "text such as symmetric:0.5",
    "method": "a name",
}
_OPTIONAL = ("root", "test", "weights")
JOB_FIELDS = tuple(field.name for field in dataclasses.fields(Job) if field.name != "config")
_NUMBERS = ("holdout", "memory_gb", *(field.name for field in dataclasses.fields(Config) if field.type is float))
CONFIG_FIELDS = tuple(field.name for field in dataclasses.fields(Config))
