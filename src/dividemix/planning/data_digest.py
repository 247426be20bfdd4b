"""One digest of all data of a run."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import fingerprint
from dividemix.data.source import Kind, Samples, Source
from dividemix.data.table_rows import rows_fingerprint
from dividemix.data.texts import texts_fingerprint
from dividemix.data.vectors import vectors_fingerprint

Labelled = tuple[Samples, NDArray[np.int64]]


def data_digest(
    source: Source, labels: NDArray[np.int64], true_labels: NDArray[np.int64] | None, trusted: Labelled | None
) -> str:
    """A digest that is equal for equal data, wherever it is stored.

    Vectors that an encoder computed count as their images and the encoder: other machines compute other bits.
    """
    if source.encoding is not None:
        about = json.dumps(source.encoding.about, sort_keys=True)
        of_images = data_digest(source.encoding.source, labels, true_labels, trusted)
        return hashlib.blake2b(f"{about} {of_images}".encode(), digest_size=16).hexdigest()
    digest = hashlib.blake2b(repr((source.classes, source.train_samples.shape)).encode(), digest_size=16)
    others = [*source.other_tests.values(), *([trusted] if trusted else [])]
    for images in (source.train_samples, source.test_samples, source.val_samples, *(images for images, _ in others)):
        if images is not None:
            digest.update(_FINGERPRINTS[source.kind](images))
    for array in (labels, true_labels, source.test_labels, source.val_labels, *(labels for _, labels in others)):
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


_FINGERPRINTS: dict[Kind, Callable[[Any], bytes]] = {
    "images": fingerprint,
    "vectors": lambda vectors: vectors_fingerprint(np.asarray(vectors)),
    "texts": texts_fingerprint,
    "rows": rows_fingerprint,
}
