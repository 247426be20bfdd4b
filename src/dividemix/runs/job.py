"""What a run is to do, as plain values: written to config.yaml, read back from it. No torch import."""

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dividemix.config import Config
from dividemix.errors import InputError

# Where the data lies and what computes may change between a run and its resumption; what is computed may not. That the
# data is the same wherever it lies, its digest tells.
PLACES = ("data", "root", "device")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Which data, with which noise, by which method, how."""

    data: str
    root: str | None = None
    limit_train: int | None = None
    noise: str = "none"
    method: str = "dividemix"
    config: Config = dataclasses.field(default_factory=Config)

    def values(self) -> dict[str, Any]:
        """Everything as one flat mapping with the names of the command line's flags."""
        return {name: getattr(self, name) for name in JOB_FIELDS} | dataclasses.asdict(self.config)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Job":
        """The job that such a mapping describes; what is absent takes its default.

        Raises:
            InputError: for an unknown key or a value out of range.
        """
        unknown = [key for key in values if key not in JOB_FIELDS and key not in CONFIG_FIELDS]
        if unknown:
            raise InputError(f"unknown setting {unknown[0]!r}: allowed are {', '.join(JOB_FIELDS + CONFIG_FIELDS)}")
        config = Config(**{key: value for key, value in values.items() if key in CONFIG_FIELDS})
        return cls(config=config, **{key: value for key, value in values.items() if key in JOB_FIELDS})

    def __post_init__(self) -> None:
        """Check the fields that are not Config's own business.

        Raises:
            InputError: naming the field, its value, what is allowed.
        """
        for name, meant in _TEXTS.items():
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "root" and value is None):
                raise InputError(f"{name} is {value!r}: {meant} is needed")
        if self.limit_train is not None and (type(self.limit_train) is not int or self.limit_train < 1):
            raise InputError(f"limit_train is {self.limit_train!r}: a whole number from 1 is needed")

    def to_yaml(self) -> str:
        """The text of config.yaml, which --config takes as well."""
        text: str = yaml.safe_dump(self.values(), sort_keys=False)
        return text


def read_settings(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        InputError: if it is missing, not YAML, or not a mapping of names to values.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: settings are needed as 'name: value' lines")
    for name in values:
        if name in _NUMBERS and isinstance(values[name], str):  # YAML 1.1 takes 1e-3 for text
            with contextlib.suppress(ValueError):
                values[name] = float(values[name])
    return values


_TEXTS = {
    "data": "a name or a path",
    "root": "a path",
    "noise": "text such as symmetric:0.5",
    "method": "a name",
}
JOB_FIELDS = tuple(field.name for field in dataclasses.fields(Job) if field.name != "config")
_NUMBERS = tuple(field.name for field in dataclasses.fields(Config) if field.type is float)
CONFIG_FIELDS = tuple(field.name for field in dataclasses.fields(Config))
