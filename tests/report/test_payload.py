"""What goes into the page and what stays out; expected values are worked out by hand."""

import dataclasses
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from invented import invented_content

from dividemix.report import payload as payload_module
from dividemix.report.content import PageContent
from dividemix.report.payload import MAX_SUSPECTS, payload, run_id
from dividemix.report.shown import Shown

SHOWN = {"kind": "text", "text": "words"}


def small(num_samples: int = 30, num_classes: int = 3) -> PageContent:
    true = np.arange(num_samples) % num_classes
    return invented_content(true, tuple(f"class {label}" for label in range(num_classes)))


def noting(asked: list[int]) -> Callable[[int], Shown]:
    """A function that notes whose card it was asked for."""

    def show(i: int) -> Shown:
        asked.append(i)
        return SHOWN

    return show


def test_suspects_are_worst_first_with_what_is_known_of_them() -> None:
    content = dataclasses.replace(small(), paths=tuple(f"{i}.png" for i in range(30)))
    page = payload(content, lambda i: SHOWN)
    order = np.argsort(content.label_score, kind="stable")
    assert [sample["index"] for sample in page["suspects"]] == order.tolist()
    worst, i = page["suspects"][0], int(order[0])
    assert worst["path"] == f"{i}.png"
    assert worst["given"] == content.labels[i]
    assert worst["suggested"] == content.probs[i].argmax() == worst["likely"][0][0]
    assert worst["likely"][0][1] == pytest.approx(content.probs[i].max(), rel=1e-3)
    assert worst["flagged"] is bool(content.is_issue[i])
    assert worst["clean_prob"] == pytest.approx(content.clean_prob[:, i], rel=1e-3)
    assert worst["true"] is None
    assert worst["shown"] == SHOWN


def test_suspects_have_the_index_of_the_data_as_it_was_given() -> None:
    """The sample's picture stays its own."""
    asked: list[int] = []
    content = dataclasses.replace(small(), sample_rows=np.arange(30) * 7 + 2)
    page = payload(content, noting(asked))
    assert [sample["index"] for sample in page["suspects"]] == [7 * i + 2 for i in asked]
    assert asked == np.argsort(content.label_score, kind="stable").tolist()
    assert run_id(content) != run_id(small())


@pytest.mark.parametrize("can_add", [True, False])
def test_the_page_knows_whether_data_can_take_new_classes(can_add: bool) -> None:
    page = payload(dataclasses.replace(small(), can_add_classes=can_add), lambda i: None)
    assert page["can_add_classes"] is can_add


def test_only_the_worst_thousand_are_shown() -> None:
    shown: list[int] = []
    page = payload(small(2500), noting(shown))
    assert len(page["suspects"]) == len(shown) == MAX_SUSPECTS
    assert page["num_samples"] == 2500


def test_cards_that_would_grow_too_large_end_the_gallery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_module, "MAX_SHOWN_BYTES", 5 * len(json.dumps(SHOWN)))
    assert len(payload(small(), lambda i: SHOWN)["suspects"]) == 5


def test_data_of_which_nothing_can_be_shown() -> None:
    assert {sample["shown"] for sample in payload(small(), lambda i: None)["suspects"]} == {None}


def test_the_noise_is_counted_in_samples_and_its_commonest_pairs_named() -> None:
    joint = np.array([[0.5, 0.1, 0.0], [0.0, 0.2, 0.2], [0.0, 0.0, 0.0]])
    noise = payload(dataclasses.replace(small(), noise_matrix=joint), lambda i: None)["noise"]
    assert noise["matrix"] == [[15, 3, 0], [0, 6, 6], [0, 0, 0]]
    assert noise["pairs"] == [[1, 2, 6], [0, 1, 3]]


def test_each_class_has_its_number_of_samples_and_of_flagged_ones() -> None:
    content = small()
    expected = [[0, 0] for _ in content.classes]
    for label, flagged in zip(content.labels, content.is_issue, strict=True):
        expected[label][0] += 1
        expected[label][1] += int(flagged)
    assert content.is_issue.any()
    assert payload(content, lambda i: None)["noise"]["by_class"] == expected


def test_many_classes_give_pairs_and_no_map() -> None:
    noise = payload(small(200, 100), lambda i: None)["noise"]
    assert noise["matrix"] is None
    assert 0 < len(noise["pairs"]) <= 40
    counts = [count for _, _, count in noise["pairs"]]
    assert counts == sorted(counts, reverse=True)


def test_numbers_that_json_does_not_know_are_null() -> None:
    content = dataclasses.replace(
        small(),
        rows=[
            {"epoch": 1, "test_acc": math.nan, "val_acc": np.float32(1 / 3), "secret": 1},
            {"epoch": 2, "val_is_clean": True, "num_labeled": [3, 4], "num_divided": 6},
        ],
        noise_rate=math.inf,
    )
    page = payload(content, lambda i: None)
    assert page["rows"] == [
        {"epoch": 1, "test_acc": None, "val_acc": 0.3333},
        {"epoch": 2, "val_is_clean": True, "num_labeled": [3, 4], "num_divided": 6},
    ]
    assert page["noise_rate"] is None
    json.dumps(page, allow_nan=False)


def test_the_run_id_is_the_same_for_the_same_samples_and_scores_only() -> None:
    content = small()
    assert run_id(content) == run_id(dataclasses.replace(content, title="another title", facts=[]))
    assert run_id(content) != run_id(dataclasses.replace(content, labels=content.labels[::-1]))
    assert run_id(content) != run_id(dataclasses.replace(content, paths=tuple("x" * 30)))
