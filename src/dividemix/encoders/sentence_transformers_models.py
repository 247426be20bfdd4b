"""sentence-transformers:MODEL, a name on its hub or a folder: a model of texts."""

import sys
from typing import Any, ClassVar

import torch
from torch import Tensor

from dividemix.encoders.encoder import Encoder, Sample, weights_digest
from dividemix.optional import check_folder, import_optional, loading, quiet

_ADVICE = "check the name, connect to the network once, or give a folder: sentence-transformers:FOLDER"


class SentenceEncoder:
    """A model of texts that pools its tokens as its own files say."""

    takes: ClassVar[Sample] = "texts"

    def __init__(self, name: str, model: Any, version: str):
        self._name, self._model, self._version = name, model, version

    @torch.inference_mode()
    def encode(self, batch: Any) -> Tensor:
        """Vectors (R, D) of a list of R texts."""
        vectors: Tensor = self._model.encode(list(batch), convert_to_tensor=True, show_progress_bar=False)
        return vectors.float().cpu()

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`."""
        return {"name": self._name, "weights": weights_digest(self._model), "version": self._version}


def load(model: str, weights: str, name: str) -> Encoder:
    """The encoder; no code of the model's own is run, and only safetensors are read."""
    package = import_optional("sentence_transformers", name, "sentence-transformers")
    check_folder(model, name)
    with loading(name, _ADVICE), quiet(sys.modules.get("transformers")):
        found = package.SentenceTransformer(model, device="cpu", model_kwargs={"use_safetensors": True})
    return SentenceEncoder(name, found, f"sentence-transformers {package.__version__}")
