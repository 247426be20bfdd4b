"""Two nets on the same batches, and the choice of small losses. Oracles: sorting by hand, and loops."""

import pytest
import torch
from tiny import TinyData, copied, same, tiny_nets
from torch import Tensor
from torch.nn import functional as F

from dividemix.engine.state import State
from dividemix.methods.method import MethodSettings
from dividemix.methods.ordinary_epoch import ordinary_batches
from dividemix.methods.two_nets import count, disagree, exchanged_losses, smallest, train_both


def random_logits(rows: int = 7, seed: int = 0) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = [3 * torch.randn(rows, 3, generator=generator, dtype=torch.float64) for _ in range(2)]
    return logits, torch.randint(3, (rows,), generator=generator)


@pytest.mark.parametrize(
    ("share", "total", "number"), [(1.0, 8, 8), (0.5, 7, 3), (0.01, 8, 1), (1 - 0.9, 10, 1), (0, 3, 1)]
)
def test_a_share_is_rounded_down_and_never_nothing(share: float, total: int, number: int) -> None:
    assert count(share, total) == number
    assert count(1 - 0.2, 10) == 8
    assert count(1 - 0.7, 10) == 3  # 0.30000000000000004 and 0.29999999999999998 alike


def test_the_smallest_losses_are_those_that_sorting_puts_first() -> None:
    for seed in range(5):
        losses = torch.rand(9, generator=torch.Generator().manual_seed(seed))
        for number in (1, 4, 9):
            expected = sorted(sorted(range(9), key=losses.tolist().__getitem__)[:number])
            assert smallest(losses, number).tolist() == expected


@pytest.mark.parametrize("number", [1, 3, 7])
def test_each_loss_is_over_the_samples_that_the_other_net_finds_easiest(number: int) -> None:
    logits, labels = random_logits()
    own = [
        [float(F.cross_entropy(row[None], label[None])) for row, label in zip(rows, labels, strict=True)]
        for rows in logits
    ]
    chosen = [sorted(range(7), key=losses.__getitem__)[:number] for losses in own]
    expected = [sum(own[0][i] for i in chosen[1]) / number, sum(own[1][i] for i in chosen[0]) / number]
    found = exchanged_losses(logits, labels, number)
    assert [float(loss) for loss in found] == pytest.approx(expected, rel=1e-12)
    swapped = exchanged_losses(logits[::-1], labels, number)
    assert [float(loss) for loss in swapped] == pytest.approx(expected[::-1], rel=1e-12)


def test_a_sample_that_one_net_finds_hard_is_absent_from_the_others_update_alone() -> None:
    logits, labels = random_logits()
    logits[0][2] = 0.0
    logits[0][2, labels[2]] = -50.0  # a huge loss by the first net
    logits[1][2, labels[2]] = 50.0  # and none by the second
    for own in logits:
        own.requires_grad_()
    for loss in exchanged_losses(logits, labels, 6):
        loss.backward()
    gradients = [own.grad for own in logits]
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert (gradients[1][2] == 0).all()
    assert (gradients[0][2] != 0).any()


def test_nets_that_are_the_same_choose_the_same() -> None:
    logits, labels = random_logits()
    first, second = exchanged_losses([logits[0], logits[0]], labels, 3)
    assert torch.equal(first, second)


def test_they_disagree_where_the_largest_logits_are_at_different_classes() -> None:
    logits, _ = random_logits()
    expected = [a.index(max(a)) != b.index(max(b)) for a, b in zip(logits[0].tolist(), logits[1].tolist(), strict=True)]
    assert disagree(logits).tolist() == expected
    assert 0 < sum(expected) < 7


def test_both_losses_are_computed_before_either_net_moves_and_none_makes_no_step() -> None:
    s, data = MethodSettings(batch_size=4, lr=0.05), TinyData()
    state = State.start(tiny_nets(), s)
    before = [copied(dict(net.named_parameters())) for net in state.nets]
    seen: list[tuple[bool, bool]] = []

    def losses_of(logits: list[Tensor], labels: Tensor) -> list[Tensor | None]:
        moved = [not same(old, dict(net.named_parameters())) for net, old in zip(state.nets, before, strict=True)]
        seen.append((moved[0], moved[1]))
        return [F.cross_entropy(logits[0], labels), None]

    losses = train_both(state, data, ordinary_batches(state, data, s), losses_of)
    assert seen[0] == (False, False)
    assert set(seen[1:]) == {(True, False)}
    assert losses["loss"][0] > 0 == losses["loss"][1]
    assert same(before[1], dict(state.nets[1].named_parameters()))
    assert len(data.asked) == 5  # each batch is augmented once, for both
