"""dividemix evaluate: a trained run's accuracy on its test samples, or on other data, and the recall of each class."""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dividemix.commands.loaded_run import add_run, load_run
from dividemix.data.same_file import identity
from dividemix.errors import InputError
from dividemix.judging.selection import best_epoch
from dividemix.planning.job import JOB_FIELDS, Job
from dividemix.runs.unfinished import require_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dividemix.judging.records import TestScores
    from dividemix.runs.run import Run

HELP = "test a trained run"
EPILOG = """\
With --test, the model of a finished run is tested on other labelled data, which is read as in dividemix train; the
training data is not needed. Classes are matched by name."""
_OF_TEST = (
    *("test_labels", "path_column", "label_column", "image_root", "text_column", "target", "features_column"),
    "memory_gb",
)


def add(evaluate: argparse.ArgumentParser) -> None:
    """Add the flags of evaluate."""
    add_run(evaluate)
    checkpoint = "the epoch to test: that of the run's model, the last, or the best [kept]"
    evaluate.add_argument("--checkpoint", choices=("kept", "last", "best"), help=checkpoint)
    test = "other labelled data to test on, of the kind that the run was trained on [the run's test samples]"
    evaluate.add_argument("--test", metavar="DATA", help=test)
    others = evaluate.add_argument_group("with --test")
    for field in (JOB_FIELDS[name] for name in _OF_TEST):
        default = "" if field.name == "test_labels" else " [as the run has it]"
        others.add_argument(f"--{field.name}", metavar=field.metavar, help=f"{field.doc.partition(' [')[0]}{default}")
    evaluate.set_defaults(command=_evaluate)


def _evaluate(arguments: argparse.Namespace) -> int:
    of_test = {name: value for name in _OF_TEST if (value := getattr(arguments, name)) is not None}
    if arguments.test is not None:
        return _evaluate_on(arguments, of_test)
    if of_test:
        raise InputError(f"{next(iter(of_test))} has no meaning without --test DATA: leave it out")

    run = load_run(arguments)

    from dividemix.display import say
    from dividemix.judging import scoring

    if not run.state.epoch:
        raise InputError(f"{arguments.run}: no epoch is trained yet; resume the run")
    if run.material.test is None:
        raise InputError(
            f"{arguments.run}: the run has no test {run.material.given_kind}: give labelled ones by --test DATA;"
            f" dividemix predict {arguments.run} DATA predicts others"
        )
    what = _load(run, arguments.checkpoint or "kept")
    probs = run.test_probs_now()
    labels = run.material.test.labels.cpu().numpy()
    amount = f"{len(labels)} test {run.material.given_kind}"
    say(f"{arguments.run}: {run.job.method}, {what}, {amount}")
    say(_line(scoring.test_scores(probs, labels)))
    for name, images in run.material.other_tests.items():
        scores = scoring.test_scores(run.test_probs_now(name), images.labels.cpu().numpy())
        say(f"{name}, {len(images.labels)} {run.material.given_kind}: {_line(scores)}")
    _print_recall(probs.mean(axis=0), labels, run.material.classes)
    return 0


def _load(run: "Run", checkpoint: str) -> str:
    """Load the nets of a checkpoint, which the run has no use for afterwards; returns it in words."""
    num_epochs = run.state.epoch
    if checkpoint == "kept":
        epoch = run.kept_epoch
        if epoch != num_epochs:
            run.load_best()
        return f"the run's model (epoch {epoch} of {num_epochs})"
    if checkpoint == "best":
        run.load_best()
        return f"the best epoch ({best_epoch(run.rows)} of {num_epochs})"
    return f"the last epoch ({num_epochs})"


def _evaluate_on(arguments: argparse.Namespace, of_test: dict[str, str]) -> int:
    """Test the model of the run on other data."""
    for name in ("checkpoint", "data", "root"):
        if getattr(arguments, name) is not None:
            raise InputError(f"{name} has no meaning with --test, which tests the run's model alone: leave it out")

    require_run(arguments.run)

    from dividemix.display import say
    from dividemix.judging import scoring
    from dividemix.model.model import Model
    from dividemix.runs.directory import RunDirectory
    from dividemix.runs.other_test import predict_each, read_test

    job = RunDirectory(arguments.run).read_job(trust_net=arguments.trust_net)
    given = {name: JOB_FIELDS[name].from_text(text) for name, text in of_test.items()}
    job = Job.of(job.values() | {"test_labels": None} | given | {"test": arguments.test})
    device = arguments.device or job.settings.device
    model = Model.from_pretrained(arguments.run, device, trust_net=arguments.trust_net)
    source = read_test(model, job)
    if identity(Path(job.data)) == identity(Path(arguments.test)):
        warnings.warn(f"{arguments.test} is what the run was trained on: the model may know these labels", stacklevel=2)
    samples, labels = source.test_samples, source.test_labels
    assert samples is not None
    assert labels is not None
    if source.skipped:
        first = source.skipped[0]
        say(f"skipped {len(source.skipped)} of the files, the first: {first.path}: {first.reason}")
    probs = predict_each(model, samples)
    say(f"{arguments.run}: {job.method}, the run's model, {len(labels)} {model.kind} of {arguments.test}")
    say(_line(scoring.test_scores(probs[None], labels)))
    _print_recall(probs, labels, source.classes)
    return 0


def _line(scores: "TestScores") -> str:
    """The accuracies on one test set in words."""
    words = f"accuracy {scores['acc']:.2f} %"
    if "top5" in scores:
        words += f", top-5 {scores['top5']:.2f} %"
    alone = [f"{accuracy:.2f} %" for accuracy in scores["acc_by_net"]]
    return f"{words} ({', '.join(alone)} by each network alone)" if len(alone) > 1 else words


def _print_recall(probs: "NDArray[np.float32]", labels: "NDArray[np.int64]", classes: Sequence[str]) -> None:
    """Print a table of the recall of each class, from probabilities (N, C)."""
    from rich.table import Table

    from dividemix.display import console
    from dividemix.judging import scoring

    table = Table("class", title="Recall in percent", title_justify="left")
    table.add_column("recall", justify="right")
    for name, recall in scoring.class_recall(probs, labels, classes).items():
        table.add_row(name, "-" if recall is None else f"{recall:.1f}")
    console.print(table)
