"""The page docs/settings.md, made from the code: python tools/settings_page.py writes it."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dividemix.commands import train
from dividemix.data.builtin import BUILT_IN
from dividemix.data.settings import ViewSettings
from dividemix.engine.settings import MachineSettings, ScheduleSettings
from dividemix.methods import METHODS
from dividemix.methods.method import MethodSettings
from dividemix.nets.settings import NetSettings
from dividemix.planning.job import JOB_FIELDS, own_fields
from dividemix.planning.presets import PRESETS
from dividemix.settings import REQUIRED, Field, Settings, fields_of

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
_GROUPS: dict[str, type[Settings]] = {
    "Network": NetSettings,
    "Schedule and optimiser": ScheduleSettings,
    "Views of an image": ViewSettings,
    "Machine": MachineSettings,
}
_TYPES = {bool: "true or false", int: "integer", float: "number", str: "text"}
_INTRODUCTION = """\
# Settings

This page is made from the code by `python tools/settings_page.py`. Do not edit it by hand.

A setting has one name everywhere. On the command line it is a flag (`--epochs 20`), in a YAML file a line
(`epochs: 20`), in Python an argument (`dividemix.train(data, epochs=20)`).

Values come from four places. A later place wins over an earlier one:

1. the defaults of the method, on this page;
2. the preset: the one that `--preset` names, or else the one that belongs to the data;
3. the YAML file that `--config` names;
4. the flags.

`dividemix train DATA --print_config` prints the settings that would be used, and stops. `--config` takes this output,
and it takes the `config.yaml` of a run.

A method refuses a setting that it does not have, and lists those that it has. `dividemix train --method robust --help`
shows the settings of that method.

You may give `epochs` together with a preset other than `default`. Then `warmup_epochs`, `rampup_epochs` and
`lr_drop_epoch` are scaled in proportion, unless you give them, too. Each is printed with its reason.
"""
_PRESETS = """\
## Presets

A preset names a method and sets how to train. It sets neither data nor noise. A setting that it does not name has the
method's default. With another `--method`, settings that this method does not have are dropped.
"""
_CHOSEN = """\
The preset `default` fits more settings to the data: see [What is chosen for you](data.md#what-is-chosen-for-you).

Without `--preset`, your own data takes `default`. A built-in set takes the preset for its noise:
"""


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION, "## Settings of a job\n", _settings(JOB_FIELDS.values()), "## Settings of every method\n"]
    for title, group in _GROUPS.items():
        parts += [f"### {title}\n", _settings(fields_of(group).values())]
    for name in METHODS:
        own = own_fields(name)
        parts += [f"## Settings of `{name}`\n", _settings(own.values()) if own else "It has none of its own.\n"]
    presets = [(f"`{name}`", f"`{one.method}`", _values(one.fields), one.origin) for name, one in PRESETS.items()]
    parts += [_PRESETS, _table(("preset", "method", "settings", "source"), presets)]
    chosen = [
        (f"`{data}`", f"`{noise}`" if noise else "any other" if one.presets else "any", f"`{preset}`")
        for data, one in BUILT_IN.items()
        for noise, preset in (*one.presets.items(), ("", one.default_preset))
    ]
    parts += [_CHOSEN, _table(("data", "noise", "preset"), chosen)]
    parts += ["## Flags of `dividemix train` that are not settings\n", _table(("flag", "what it does"), _flags())]
    return "\n".join(parts)


def _settings(fields: Iterable[Field]) -> str:
    rows = [(f"`{one.name}`", _type(one), _default(one), _allowed(one), one.doc) for one in fields]
    return _table(("setting", "type", "default", "allowed", "what it does"), rows)


def _type(field: Field) -> str:
    return _TYPES[field.kind] + (", or none" if field.optional else "")


def _default(field: Field) -> str:
    return "must be given" if field.default is REQUIRED else _text(field.default)


def _allowed(field: Field) -> str:
    """The range, or the words; what the type says already is left out."""
    if field.words:
        return ", ".join(f"`{word}`" for word in field.words)
    if field.kind not in (int, float):
        return ""
    return field.allowed.removeprefix("an integer").removeprefix("a number").strip()


def _values(values: Any) -> str:
    return ", ".join(f"`{name}` {_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else f"{value}"


def _flags() -> list[tuple[str, str]]:
    """The flags of train that are neither a setting of a job nor one of a method."""
    parser = argparse.ArgumentParser(add_help=False)
    train.add(parser)
    known = {*JOB_FIELDS, *fields_of(MethodSettings), *(name for method in METHODS for name in own_fields(method))}
    return [
        (f"`{one.option_strings[0]}{f' {one.metavar}' if one.metavar else ''}`", str(one.help))
        for one in parser._actions
        if one.dest not in known
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")  # noqa: T201
