"""dividemix evaluate: a trained run's accuracy on its test images, and the recall of each class."""

import argparse
from pathlib import Path

HELP = "test a trained run"


def add(evaluate: argparse.ArgumentParser) -> None:
    """The flags of evaluate."""
    evaluate.add_argument("run", metavar="RUN", type=Path, help="a run directory")
    evaluate.add_argument("--checkpoint", choices=("last", "best"), default="last", help="which one (default: last)")
    evaluate.add_argument("--data", metavar="DATA", help="where the folder or file is now, if it has moved")
    evaluate.add_argument("--root", metavar="DIR", help="where the data set is now, if it has moved")
    evaluate.add_argument("--device", metavar="NAME", help="where to compute, if not where the run was trained")
    evaluate.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from dividemix.display import console
    from dividemix.runs import scoring
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.job import Job
    from dividemix.runs.run import Run

    job = RunDirectory(arguments.run).read_job()
    places = {
        name: getattr(arguments, name) for name in ("data", "root", "device") if getattr(arguments, name) is not None
    }
    run = Run.load(arguments.run, Job.of(job.values() | places), to_train=False)
    if arguments.checkpoint == "best":
        run.load_best()
    probs = run.test_probs()
    assert run.material.test is not None  # test_probs has raised otherwise
    labels = run.material.test.labels.cpu().numpy()
    console.print(f"{arguments.run}: {run.job.method}, {arguments.checkpoint} checkpoint, {len(labels)} test images")
    console.print(f"accuracy {scoring.accuracy(probs.mean(axis=0), labels):.2f} %", end="")
    alone = ", ".join(f"{scoring.accuracy(net_probs, labels):.2f} %" for net_probs in probs)
    console.print(f" ({alone} by each network alone)" if len(probs) > 1 else "")
    table = Table("class", title="Recall in percent", title_justify="left")
    table.add_column("recall", justify="right")
    for name, recall in scoring.class_recall(probs.mean(axis=0), labels, run.material.classes).items():
        table.add_row(name, "-" if recall is None else f"{recall:.1f}")
    console.print(table)
    return 0
