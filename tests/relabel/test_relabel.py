"""Corrected data: read back, and compared with what was there; expected tables are written out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.table import list_table
from dividemix.data.votes import consensus
from dividemix.errors import InputError
from dividemix.relabel.corrections import corrections_csv, read_corrections
from dividemix.relabel.relabel import Relabelled, default_out, relabel, without_ambiguous

HEADER = "index,path,given_label,new_label,action\r\n"
CORRECTIONS = (
    HEADER + "0,a.png,cat,dog,accept\r\n1,sub/b.png,dog,dog,keep\r\n2,c.png,cat,,skip\r\n3,d.png,cat,big cat,choose\r\n"
)


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def images(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(folder / name)


@pytest.fixture
def corrections(tmp_path: Path) -> Path:
    return write(tmp_path / "corrections.csv", CORRECTIONS)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "plain.csv",
            "path,label\na.png,cat\nsub/b.png,dog\nc.png,cat\nd.png,cat\ne.png,cat\n",
            "path,label\na.png,dog\nsub/b.png,dog\nc.png,cat\nd.png,big cat\ne.png,cat\n",
        ),
        (
            "tabs.tsv",
            "label\tnote\tpath\r\ncat\t\ta.png\r\ndog\tx,y\tsub/b.png\r\ncat\t\tc.png\r\ncat\t1\td.png",
            "label\tnote\tpath\r\ndog\t\ta.png\r\ndog\tx,y\tsub/b.png\r\ncat\t\tc.png\r\nbig cat\t1\td.png",
        ),
        (
            "semicolons.csv",
            '\n"path";"label";"x"\n"a.png";"cat";"a ""b"";\nc"\n./sub/b.png;dog;\n\nc.png; cat ;"o"\nd.png;cat;é\n',
            '\n"path";"label";"x"\n"a.png";"dog";"a ""b"";\nc"\n./sub/b.png;dog;\n\nc.png; cat ;"o"\nd.png;big cat;é\n',
        ),
        (
            "two.csv",  # rows that name the same file change together, or reading would find them at odds
            "path,label,split\na.png,cat,train\n./a.png,cat,val\nsub/b.png,dog,val\nc.png,cat,dev\nd.png,cat,dev\n",
            "path,label,split\na.png,dog,train\n./a.png,dog,val\nsub/b.png,dog,val\nc.png,cat,dev\nd.png,big cat,dev\n",
        ),
        (
            "broken_row.csv",
            "path,label\na.png,cat\nsub/b.png,dog\nc.png,cat\nx.png\nd.png,cat\n,cat\n",
            "path,label\na.png,dog\nsub/b.png,dog\nc.png,cat\nx.png\nd.png,big cat\n,cat\n",
        ),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_changes_in_its_labels_and_in_nothing_else(
    tmp_path: Path, corrections: Path, name: str, before: str, after: str, encoding: str
) -> None:
    table = write(tmp_path / name, before, encoding)
    counts = relabel(table, corrections, tmp_path / f"out{table.suffix}")
    assert (tmp_path / f"out{table.suffix}").read_bytes() == after.encode(encoding)
    assert table.read_bytes() == before.encode(encoding)
    assert counts == Relabelled(num_changed=2, num_kept=1, num_skipped=1)


def test_columns_can_have_other_names(tmp_path: Path, corrections: Path) -> None:
    table = write(tmp_path / "t.csv", "file,class,label\na.png,cat,1\nsub/b.png,dog,2\nc.png,cat,3\nd.png,cat,4\n")
    relabel(table, corrections, tmp_path / "out.csv", path_column="file", label_column="class")
    listing, _ = list_table(tmp_path / "out.csv", path_column="file", label_column="class")
    assert listing.labels == ["dog", "dog", "cat", "big cat"]


def test_labels_that_need_quotes_come_back_as_they_were(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", 'path,label\na.png,"x, y"\nb.png,z\n')
    file = write(tmp_path / "c.csv", HEADER + '0,a.png,"x, y","say ""hi"",\nthere",choose\r\n')
    relabel(table, file, tmp_path / "out.csv")
    assert list_table(tmp_path / "out.csv")[0].labels == ['say "hi",\nthere', "z"]


@pytest.mark.parametrize("place", ["photos_corrected.csv", "photos/corrected.csv"])
def test_a_folder_becomes_a_table_of_its_images(tmp_path: Path, place: str) -> None:
    images(tmp_path / "photos", ["cat/a.png", "cat/b.png", "dog/deep/c.png", "dog/d.png"])
    file = write(tmp_path / "c.csv", HEADER + "0,cat/a.png,cat,dog,accept\r\n2,dog/deep/c.png,dog,a wolf,choose\r\n")
    before, _ = list_folder(tmp_path / "photos")
    relabel(tmp_path / "photos", file, tmp_path / place)
    after, test = list_table(tmp_path / place)
    assert [Path(str(one)).resolve() for one in after.files] == [Path(str(one)).resolve() for one in before.files]
    assert dict(zip(before.paths, after.labels, strict=True)) == {
        "cat/a.png": "dog",
        "cat/b.png": "cat",
        "dog/d.png": "dog",
        "dog/deep/c.png": "a wolf",
    }
    assert test is None
    assert not after.skipped


def test_a_folder_with_test_images_keeps_them_apart(tmp_path: Path) -> None:
    images(tmp_path / "p", ["train/cat/a.png", "train/dog/b.png", "test/cat/c.png"])
    file = write(tmp_path / "c.csv", HEADER + "0,train/cat/a.png,cat,dog,accept\r\n")
    relabel(tmp_path / "p", file, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == (
        "path,label,split\np/train/cat/a.png,dog,train\np/train/dog/b.png,dog,train\np/test/cat/c.png,cat,test\n"
    )
    train, test = list_table(tmp_path / "p.csv")
    assert (len(train.files), test and len(test.files)) == (2, 1)


@pytest.mark.parametrize("text", [False, True])
def test_an_npz_file_gets_other_labels_and_keeps_the_rest(tmp_path: Path, text: bool) -> None:
    classes = np.array(["ant", "bee", "cow"])
    labels = np.array([0, 1, 2, 1], np.uint8)
    arrays: dict[str, Any] = {
        "x_train": np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8),
        "y_true": classes[labels] if text else labels,
    }
    names: dict[str, Any] = {} if text else {"classes": classes}
    np.savez_compressed(tmp_path / "d.npz", y_train=classes[labels] if text else labels, **arrays, **names)
    new = "a longer name" if text else "cow"
    file = write(tmp_path / "c.csv", f"{HEADER}1,,bee,{new},choose\r\n3,,bee,bee,keep\r\n")
    relabel(tmp_path / "d.npz", file, tmp_path / "out.npz")
    source = read_npz(tmp_path / "out.npz")
    assert [source.classes[label] for label in source.train_labels] == ["ant", new, "cow", "bee"]
    with np.load(tmp_path / "out.npz") as out:
        assert np.array_equal(out["x_train"], arrays["x_train"])
        assert np.array_equal(out["y_true"], arrays["y_true"])
        assert text or out["y_train"].dtype == np.uint8


def test_numbered_classes_cannot_be_added_to(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x_train=np.zeros((3, 8, 8), np.uint8), y_train=np.array([0, 1, 1]))
    file = write(tmp_path / "c.csv", HEADER + "1,,1,wolf,choose\r\n")
    with pytest.raises(InputError, match=r"line 2: new_label 'wolf' is not a class of .*d\.npz"):
        relabel(tmp_path / "d.npz", file, tmp_path / "out.npz")


class TestParquet:
    """Tables written and read with pyarrow."""

    @pytest.mark.parametrize("layout", ["paths", "bytes", "numbers", "hugging face"])
    def test_labels_change_and_the_rest_stays(self, tmp_path: Path, layout: str) -> None:
        """A label is replaced in its own type, be it a name or a class's number."""
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        images(tmp_path, ["a.png", "b.png", "c.png"])
        paths = ["a.png", "b.png", "c.png"]
        content = [(tmp_path / path).read_bytes() for path in paths]
        labels: list[object] = ["cat", "dog", "cat"]
        column, metadata = "path", {b"made by": b"hand"}
        expected: list[object] = ["dog", "dog", "cat"]
        cells: list[object] = list(paths)
        given, new, name = "cat", "dog", "a.png"
        if layout == "bytes":
            cells, name = list(content), "row 0"
        elif layout == "numbers":
            labels, expected, given, new = [0, 1, 0], [1, 1, 0], "0", "1"
        elif layout == "hugging face":
            column, labels, expected = "image", [0, 1, 0], [1, 1, 0]
            cells = [{"bytes": one, "path": path} for one, path in zip(content, paths, strict=True)]
            metadata[b"huggingface"] = (
                b'{"info": {"features": {"image": {"_type": "Image"}, '
                b'"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}'
            )
        table = arrow.table({column: cells, "label": labels, "note": [1.5, None, 2.5]}).replace_schema_metadata(
            metadata
        )
        parquet.write_table(table, tmp_path / "t.parquet")
        file = write(tmp_path / "c.csv", f"{HEADER}0,{name},{given},{new},accept\r\n")
        relabel(tmp_path / "t.parquet", file, tmp_path / "out.parquet")
        out = parquet.read_table(tmp_path / "out.parquet")
        assert out["label"].to_pylist() == expected
        assert out.schema.equals(table.schema, check_metadata=True)
        assert out.drop_columns(["label"]).equals(table.drop_columns(["label"]))

    def test_images_of_one_name_are_told_apart_by_their_row(self, tmp_path: Path) -> None:
        """Their path is just a name; the index is the row in the table. A file that rows share is one image."""
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        cells: list[dict[str, bytes | str | None]]
        cells = [{"bytes": str(n).encode(), "path": path} for n, path in enumerate("xxyzz", start=1)]
        cells[3]["bytes"] = cells[4]["bytes"] = None
        parquet.write_table(arrow.table({"image": cells, "label": ["cat"] * 5}), tmp_path / "t.parquet")
        lines = "1,x,cat,dog,accept\r\n2,y,cat,cow,choose\r\n4,z,cat,emu,choose\r\n"
        relabel(tmp_path / "t.parquet", write(tmp_path / "c.csv", HEADER + lines), tmp_path / "out.parquet")
        labels = parquet.read_table(tmp_path / "out.parquet")["label"].to_pylist()
        assert labels == ["cat", "dog", "cow", "emu", "emu"]
        for line, message in (
            ("3,x,cat", "several images called 'x', none of them in row 3"),
            ("1,x,dog", "given_label"),
        ):
            with pytest.raises(InputError, match=message):
                relabel(
                    tmp_path / "t.parquet",
                    write(tmp_path / "c.csv", f"{HEADER}{line},emu,choose\r\n"),
                    tmp_path / "out.parquet",
                )

    @pytest.mark.parametrize(
        ("labels", "kind", "given", "new", "expected"),
        [
            ([True, False, True], "bool_", "True", "False", [False, False, True]),
            ([1.5, 2.5, 1.5], "float32", "1.5", "2.5", [2.5, 2.5, 1.5]),
            (["a", "b", "a"], "large_string", "a", "new", ["new", "b", "a"]),
            ([1, 2, 1], "int8", "1", "7", [7, 2, 1]),
            ([True, False, True], "bool_", "True", "wolf", r"t\.parquet: column 'label' has type bool"),
            ([1, 2, 1], "int8", "1", "700", r"t\.parquet: column 'label' has type int8"),
            ([1, 2, 1], "int8", "1", "wolf", r"new_label 'wolf' is not a class"),
        ],
    )
    def test_a_label_stays_of_its_columns_type(
        self, tmp_path: Path, labels: list[object], kind: str, given: str, new: str, expected: object
    ) -> None:
        """Or is refused, where it cannot be."""
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        column = arrow.array(labels, type=getattr(arrow, kind)())
        parquet.write_table(arrow.table({"image": [b"1", b"2", b"3"], "label": column}), tmp_path / "t.parquet")
        file = write(tmp_path / "c.csv", f"{HEADER}0,row 0,{given},{new},choose\r\n")
        if isinstance(expected, str):
            with pytest.raises(InputError, match=expected):
                relabel(tmp_path / "t.parquet", file, tmp_path / "out.parquet")
        else:
            relabel(tmp_path / "t.parquet", file, tmp_path / "out.parquet")
            out = parquet.read_table(tmp_path / "out.parquet")
            assert out["label"].to_pylist() == expected
            assert out["label"].type == column.type

    def test_named_classes_cannot_be_added_to(self, tmp_path: Path) -> None:
        """Labels that are text are checked as well: a reader would pass over a row of an unknown class."""
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table({"image": [b"1", b"2"], "label": ["cat", "dog"]}).replace_schema_metadata(
            {b"huggingface": b'{"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}'}
        )
        parquet.write_table(table, tmp_path / "t.parquet")
        file = write(tmp_path / "c.csv", HEADER + "0,row 0,cat,wolf,choose\r\n")
        with pytest.raises(InputError, match="new_label 'wolf' is not a class"):
            relabel(tmp_path / "t.parquet", file, tmp_path / "out.parquet")


class TestNpz:
    """Which sample of an .npz file a correction is about."""

    def labels(self, folder: Path, lines: str, **arrays: Any) -> list[int]:
        """Labels 0, 1, 0, 1 after these corrections."""
        np.savez(folder / "d.npz", x_train=np.zeros((4, 8, 8), np.uint8), y_train=np.array([0, 1, 0, 1]), **arrays)
        relabel(folder / "d.npz", write(folder / "c.csv", HEADER + lines), folder / "out.npz", overwrite=True)
        labels: list[int] = read_npz(folder / "out.npz").train_labels.tolist()
        return labels

    def test_its_row_says_so(self, tmp_path: Path) -> None:
        """Its place in the file, or what the file's `rows` say of that."""
        assert self.labels(tmp_path, "2,,0,1,accept\r\n") == [0, 1, 1, 1]
        rows = np.array([2, 5, 7, 8])
        assert self.labels(tmp_path, "2,,0,1,accept\r\n8,,1,0,accept\r\n", rows=rows) == [1, 1, 0, 0]

    def test_its_path_says_so_where_one_sample_has_it(self, tmp_path: Path) -> None:
        """Whatever the index; where several have it, the index says which."""
        paths = np.array(["a", "b", "a", "d"])
        assert self.labels(tmp_path, "1,d,1,0,accept\r\n2,a,0,1,accept\r\n", paths=paths) == [0, 1, 1, 0]

    @pytest.mark.parametrize(
        ("lines", "arrays", "message"),
        [
            ("4,,0,1,accept", {}, "no training sample 4: the corrections are for other data"),
            ("0,,0,1,accept", {"rows": np.array([2, 5, 7, 8])}, "no training sample 0"),
            ("3,a,0,1,accept", {"paths": np.array(["a", "b", "a", "d"])}, "no training sample 3 with path 'a'"),
            ("0,x,0,1,accept", {"paths": np.array(["a", "b", "a", "d"])}, "no training sample 0 with path 'x'"),
            ("0,a,0,1,accept", {}, r"path is 'a', but .*d\.npz has no paths"),
        ],
    )
    def test_corrections_of_other_data_are_refused(
        self, tmp_path: Path, lines: str, arrays: dict[str, object], message: str
    ) -> None:
        """No sample has that place or that path."""
        with pytest.raises(InputError, match=message):
            self.labels(tmp_path, f"{lines}\r\n", **arrays)

    def test_after_a_limit_the_right_sample_changes(self, tmp_path: Path) -> None:
        """The first of each class are samples 0 and 3; what the page calls its second sample is number 3."""
        np.savez(tmp_path / "d.npz", x_train=np.zeros((5, 8, 8), np.uint8), y_train=np.array([0, 0, 0, 1, 1]))
        limited = read_npz(tmp_path / "d.npz").limit_train(2)
        index = limited.rows[1]
        relabel(tmp_path / "d.npz", write(tmp_path / "c.csv", f"{HEADER}{index},,1,0,accept\r\n"), tmp_path / "o.npz")
        assert read_npz(tmp_path / "o.npz").train_labels.tolist() == [0, 0, 0, 0, 1]

    def test_arrays_keep_the_names_that_they_have(self, tmp_path: Path) -> None:
        """Features and labels are other names of x_train and y_train."""
        arrays: dict[str, Any] = {"features": np.eye(4, dtype=np.float32), "labels": np.array([0, 1, 0, 1])}
        np.savez(tmp_path / "d.npz", **arrays, true_labels=np.array([1, 1, 0, 0]))
        file = write(tmp_path / "c.csv", f"{HEADER}0,,0,1,accept\r\n3,,1,,delete\r\n")
        relabel(tmp_path / "d.npz", file, tmp_path / "o.npz")
        with np.load(tmp_path / "o.npz") as out:
            assert {name: out[name].tolist() for name in out.files} == {
                "features": np.eye(4)[:3].tolist(),
                "labels": [1, 1, 0],
                "true_labels": [1, 1, 0],
            }

    @pytest.mark.parametrize("decision", ["1,,b,,delete", "1,,b,a,accept"])
    def test_votes_stay_those_of_the_samples_and_go_if_a_label_changes(self, tmp_path: Path, decision: str) -> None:
        _, votes = consensus([{"p": "a", "q": "a"}, {"p": "b"}, {"p": "a", "q": "b"}, {"q": "b"}])
        arrays: dict[str, Any] = votes.arrays()
        arrays |= {"x_train": np.eye(4, dtype=np.float32), "y_train": np.array(["a", "b", "a", "b"])}
        np.savez(tmp_path / "d.npz", **arrays)
        relabel(tmp_path / "d.npz", write(tmp_path / "c.csv", f"{HEADER}{decision}\r\n"), tmp_path / "o.npz")
        found = read_npz(tmp_path / "o.npz")
        if "accept" in decision:
            assert found.votes is None
            assert found.train_labels.tolist() == [0, 0, 0, 1]
        else:
            assert found.votes is not None
            for name, array in votes.subset([0, 2, 3]).arrays().items():
                assert found.votes.arrays()[name].tolist() == array.tolist()

    def test_two_decisions_on_one_path_must_agree(self, tmp_path: Path) -> None:
        file = write(tmp_path / "c.csv", f"{HEADER}0,a,0,1,accept\r\n7,a,0,0,keep\r\n")
        np.savez(tmp_path / "d.npz", x_train=np.eye(2), y_train=np.array([0, 1]), paths=np.array(["a", "b"]))
        with pytest.raises(InputError, match=r"'a' has two decisions, accept '1' .*line 2. and keep '0': keep one"):
            relabel(tmp_path / "d.npz", file, tmp_path / "o.npz")


@pytest.mark.parametrize("second", ["4,./a.png,cat,cat,keep", "4,a.png,cat,,delete", "4,a.png,cat,fox,choose"])
@pytest.mark.parametrize("is_first", [False, True])
def test_decisions_on_one_path_that_disagree_are_refused(tmp_path: Path, second: str, is_first: bool) -> None:
    table = write(tmp_path / "t.csv", "path,label\na.png,cat\nb.png,dog\n")
    lines = ["0,a.png,cat,dog,accept", second][:: -1 if is_first else 1]
    with pytest.raises(InputError, match=r"a\.png' has two decisions, .*line 2.* and .*: keep one of them") as error:
        relabel(table, write(tmp_path / "c.csv", HEADER + "\r\n".join(lines)), tmp_path / "o.csv")
    assert "accept 'dog'" in str(error.value)
    assert second.split(",")[4] in str(error.value)
    assert not (tmp_path / "o.csv").exists()


def test_decisions_on_one_path_may_agree(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "path,label\na.png,cat\nb.png,dog\n")
    relabel(
        table,
        write(tmp_path / "c.csv", f"{HEADER}0,a.png,cat,dog,accept\n4,a.png,cat,dog,choose\n"),
        tmp_path / "o.csv",
    )
    assert (tmp_path / "o.csv").read_text() == "path,label\na.png,dog\nb.png,dog\n"


class TestDecisionsWithoutALabel:
    """Deleted samples are gone, ambiguous ones stay as they were; with `without_ambiguous` they are gone as well."""

    LINES = "0,{0},cat,,delete\r\n1,{1},dog,,ambiguous\r\n2,{2},cat,dog,accept\r\n"

    def corrections(self, folder: Path, names: Sequence[str]) -> Path:
        return write(folder / "c.csv", HEADER + self.LINES.format(*names))

    def test_of_a_table(self, tmp_path: Path) -> None:
        table = write(tmp_path / "t.csv", 'path,label,x\na,cat,"1\n2"\n"b",dog,3\nc,cat,4\nd,dog,5\n')
        counts = relabel(table, self.corrections(tmp_path, "abc"), tmp_path / "out.csv")
        assert (tmp_path / "out.csv").read_text() == 'path,label,x\n"b",dog,3\nc,dog,4\nd,dog,5\n'
        assert counts == Relabelled(num_changed=1, num_kept=0, num_skipped=0, num_deleted=1, num_ambiguous=1)
        decided = without_ambiguous(read_corrections(tmp_path / "c.csv"))
        relabel(table, decided, tmp_path / "less.csv")
        assert (tmp_path / "less.csv").read_text() == "path,label,x\nc,dog,4\nd,dog,5\n"

    def test_of_a_folder(self, tmp_path: Path) -> None:
        names = ["cat/a.png", "dog/b.png", "cat/c.png"]
        images(tmp_path / "p", [*names, "dog/d.png"])
        relabel(tmp_path / "p", self.corrections(tmp_path, names), tmp_path / "p.csv")
        assert (tmp_path / "p.csv").read_text() == "path,label\np/cat/c.png,dog\np/dog/b.png,dog\np/dog/d.png,dog\n"

    def test_of_an_npz_file(self, tmp_path: Path) -> None:
        arrays: dict[str, Any] = {
            "x_train": np.arange(5 * 64, dtype=np.uint16).astype(np.uint8).reshape(5, 8, 8),
            "y_train": np.array(["cat", "dog", "cat", "dog", "cat"]),
            "y_true": np.array(["dog", "dog", "dog", "cat", "cat"]),
            "paths": np.array(list("abcde")),
            "rows": np.array([0, 1, 2, 9, 7]),
            "x_test": np.zeros((2, 8, 8), np.uint8),
            "y_test": np.array(["cat", "dog"]),
        }
        np.savez(tmp_path / "d.npz", **arrays)
        relabel(tmp_path / "d.npz", self.corrections(tmp_path, "abc"), tmp_path / "out.npz")
        with np.load(tmp_path / "out.npz") as out:
            assert out["y_train"].tolist() == ["dog", "dog", "dog", "cat"]
            for name in ("x_train", "y_true", "paths", "rows"):
                assert np.array_equal(out[name], arrays[name][1:])
            for name in ("x_test", "y_test"):
                assert np.array_equal(out[name], arrays[name])
        assert read_npz(tmp_path / "out.npz").rows.tolist() == [1, 2, 9, 7]

    def test_of_a_parquet_table(self, tmp_path: Path) -> None:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table({"path": list("abcd"), "label": ["cat", "dog", "cat", "dog"], "x": [1, 2, 3, 4]})
        parquet.write_table(table, tmp_path / "t.parquet")
        relabel(tmp_path / "t.parquet", self.corrections(tmp_path, "abc"), tmp_path / "out.parquet")
        out = parquet.read_table(tmp_path / "out.parquet")
        assert out.to_pydict() == {"path": ["b", "c", "d"], "label": ["dog", "dog", "dog"], "x": [2, 3, 4]}
        assert out.schema.equals(table.schema, check_metadata=True)

    def test_a_new_label_beside_such_a_decision_is_ignored(self, tmp_path: Path) -> None:
        """The action says what to do."""
        file = write(tmp_path / "c.csv", HEADER + "0,a,cat,dog,delete\r\n1,b,cat,dog,ambiguous\r\n")
        assert [one.new_label for one in read_corrections(file)] == ["", ""]

    def test_written_and_read_again_they_are_the_same(self, tmp_path: Path) -> None:
        """With texts that a spreadsheet would run, or that need quotes."""
        names = ("=a", 'b,"x"', "c\nd")
        quoted = ["'=a", '"b,""x"""', '"c\nd"']
        first = read_corrections(self.corrections(tmp_path, quoted))
        assert [one.path for one in first] == list(names)
        again = read_corrections(write(tmp_path / "again.csv", corrections_csv(first)))
        facts = ("index", "path", "given_label", "new_label", "action")
        assert [[getattr(one, fact) for fact in facts] for one in again] == [
            [getattr(one, fact) for fact in facts] for one in first
        ]


def test_an_existing_file_is_not_overwritten_silently(tmp_path: Path, corrections: Path) -> None:
    """The same content again is no change, so a repeated command succeeds."""
    table = write(tmp_path / "t.csv", "path,label\na.png,cat\nsub/b.png,dog\nc.png,cat\nd.png,cat\n")
    out = write(tmp_path / "out.csv", "precious")
    with pytest.raises(
        InputError, match=r"out\.csv: exists with another content: choose another out, or add overwrite"
    ):
        relabel(table, corrections, out)
    assert out.read_text() == "precious"
    relabel(table, corrections, out, overwrite=True)
    relabel(table, corrections, out)
    assert list_table(out)[0].labels == ["dog", "dog", "cat", "big cat"]


TABLE = "path,label\na.png,cat\nb.png,dog\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "0,a.png,dog,cat,accept\r\n", r"c\.csv: line 2: given_label is 'dog', but .*'a\.png' as 'cat'"),
        (HEADER + "0,z.png,cat,dog,accept\r\n", r"c\.csv: line 2: .* no path 'z\.png'"),
        (HEADER + "0,,cat,dog,accept\r\n", r"line 2: .* no path ''"),
        (HEADER + "0,a.png,cat,dog,drop\r\n", r"line 2: action is 'drop': must be one of keep, accept, choose, skip"),
        (HEADER + "x,a.png,cat,dog,accept\r\n", r"line 2: index is 'x'"),
        (HEADER + "-1,a.png,cat,dog,accept\r\n", r"line 2: index is '-1'"),
        (HEADER + "0,a.png,cat,,choose\r\n", r"line 2: action is choose, but there is no label"),
        (HEADER + "0,a.png,cat,dog,accept\r\n0,a.png,cat,cat,keep\r\n", r"line 3: sample 0 occurs twice"),
        (HEADER + '0,"a.png,cat,dog,accept\r\n', r"c\.csv: damaged"),
        (
            "path,label\na.png,dog\n",
            r"c\.csv: not a list of corrections: its columns are 'path', 'label': give the corrections\.csv",
        ),
        ("", r"c\.csv: empty"),
        (HEADER + "0,a.png,cat\r\n", r"c\.csv: line 2 has 3 fields, the header has 5"),
    ],
)
def test_corrections_that_do_not_fit_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    table, file = write(tmp_path / "t.csv", TABLE), write(tmp_path / "c.csv", text)
    with pytest.raises(InputError, match=message) as error:
        relabel(table, file, tmp_path / "out.csv")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.csv").exists()


def test_corrections_may_have_been_through_a_spreadsheet(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", TABLE)
    file = write(
        tmp_path / "c.csv", (HEADER + "0,a.png,cat,dog,accept\r\n\r\n").replace(",", ";"), encoding="utf-8-sig"
    )
    relabel(table, file, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "path,label\na.png,dog\nb.png,dog\n"


@pytest.mark.parametrize(
    ("data", "out", "message"),
    [
        ("none.csv", "out.csv", r"none\.csv: no such file"),
        ("c.txt", "out.txt", r"c\.txt: must be a folder"),
        ("t.csv", "out.tsv", r"must be a \.csv file"),
        ("t.csv", "t.csv", r"t\.csv: is an input and would be overwritten"),
        ("t.csv", "c.csv", r"c\.csv: is an input and would be overwritten"),
        ("t.csv", "sub/out.csv", r"must not leave its folder: put it next to .*t_corrected\.csv"),
        ("t.csv", "nowhere/out.csv", r"no folder .*nowhere"),
        ("sub", "other/out.csv", r"must not leave its folder: put it next to .*sub_corrected\.csv"),
        ("sub", "out.npz", r"must be a \.csv file"),
        ("t.csv", "folder.csv", r"folder\.csv: is a folder"),
    ],
)
def test_places_that_cannot_be(tmp_path: Path, data: str, out: str, message: str) -> None:
    write(tmp_path / "t.csv", TABLE)
    write(tmp_path / "c.txt", TABLE)
    file = write(tmp_path / "c.csv", HEADER + "0,a.png,cat,dog,accept\r\n")
    images(tmp_path / "sub", ["cat/a.png", "dog/b.png"])
    for folder in ("other", "folder.csv"):
        (tmp_path / folder).mkdir()
    with pytest.raises(InputError, match=message):
        relabel(tmp_path / data, file, tmp_path / out)
    assert (tmp_path / "t.csv").read_text() == TABLE


def test_the_usual_place_is_beside_the_data(tmp_path: Path) -> None:
    (tmp_path / "photos.v2").mkdir()
    assert default_out(tmp_path / "photos.v2") == tmp_path / "photos.v2_corrected.csv"
    assert default_out(tmp_path / "t.TSV") == tmp_path / "t_corrected.TSV"
