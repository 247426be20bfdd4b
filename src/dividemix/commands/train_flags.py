"""The flags of dividemix train, and its help: which settings are shown, and with which values."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dividemix.methods import METHODS, find_method
from dividemix.methods.method import MethodSettings
from dividemix.planning.choices import CHOSEN, SELDOM_CHOSEN
from dividemix.planning.job import JOB_FIELDS, own_fields
from dividemix.planning.presets import DEFAULT, find_preset, preset_values
from dividemix.settings import REQUIRED, Field, fields_of

EPILOG = """\
Examples:
  dividemix train                               a demo on embedded images
  dividemix train photos                        a subfolder for each class
  dividemix train photos.csv                    image paths and labels
  dividemix train news.csv --text_column text   texts
  dividemix train people.csv --target income    the rows of a table
  dividemix train vectors.npz                   vectors, or images as arrays
Without DATA, Fashion-MNIST images with 50 % symmetric noise are trained on twice, by ordinary cross-entropy and by our
recipe, and a table compares both. Brackets show the value that a setting has if you do not give it: [chosen from the
data] is printed, with the reason, when the training starts. A built-in set has its own preset and so other values: add
--preset NAME --help. A flag wins over --config, and --config over the preset."""
_HIDDEN = ("earlier_plans",)  # settings that a run writes to its config.yaml, and nobody needs to give


def add_flags(train: argparse.ArgumentParser, words: Sequence[str] = ()) -> None:
    """Add the flags of train. `words` are those of the command line: they may name the method whose flags are shown."""
    train.usage = "%(prog)s [DATA] [--SETTING VALUE ...]"
    train.add_argument("data", metavar="DATA", nargs="?", help=JOB_FIELDS["data"].doc)
    method, values = _shown(words)
    for field in JOB_FIELDS.values():
        if field.name != "data":
            _add_flag(train, field, values)
    preset = f"{DEFAULT} (your own data: settings chosen to fit it), or one of the paper's; see dividemix presets"
    train.add_argument("--preset", metavar="NAME", help=preset)
    minutes = "with the preset default: end the whole run after about M minutes"
    train.add_argument("--minutes", metavar="M", type=float, help=minutes)
    train.add_argument("--out", metavar="DIR", type=Path, help="run directory [runs/ and a name]")
    train.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --out, or start it if there is none: for scripts that repeat one command; by hand,"
        " dividemix resume is simpler",
    )
    log = "log the epochs to tensorboard, mlflow, wandb: one or more, with commas between; offline"
    train.add_argument("--log", metavar="NAMES", help=log)
    train.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    trust = "allow the code that a run or --config names (net, method or encoder): only if you trust it"
    train.add_argument("--trust_net", action="store_true", help=trust)
    config = "YAML file of settings, such as a run's config.yaml; flags win"
    train.add_argument("--config", metavar="FILE", type=Path, help=config)
    train.add_argument("--print_config", action="store_true", help="print all settings as YAML and stop")
    common = train.add_argument_group("settings of the training; in brackets the default")
    for field in fields_of(MethodSettings).values():
        _add_flag(common, field, values)
    shown = own_fields(method)
    title = f"settings of {method}; in brackets the default; for another method: --method NAME --help"
    own = train.add_argument_group(title, None if shown else "none of its own")
    for field in shown.values():
        _add_flag(own, field, values)
    hidden = sorted({name for other in METHODS for name in own_fields(other)} - shown.keys())
    for name in hidden:  # accepted, so that the planner can say that the method does not have it
        own.add_argument(f"--{name}", help=argparse.SUPPRESS)
    train.set_defaults(settings=[*JOB_FIELDS, *fields_of(MethodSettings), *shown, *hidden])


def _shown(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """What --help shows: the method of --method or --preset, else that for your own images; and the preset's values."""
    named = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--method", "--preset"):
        named.add_argument(flag, nargs="?")
    known, _ = named.parse_known_args([word for word in words if word not in ("-h", "--help")])
    name = known.preset or DEFAULT
    preset = find_preset(name)
    method = str(known.method or preset.method_for_images or preset.method)
    values = preset_values(name, method) | {"method": "that of the preset"}
    if name == DEFAULT:
        fields = {**JOB_FIELDS, **fields_of(find_method(method).settings)}
        values |= dict.fromkeys(CHOSEN, "chosen from the data")
        seldom = {one: fields[one] for one in SELDOM_CHOSEN if one in fields}
        values |= {one: f"{_as_flag(field.default)}; or chosen from the data" for one, field in seldom.items()}
    return method, values


def _add_flag(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup", field: Field, values: Mapping[str, Any]
) -> None:
    """Add a flag. Its value stays text until the method, and so the meaning of the value, is known."""
    value = values.get(field.name, field.default)
    default = "" if value in (REQUIRED, None, "") else f" [{_as_flag(value)}]"
    text = argparse.SUPPRESS if field.name in _HIDDEN else f"{field.doc}{default}".replace("%", "%%")
    parser.add_argument(f"--{field.name}", metavar=field.metavar, help=text)


def _as_flag(value: Any) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
