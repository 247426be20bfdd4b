"""Who computes which rows, and the order of sums. The oracles are torch's division of rows and a sum by hand."""

import pytest
import torch

from dividemix.engine.sharing import Sharing, sum_in_pairs


@pytest.mark.parametrize("num_rows", [8, 41, 42, 43])
def test_processes_have_whole_blocks(num_rows: int) -> None:
    x = torch.arange(num_rows)
    blocks = x.tensor_split(4)
    for num_processes in (1, 2, 4):
        b = 4 // num_processes
        for number in range(num_processes):
            own = Sharing(num_processes, number, b).own_rows(x)
            expected = blocks[b * number : b * (number + 1)]
            assert [rows.tolist() for rows in own.tensor_split(b)] == [rows.tolist() for rows in expected]


def test_sums_of_pairs_have_the_order_that_processes_have() -> None:
    parts = list(torch.randn(4, 1000, generator=torch.Generator().manual_seed(1)))
    total = sum_in_pairs(parts)
    assert torch.equal(total, (parts[0] + parts[1]) + (parts[2] + parts[3]))
    assert torch.equal(total, sum_in_pairs([sum_in_pairs(parts[:2]), sum_in_pairs(parts[2:])]))
    assert not torch.equal(total, parts[0] + parts[1] + parts[2] + parts[3])  # the order shows
    assert torch.equal(sum_in_pairs(parts[:3]), parts[0] + parts[1] + parts[2])
