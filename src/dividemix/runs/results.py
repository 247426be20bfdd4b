"""The results of a finished run: what is in summary.json, and the files next to it."""

from typing import TYPE_CHECKING

from dividemix import atomic
from dividemix.judging.annotators import annotators_csv, summarise_votes
from dividemix.judging.cautions import cautions
from dividemix.judging.records import RunSummary
from dividemix.judging.results_digest import results_digest
from dividemix.judging.scoring import class_recall, summarise, test_scores
from dividemix.judging.selection import late_choices
from dividemix.runs.model_card import model_card
from dividemix.runs.replan import final_choices
from dividemix.runs.shown import metrics_csv
from dividemix.stored import digest_of_file

if TYPE_CHECKING:
    from dividemix.runs.run import Run


def write_results(run: "Run") -> None:
    """Write the tables, the card of the model and, last, the summary, which shows that the run is finished."""
    issues, summary, path = run.label_issues(), run.summary(), run.directory.path
    run.directory.write_issues(issues)
    if run.material.votes is not None:
        atomic.write_text(path / "annotators.csv", annotators_csv(run.material.votes, issues))
    atomic.write_text(path / "noise_matrix.csv", issues.matrix_csv())
    atomic.write_text(path / "metrics.csv", metrics_csv(run.rows))
    atomic.write_text(path / "model" / "README.md", model_card(run, summary))
    summary["probs_digest"] = digest_of_file(path / "pred_probs.npy")
    digest = results_digest(summary, path / "label_issues.csv")
    run.directory.write_json("summary.json", {**summary, "digest": digest})


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
    summary["class_noise"] = run.label_issues().class_noise
    summary["expected"] = run.label_issues().expected
    if (noise := material.noise) is not None:
        summary["noise"] = {"spec": run.job.noise, "nominal": noise.nominal_rate, "true": noise.true_rate}
    _add_tests(summary, run)
    is_noisy = "kept_acc" not in summary and not any(row.get("val_is_clean") for row in rows)
    summary["cautions"] = cautions(run.label_issues(), summary.get("kept_val_acc") if is_noisy else None)
    summary["num_skipped"] = len(material.skipped)
    if material.votes is not None:
        summary["annotators"] = summarise_votes(material.votes)
    if material.notes:
        summary["notes"] = list(material.notes)
    if run.extended_after:
        summary["extended_after"] = run.extended_after
    set_lambda_u = run.job.values().get("lambda_u")
    late = late_choices(rows, run.kept_epoch, set_lambda_u) if run.choices else []
    choices = final_choices(run.choices, run.job.settings) + late
    summary["choices"] = [{"name": one.name, "value": one.value, "reason": one.reason} for one in choices]
    return summary


def _add_tests(summary: RunSummary, run: "Run") -> None:
    """Add the scores of the kept model on the test sets."""
    probs = {name: run.test_probs(name) for name in run.material.tests}
    labels = {name: data.labels.cpu().numpy() for name, data in run.material.tests.items()}
    scores = {name: test_scores(probs[name], labels[name]) for name in probs}
    if run.material.test is not None:
        test = scores.pop("test")
        summary["kept_acc"] = test["acc"]
        if "top5" in test:
            summary["test_top5"] = test["top5"]
        summary["class_recall"] = class_recall(probs["test"].mean(axis=0), labels["test"], run.material.classes)
    if scores:
        summary["other_tests"] = scores
