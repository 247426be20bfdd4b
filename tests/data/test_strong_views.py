"""Strong views: what is drawn, for whom, and how often. The operations have Pillow as oracle in a test of their own."""

import pytest
import torch
from torch import Tensor

from dividemix.data import strong_views as module
from dividemix.data.strong_views import OPERATIONS, Operation, strong_views

GREY = 127
CHI2_999 = {13: 34.53, 24: 51.18}  # 99.9 % quantiles by degrees of freedom


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_images(num_images: int, height: int = 8, width: int = 8, channels: int = 3) -> Tensor:
    """No pixel has the grey of the square."""
    images = torch.randint(256, (num_images, height, width, channels), generator=generator(9), dtype=torch.uint8)
    return images.masked_fill(images == GREY, 0)


def writing(position: int) -> Operation:
    """An operation that writes down its number and its amount: image = 16 * image + number, amount drawn in 0..1."""
    return Operation(lambda images, amounts: 16 * images + position, 0, 1)


def test_every_pair_of_operations_is_equally_likely_and_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five operations that leave traces: 100 of each of 25 pairs expected, chi-square at 99.9 %."""
    monkeypatch.setattr(module, "OPERATIONS", {str(position): writing(position) for position in range(5)})
    monkeypatch.setattr(module, "cutout", lambda images, *_: images)
    views = strong_views(torch.zeros(2500, 1, 1, 1, dtype=torch.uint8), generator()).flatten()
    pairs = [(a, b) for a in range(5) for b in range(5)]
    counts = [int((views == 16 * a + b).sum()) for a, b in pairs]
    assert sum(counts) == 2500
    assert sum((count - 100) ** 2 / 100 for count in counts) < CHI2_999[24]


def test_amounts_fill_their_range_evenly_and_differ_between_images(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []

    def note(images: Tensor, amounts: Tensor) -> Tensor:
        seen.append(amounts)
        return images

    monkeypatch.setattr(module, "OPERATIONS", {"note": Operation(note, -3, 4)})
    strong_views(random_images(1400), generator())
    for amounts in seen:
        counts = torch.histc(amounts.to(torch.float32), 14, min=-3, max=4)
        assert counts.sum() == 1400
        assert ((counts - 100) ** 2 / 100).sum() < CHI2_999[13]
        assert len(amounts.unique()) == 1400
    assert len(seen) == 2
    assert not torch.equal(*seen)


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8, 3), (9, 14, 3), (1, 1, 1)])
def test_views_have_the_shape_and_type_of_the_images(shape: tuple[int, int, int]) -> None:
    images = random_images(60, *shape)
    before = images.clone()
    views = strong_views(images, generator())
    assert views.dtype == torch.uint8
    assert views.shape == images.shape
    assert torch.equal(images, before)
    assert strong_views(images[:0], generator()).shape == (0, *shape)


def test_the_generator_decides_and_nothing_else() -> None:
    images = random_images(50)
    first, again, other = (strong_views(images, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_view_does_not_depend_on_the_other_images() -> None:
    """All other images are replaced: those that stay have the same views."""
    images = random_images(60)
    others = 255 - images
    others[::7] = images[::7]
    assert torch.equal(strong_views(images, generator())[::7], strong_views(others, generator())[::7])


def test_the_draws_do_not_depend_on_what_is_drawn_or_on_the_channels() -> None:
    """A resumed or shared training relies on it: the generator moves by the number of images alone."""
    left = []
    for images in (random_images(30), random_images(30, channels=1), torch.zeros(30, 8, 8, 3, dtype=torch.uint8)):
        used = generator()
        strong_views(images, used)
        left.append(used.get_state())
    assert torch.equal(left[0], left[1])
    assert torch.equal(left[0], left[2])


def test_every_operation_of_the_table_changes_some_image_except_the_identity() -> None:
    images = random_images(40, 20, 20) // 2
    for name, operation in OPERATIONS.items():
        amounts = operation.low + (operation.high - operation.low) * torch.rand(
            40, dtype=torch.float64, generator=generator(3)
        )
        assert torch.equal(operation.apply(images, amounts), images) == (name == "identity")
