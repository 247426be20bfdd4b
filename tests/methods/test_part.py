"""Some samples as data. Oracle: the data itself."""

import torch
from tiny import TinyData

from dividemix.methods.part import Part


def test_a_part_gives_the_images_and_labels_of_its_samples() -> None:
    data, index = TinyData(), torch.tensor([3, 8, 31])
    part = Part(data, index)
    batch = torch.tensor([2, 0, 2])
    assert torch.equal(part.labels, data.labels[index])
    assert part.at_once == data.at_once
    assert torch.equal(next(part.plain([batch])), data.images[[31, 3, 31]])
    views = next(part.augmented([batch], torch.Generator().manual_seed(1)))
    assert torch.equal(views, next(data.augmented([index[batch]], torch.Generator().manual_seed(1))))
