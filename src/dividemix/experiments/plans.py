"""Each table and figure as a plan: which runs it needs, and which figure of which runs goes where. No torch import."""

import hashlib
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dividemix.errors import InputError
from dividemix.experiments import FIGURES
from dividemix.experiments.chosen import chosen_columns, chosen_rows
from dividemix.experiments.provenance import row_notes, settings_notes
from dividemix.experiments.published import PUBLISHED
from dividemix.experiments.results import Measure
from dividemix.experiments.setups import ASYMMETRIC, CLOTHING1M, COLUMNS, SYMMETRIC, Setup, describe, make_job
from dividemix.experiments.systems import ROWS, published
from dividemix.planning.job import Job


@dataclass(frozen=True)
class PlannedRun:
    """A training and the name of its run directory."""

    name: str
    job: Job


@dataclass(frozen=True)
class Source:
    """Where a figure of ours comes from: runs that differ only in the seed, and what is read from each."""

    runs: tuple[PlannedRun, ...]
    measure: Measure | None = None  # None for a drawing


@dataclass(frozen=True)
class Plan:
    """A table or figure at a scale. Keys of sources: (method, column, kind) in a table, a panel's name in a figure."""

    name: str
    scale: str
    sources: Mapping[Hashable, Source]
    notes: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()  # of a table
    columns: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()  # the names by which rows and columns were chosen, if they were

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """Every run once, in the order of the sources."""
        return tuple(dict.fromkeys(run for source in self.sources.values() for run in source.runs))

    @property
    def stem(self) -> str:
        """The name of its files; at mini scale it has the data, since another set may replace CIFAR-10.

        A part of a table does not replace the whole: its name has what was chosen.
        """
        words = [self.name, self.scale, *([self.runs[0].job.data] if self.scale == "mini" else []), *self.chosen]
        return "-".join(re.sub(r"[^\w+]+", "_", word.lower()).strip("_") for word in words)


def make_plan(
    name: str,
    scale: str,
    *,
    num_seeds: int = 1,
    root: str | None = None,
    weights: str | None = None,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Plan:
    """The plan of a table or figure; InputError if there is none at this scale, or none with these options.

    A table has the rows and columns with these names: all, if there is none.
    """
    if scale == "mini" and name in ("table3", "table4"):
        raise InputError(
            f"{name} has no mini scale (the default), because it needs a large data set with real noise: use"
            " --scale paper"
        )
    given = {"root": root, "weights": weights}
    if name in FIGURES:
        if num_seeds > 1:
            raise InputError(f"--seeds {num_seeds}: {name} shows one run of each kind, not a mean; remove --seeds")
        if rows or columns:
            raise InputError(f"{name} has no rows and columns to choose: remove --row and --column")
        plan = _figure(name, scale, given)
    else:
        plan = _table(name, scale, num_seeds, given, rows, columns)
    if weights is not None and not any(run.job.data == CLOTHING1M.data for run in plan.runs):
        raise InputError(f"--weights {weights}: {name} at {scale} scale starts from none; only Clothing1M does")
    return plan


def run_name(job: Job, scale: str) -> str:
    """A name that is the same for the same training and differs for any other.

    It has a hash of all settings that differ from their defaults: a setting that is added later renames no run.
    """
    defaults = Job.of({"data": "", "method": job.method}).values()
    identity = {"data": job.data} | job.identity
    values = {key: value for key, value in identity.items() if value != defaults[key]}
    digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=4).hexdigest()
    ablations = [f"no_{name}" for name in ("co_training", "refine_labels") if not values.get(name, True)]
    ablations += [f"{values['num_views']}_views"] if "num_views" in values else []
    words = (scale, job.data, job.noise, job.method, *ablations, f"seed{job.settings.seed}", digest)
    return re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word != "none"))


def to_yaml(plan: Plan) -> str:
    """The exact settings of each run as YAML: those that all share under `common`, the rest under each run's name."""
    jobs = {run.name: run.job.values() for run in plan.runs}
    first = next(iter(jobs.values()))
    common = {
        key: value for key, value in first.items() if all(values.get(key, ...) == value for values in jobs.values())
    }
    own = {name: {key: values[key] for key in values if key not in common} for name, values in jobs.items()}
    content = {"experiment": plan.name, "scale": plan.scale, "notes": list(plan.notes), "common": common, "runs": own}
    text: str = yaml.safe_dump(content, sort_keys=False, width=120)
    return text


def _planned(job: Job, scale: str) -> PlannedRun:
    return PlannedRun(run_name(job, scale), job)


def _table(
    name: str, scale: str, num_seeds: int, given: Mapping[str, Any], rows: Sequence[str], columns: Sequence[str]
) -> Plan:
    table, setups = PUBLISHED[name], COLUMNS[name]
    # At mini scale neither set has 100 classes.
    trained = [column for column in table.columns if scale == "paper" or setups[column].data == "cifar10"]
    shown_rows, shown_columns = chosen_rows(name, rows), chosen_columns(name, trained, columns)
    sources: dict[Hashable, Source] = {}
    for row in (row for row in shown_rows if row in ROWS):
        for column in shown_columns:
            setup = setups[column]
            changes = [{**given, **ROWS[row], "seed": seed} for seed in range(1, num_seeds + 1)]
            tuned = published(name, row, setup.data)
            runs = tuple(_planned(make_job(setup, scale, each, tuned), scale) for each in changes)
            for kind in table.kinds:
                sources[row, column, kind] = Source(runs, _measure(name, row, column, kind))
    notes = _NOTES.get(name, ()) + row_notes(name, shown_rows, shown_columns)
    if scale == "mini":
        notes = (_mini_note(next(iter(sources.values())).runs[0].job), *notes)
    else:
        notes += settings_notes(shown_rows)
    return Plan(name, scale, sources, notes, shown_rows, shown_columns, (*rows, *columns))


def _measure(table: str, method: str, column: str, kind: str) -> Measure:
    """What is read from a run for a cell."""
    if table == "table4":
        return Measure("best", _WEBVISION_KEYS[column] + _TOP_KEYS[kind])
    if table == "table8":
        return Measure("hours", "seconds")
    if table == "table9":
        return Measure("mean", f"profile.{_PART_KEYS[column]}", phase="mix")
    how = "selected" if table == "table3" else "last" if kind == "last" else "best"
    return Measure(how, "test_acc_by_net.0" if method == "DivideMix with theta(1) test" else "test_acc")


_WEBVISION_KEYS = {"WebVision": "test_", "ILSVRC12": "other_tests.ilsvrc12."}
_TOP_KEYS = {"top-1": "acc", "top-5": "top5"}
_PART_KEYS = {"Co-Divide": "co_divide", "Data MixMatch": "mixmatch", "Forward-Backward": "forward_backward"}


def _mini_note(job: Job) -> str:
    other_images = "" if job.data == "cifar10" else " and of other images"
    return (
        f"Ours are at mini scale: {describe(job)}. The paper's figures are those of the full scale{other_images},"
        " so the two are never subtracted: each row is compared with DivideMix at its own scale."
    )


_V100 = "The paper's runs had one Nvidia V100. It does not say which noise: ours is 50 % symmetric."
_NOTES: dict[str, tuple[str, ...]] = {
    "table3": ("Ours is the test accuracy of the epoch that is best on the validation images.",),
    "table4": (
        "The paper does not say which epoch its figures are of: each of ours is of the best one on its own images.",
    ),
    "table6": ("The paper does not say which epoch its figures are of: ours are of the best one.",),
    "table8": (_V100,),
    "table9": (_V100, "Ours are means over the epochs after warm-up; testing and saving are not included."),
}


def _figure(name: str, scale: str, given: Mapping[str, Any]) -> Plan:
    mini = scale == "mini"
    panels: dict[str, tuple[Setup, dict[str, Any]]]
    if name == "figure2":
        # The rate stays what it is at the paper's epoch 20.
        changes: dict[str, Any] = {"warmup_epochs": 10} | ({"lr_drop_epoch": 20} if mini else {})
        panels = {
            "without penalty": (ASYMMETRIC, changes | {"epochs": 10, "confidence_penalty": False}),
            "with penalty": (ASYMMETRIC, changes | {"epochs": 10}),
            "ten epochs on": (ASYMMETRIC, changes | {"epochs": 20}),
        }
    elif name == "figure3":
        panels = {column: (setup, {}) for column, setup in SYMMETRIC.items() if setup.data == "cifar10"}
    elif name == "figure4":
        panels = {"images": (ASYMMETRIC if mini else CLOTHING1M, {})}
    else:
        panels = {"features": (SYMMETRIC["CIFAR-10 sym. 80 %"], {} if mini else {"epochs": 200})}
    jobs = {panel: make_job(setup, scale, {**given, **changes}) for panel, (setup, changes) in panels.items()}
    runs = {panel: _planned(job, scale) for panel, job in jobs.items()}
    return Plan(name, scale, {panel: Source((run,)) for panel, run in runs.items()})
