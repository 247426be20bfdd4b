"""Texts through the whole way: read, train, resume, predict, report, relabel."""

import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
from workshop import fail

from dividemix.cli import main
from dividemix.data.readers import read_source
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.readers.text_rows import texts_of
from dividemix.errors import InputError
from dividemix.model.model import Model
from dividemix.relabel.stored_review import StoredReview
from dividemix.report.of_files import content_of_files
from dividemix.report.review_server import ReviewServer
from dividemix.report.run_texts import run_texts
from dividemix.runs.run import Run

_WORDS = {
    "sport": ["match", "goal", "team", "player", "season", "coach", "league", "score"],
    "food": ["recipe", "bake", "oven", "sauce", "flavour", "cook", "dish", "taste"],
}
_FLAGS = ["--text_column=text", "--label_column=topic", "--epochs=3", "--holdout=0", "--net_width=8"]


def write_news(path: Path, num_rows: int = 60) -> None:
    """Two topics; every sixth row is for testing, every fifth other label is wrong."""
    rng = random.Random(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topic", "true_label", "split"])
        for i in range(num_rows):
            topic, other = rng.sample(list(_WORDS), 2)
            text = " ".join(rng.choice(_WORDS[topic]) for _ in range(8))
            is_test = i % 6 == 0
            given = other if i % 5 == 0 and not is_test else topic
            writer.writerow([f"{text}, <b>{i}</b>", given, topic, "test" if is_test else "train"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_news(folder / "news.csv")
    assert main(["train", str(folder / "news.csv"), *_FLAGS, f"--out={folder / 'run'}"]) == 0
    return folder / "run"


def test_the_label_issues_have_the_text(run: Path) -> None:
    with (run / "label_issues.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (run.parent / "news.csv").open() as file:
        given = list(csv.DictReader(file))
    assert len(rows) == 50
    for row in rows:
        assert row["text"] == given[int(row["index"])]["text"]
        assert row["given_label"] == given[int(row["index"])]["topic"]


def test_the_model_takes_texts_again_and_gives_the_same_after_loading(run: Path) -> None:
    loaded = Run.load(run)
    texts = ["goal match team", "sauce dish bake", "nothing known"]
    before, after = loaded.model().predict_proba(texts), Model.from_pretrained(run).predict_proba(texts)
    np.testing.assert_allclose(before, after, atol=1e-6)
    assert Model.from_pretrained(run).predict_proba("goal match team").shape == (1, 2)
    with pytest.raises(InputError, match="blank text at position 1"):
        loaded.model().predict_proba(["goal", " "])


def test_the_report_shows_texts_as_text(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert '"kind": "text"' in page or '"kind":"text"' in page
    assert "<b>" not in page.partition('id="data"')[2].partition("</script>")[0].replace("\\u003cb", "")


def test_texts_are_predicted_by_the_command_line(run: Path, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("goal match team\n\nsauce dish bake\n")
    assert main(["predict", str(run), str(tmp_path / "new.txt"), f"--out={tmp_path / 'out.csv'}"]) == 0
    with (tmp_path / "out.csv").open() as file:
        assert [row["index"] for row in csv.DictReader(file)] == ["0", "2"]


def test_a_file_of_blank_texts_is_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line spoke of images."""
    monkeypatch.chdir(tmp_path)
    Path("blank.txt").write_text("  \n\n")
    assert "no text to predict (2 skipped)" in fail(capsys, ["predict", str(run), "blank.txt"])


def test_decisions_and_sure_suggestions_correct_the_table(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The columns are those of the run; the oracle is label_issues.csv."""
    monkeypatch.chdir(tmp_path)
    data, out, decided = run.parent / "news.csv", tmp_path / "out.csv", tmp_path / "corrections.csv"
    with (run / "label_issues.csv").open() as file:
        *rows, last = csv.DictReader(file)  # the last is the least suspicious
    issues = [row for row in rows if row["is_label_issue"] == "True"]
    line = f"{last['index']},,{last['given_label']},weather,choose\n"
    decided.write_text(f"index,path,given_label,new_label,action\n{line}")
    assert main(["relabel", str(data), str(decided), f"--run={run}", "--accept_above=0.5", f"--out={out}"]) == 0
    with data.open() as file:
        expected = list(csv.DictReader(file))
    expected[int(last["index"])]["topic"] = "weather"
    for row in issues:
        expected[int(row["index"])]["topic"] = row["predicted_label"]
    with out.open() as file:
        assert list(csv.DictReader(file)) == expected
    assert f"{len(issues) + 1} label" in capsys.readouterr().out
    words = ["relabel", str(data), f"--run={run}", "--accept_above=0.5", f"--copy_to={tmp_path / 'clean'}"]
    assert "the samples are texts or rows: use --out instead" in fail(capsys, words)


def test_the_page_of_a_review_shows_the_texts(run: Path, tmp_path: Path) -> None:
    content = content_of_files(run)
    texts = run_texts(run, content)
    assert texts is not None
    with (run.parent / "news.csv").open() as file:
        given = [row["text"] for row in csv.DictReader(file)]
    assert texts == [given[index] for index in content.sample_rows]
    review = StoredReview(tmp_path / "c.csv", {}, content.classes, can_add_classes=True)
    with ReviewServer(content, texts, review, {"saved_to": "", "apply": ""}) as server:
        place = "/" + server.url.split("/", 3)[3]
        page = server.get(place).content.decode()
    data = json.loads(page.partition('id="data"')[2].partition(">")[2].partition("</script>")[0])
    for suspect in data["suspects"]:
        assert suspect["shown"] == {"kind": "text", "text": given[suspect["index"]]}
    write_news(tmp_path / "short.csv", num_rows=20)
    with pytest.raises(InputError, match="is not where it was when the run was trained: give the right data"):
        run_texts(run, content, str(tmp_path / "short.csv"))


def test_a_run_that_is_stopped_resumes_to_the_same_bits(run: Path, tmp_path: Path) -> None:
    stopped = Run.create(tmp_path / "stopped", Run.load(run).job)
    epochs = stopped.epochs()
    next(epochs)
    epochs.close()
    Run.load(tmp_path / "stopped").train()
    assert (tmp_path / "stopped" / "pred_probs.npy").read_bytes() == (run / "pred_probs.npy").read_bytes()


def test_wrong_labels_of_few_texts_are_found(tmp_path: Path) -> None:
    """One scale for all numbers of a vector: scaled one by one, few texts are all equally far from each other."""
    write_news(tmp_path / "news.csv", 200)
    flags = [*_FLAGS[:2], "--holdout=0", f"--out={tmp_path / 'run'}"]
    assert main(["train", str(tmp_path / "news.csv"), *flags]) == 0
    with (tmp_path / "news.csv").open() as file:
        given = list(csv.DictReader(file))
    with (tmp_path / "run" / "label_issues.csv").open() as file:
        flagged = {int(row["index"]) for row in csv.DictReader(file) if row["is_label_issue"] == "True"}
    wrong = {i for i, row in enumerate(given) if row["topic"] != row["true_label"] and row["split"] == "train"}
    assert len(flagged & wrong) >= 0.6 * len(wrong)
    assert len(flagged - wrong) <= 0.2 * len(wrong)


def test_a_text_with_a_comma_that_is_not_quoted_is_skipped_and_listed(tmp_path: Path) -> None:
    rows = ["text,label", "good film,pos", "bad film,neg", "slow, but fine,pos", "fine,pos", "poor,neg"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    source = read_source(str(tmp_path / "a.csv"), columns=TableColumns(text_column="text"))
    assert source.classes == ("neg", "pos")
    assert [(one.path, one.reason.partition(":")[0]) for one in source.skipped] == [
        ("line 4", "3 fields, the header has 2")
    ]


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    texts = ["one\u2028still one", "two\x0cstill two", "three"]
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"t": text, "label": str(i % 2)}, ensure_ascii=False) for i, text in enumerate(texts)),
        encoding="utf-8-sig",
    )
    assert read_source(str(tmp_path / "a.jsonl"), columns=TableColumns(text_column="t")).train_samples.tolist() == texts  # type: ignore[union-attr]
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n")
    assert texts_of(tmp_path / "a.txt", None) == texts


def test_a_model_of_texts_is_not_exported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(run), "--format=pt2", f"--out={tmp_path / 'a.pt2'}"]) == 2
    assert "takes texts, which no exported file can" in capsys.readouterr().err


@pytest.mark.parametrize("extension", [".jsonl", ".parquet", ".tsv"])
def test_all_kinds_of_tables_give_the_same(extension: str, tmp_path: Path) -> None:
    write_news(tmp_path / "news.csv")
    with (tmp_path / "news.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = tmp_path / f"news{extension}"
    if extension == ".jsonl":
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif extension == ".tsv":
        names = "\t".join(rows[0])
        table.write_text("\n".join([names, *("\t".join(row.values()) for row in rows)]))
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        parquet.write_table(arrow.Table.from_pylist(rows), table)
    expected = read_source(str(tmp_path / "news.csv"), columns=TableColumns(text_column="text", label_column="topic"))
    found = read_source(str(table), columns=TableColumns(text_column="text", label_column="topic"))
    assert found.train_samples.tolist() == expected.train_samples.tolist()  # type: ignore[union-attr]
    assert found.classes == expected.classes
    np.testing.assert_array_equal(found.train_labels, expected.train_labels)
    np.testing.assert_array_equal(found.rows, expected.rows)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--text_column=words"], "no column 'words', it has 'text'"),
        (["--text_column=text"], "no column 'label'"),
        (["--text_column=topic", "--label_column=topic"], "name two columns"),
        ([*_FLAGS, "--encoder=nothing:here"], "cannot be imported"),
    ],
)
def test_what_is_wrong_is_one_line(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_news(tmp_path / "news.csv")
    assert message in fail(capsys, ["train", "news.csv", *flags])


@pytest.mark.parametrize("name", ["new", "a.png"])
def test_the_kind_of_file_is_checked_before_the_column(tmp_path: Path, name: str) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "a.png").touch()
    takes = "this model takes texts: give .txt, .csv, .tsv, .parquet or .jsonl files"
    with pytest.raises(InputError) as caught:
        texts_of(tmp_path / name, None)
    assert str(caught.value) == f"{tmp_path / name}{' is a folder' if name == 'new' else ''}: {takes}"
