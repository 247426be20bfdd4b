"""model/README.md: a card of the model in the form of Hugging Face's hub, metadata in YAML and then text."""

from typing import TYPE_CHECKING, Any

import yaml

from dividemix.data.classes import printable
from dividemix.errors import counted
from dividemix.judging.records import RunSummary
from dividemix.version import __version__

if TYPE_CHECKING:
    from dividemix.runs.run import Run

_TASKS = {
    "images": "image-classification",
    "texts": "text-classification",
    "rows": "tabular-classification",
    "vectors": "tabular-classification",
}
_EXAMPLES = {
    "images": '["image.jpg"]',
    "texts": '["a text"]',
    "rows": "table",
    "vectors": "vectors",
}
_MAX_CLASSES = 50  # that are listed


def model_card(run: "Run", summary: RunSummary) -> str:
    """The card of a finished run's model. It has no times, so that equal trainings give equal cards."""
    job, material, s = run.job, run.material, run.job.settings
    names = [_cell(name) for name in material.classes[:_MAX_CLASSES]]
    more = f", and {len(material.classes) - _MAX_CLASSES} more" if len(material.classes) > _MAX_CLASSES else ""
    lines = [
        *("---", yaml.safe_dump(_metadata(run, summary), sort_keys=False, allow_unicode=True).rstrip(), "---", ""),
        *(f"# {_cell(job.title)}", ""),
        f"A classifier of {material.given_kind} that was trained on labels that may be wrong, by the method"
        f" `{job.method}` of dividemix {__version__}.",
        *("", "## Use", "", "```python", "import dividemix", ""),
        'model = dividemix.Model.from_pretrained("model")  # this folder',
        "print(model.classes)",
        f"print(model.predict_proba({_EXAMPLES[material.given_kind]}))",
        *("```", "", "## Results", "", "| | |", "|---|---|"),
        *(f"| {name} | {value} |" for name, value in _results(run, summary)),
        *("", "## Training", ""),
        f"- {len(material.labels):,} {material.given_kind} of {len(material.classes)} classes:"
        f" {', '.join(names)}{more}",
        f"- {s.net_words}, {counted(summary['epochs'], 'epoch')}, epoch {summary['kept_epoch']} kept, seed {s.seed}",
        "- all settings: `config.yaml` of the run; the preprocessing: `config.json` next to this file",
        *("", "## Limits", ""),
        "The estimated noise is an opinion of the networks about the labels, not a measurement. Accuracy on held-out"
        " labels counts wrong labels, too. The model knows no classes but those above.",
        "",
    ]
    return "\n".join(lines)


def _metadata(run: "Run", summary: RunSummary) -> dict[str, Any]:
    """The metadata of the hub, with the test accuracy if there is one."""
    task = _TASKS[run.material.given_kind]
    tags = ["dividemix", "noisy-labels", "label-noise"]
    about: dict[str, Any] = {"library_name": "dividemix", "pipeline_tag": task, "tags": tags}
    accuracy = summary.get("kept_acc")
    if accuracy is None:
        return about
    data = {"name": printable(run.job.title), "type": printable(run.job.title)}
    measured = {"type": "accuracy", "value": round(accuracy / 100, 6), "name": "accuracy"}
    result = {"task": {"type": task}, "dataset": data, "metrics": [measured]}
    return about | {"metrics": ["accuracy"], "model-index": [{"name": printable(run.job.title), "results": [result]}]}


def _results(run: "Run", summary: RunSummary) -> list[tuple[str, str]]:
    """Names and values."""
    results = []
    if (accuracy := summary.get("kept_acc")) is not None:
        results.append(("test accuracy", f"{accuracy:.2f} %"))
    if "kept_val_acc" in summary:
        is_clean = run.material.clean_holdout
        name = (
            "accuracy on clean validation samples" if is_clean else "accuracy on held-out labels, wrong ones included"
        )
        results.append((name, f"{summary['kept_val_acc']:.2f} %"))
    if "noise" in summary:
        results.append(("noise that was added", f"{summary['noise']['true']:.1%} of labels"))
    results.append(("labels that look wrong", f"{summary['noise_rate']:.1%}"))
    return results


def _cell(text: str) -> str:
    """Text of a user inside Markdown, where it is only text: on one line, nothing in it is markup."""
    shown = " ".join(printable(text).split())
    return "".join(f"&#{ord(one)};" if one in "<>&|`*_[]#\\~" else one for one in shown)
