"""Mini-batches: properties of "one shuffled pass after another", counted by hand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dividemix.data.draw import draw, sweep


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@settings(deadline=None)
@given(
    index=st.lists(st.integers(0, 1000), min_size=1, max_size=30, unique=True),
    num_batches=st.integers(1, 8),
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_batches_are_full_and_each_pass_is_a_permutation(
    index: list[int], num_batches: int, batch_size: int, seed: int
) -> None:
    batches = draw(torch.tensor(index), num_batches, batch_size, generator(seed))
    assert batches.shape == (num_batches, batch_size)
    assert batches.dtype == torch.int64
    stream = batches.flatten().tolist()
    for begin in range(0, len(stream), len(index)):
        one_pass = stream[begin : begin + len(index)]
        assert len(set(one_pass)) == len(one_pass)
        assert set(one_pass) <= set(index)


@given(num_samples=st.integers(1, 3000), at_most=st.integers(1, 600))
def test_a_sweep_passes_every_sample_in_order_in_batches_of_one_size(num_samples: int, at_most: int) -> None:
    batches = sweep(num_samples, at_most)
    number, size = batches.shape
    assert size <= at_most
    stream = batches.flatten().tolist()
    assert stream[:num_samples] == list(range(num_samples))
    assert set(stream[num_samples:]) <= {num_samples - 1}
    assert len(stream) - num_samples < number  # little is computed twice


def test_an_empty_index_gives_batches_of_none() -> None:
    batches = draw(torch.empty(0, dtype=torch.int64), 5, 4, generator())
    assert batches.shape == (5, 0)
    assert batches.dtype == torch.int64


def test_passes_are_shuffled_anew() -> None:
    batches = draw(torch.arange(50), 4, 50, generator())
    assert len({tuple(row) for row in batches.tolist()}) == 4
    assert torch.arange(50).tolist() not in batches.tolist()


def test_every_order_is_about_as_frequent() -> None:
    """The 6 orders of 3 samples, 1000 expected of each; 150 is five standard deviations."""
    rows = draw(torch.arange(3), 6000, 3, generator()).tolist()
    counts = {order: rows.count(list(order)) for order in {tuple(row) for row in rows}}
    assert len(counts) == 6
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_the_generator_decides() -> None:
    index = torch.arange(100)
    assert torch.equal(draw(index, 3, 20, generator(1)), draw(index, 3, 20, generator(1)))
    assert not torch.equal(draw(index, 3, 20, generator(1)), draw(index, 3, 20, generator(2)))
    shared = generator(1)
    assert not torch.equal(draw(index, 3, 20, shared), draw(index, 3, 20, shared))
