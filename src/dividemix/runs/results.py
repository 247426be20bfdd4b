"""The results of a finished run: what is in summary.json, and the files next to it."""

from typing import TYPE_CHECKING

from dividemix import atomic
from dividemix.judging.annotators import annotators_csv, summarise_votes
from dividemix.judging.records import RunSummary
from dividemix.judging.scoring import class_recall, summarise
from dividemix.judging.selection import late_choices

if TYPE_CHECKING:
    from dividemix.runs.run import Run


def write_results(run: "Run") -> None:
    """Write the label issues and, last, the summary, which shows that the run is finished."""
    run.directory.write_issues(run.label_issues())
    if run.material.votes is not None:
        table = annotators_csv(run.material.votes, run.label_issues())
        atomic.write_text(run.directory.path / "annotators.csv", table)
    run.directory.write_json("summary.json", run.summary())


def summarise_run(run: "Run") -> RunSummary:
    """The content of summary.json."""
    material, rows = run.material, run.rows
    summary = summarise(
        rows,
        method=run.job.method,
        seed=run.job.settings.seed,
        kept_epoch=run.kept_epoch,
        noise_rate=run.label_issues().noise_rate,
    )
    if (noise := material.noise) is not None:
        summary["noise"] = {"spec": run.job.noise, "nominal": noise.nominal_rate, "true": noise.true_rate}
    if material.test is not None:
        with run.kept_nets():
            probs = run.test_probs().mean(axis=0)
        summary["class_recall"] = class_recall(probs, material.test.labels.cpu().numpy(), material.classes)
    summary["num_skipped"] = len(material.skipped)
    if material.votes is not None:
        summary["annotators"] = summarise_votes(material.votes)
    if material.notes:
        summary["notes"] = list(material.notes)
    if run.extended_after:
        summary["extended_after"] = run.extended_after
    set_lambda_u = run.job.values().get("lambda_u")
    late = late_choices(rows, run.kept_epoch, set_lambda_u) if run.choices else []
    summary["choices"] = [{"name": one.name, "value": one.value, "reason": one.reason} for one in run.choices + late]
    return summary
