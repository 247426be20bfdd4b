"""Which samples are held out. Oracle: the rule that was in force before copies were looked for, and counts."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dividemix.data.readers.arrays import read_arrays
from dividemix.data.source import Source
from dividemix.data.table_rows import as_rows
from dividemix.data.texts import as_texts
from dividemix.planning.held_out import held_out
from dividemix.planning.job import Job
from dividemix.planning.material import gather
from dividemix.planning.plan import make_plan

RNG = np.random.default_rng(0)
NUM, LABELS = 200, np.arange(200) % 4


def source_of(samples: Any, labels: NDArray[np.int64] = LABELS) -> Source:
    return Source(name="toy", classes=tuple("abcd"), train_samples=samples, train_labels=labels)


def images(num: int = NUM) -> NDArray[np.uint8]:
    return RNG.integers(0, 256, (num, 8, 8, 1), dtype=np.uint8)


KINDS: dict[str, Any] = {
    "images": images(),
    "vectors": RNG.normal(size=(NUM, 5)).astype(np.float32),
    "texts": as_texts(f"text {i}" for i in range(NUM)),
    "rows": as_rows({"a": np.arange(float(NUM)), "b": [str(i % 3) for i in range(NUM)]}),
}


def drawn_one_by_one(labels: NDArray[np.int64], share: float, seed: int) -> list[int]:
    """The share of each class of at least five samples, in an order of its own."""
    rng, held = np.random.default_rng([seed, 2]), []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) >= 5:
            held += rng.permutation(members)[: round(share * len(members))].tolist()
    return sorted(held)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "seed"), [(0.1, 1), (0.25, 2), (0.5, 3)])
def test_without_copies_the_split_is_the_one_that_always_was(kind: str, share: float, seed: int) -> None:
    labels = np.sort(RNG.choice(4, NUM, p=[0.6, 0.3, 0.085, 0.015]))
    labels[:4] = np.arange(4)
    source = source_of(KINDS[kind], labels)
    assert held_out(source, labels, share, seed=seed).samples.tolist() == drawn_one_by_one(labels, share, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [2, 5])
def test_whole_groups_of_copies_are_held_out(kind: str, times: int) -> None:
    """Each sample several times: a share of 0.2 of each class, none of them with a copy that trains."""
    rows = np.repeat(np.arange(NUM), times)
    source = source_of(KINDS[kind][rows], LABELS[rows])
    held = held_out(source, source.train_labels, 0.2, seed=1).samples
    assert np.bincount(source.train_labels[held]).tolist() == [10 * times] * 4
    assert not set(rows[held]) & set(np.delete(rows, held))


def test_copies_with_other_labels_count_in_their_own_class() -> None:
    rows = np.concatenate([np.arange(NUM), np.arange(NUM)])
    labels = np.concatenate([LABELS, RNG.permutation(LABELS)])
    held = held_out(source_of(KINDS["vectors"][rows], labels), labels, 0.1, seed=1).samples
    counts = np.bincount(labels[held], minlength=4)
    assert (counts <= 10).all()
    assert counts.sum() >= 30
    assert not set(rows[held]) & set(np.delete(rows, held))


def test_a_group_that_exceeds_the_share_of_its_class_trains() -> None:
    vectors = KINDS["vectors"].copy()
    vectors[::4][:11] = vectors[0]  # 11 copies in a class of 50, of which 10 are held out
    held = held_out(source_of(vectors), LABELS, 0.2, seed=1).samples
    assert np.bincount(LABELS[held]).tolist() == [10] * 4
    assert not np.isin(held, np.arange(0, 44, 4)).any()


def test_a_copy_in_a_class_that_is_too_small_keeps_both_in_the_training() -> None:
    labels = LABELS.copy()
    labels[labels == 3] = 2
    labels[3] = 3
    vectors = KINDS["vectors"].copy()
    vectors[3] = vectors[0]
    assert not {0, 3} & set(held_out(source_of(vectors, labels), labels, 0.5, seed=1).samples.tolist())


def test_copies_of_texts_are_found_before_they_become_vectors() -> None:
    texts = [f"word{i % 4} foo{i % 7} bar{i}" for i in range(NUM) for _ in (0, 1)]
    plan = make_plan({"data": "data.npz", "method": "robust"}, source=read_arrays(texts, np.repeat(LABELS, 2)))
    material = gather(plan.job, torch.device("cpu"), plan.source)
    assert len(material.unseen) == 40 == 2 * len({texts[i] for i in material.unseen})


def test_it_is_said_if_nothing_can_be_held_out() -> None:
    """Every image is there more often than a tenth of its class: the choice is none, and a share asked for is noted."""
    rows = np.tile(np.arange(8), 40)
    source = source_of(images(8)[rows], rows % 4)
    plan = make_plan({"data": "data.npz"}, source=source)
    choice = next(choice for choice in plan.choices if choice.name == "holdout")
    assert (choice.value, choice.reason[:31]) == (0.0, "too many copies of each sample:")
    assert not gather(plan.job, torch.device("cpu"), source).notes
    material = gather(Job(data="data.npz", holdout=0.1), torch.device("cpu"), source)
    assert material.holdout is None
    (note,) = material.notes
    assert note.startswith("holdout is 0.1, but no sample is held out: ")
