"""transformers:MODEL, a name on its hub or a folder: a model of images, or of texts by the mean of its tokens."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dividemix.encoders.encoder import IMAGENET, Encoder, ImageEncoder, Preprocessing, Sample, weights_digest
from dividemix.optional import check_folder, import_optional, loading, quiet

_ADVICE = "check the name, connect to the network once, or give a folder that has the model: transformers:FOLDER"
_MAX_TOKENS = 512
_AT_ONCE = 32  # texts


class _ImageSide(nn.Module):
    """A model of images as a function of pixels: its pooled output, or its first token."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Vectors (R, D)."""
        out = self.model(pixel_values=images)
        pooled: Tensor | None = getattr(out, "pooler_output", None)
        return out.last_hidden_state[:, 0] if pooled is None else pooled.flatten(1)


class TokenEncoder:
    """A model of texts: the mean over the tokens of its last layer."""

    takes: ClassVar[Sample] = "texts"

    def __init__(self, name: str, model: Any, tokenizer: Any, version: str):
        self._name, self._model, self._tokenizer, self._version = name, model.eval(), tokenizer, version

    @torch.inference_mode()
    def encode(self, batch: Any) -> Tensor:
        """Vectors (R, D) of a list of R texts; those of similar length are computed together: less is padded."""
        order = sorted(range(len(batch)), key=lambda i: len(batch[i]))
        parts = [order[first : first + _AT_ONCE] for first in range(0, len(order), _AT_ONCE)]
        vectors = torch.cat([self._mean([batch[i] for i in part]) for part in parts])
        return torch.empty_like(vectors).index_copy_(0, torch.tensor(order), vectors)

    def _mean(self, texts: list[str]) -> Tensor:
        device = next(self._model.parameters()).device
        limit = min(_MAX_TOKENS, getattr(self._tokenizer, "model_max_length", _MAX_TOKENS))
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
        tokens = {name: tensor.to(device) for name, tensor in tokens.items()}
        hidden = self._model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][..., None].to(hidden.dtype)
        mean: Tensor = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        return mean.float().cpu()

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`."""
        return {"name": self._name, "weights": weights_digest(self._model), "version": self._version}


def load(model: str, weights: str, name: str) -> Encoder:
    """The encoder; no code of the model's own is run, and only safetensors are read."""
    transformers = import_optional("transformers", name, "transformers")
    version = f"transformers {transformers.__version__}"
    check_folder(model, name)
    with loading(name, _ADVICE), quiet(transformers):
        # Said, since otherwise the package asks in the terminal whether to run the code of a model that has some.
        net = transformers.AutoModel.from_pretrained(model, use_safetensors=True, trust_remote_code=False)
        if "pixel_values" not in str(getattr(net, "main_input_name", "input_ids")):
            tokenizer = transformers.AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            return TokenEncoder(name, net, tokenizer, version)
        processor = transformers.AutoImageProcessor.from_pretrained(model, trust_remote_code=False)
    size, crop = _side(getattr(processor, "size", None), 224), _side(getattr(processor, "crop_size", None), 0)
    prepared = Preprocessing(
        size=size,
        crop=crop or size,
        mean=tuple(getattr(processor, "image_mean", None) or IMAGENET["mean"]),
        std=tuple(getattr(processor, "image_std", None) or IMAGENET["std"]),
        interpolation="bilinear" if getattr(processor, "resample", 3) == 2 else "bicubic",
    )
    return ImageEncoder(name, _ImageSide(net), prepared, version)


def _side(size: Any, default: int) -> int:
    """The side in pixels that a processor's size means: a number, or by the names of its sides."""
    if isinstance(size, int):
        return size
    known = [(size or {}).get(key) for key in ("shortest_edge", "height")] if hasattr(size, "get") else []
    return next((int(side) for side in known if side), default)
