"""Runs that are trained in a terminal: what is printed before the first epoch, at an interrupt, and at the end."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.display import agreement_words, console, result_table, say, say_command, watch
from dividemix.engine.interrupts import Interrupted, Interrupts
from dividemix.engine.memory import is_out_of_memory
from dividemix.errors import InputError, counted
from dividemix.judging.issue_table import read_issue_table
from dividemix.judging.records import RunSummary
from dividemix.lock import exclusive
from dividemix.planning.job import read_settings
from dividemix.runs.checkpoints import saved_rows
from dividemix.runs.directory import RunDirectory
from dividemix.runs.run import Run
from dividemix.runs.shown import flags_words, skipped_words
from dividemix.time_left import estimate, seconds_left, time_words

_FEW = 100  # samples below which right and wrong labels can hardly be told apart


def train_shown(run: Run, *, resume: str = "", log: tuple[str, ...] = ()) -> int:
    """Train the run to its end and show it. Returns 0, or the exit code if a signal stopped it.

    `resume` says how to continue a stopped run, if that is not `dividemix resume`. `log` names trackers. Raises
    InputError, before anything is printed, if another process trains the run.
    """
    with exclusive(run.directory.path):  # if another process trains it, that is all to say
        pass
    say_opening(run)
    try:
        with Interrupts():
            watch(run, log)
    except Interrupted as interrupt:
        trust = " --trust_net" if run.job.names_code else ""
        resume = resume or f"dividemix resume {shlex.quote(_from_here(run.directory.path))}{trust}"
        say_command(f"stopped by {interrupt}: {_saved(run)}. Continue with", resume)
        return 128 + interrupt.number
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(f"out of memory: use a smaller --batch_size or --net_width ({_saved(run)})") from None
    if run.material.true_labels is not None:
        say(flags_words(run.label_issues().is_label_issue, run.material.labels != run.material.true_labels))
    return 0


def say_opening(run: Run) -> None:
    """Print what there is to know before the first epoch, and how long the run will take."""
    for line in _opening(run):
        say(line)
    _say_time(run)


def _say_time(run: Run) -> None:
    """Print how long the run will take, and record it in a new one. Nothing is printed if that is not known."""
    if run.finished:
        return
    if run.rows:
        seconds = seconds_left(run)
    elif run.budget is not None:
        seconds = run.estimate = max(run.budget.left, 1.0)
    else:
        seconds = run.estimate = estimate(run)
    if seconds is None:
        return
    say(time_words(run, seconds))
    if not run.rows:
        with exclusive(run.directory.path):
            run.directory.add_estimate(seconds)


def show_results(paths: Sequence[Path]) -> None:
    """Print the table of finished runs, and for each what was found and what to do next."""
    summaries = [RunDirectory(path).read_summary() for path in paths]
    if any(summary.get("kept_acc") is not None for summary in summaries):
        console.print(result_table(summaries))
    for path, summary in zip(paths, summaries, strict=True):
        _show_ending(path, summary)


def _show_ending(path: Path, summary: RunSummary) -> None:
    """Print what was found, and the files and commands that use it, each where it can be copied."""
    run, issues = _from_here(path), read_issue_table(path)
    data = str(read_settings(path / "config.yaml", of_run=True)["data"])
    num_flagged = sum(issue.is_label_issue for issue in issues)
    say(f"{run}: {_model_words(path, summary)}")
    flagged = f"{num_flagged:,} of {counted(len(issues), 'label')} ({num_flagged / len(issues):.1%})"
    say(f"{flagged if num_flagged else 'no label is'} flagged as probably wrong")
    for caution in summary.get("cautions", []):
        say(f"warning: {caution}")
    if number := summary["num_skipped"]:
        say(f"warning: {number:,} skipped, see {run}/skipped.csv")
    say_command("report", f"{run}/report.html")
    say_command("all labels, worst first", f"{run}/label_issues.csv")
    say_command("to decide on labels in the browser", f"dividemix review {shlex.quote(run)}")
    if data not in BUILT_IN:
        say_command("then, to correct them", f"dividemix relabel {shlex.quote(data)} --run {shlex.quote(run)}")
    say_command("to classify new samples", f"dividemix predict {shlex.quote(run)} DATA")


def _model_words(path: Path, summary: RunSummary) -> str:
    """Which epoch's networks are the model, and how good they are as far as that was measured."""
    epoch = summary["kept_epoch"]
    words = [f"the model is that of epoch {epoch} of {summary['epochs']}"]
    if (tested := summary.get("kept_acc")) is not None:
        words.append(f"test accuracy {tested:.1f} %")
    if (agreed := summary.get("kept_val_acc")) is not None:
        is_clean = saved_rows(RunDirectory(path))[epoch - 1].get("val_is_clean")
        words.append(f"validation accuracy {agreed:.1f} %" if is_clean else agreement_words(agreed))
    if len(words) == 1:
        words.append("its accuracy was not measured")
    return ", ".join(words)


def _from_here(path: Path) -> str:
    """The path, relative to the working directory if it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _saved(run: Run) -> str:
    return f"{run.saved_epoch} of {run.job.settings.epochs} epochs are saved"


def _opening(run: Run) -> Iterator[str]:
    """What was skipped, what a file of weights gave, which settings were chosen, and what is about to be trained."""
    if run.material.skipped:
        yield f"warning: {skipped_words(run.material, run.directory.path / 'skipped.csv')}"
    yield from run.material.notes
    if run.weights is not None:
        yield str(run.weights)
    elif run.job.data in BUILT_IN and (weights := BUILT_IN[run.job.data].weights) and not run.state.epoch:
        yield f"starts from random weights; the paper's runs start from {weights}: --weights FILE"
    if run.choices and not run.state.epoch:
        lines = [str(choice) for choice in run.choices]
        yield from (line for line in lines if line.startswith("warning: "))
        yield "settings chosen for your data:"
        yield from (f"  {line}" for line in lines if not line.startswith("warning: "))
    material, noise, s = run.material, run.material.noise, run.job.settings
    if (number := len(material.train.labels)) < _FEW:
        yield f"only {counted(number, 'sample')}: too few to tell right labels from wrong ones reliably"
    amount = f"{number} {material.given_kind} of {counted(len(material.classes), 'class')}"
    if num_held_out := len(material.unseen):
        amount += f", {num_held_out} more held out"
    if material.encoding is not None and material.given_kind != "rows":
        amount += f", by {material.encoding.encoder}"
    words = [
        f"{run.job.method} on {run.job.data}: {amount}",
        f"noise {run.job.noise}: {noise.true_rate:.1%} of labels corrupted" if noise else "no noise added",
        f"{s.net_words}, {counted(s.epochs, 'epoch')}, seed {s.seed}",
    ]
    if run.finished:
        words.append("already finished")
    elif run.state.epoch:
        words.append(f"resumed after epoch {run.state.epoch}")
    yield "; ".join(words)
