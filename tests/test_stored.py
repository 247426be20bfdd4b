"""Files read back. Oracle: values that are right, each made wrong in one place."""

import json
import time
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from dividemix.errors import InputError
from dividemix.stored import check_shape, parse_json, read_bytes, read_json, read_yaml


class Inner(TypedDict):
    """A record in a record."""

    word: Literal["a", "b"]


class Record(TypedDict):
    """Each kind of field once."""

    number: int
    share: float | None
    names: list[str]
    inner: dict[str, Inner]
    flag: NotRequired[bool]


RIGHT: dict[str, Any] = {"number": 1, "share": 0.5, "names": ["x"], "inner": {"k": {"word": "a"}}}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for right in (RIGHT, RIGHT | {"share": None}, RIGHT | {"share": 1}, RIGHT | {"flag": True}, RIGHT | {"names": []}):
        path.write_text(json.dumps(right))
        assert read_json(path, Record) == right


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": 1.0}, "number is 1.0, not int"),
        ({"number": True}, "number is True, not int"),
        ({"number": None}, "number is None, not int"),
        ({"share": "0.5"}, "share is '0.5'"),
        ({"names": "x"}, "names is 'x', not a list"),
        ({"names": ["x", 3]}, r"names\[1\] is 3, not str"),
        ({"inner": {"k": {"word": "c"}}}, "inner.k.word is 'c', not one of a, b"),
        ({"inner": {"k": {}}}, "inner.k has no word"),
        ({"inner": []}, r"inner is \[\], not an object"),
        ({"more": 1}, "has an unknown 'more'"),
        ({"flag": 1}, "flag is 1, not bool"),
    ],
)
def test_a_value_of_another_shape_is_refused_by_its_name(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^here: damaged .*{said}"):
        parse_json(json.dumps(RIGHT | change).encode(), Record, "here")


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_a_missing_value_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(InputError, match=f"it has no {name}"):
        parse_json(json.dumps({key: value for key, value in RIGHT.items() if key != name}).encode(), Record, "here")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"nonsense", b"\xff", b"[" * 100_000, b'{"a":' * 100_000, b"1e999", b"NaN", b'"\\ud800"', b"null"],
)
def test_whatever_the_bytes_are_there_is_one_line(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^here: damaged") as refusal:
        parse_json(content, Record, "here")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_json_nests_fifty_deep_and_no_deeper(opening: str, closing: str) -> None:
    """Row 8: a depth that the parser of one Python bears overflows the stack of another."""
    assert parse_json((opening * 50 + "1" + closing * 50).encode(), Any, "here")
    with pytest.raises(InputError, match="nested deeper than 50"):
        parse_json((opening * 51 + "1" + closing * 51).encode(), Any, "here")


def test_brackets_in_texts_do_not_count_as_depth() -> None:
    assert parse_json(json.dumps(["[" * 1000 + '"\\' + "{" * 1000]).encode(), list[str], "here")


def test_infinite_and_huge_numbers_are_not_numbers() -> None:
    for value in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="finite"):
            check_shape(value, float)
    for text in (b"1e999", b"1" + b"0" * 400, b"-1" + b"0" * 400):
        with pytest.raises(InputError, match="finite"):
            parse_json(text, float, "here")


def test_a_text_without_its_end_takes_no_time() -> None:
    started = time.monotonic()
    with pytest.raises(InputError):
        parse_json(b'{"a": "' + b'\\"' * 500_000, Record, "here")
    assert time.monotonic() - started < 30  # it took an hour


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1, 2]\nb: [*x, *x]\n", "aliases"),
        ("a: " + "[" * 100_000, "nested deeper"),
        ("a: " * 2000, "YAML"),
        ("- a\n- b\n", "not a settings file"),
        ("1: 2\n", "not a settings file"),
        ("a: !!python/object/apply:os.system [echo]\n", "not YAML"),
        ("a: 2024-99-99\n", "not YAML"),
        ("", "not a settings file"),
    ],
)
def test_yaml_that_is_not_settings_is_one_line_at_once(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    started = time.monotonic()
    with pytest.raises(InputError, match=said) as refusal:
        read_yaml(path)
    assert "\n" not in str(refusal.value)
    assert time.monotonic() - started < 30  # a nest of aliases took minutes and gigabytes


def test_a_nest_of_aliases_takes_no_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    with pytest.raises(InputError, match="aliases"):
        read_yaml(tmp_path / "bomb.yaml")


def test_a_large_or_missing_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 101)
    assert read_bytes(tmp_path / "large", 101) == b"x" * 101
    with pytest.raises(InputError, match="larger than"):
        read_bytes(tmp_path / "large", 100)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_bytes(tmp_path / "missing", 100)
    with pytest.raises(InputError, match="cannot be read"):
        read_bytes(tmp_path, 100)
