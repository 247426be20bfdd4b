"""Some samples of the data, as data to train on."""

from collections.abc import Iterable, Iterator

from torch import Generator, Tensor

from dividemix.data.training_data import TrainingData


class Part:
    """The samples of an index (n,) on the CPU, numbered from 0."""

    def __init__(self, data: TrainingData, index: Tensor):
        self._data, self._index = data, index
        self.labels = data.labels[index.to(data.labels.device)]
        self.at_once = data.at_once

    def augmented(self, batches: Iterable[Tensor], generator: Generator) -> Iterator[Tensor]:
        """Augmented images (R, ...) of each index batch (R,)."""
        return self._data.augmented(self._all(batches), generator)

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Images (R, ...) of each index batch (R,)."""
        return self._data.plain(self._all(batches))

    def _all(self, batches: Iterable[Tensor]) -> list[Tensor]:
        return [self._index[batch] for batch in batches]
