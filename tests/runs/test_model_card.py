"""model/README.md against the summary of the run, and against Hugging Face's own reader where it is installed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from toys import settled, toy_arrays, toy_job, trained

from dividemix import train


def front_of(path: Path) -> tuple[dict[str, Any], str]:
    """The metadata and the text of a card."""
    _, front, text = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), text


def test_the_card_has_the_task_and_the_accuracy(tmp_path: Path) -> None:
    trained(tmp_path / "run", toy_job(tmp_path))
    front, text = front_of(tmp_path / "run" / "model" / "README.md")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (front["library_name"], front["pipeline_tag"]) == ("dividemix", "image-classification")
    (model,) = front["model-index"]
    (measured,) = model["results"][0]["metrics"]
    assert measured["value"] == pytest.approx(summary["kept_acc"] / 100)
    assert f"| test accuracy | {summary['kept_acc']:.2f} % |" in text
    assert f"| labels that look wrong | {summary['noise_rate']:.1%} |" in text
    assert "by the method `dividemix`" in text
    trained(tmp_path / "again", toy_job(tmp_path))
    assert settled(tmp_path / "again") == settled(tmp_path / "run")


def test_names_of_classes_are_text_and_nothing_else(tmp_path: Path) -> None:
    arrays, hostile = toy_arrays(), ["---", "<img src=x>", "a|b\n## c", "[x](http://y)"]
    labels = [hostile[k] for k in arrays["y_train"]]
    train(arrays["x_train"], labels, out=tmp_path / "run", epochs=2, net_width=2, device="cpu", progress=False)
    front, text = front_of(tmp_path / "run" / "model" / "README.md")
    assert "model-index" not in front  # no test images, no accuracy
    assert "<img" not in text
    assert "[x]" not in text
    assert "## c" not in text
    assert "| test accuracy" not in text


def test_hugging_face_reads_the_card(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub: pip install huggingface_hub")
    trained(tmp_path / "run", toy_job(tmp_path, epochs=2, warmup_epochs=1))
    card = hub.ModelCard.load(tmp_path / "run" / "model" / "README.md")
    assert card.data.library_name == "dividemix"
    (result,) = card.data.eval_results
    assert result.metric_type == "accuracy"
