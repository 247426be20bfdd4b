"""Plan a run with a time limit again after each epoch, from how long the rest takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dividemix.engine import processes
from dividemix.engine.earlier_plans import parse_plans
from dividemix.engine.settings import ScheduleSettings
from dividemix.planning.budget import near_enough, plan_again
from dividemix.planning.choices import Choice

if TYPE_CHECKING:
    from dividemix.runs.run import Run

_FILES = 1.0  # seconds for the tables, apart from what depends on the number of samples
_FILES_PER_SAMPLE = 1e-4
_EVALUATION = 1 / 6  # of the time that a sample takes in an epoch, if it is not measured


def replan(run: "Run") -> None:
    """Give the run another number of epochs if it would miss its time limit; all processes take that of the first."""
    values = None
    if run.budget is not None and not run.finished:
        took = [row["seconds"] for row in run.rows]
        left = run.budget.left - results_seconds(run)
        on_cpu = run.material.train.labels.device.type == "cpu"
        chosen = {choice.name for choice in run.choices}
        values = plan_again(run.job, took, left, near_enough(run.budget), chosen, on_cpu)
    values = processes.from_first(values)
    if values is not None:
        run.job = replace(run.job, settings=run.job.settings.replanned(run.state.epoch, values))


def results_seconds(run: "Run") -> float:
    """How long judging all labels, testing once more and writing the results and the page take.

    From what the last epoch took, and from what is foreseen for the page.
    """
    material, row = run.material, run.rows[-1]
    num_tests = sum(len(data.labels) for data in material.tests.values())
    num_measured = len(material.holdout.labels) if material.holdout is not None else 0
    num_measured += num_tests * run.job.test_epochs
    if num_measured:
        each = row["profile"].get("test", 0.0) / num_measured
    else:
        each = _EVALUATION * row["seconds"] / len(material.train.labels)
    num_samples = len(material.labels)
    return _FILES + num_samples * _FILES_PER_SAMPLE + (num_samples + num_tests) * each + run.page_seconds


def final_choices(choices: Sequence[Choice], s: ScheduleSettings) -> list[Choice]:
    """The choices with the values of the last plan, if there was more than one."""
    plans = parse_plans(s.earlier_plans)
    names = {name for plan in plans for name in plan.values}
    after = ", ".join(str(plan.until) for plan in plans[:5]) + (", ..." if len(plans) > 5 else "")
    return [
        replace(choice, value=getattr(s, choice.name), reason=f"{choice.value} at first; planned again after {after}")
        if choice.name in names and getattr(s, choice.name) != choice.value
        else choice
        for choice in choices
    ]
