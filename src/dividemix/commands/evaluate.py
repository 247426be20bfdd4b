"""dividemix evaluate: a trained run's accuracy on its test images, and the recall of each class."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dividemix.judging.records import TestScores

HELP = "test a trained run"


def add(evaluate: argparse.ArgumentParser) -> None:
    """Add the flags of evaluate."""
    evaluate.add_argument("run", metavar="RUN", type=Path, help="a run directory")
    evaluate.add_argument("--checkpoint", choices=("last", "best"), default="last", help="the epoch to test [last]")
    evaluate.add_argument("--data", metavar="DATA", help="the data, if it has moved since the training")
    evaluate.add_argument("--root", metavar="DIR", help="the folder of a built-in set, if it has moved")
    evaluate.add_argument("--device", metavar="NAME", help="where to compute [as the run was trained]")
    trust = "run the code of your own net or method that the run names: only if you trust it"
    evaluate.add_argument("--trust_net", action="store_true", help=trust)
    evaluate.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from dividemix.display import console, say
    from dividemix.judging import scoring
    from dividemix.planning.job import Job
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.restore import same_job
    from dividemix.runs.run import Run

    job = same_job(RunDirectory(arguments.run), None, trust_net=arguments.trust_net)
    moved = {"data": arguments.data, "root": arguments.root, "device": arguments.device}
    places = {name: value for name, value in moved.items() if value is not None}
    run = Run.load(arguments.run, Job.of(job.values() | places), to_train=False, trust_net=arguments.trust_net)
    if arguments.checkpoint == "best":
        run.load_best()
    probs = run.test_probs()
    assert run.material.test is not None  # test_probs has raised otherwise
    labels = run.material.test.labels.cpu().numpy()
    say(f"{arguments.run}: {run.job.method}, {arguments.checkpoint} checkpoint, {len(labels)} test {run.material.kind}")
    say(_line(scoring.test_scores(probs, labels)))
    for name, images in run.material.other_tests.items():
        scores = scoring.test_scores(run.test_probs(name), images.labels.cpu().numpy())
        say(f"{name}, {len(images.labels)} {run.material.kind}: {_line(scores)}")
    table = Table("class", title="Recall in percent", title_justify="left")
    table.add_column("recall", justify="right")
    for name, recall in scoring.class_recall(probs.mean(axis=0), labels, run.material.classes).items():
        table.add_row(name, "-" if recall is None else f"{recall:.1f}")
    console.print(table)
    return 0


def _line(scores: "TestScores") -> str:
    """The accuracies on one test set in words."""
    words = f"accuracy {scores['acc']:.2f} %"
    if "top5" in scores:
        words += f", top-5 {scores['top5']:.2f} %"
    alone = [f"{accuracy:.2f} %" for accuracy in scores["acc_by_net"]]
    return f"{words} ({', '.join(alone)} by each network alone)" if len(alone) > 1 else words
