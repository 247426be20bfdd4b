"""A plan of two short trainings on a few embedded images; as a script, `toy_plan.py OUT EPOCHS`, reproduces it."""

import sys
from collections.abc import Hashable
from pathlib import Path

from rich.console import Console

from dividemix.engine.processor import num_cores
from dividemix.experiments import runner, training
from dividemix.experiments.chosen import rows_of
from dividemix.experiments.plans import Plan, PlannedRun, Source
from dividemix.experiments.results import Measure
from dividemix.planning.job import Job, known_to

COLUMN = "CIFAR-10 asym. 40 %"
SETTINGS = {
    "data": "fashion",
    "limit_train": 60,
    "noise": "symmetric:0.5",
    "net": "small_cnn",
    "net_width": 2,
    "batch_size": 8,
    "warmup_epochs": 1,
    "device": "cpu",
}


def toy_run(name: str, method: str = "dividemix", **changes: object) -> PlannedRun:
    """A short training: SETTINGS, as far as the method has them, with changes."""
    return PlannedRun(name, Job.of(known_to(method, SETTINGS | {"epochs": 2, "method": method}) | changes))


def toy_plan(epochs: int = 2) -> Plan:
    """Table 2 with a short cross-entropy run and a DivideMix run of so many epochs."""
    runs = {
        "Cross-Entropy": toy_run("first", method="cross_entropy"),
        "DivideMix": toy_run("second", epochs=epochs),
    }
    sources: dict[Hashable, Source] = {
        (method, COLUMN, kind): Source((run,), Measure(kind, "test_acc"))
        for method, run in runs.items()
        for kind in ("best", "last")
    }
    return Plan("table2", "mini", sources, rows=rows_of("table2"), columns=(COLUMN,))


def quiet_console(file: object = None) -> Console:
    return Console(highlight=False, markup=False, emoji=False, width=200, file=file)  # type: ignore[arg-type]


if __name__ == "__main__":
    training.announce_cost = lambda *_, **__: None  # saves its time
    plan = toy_plan(int(sys.argv[2]))
    # As many workers as cores: one thread each, as the tests have.
    sys.exit(runner.reproduce(plan, Path(sys.argv[1]), num_workers=num_cores(), command="", console=quiet_console()))
