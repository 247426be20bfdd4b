"""Fine-tuning on texts through the whole way, with a stand-in for transformers: train, resume, predict, report."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import transformers_of_words
from test_run_on_texts import _WORDS, write_news
from workshop import fail

from dividemix.cli import main
from dividemix.model.model import Model
from dividemix.runs.run import Run

_FLAGS = ["--text_column=text", "--label_column=topic", "--encoder=transformers:words", "--finetune=true"]
_FLAGS += ["--max_tokens=8", "--epochs=4", "--warmup_epochs=2", "--lr=0.01", "--batch_size=4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finetuned")
    write_news(folder / "news.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "transformers", stand_in())
        assert main(["train", str(folder / "news.csv"), *_FLAGS, f"--out={folder / 'run'}"]) == 0
    return folder / "run"


def stand_in() -> object:
    return transformers_of_words(" ".join(word for words in _WORDS.values() for word in words))


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", stand_in())


def test_the_net_is_the_encoder_and_its_vectors_are_tokens(run: Path) -> None:
    loaded = Run.load(run)
    assert loaded.job.method == "selfmix"
    assert loaded.job.settings.net == "transformers:words"
    tokens = loaded.material.everything.features  # type: ignore[union-attr]
    assert tokens.shape == (50, 8)
    assert torch.equal(tokens, tokens.round())
    assert tokens.min() >= -1
    assert [row["phase"] for row in loaded.rows] == ["warmup", "warmup", "mix", "mix"]


def test_the_model_takes_texts_and_tells_the_topics_apart(run: Path) -> None:
    texts = ["goal match team player", "sauce dish bake oven"]
    probs = Model.from_pretrained(run).predict_proba(texts)
    np.testing.assert_allclose(probs, Run.load(run).model().predict_proba(texts), atol=1e-6)
    classes = json.loads((run / "model" / "config.json").read_text())["classes"]
    assert [classes[i] for i in probs.argmax(axis=1)] == ["sport", "food"]


def test_the_issues_and_the_page_have_the_texts_and_no_map_of_tokens(run: Path) -> None:
    with (run / "label_issues.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50
    assert all(row["text"] for row in rows)
    assert Run.load(run).material.space is None
    page = json.loads((run / "report.html").read_text().partition('id="data">')[2].partition("</script>")[0])
    assert any(sample["shown"].get("marks") for sample in page["suspects"])


def test_a_stopped_run_continues_to_the_same_bits(run: Path, tmp_path: Path) -> None:
    job = Run.load(run).job
    part = Run.create(tmp_path / "part", job)
    for _ in zip(part.epochs(), range(3), strict=False):
        pass
    resumed = Run.load(tmp_path / "part")
    resumed.train()
    expected = Run.load(run).state.tensors()
    found = resumed.state.tensors()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


def test_what_cannot_be_fine_tuned_is_one_line(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", str(run.parent / "news.csv"), "--text_column=text", "--label_column=topic", "--finetune=true"]
    for encoder in ([], ["--encoder=tfidf"], ["--encoder=timm:resnet18"], ["--encoder=transformers:"]):
        message = fail(capsys, [*words, *encoder, f"--out={tmp_path / 'new'}"])
        assert "set --encoder to transformers:MODEL" in message
    assert not (tmp_path / "new").exists()
