"""dividemix evaluate: a trained run's accuracy on its test images, and the recall of each class."""

import argparse
from typing import TYPE_CHECKING

from dividemix.commands.loaded_run import add_run, load_run
from dividemix.errors import InputError

if TYPE_CHECKING:
    from dividemix.judging.records import TestScores

HELP = "test a trained run"


def add(evaluate: argparse.ArgumentParser) -> None:
    """Add the flags of evaluate."""
    add_run(evaluate)
    evaluate.add_argument("--checkpoint", choices=("last", "best"), default="last", help="the epoch to test [last]")
    evaluate.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from dividemix.display import console, say
    from dividemix.judging import scoring

    run = load_run(arguments)
    if arguments.checkpoint == "best":
        run.load_best()
    if run.material.test is None:
        raise InputError(
            f"{arguments.run}: the run has no test {run.material.given_kind}: train with --test DATA to have some;"
            f" dividemix predict {arguments.run} DATA predicts other samples"
        )
    probs = run.test_probs()
    labels = run.material.test.labels.cpu().numpy()
    amount = f"{len(labels)} test {run.material.given_kind}"
    say(f"{arguments.run}: {run.job.method}, {arguments.checkpoint} checkpoint, {amount}")
    say(_line(scoring.test_scores(probs, labels)))
    for name, images in run.material.other_tests.items():
        scores = scoring.test_scores(run.test_probs(name), images.labels.cpu().numpy())
        say(f"{name}, {len(images.labels)} {run.material.given_kind}: {_line(scores)}")
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
