"""Votes of several annotators, from tables and arrays. Oracle: counts by hand; the same votes in another layout."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import write_png

from dividemix.data.originals import originals
from dividemix.data.readers import read_source
from dividemix.data.readers.arrays import read_arrays
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.source import Source
from dividemix.data.votes import consensus
from dividemix.errors import InputError

VOTES = [  # of anna, ben and carl on ten images; the first six are without doubt
    *(["cat"] * 3, ["dog"] * 3, ["cat"] * 3, ["dog"] * 3, ["cat", "cat", ""], ["dog", "", "dog"]),
    *(["cat", "cat", "dog"], ["dog", "dog", "cat"], ["", "", "cat"], ["cat", "dog", "ape"]),
]
NAMES = ["anna", "ben", "carl"]
ANNOTATOR: dict[str, Any] = {"annotator_column": "worker"}
EXPECTED = ["cat", "dog", "cat", "dog", "cat", "dog", "cat", "dog", "cat"]


def write(path: Path, rows: list[list[str]]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


@pytest.fixture
def wide(tmp_path: Path) -> str:
    for number in range(len(VOTES)):
        write_png(tmp_path / f"{number}.png", number)
    rows = [[f"{number}.png", *votes] for number, votes in enumerate(VOTES)]
    return write(tmp_path / "wide.csv", [["path", *NAMES], *rows])


@pytest.fixture
def long(wide: str) -> str:
    rows = [
        [f"{number}.png", vote, who]
        for who_number, who in enumerate(NAMES)
        for number, votes in enumerate(VOTES)
        if (vote := votes[who_number])
    ]
    return write(Path(wide).with_name("long.csv"), [["path", "label", "worker"], *rows])


def check(source: Source) -> None:
    assert source.paths is not None
    assert source.votes is not None
    given = {path: source.classes[label] for path, label in zip(source.paths, source.train_labels, strict=True)}
    assert [given[f"{number}.png"] for number in range(9)] == EXPECTED
    counts = {path: source.votes.counted(number) for number, path in enumerate(source.paths)}
    assert counts["0.png"] == "cat 3"
    assert counts["4.png"] == "cat 2"
    assert counts["6.png"] == "cat 2, dog 1"
    assert counts["9.png"] == "ape 1, cat 1, dog 1"
    assert source.votes.annotators == ("anna", "ben", "carl")
    sure = dict(zip(source.paths, source.votes.confidence, strict=True))
    assert sure["0.png"] > 0.95
    assert sure["0.png"] > sure["6.png"] > sure["9.png"]
    assert source.votes.num_disputed == 3
    (note,) = (note for note in source.notes if "annotators" in note)
    assert note.startswith("26 votes of 3 annotators on 10 samples, 3 of them disputed; Krippendorff's alpha 0.")


def test_a_column_for_each_annotator(wide: str) -> None:
    check(read_source(wide, columns=TableColumns.of({"annotators": "anna, ben,carl"})))


def test_a_row_for_each_vote(long: str) -> None:
    source = read_source(long, columns=TableColumns.of({"annotator_column": "worker"}))
    check(source)
    assert source.num_given == 10


def test_both_layouts_say_the_same(wide: str, long: str) -> None:
    one, other = (
        read_source(wide, columns=TableColumns.of({"annotators": "anna,ben,carl"})),
        read_source(long, columns=TableColumns.of({"annotator_column": "worker"})),
    )
    assert one.votes is not None
    assert other.votes is not None
    assert one.paths is not None
    assert other.paths is not None
    place = [other.paths.index(path) for path in one.paths]
    np.testing.assert_array_equal(other.votes.choices[place], one.votes.choices)
    np.testing.assert_allclose(other.votes.confidence[place], one.votes.confidence)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_votes_in_a_parquet_file(wide: str, long: str, layout: str) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is an extra: pip install 'dividemix[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    with Path(wide if layout == "wide" else long).open(newline="") as file:
        rows = [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]
    path = Path(wide).with_name("votes.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    check(
        read_source(
            str(path), columns=TableColumns.of({"annotators": "anna,ben,carl"} if layout == "wide" else ANNOTATOR)
        )
    )
    if layout == "wide":
        with pytest.raises(InputError, match=r"no column 'none', it has 'path', .*annotators or annotator_column"):
            read_source(str(path), columns=TableColumns.of({"annotators": "anna,none"}))


def test_the_files_of_voted_samples_are_found_again(wide: str, long: str) -> None:
    """As the page does, by the settings of the run: a row of many votes is still one sample."""
    layouts: list[tuple[str, dict[str, Any]]] = [(wide, {"annotators": "anna,ben,carl"}), (long, ANNOTATOR)]
    for data, settings in layouts:
        source = read_source(data, columns=TableColumns.of(settings))
        found = originals({"data": data} | settings)
        assert found is not None
        assert source.paths is not None
        assert [found.names[row] for row in source.rows.tolist()] == list(source.paths)


def test_votes_from_python() -> None:
    images = np.random.default_rng(0).integers(0, 256, (10, 8, 8), dtype=np.uint8)
    votes = [[vote or None for vote in row] for row in VOTES]
    source = read_arrays(images, votes, annotators=NAMES)
    assert [source.classes[label] for label in source.train_labels[:9]] == EXPECTED
    assert source.votes is not None
    assert source.votes.counted(6) == "cat 2, dog 1"
    numbers = np.array([[0, 0, np.nan], [1, 1, 1], [0, 1, 1], [1, np.nan, 1], [0, 0, 0]])
    source = read_arrays(images[:5], numbers)
    assert source.train_labels.tolist() == [0, 1, 1, 1, 0]
    assert source.votes is not None
    assert source.votes.annotators == ("annotator 1", "annotator 2", "annotator 3")


def test_a_table_of_pandas_names_the_annotators() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    frame = pandas.DataFrame({"anna": ["a", "b", "a", "b"], "ben": ["a", "b", None, "a"]})
    source = read_arrays(images, frame)
    assert source.votes is not None
    assert source.votes.annotators == ("anna", "ben")
    assert source.votes.counted(2) == "a 1"


def test_the_later_vote_of_an_annotator_counts(tmp_path: Path) -> None:
    for number in range(2):
        write_png(tmp_path / f"{number}.png", number)
    rows = [["path", "label", "who"], *(["0.png", label, "x"] for label in "aab"), ["1.png", "a", "x"]]
    source = read_source(write(tmp_path / "t.csv", rows), columns=TableColumns.of({"annotator_column": "who"}))
    assert source.votes is not None
    assert [source.votes.counted(number) for number in range(2)] == ["b 1", "a 1"]


def test_votes_go_with_their_samples(wide: str) -> None:
    Path(wide).with_name("3.png").write_bytes(b"damaged")
    source = read_source(wide, columns=TableColumns.of({"annotators": "anna,ben,carl"}))
    assert source.votes is not None
    assert source.paths is not None
    assert source.votes.counted(source.paths.index("6.png")) == "cat 2, dog 1"
    small = source.limit_train(3)
    assert small.votes is not None
    assert small.paths is not None
    assert [small.votes.counted(i) for i in range(len(small.paths))] == [
        source.votes.counted(source.paths.index(path)) for path in small.paths
    ]


def test_accuracy_of_annotators() -> None:
    """Anna and Ben always agree, Carl is against them in a third of the cases."""
    votes = [{"a": "x", "b": "x", "c": "y" if n % 3 == 0 else "x"} for n in range(30)]
    votes += [{"a": "y", "b": "y", "c": "x" if n % 3 == 0 else "y"} for n in range(30)]
    labels, found = consensus(votes)
    assert labels == ["x"] * 30 + ["y"] * 30
    np.testing.assert_allclose(found.accuracy, [1, 1, 2 / 3], atol=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotators": "anna,none"}, "no column 'none' .*: name the columns of the annotators"),
        ({"annotators": "anna"}, "annotators is 'anna': must be at least two different columns"),
        ({"annotators": "anna,anna"}, "must be at least two different columns"),
        (
            {"annotators": "anna,ben", "annotator_column": "carl"},
            "annotators and annotator_column are both given: .* leave one out",
        ),
        ({"annotator_column": "carl"}, "no column 'label'"),
    ],
)
def test_columns_that_make_no_sense(wide: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_source(wide, columns=TableColumns.of(options))


def test_votes_are_for_tables(tmp_path: Path) -> None:
    (tmp_path / "boxes.json").write_text("{}")
    for data in ("fashion", str(tmp_path / "boxes.json")):
        with pytest.raises(InputError, match="annotators has no meaning for "):
            read_source(data, columns=TableColumns.of({"annotators": "a,b"}))


@pytest.mark.parametrize(
    ("labels", "annotators", "message"),
    [
        ([0, 1, 0, 1], ["a", "b"], "annotators are given, so labels must have shape"),
        ([[0, 1]] * 4, ["a"], "labels have 2 columns, annotators are"),
        ([[0, 1], [1], [0, 1], [1, 1]], None, "labels have 2 columns"),
        ([[0, 1]] * 3 + [[None, None]], None, r"labels\[3\] has no vote"),
        ([[0, 1], [1, 1], [0, 1]], None, "labels are 3, but there are 4 images"),
    ],
)
def test_votes_that_make_no_sense(labels: Any, annotators: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_arrays(np.zeros((4, 8, 8), np.uint8), labels, annotators=annotators)


@pytest.mark.parametrize(("num_names", "num_labels"), [(2000, 1000), (20_000, 2)])
def test_a_column_that_cannot_be_of_votes_is_refused(num_names: int, num_labels: int) -> None:
    """The matrices of 2,000 annotators and 1,000 classes took 48 GB, from a table of 30 KB."""
    votes = [{f"w{number}": f"c{number % num_labels}"} for number in range(num_names)]
    with pytest.raises(InputError, match="too many to estimate who is right"):
        consensus(votes)
