"""Turn samples into vectors by an encoder: once, in large batches, with a progress bar, kept on disk.

Shapes: N samples, D numbers of a vector.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from dividemix.data.cache_folder import cache_folder
from dividemix.data.image_files import ImageFiles
from dividemix.encoders.encoder import Encoder, ImageEncoder
from dividemix.encoders.vector_cache import cached, chunks_of
from dividemix.stored import digest_of

_PIXELS_AT_ONCE = 1 << 23  # of a batch as the net gets it: 167 images of 224 x 224


def encoded(encoder: Encoder, samples: Any, fingerprint: bytes, what: str) -> NDArray[np.float32]:
    """The vectors (N, D) of N samples, computed or from the cache, mapped from a file.

    `samples` are images (N, H, W, channels) as an array or ImageFiles, or a list of texts. `fingerprint` identifies
    them, `what` names them for the progress bar. Raises InputError if they cannot be encoded or kept.
    """
    key = digest_of(fingerprint, encoder.describe())

    def compute(missing: list[range]) -> Iterator[NDArray[np.float32]]:
        batches = list(chunks_of(missing, _batch_size(encoder)))
        parts: list[NDArray[np.float32]] = []
        console = Console(stderr=True)
        shown = track(
            zip(batches, _streamed(samples, [rows for rows, _ in batches]), strict=True),
            f"encoding {what}",
            total=len(batches),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        for (_, is_last), batch in shown:
            parts.append(encoder.encode(batch).numpy())
            if is_last:
                yield np.concatenate(parts)
                parts = []

    return cached(cache_folder() / "vectors" / key, len(samples), compute)


def _batch_size(encoder: Encoder) -> int:
    """Samples in a batch; of images fewer, the larger they are."""
    if not isinstance(encoder, ImageEncoder):
        return 256
    return max(1, min(256, _PIXELS_AT_ONCE // encoder.preprocessing.crop**2))


def _streamed(samples: Any, batches: Iterable[range]) -> Iterator[Any]:
    """The samples of each batch; files are decoded ahead."""
    if isinstance(samples, ImageFiles):
        yield from samples.batches(np.arange(rows.start, rows.stop) for rows in batches)
    else:
        yield from (samples[rows.start : rows.stop] for rows in batches)
