"""Decisions on the disk: the oracle is `read_corrections`, which `dividemix relabel` uses."""

import threading
from pathlib import Path

import pytest

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.relabel.corrections import read_corrections
from dividemix.relabel.stored_review import Sample, StoredReview

SAMPLES = {i: Sample(f"={i}, x.png", ("cat", "dog")[i % 2], ("dog", "cat")[i % 2]) for i in range(200)}


def review(folder: Path, **changes: bool) -> StoredReview:
    return StoredReview(folder / "c.csv", SAMPLES, ("cat", "dog"), **{"can_add_classes": True} | changes)


def on_disk(folder: Path) -> dict[int, tuple[str, str, str, str]]:
    lines = read_corrections(folder / "c.csv")
    return {one.index: (one.path, one.given_label, one.new_label, one.action) for one in lines}


def test_a_decision_is_on_the_disk_when_it_is_made(tmp_path: Path) -> None:
    stored = review(tmp_path)
    assert stored.decisions() == (0, [])
    assert stored.change([(3, "keep", ""), (0, "accept", "ignored")]) == 1
    assert stored.change([(1, "choose", " a wolf "), (2, "delete", "x"), (4, "ambiguous", ""), (5, "skip", "")]) == 2
    expected = {
        0: ("=0, x.png", "cat", "dog", "accept"),
        1: ("=1, x.png", "dog", "a wolf", "choose"),
        2: ("=2, x.png", "cat", "", "delete"),
        3: ("=3, x.png", "dog", "dog", "keep"),
        4: ("=4, x.png", "cat", "", "ambiguous"),
        5: ("=5, x.png", "dog", "", "skip"),
    }
    assert on_disk(tmp_path) == expected
    stored.change([(0, None, ""), (3, "delete", "")])
    assert on_disk(tmp_path) == {k: v for k, v in expected.items() if k} | {3: ("=3, x.png", "dog", "", "delete")}
    again = review(tmp_path)
    assert sorted(again.decisions()[1]) == sorted(stored.decisions()[1])


def test_many_threads_lose_nothing(tmp_path: Path) -> None:
    stored = review(tmp_path)

    def decide(first: int) -> None:
        for index in range(first, 200, 8):
            stored.change([(index, "keep", "")])

    threads = [threading.Thread(target=decide, args=(first,)) for first in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert on_disk(tmp_path).keys() == set(range(200))
    assert stored.revision == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((200, "keep", ""), "index is 200: not a sample of the run"),
        ((0, "burn", ""), "action is 'burn': must be one of keep, accept"),
        ((0, "choose", "  "), "label is '': not a class"),
        ((0, "choose", "a\0b"), "not a class"),
        ((0, "choose", "\ud800"), "not a class"),
        ((0, "choose", "x" * 2000), "not a class"),
        ((0, "choose", "wolf"), "label is 'wolf': not a class"),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(
    tmp_path: Path, change: tuple[int, str, str], message: str
) -> None:
    stored = review(tmp_path, can_add_classes=False)
    stored.change([(1, "keep", "")])
    before = (tmp_path / "c.csv").read_bytes()
    with pytest.raises(InputError, match=message):
        stored.change([(2, "keep", ""), change])
    assert (tmp_path / "c.csv").read_bytes() == before
    assert stored.decisions() == (1, [(1, "keep", "dog")])


def test_a_full_disk_keeps_what_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = review(tmp_path)
    stored.change([(1, "keep", "")])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_text", full)
        with pytest.raises(OSError, match="No space"):
            stored.change([(2, "keep", "")])
    assert stored.decisions()[1] == [(1, "keep", "dog")]
    stored.change([(2, "keep", "")])
    assert on_disk(tmp_path).keys() == {1, 2}


@pytest.mark.parametrize("line", ["0,other.png,cat,,skip", '0,"\'=0, x.png",dog,,skip', "999,x.png,cat,,skip"])
def test_a_file_about_other_samples_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "c.csv").write_text(f"index,path,given_label,new_label,action\n{line}\n")
    with pytest.raises(InputError, match=r"has another path or label in the run: .* move the file away"):
        review(tmp_path)
