"""Exact search for nearest neighbours, block by block, in memory that does not grow with the square of the samples.

Shapes: N vectors of D numbers, k neighbours.
"""

import torch
from torch import Tensor

_ROWS, _COLUMNS = 1024, 1 << 16  # of a block of distances: 256 MB


@torch.inference_mode()
def nearest(vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Euclidean distances (N, k) to the k nearest other vectors, nearest first, and their indices (N, k)."""
    squares = vectors.square().sum(dim=1)
    distances = torch.empty(len(vectors), k, dtype=torch.float32, device=vectors.device)
    index = torch.empty(len(vectors), k, dtype=torch.int64, device=vectors.device)
    for start in range(0, len(vectors), _ROWS):
        rows = slice(start, min(start + _ROWS, len(vectors)))
        place = _nearest_of(vectors, squares, rows, k)
        # The difference of large squares has few digits left: what is near is measured again, by its differences.
        exact = torch.stack([(vectors[rows] - vectors[column]).norm(dim=1) for column in place.T], dim=1)
        order = exact.argsort(dim=1, stable=True)
        distances[rows], index[rows] = exact.gather(1, order), place.gather(1, order)
    return distances, index


def _nearest_of(vectors: Tensor, squares: Tensor, rows: slice, k: int) -> Tensor:
    """The indices (R, k) of the k nearest other vectors of each row."""
    num_rows = rows.stop - rows.start
    best = torch.full((num_rows, k), torch.inf, device=vectors.device)
    place = torch.zeros(num_rows, k, dtype=torch.int64, device=vectors.device)
    for left in range(0, len(vectors), _COLUMNS):
        right = min(left + _COLUMNS, len(vectors))
        block = torch.addmm(squares[left:right], vectors[rows], vectors[left:right].T, alpha=-2)
        block += squares[rows, None]
        own = torch.arange(max(rows.start, left), max(min(rows.stop, right), max(rows.start, left)))
        block[own - rows.start, own - left] = torch.inf  # a vector is no neighbour of itself
        found, column = block.topk(min(k, right - left), dim=1, largest=False)
        joined = torch.cat([best, found], dim=1)
        best, chosen = joined.topk(k, dim=1, largest=False)
        place = torch.cat([place, column + left], dim=1).gather(1, chosen)
    return place
