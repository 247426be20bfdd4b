"""The planner: from a request to what will be trained, the same for every face. No torch import before data is read."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.errors import InputError
from dividemix.methods import METHODS, find_method
from dividemix.planning.budget import Budget
from dividemix.planning.choices import Choice, as_settings
from dividemix.planning.default_method import default_method, reason_for
from dividemix.planning.job import JOB_FIELDS, Job, data_name, known_to, refuse_unknown_settings
from dividemix.planning.presets import DEFAULT, preset_for, preset_values
from dividemix.planning.text_encoder import text_encoder
from dividemix.settings import fields_of

if TYPE_CHECKING:
    from dividemix.data.source import Kind, Source

_SCALED = ("warmup_epochs", "rampup_epochs", "lr_drop_epoch")  # lengths in proportion to the epochs


@dataclass(frozen=True)
class Plan:
    """A job, its preset, the settings chosen for the user, its data if that was read, and its time limit."""

    job: Job
    preset: str
    choices: tuple[Choice, ...] = ()
    source: "Source | None" = None
    budget: Budget | None = None

    @property
    def name(self) -> str:
        """The name of its run directory."""
        job = self.job
        noise = [] if job.noise == "none" else [job.noise]
        words = [data_name(job.data), *noise, job.method, f"seed{job.settings.seed}"]
        return re.sub(r"[^\w.-]+", "-", "-".join(words))


def make_plan(
    given: Mapping[str, Any],
    *,
    preset: str | None = None,
    minutes: float | None = None,
    source: "Source | None" = None,
    began: float | None = None,
) -> Plan:
    """The plan for the settings `given` by name, `data` among them; data that is in memory comes as `source`.

    Without `preset`, the data decides. Settings that are not given come from the preset, then from the method. With the
    preset `default` some are chosen to fit the data, and `minutes`, which count from now or since the request `began`
    (time.monotonic), choose the number of epochs. Raises InputError if the request or the data is wrong.
    """
    budget = None if minutes is None else Budget.of(minutes, began)
    kind = None if source is None else source.kind
    draft = make_draft(given, preset=preset, minutes=minutes, kind=kind)
    job, preset, choices = draft.job, draft.preset, draft.choices
    from_program = source is not None
    if source is not None:
        from dividemix.planning.material import prepared

        source = prepared(source, job)
    if preset == DEFAULT:
        from dividemix.planning.defaults import choose

        source, fitted = choose(job, given, budget=budget, source=source)
        method = as_settings(fitted).get("method", job.method)
        known = known_to(method, job.values())
        fitting = {choice.name: choice for choice in (*choices, *fitted) if choice.name in known}  # the last one counts
        choices = tuple(fitting.values())
        job = Job.of(known | as_settings(choices))
    if from_program:  # the run's copy of the data is reduced already
        job = Job.of(job.values() | {"limit_train": None, "limit_test": None, "imbalance": None})
    if "epochs" not in (choice.name for choice in choices) or find_method(job.method).needs_vectors:
        budget = None  # its epochs are not planned by time
    _refuse_unused_trusted(job)
    return Plan(job, preset, choices, source, budget)


def make_draft(
    given: Mapping[str, Any], *, preset: str | None = None, minutes: float | None = None, kind: "Kind | None" = None
) -> Plan:
    """The plan before the data is read; `kind` is that of data in memory.

    Raises InputError if the request is wrong.
    """
    data, noise = (JOB_FIELDS[name].checked(given.get(name, JOB_FIELDS[name].default)) for name in ("data", "noise"))
    preset = preset or preset_for(data, noise, given.get("encoder"))
    if minutes is not None and (preset != DEFAULT or "epochs" in given or given.get("finetune")):
        other = "epochs" if "epochs" in given else "finetune" if given.get("finetune") else f"preset {preset}"
        raise InputError(f"minutes cannot be used with {other}: remove one of them")
    method = JOB_FIELDS["method"].checked(given.get("method", default_method(preset, given, kind=kind)))
    refuse_unknown_settings(given, method)
    values, choices = scaled_preset(preset, method, given)
    if "method" not in given and (reason := reason_for(method, preset, given, kind=kind)):
        choices.append(Choice("method", method, reason))
    is_texts = kind == "texts" or given.get("text_column") is not None
    if preset == DEFAULT and is_texts and given.get("encoder") is None and not given.get("finetune"):
        choices.append(text_encoder())
        values |= as_settings(choices)
        given = {name: value for name, value in given.items() if name != "encoder"}
    job = Job.of(values | dict(given))
    _refuse_unused_trusted(job)
    return Plan(job, preset, tuple(choices))


def _refuse_unused_trusted(job: Job) -> None:
    """Raise InputError if the job has trusted labels and its method, with its settings, would ignore them."""
    method = METHODS.get(job.method)  # your own method may use them without saying so
    if job.trusted is None or method is None or method.needs_trusted:
        return
    values = dataclasses.asdict(job.settings)
    if method.uses_trusted is None or any(values[name] != value for name, value in method.uses_trusted.items()):
        users = {name: one.uses_trusted for name, one in METHODS.items() if one.uses_trusted is not None}
        words = [" ".join((name, *(f"with {key} {v}" for key, v in needed.items()))) for name, needed in users.items()]
        raise InputError(
            f"trusted has no meaning for method {job.method}, which would ignore it: leave it out, or choose a method"
            f" that uses trusted labels: {', '.join(words)}"
        )


def scaled_preset(preset: str, method: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Choice]]:
    """The preset's values for the method, and the lengths scaled to the given epochs, unless they are given, too."""
    values, fields = preset_values(preset, method), fields_of(find_method(method).settings)
    before, epochs = values.get("epochs", fields["epochs"].default), given.get("epochs")
    scaled: list[Choice] = []
    if type(epochs) is not int or epochs in (before, 0):
        return values, scaled
    if preset == DEFAULT:  # chosen when the data is known; until then it must fit the epochs
        if "warmup_epochs" in fields and "warmup_epochs" not in given:
            values["warmup_epochs"] = max(1, min(epochs, values.get("warmup_epochs", fields["warmup_epochs"].default)))
        return values, scaled
    in_steps = given.get("lr_schedule", values.get("lr_schedule", fields["lr_schedule"].default)) == "step"
    for name in _SCALED if in_steps else _SCALED[:-1]:
        if name in fields and name not in given:
            length = values.get(name, fields[name].default)
            low = 0 if length == 0 else 1
            scaled.append(Choice(name, max(low, round(length * epochs / before)), f"{length} of {before} epochs"))
    return values | as_settings(scaled), scaled
