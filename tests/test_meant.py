"""What a user may have meant. Oracle: slips of the finger, written by hand."""

from pathlib import Path

import pytest

from dividemix.meant import nearest, nearest_path, or_meant, or_meant_path


@pytest.mark.parametrize(
    ("word", "meant"),
    [("robsut", "robust"), ("Robust", "robust"), ("co-teaching", "co_teaching"), ("xyzzy", None), ("", None)],
)
def test_the_nearest_word(word: str, meant: str | None) -> None:
    assert nearest(word, ("dividemix", "robust", "co_teaching", "co_teaching_plus")) == meant


def test_a_word_like_none_gets_the_other_sentence() -> None:
    assert or_meant("robsut", ["robust"], "see the list") == "did you mean robust?"
    assert or_meant("xyzzy", ["robust"], "see the list") == "see the list"


def test_the_nearest_path_is_in_the_same_folder_and_written_as_the_user_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "photos").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert nearest_path("data/photso") == "data/photos"
    assert nearest_path("data/photso/") == "data/photos"
    assert nearest_path(tmp_path / "data" / "photso") == str(tmp_path / "data" / "photos")
    assert nearest_path("dta") == "data"
    assert or_meant_path("data/photso", "other") == "did you mean data/photos?"


@pytest.mark.parametrize("path", ["data", "data/xyzzy", "nowhere/photos", "", "a\0b", "x" * 5000])
def test_no_path_is_guessed_where_it_exists_or_none_is_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "data" / "photos").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert nearest_path(path) is None
    assert or_meant_path(path, "other") == "other"


def test_what_other_programs_call_a_setting_is_known() -> None:
    assert nearest("learning_rate", ["learn_share", "lr"]) == "lr"
    assert nearest("learning_rate", ["learn_share"]) == "learn_share"
    assert nearest("gpu", iter(["cpu_name", "device"])) == "device"
